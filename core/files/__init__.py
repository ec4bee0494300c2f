"""Files: reading those that are not trusted, writing whole ones, versions of formats.

It may import: the same as the rest of `core`.
In: paths and bytes; out: the same, checked.
"""
