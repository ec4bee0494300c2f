"""The semantics of modules in plain NumPy and SciPy, which compiled code is checked against.

It may import: NumPy, SciPy, `dialects` and `core`.
In: a module of the `graph` level and arrays; out: the arrays its functions return.
"""
