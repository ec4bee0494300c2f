"""Symbolic sizes: what is known of each dimension in a function, and how it is found out.

It may import: the same as the rest of `dialects/graph`.
In: a function on tensors; out: its sizes in terms of those of its arguments.
"""
