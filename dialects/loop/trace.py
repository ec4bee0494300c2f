"""The trace of a schedule: the steps that made a kernel, as text.

    split(j, 32, tail=mask); reorder(i, j0, j1); vectorize(j1)

A kernel carries it as the attribute `loop.schedule`, to which each primitive appends its step.
"""

from __future__ import annotations

import hashlib

from xdsl.dialects.builtin import StringAttr

from ...core.building.creation import copied
from .ops import SCHEDULE, KernelOp
from .trace_text import Step, StepArgument


def trace_of(kernel: KernelOp) -> str:
    """The trace of a kernel, "" if it has none."""
    attribute = kernel.attributes.get(SCHEDULE)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def noted(kernel: KernelOp, name: str, *arguments: StepArgument, **named: StepArgument) -> KernelOp:
    """Append a step to the trace of the kernel that it has just made; return the kernel."""
    step, before = str(Step(name, arguments, tuple(named.items()))), trace_of(kernel)
    kernel.attributes[SCHEDULE] = StringAttr(f"{before}; {step}" if before else step)
    return kernel


def structure_of(kernel: KernelOp) -> str:
    """A hash of what a kernel computes, equal for kernels that differ in names only.

    The names of loops count, because traces refer to them. The names of the kernel and of its
    values do not, nor do its schedule and its locations.
    """
    copy = copied(kernel)
    copy.sym_name = StringAttr("kernel")
    copy.attributes.pop(SCHEDULE, None)
    for op in copy.walk():
        for value in (*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)):
            value.name_hint = None
    return hashlib.sha256(str(copy).encode()).hexdigest()[:16]
