"""Frontends: ONNX files, the Python builder, graph neural networks, MLIR text.

It may import: `dialects` and `core`.
In: a model (a path, arrays, a graph, text); out: a verified `Module`.
"""
