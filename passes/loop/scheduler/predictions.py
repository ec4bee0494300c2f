"""What a schedule is expected to do to the time of a program, without running it."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....core.target import Target
from ....dialects.graph.ops.control.call import CallDpsOp
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import ScheduleError
from ....dialects.loop.ops import ForOp, KernelOp, block_shape
from ....dialects.loop.trace import structure_of
from ..schedule import schedule_kernel
from .accesses import UNKNOWN_EXTENT, cost, entries_of_a_row, lanes_for
from .replay import replay


@dataclass
class _Known:
    """A kernel of a structure.

    `calls` is how often those of the structure are called, `default` are the instructions of a call
    under the default schedule.
    """

    kernel: KernelOp
    calls: int
    default: float


class Predictions:
    """The times of a program under other schedules, relative to that under the default ones.

    Time is taken to be in proportion to the number of vector instructions of all calls of kernels.

    Args:
        module: the program before its kernels are scheduled; it stays as it is.
        target: the machine.
        threads: the number of threads that a call may use.
    """

    def __init__(self, module: ModuleOp, target: Target, threads: int) -> None:
        self._module, self._target, self._threads = module, target, threads
        self._known: dict[tuple[str, str], float | None] = {}

    def ratio(self, key: str, trace: str) -> float | None:
        """The predicted time with a schedule for the kernels of a structure.

        Args:
            key: the structure, see `structure_of`.
            trace: the schedule.

        Returns:
            The time relative to that with default schedules; None if the trace does not fit, or no
            kernel has the structure.
        """
        if (key, trace) not in self._known:
            self._known[key, trace] = self._ratio(key, trace)
        return self._known[key, trace]

    def _ratio(self, key: str, trace: str) -> float | None:
        if (known := self._by_structure.get(key)) is None:
            return None
        try:
            made = instructions(replay(known.kernel.clone(), trace), self._target)
        except ScheduleError:
            return None
        every = sum(one.default * one.calls for one in self._by_structure.values())
        return 1.0 + (made - known.default) * known.calls / every

    @functools.cached_property
    def _by_structure(self) -> Mapping[str, _Known]:
        found: dict[str, _Known] = {}
        calls = Counter(
            op.callee.string_value() for op in self._module.walk() if isinstance(op, CallDpsOp)
        )
        for kernel in self._module.ops:
            if not isinstance(kernel, KernelOp):
                continue
            key, count = structure_of(kernel), calls[kernel.sym_name.data]
            if key in found:
                found[key].calls += count
                continue
            made, _ = schedule_kernel(kernel.clone(), self._target, threads=self._threads)
            found[key] = _Known(kernel, count, instructions(made.kernel, self._target))
        return found


def instructions(kernel: KernelOp, target: Target) -> float:
    """An estimate of the instructions of a call: operations on machine vectors, loops included."""
    lanes = lanes_for(target, kernel)
    return max(1.0, sum(_of_operation(op, lanes) for op in kernel.body.block.ops))


def _of_operation(op: Operation, lanes: int) -> float:
    if not isinstance(op, ForOp):
        types = [value.type for value in (*op.results, *op.operands)]
        elements = max((math.prod(block_shape(kind)) for kind in types), default=1)
        return cost(op) / elements * math.ceil(elements / lanes)
    body = sum(_of_operation(inner, lanes) for inner in op.body.block.ops)
    if op.over_entries:
        return entries_of_a_row(op) * body
    size = extent_of(op)
    return (UNKNOWN_EXTENT if size is None else size) * body
