"""Scheduling of `loop` kernels: the primitives as passes, and the automatic schedule that chooses among them.

It may import: `dialects` and `core`.
In: the `kernels` stage; out: the `scheduled` stage.
"""
