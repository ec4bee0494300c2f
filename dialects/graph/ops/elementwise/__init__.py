"""Operators that work element by element: scalar functions, activations, casts, quantisation.

It may import: the same as the rest of `dialects/graph`.
In: operands that are broadcast to one shape; out: one element for each of them.
"""
