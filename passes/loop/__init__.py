"""Schedules of `loop` kernels: the primitives, and the automatic schedule that chooses them.

It may import: `dialects` and `core`.
In: the `kernels` stage; out: the `scheduled` stage.
"""
