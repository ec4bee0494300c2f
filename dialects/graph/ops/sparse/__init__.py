"""Operators on sparse matrices and on the edges of graphs.

It may import: the same as the rest of `dialects/graph`.
In: compressed rows and dense tensors; out: either of these; a sparse matrix is never made dense
silently.
"""
