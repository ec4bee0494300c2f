"""The dialects that are ours: `graph`, `loop`, `rt`, and the upstream `sparse_tensor` encoding.

It may import: `core`.
In: IR text or constructor calls; out: verified operations with shape rules and, in `graph`, NumPy references.
"""
