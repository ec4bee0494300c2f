"""The end of the staircase: execution.

It may import: `dialects` and `core`.
In: the last dialect of a route; out: machine code (`llvm/`) or NumPy results (`reference/`).
"""
