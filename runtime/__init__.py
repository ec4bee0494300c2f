"""Running compiled programs: the executable, its call boundary, constants, registered functions.

It may import: `dialects`, `core`, and `backends`.
In: a compiled module, NumPy or SciPy arrays; out: NumPy arrays, or one clear error.
"""
