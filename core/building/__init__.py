"""The kit of conversions: tables of handlers, integer algebra and its emission, open scopes.

It knows the standard dialects and none of ours, and may import `core` only. In: sizes and indices
as numbers, symbols and affine expressions; out: operations in a block.
"""
