"""ONNX models into the `graph` dialect, from opset 7 to the newest of the installed onnx.

It may import: onnx, `dialects` and `core`. `import stepwell` does not load it.
In: a path, bytes or a `ModelProto`; out: a `Module` with the initialisers as its weights.
"""
