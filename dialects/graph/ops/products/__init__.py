"""Operators that sum products: linear layers, matrix products, convolutions, attention.

It may import: the same as the rest of `dialects/graph`.
In: dense operands, of floats or of quantised integers; out: sums over the axes that they share.
"""
