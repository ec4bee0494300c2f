"""The `rt` dialect: what remains of a program without tensors and loop nests.

It may import: core, the `sparse_tensor` encoding and xDSL.
In: public functions on buffers, and tile loops; out: operations that become calls and branches.
"""
