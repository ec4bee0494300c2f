"""The `graph` dialect: pure operators on dense and sparse tensors with symbolic dimensions.

It may import: `core` and the `sparse_tensor` encoding.
In: values from a frontend; out: operators that know their shapes, NumPy meaning, fusion kind and value at an index.
"""
