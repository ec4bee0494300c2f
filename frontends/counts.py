"""How many numbers there are from one to before another, in equal steps: for ranges and slices."""

from __future__ import annotations

from ..dialects.graph.op_builder import OpBuilder, V

_MANY = 2.0**62
"""More than any size."""


def step_count(b: OpBuilder[V], first: V, end: V, step: V, *, of_floats: bool) -> V:
    """The number of the numbers first, first + step, ... before `end`, as a scalar of i64.

    All are scalars of f64 if `of_floats`, else of i64. For a step of 0 it is more than any size.
    """
    span = b.sub(end, first)
    whole = b.div(span, step)
    if of_floats:
        # So many that they are an error, whatever the bound, are still an integer.
        return b.max(b.cast(b.min(b.ceil(whole), _MANY), "i64"), 0)
    rest = b.sub(span, b.mul(whole, step))
    more = b.max(b.mul(b.sign(rest), b.sign(step)), 0)
    return b.where(b.equal(step, 0), int(_MANY), b.max(b.add(whole, more), 0))
