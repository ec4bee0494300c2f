"""The kit that conversions build with: integer algebra, its way to operations, open scopes.

It knows the standard dialects and none of ours, and may import `core` alone. Sizes and indices
come in as numbers, symbols and affine expressions, and go out as operations in a block.
"""
