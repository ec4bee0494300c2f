"""The meaning of modules as plain NumPy and SciPy, the standard all compiled code is held against.

It may import: NumPy, SciPy, `dialects` and `core`.
In: a module of the `graph` level and arrays; out: the arrays its functions return.
"""
