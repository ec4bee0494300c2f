"""ONNX models into the `graph` dialect, of all opsets of the installed onnx package.

It may import: onnx, `dialects` and `core`. `import stepwell` does not load it.
In: a path, bytes or a `ModelProto`; out: a `Module` with the initialisers as its weights.
"""
