"""Schedules of `loop` kernels: `steps` has the primitives, `scheduler` chooses them.

It may import: `dialects` and `core`.
In: the `kernels` stage; out: the `scheduled` stage.
"""
