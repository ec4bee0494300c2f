"""Operators with regions, calls of kernels and functions, and checks of values.

It may import: the same as the rest of `dialects/graph`.
In: values and regions; out: what the regions that run yield.
"""
