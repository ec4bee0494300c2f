"""The operators of ONNX, by family: each function is the conversion of one or several.

It may import: the same as the rest of `frontends/onnx`.
In: a node of a model; out: operators of the `graph` dialect.
"""
