"""A rule of the default schedule, and a target."""

from dataclasses import replace

from xdsl.dialects import math

from stepwell.core.target import named
from stepwell.dialects.loop.ops import ForOp


def two_vectors(schedule, nest):
    """Take two vectors at a time of a plain loop with exponentials: one hides the other's latency.

    Returns the reason for `exe.explain()`, or None to leave the nest to other rules.
    """
    ops = list(schedule.loop(nest).walk())
    if not any(isinstance(op, math.ExpOp) for op in ops):
        return None
    if sum(isinstance(op, ForOp) for op in ops) != 1:
        return None
    parts = schedule.split(nest, 2 * schedule.target.vector_bits // 32, "mask")
    schedule.vectorize(*parts.inners)
    return "two vectors of exponentials at a time"


def large_cache():
    """x86-64-v3 with a second-level cache of 2 MiB."""
    return replace(named("x86-64-v3"), name="swish-large-cache", l2_bytes=2 << 20)
