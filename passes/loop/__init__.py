"""Schedules of `loop` kernels: `steps` has the primitives, of which `staging` analyses what threads
of a block have in common, and `scheduler` chooses them.

It may import: `dialects` and `core`.
In: the `kernels` stage; out: the `scheduled` stage.
"""
