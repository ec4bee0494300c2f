"""ONNX models into the `graph` dialect, opset 7 to the newest that the installed onnx knows.

It may import: onnx (inside functions only), `dialects` and `core`.
In: a path, bytes or a `ModelProto`; out: a `Module` with the initialisers as its weights.
"""
