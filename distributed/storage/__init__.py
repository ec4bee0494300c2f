"""Memory and files of graphs that one machine, or its memory, does not hold.

It may import: the same as the rest of `distributed`.
In: rows, in memory or in files; out: the same, in pieces that fit.
"""
