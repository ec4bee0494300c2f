"""Ways in: ONNX files, the Python builder, graph neural networks, MLIR text.

It may import: `dialects` and `core`.
In: what a user has (a path, arrays, a graph, text); out: a verified `Module`.
"""
