"""Schedules that tuning has measured, beside what a count of their instructions predicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ..compilation import Compilation
from ..core import pipelines
from ..core.records import Records, default_path, read_records
from ..core.target import Target
from ..dialects.loop.loops import extent_of
from ..dialects.loop.nests import ScheduleError
from ..dialects.loop.ops import ForOp, KernelOp, block_shape
from ..dialects.loop.trace import structure_of
from ..passes.loop.rules.accesses import UNKNOWN_EXTENT, cost, entries_of_a_row, lanes_for
from ..passes.loop.rules.replay import replay
from ..passes.loop.schedule import schedule_kernel
from .document import Trial


def trials_of(kernels: Sequence[KernelOp], compilation: Compilation) -> tuple[Trial, ...]:
    """The measured schedules of kernels as they are before they are scheduled.

    They are those of the user's database for the target and the number of threads.

    Raises:
        CompileError: if the database is corrupt.
    """
    path = default_path()
    records = Records() if path is None else read_records(path)
    if not len(records):
        return ()
    threads = max(pipelines.threads_of(compilation.passes))
    target = compilation.target
    return tuple(
        trial
        for number, kernel in enumerate(kernels)
        for trial in _of_kernel(number, kernel, target, threads, records)
    )


def _of_kernel(
    number: int, kernel: KernelOp, target: Target, threads: int, records: Records
) -> Iterator[Trial]:
    measured = records.measured(structure_of(kernel), target.cpu, threads)
    if not measured:
        return
    default, _ = schedule_kernel(kernel.clone(), target, threads=threads)
    least = instructions(default.kernel, target)
    yield Trial(number, str(default), 1.0, 1.0, not any(record.kept for record in measured))
    for record in measured:
        if record.ratio is None:
            continue
        try:
            found = replay(kernel.clone(), record.trace)
        except ScheduleError:
            # It was measured with another version of the steps.
            continue
        predicted = instructions(found, target) / least
        yield Trial(number, record.trace, predicted, record.ratio, record.kept)


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
