"""Operators without operands, or with sizes and seeds only: constants, ranges, random numbers.

It may import: the same as the rest of `dialects/graph`.
In: attributes, sizes and seeds; out: tensors.
"""
