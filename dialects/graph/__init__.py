"""The `graph` dialect: pure operators on dense and sparse tensors with symbolic dimensions.

It may import: `core` and the `sparse_tensor` encoding.
In: values from a frontend; out: operators with shapes, a NumPy meaning and a fusion kind.
"""
