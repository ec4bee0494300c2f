"""Conversions from one dialect to the next, one in each file, down to the LLVM dialect.

It may import: `dialects` and `core`.
In: verified IR of the source dialect; out: verified IR with nothing of the source left, or an error that names what is.
"""
