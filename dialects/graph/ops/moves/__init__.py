"""Operators that move elements: reshapes, slices, padding, gathers and scatters.

It may import: the same as the rest of `dialects/graph`.
In: a tensor, and places that are known or computed; out: the same elements at other places.
"""
