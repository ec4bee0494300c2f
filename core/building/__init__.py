"""Building blocks of conversions: tables of handlers, integer algebra as operations, open scopes.

They use the standard dialects but none of ours, and may import `core` only. In: sizes and indices
as numbers, symbols and affine expressions; out: operations in a block.
"""
