"""The dialects that are ours: `graph`, `loop`, `rt`, and the `sparse_tensor` encoding.

It may import: `core`.
In: IR text or constructor calls; out: verified operations that know their meaning.
"""
