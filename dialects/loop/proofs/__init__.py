"""What follows about a kernel: bounds, coverage, dependences, in terms of `core/algebra`.

It may import: the same as the rest of `dialects/loop`.
In: a kernel, or loops and indices of one; out: whether a statement about it holds.
"""
