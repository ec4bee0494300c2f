"""Compiled programs at work: the executable, the call boundary, the thread pool, registered functions, artefacts.

It may import: `dialects` and `core`, and the rooms above them where a compiled program is put together.
In: a compiled module and NumPy or SciPy arrays; out: NumPy arrays, or one clear error.
"""
