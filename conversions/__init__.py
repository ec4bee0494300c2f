"""Conversions from one dialect to the next, one in each file, down to the LLVM dialect.

It may import: `dialects` and `core`.
In: verified IR of the source dialect; out: verified IR without it, or an error that names
what is left.
"""
