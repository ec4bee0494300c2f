"""The operators of torch, by family: each function is the conversion of one or several.

It may import: the same as the rest of `frontends/torch`.
In: a node of an exported graph; out: operators of the `graph` dialect.
"""
