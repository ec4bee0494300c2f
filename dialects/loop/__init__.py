"""The `loop` dialect: fused loop nests over buffers, the unit that is scheduled.

It may import: core and xDSL.
In: kernels made from graph operators; out: kernels that passes schedule and `scf` is made from.
"""
