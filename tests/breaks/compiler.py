"""Mistakes in passes, rules of the schedule, conversions, and the code of kernels."""

from __future__ import annotations

from .mistakes import Break

COMPILER = (
    Break(
        "the tail of a split loop starts one iteration late",
        "passes/loop/split.py",
        "self.chunk(op, [rest, *self.limits_of_tail(op, bound)], full * f)",
        "self.chunk(op, [rest, *self.limits_of_tail(op, bound)], full * f + 1)",
        "tests/lit/passes/loop/split.mlir",
    ),
)
