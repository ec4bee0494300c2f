"""Schedules that tuning has measured, beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..core.pipelines import staircase as pipelines
from ..core.target import Target
from ..dialects.loop.ops import KernelOp
from ..dialects.loop.trace import structure_of
from ..driver.compilation import Compilation
from ..passes.loop.schedule import schedule_kernel
from ..passes.loop.scheduler.predictions import Predictions
from ..passes.loop.scheduler.records import Records, default_path, read_records
from .document import Trial


def trials_of(compilation: Compilation) -> tuple[Trial, ...]:
    """The measured schedules of the kernels of a program.

    They are those of the user's database for the target and the number of threads.

    Raises:
        CompileError: if the database is corrupt.
    """
    path = default_path()
    records = Records() if path is None else read_records(path)
    if not len(records) or "loop-schedule" not in pipelines.passes_in(compilation.passes):
        return ()
    module = replace(compilation, observers=()).unscheduled().op
    kernels = (op for op in module.ops if isinstance(op, KernelOp))
    threads = max(pipelines.threads_of(compilation.passes))
    target = compilation.target
    predictions = Predictions(module, target, threads)
    return tuple(
        trial
        for number, kernel in enumerate(kernels)
        for trial in _of_kernel(number, kernel, target, threads, records, predictions)
    )


def _of_kernel(
    number: int,
    kernel: KernelOp,
    target: Target,
    threads: int,
    records: Records,
    predictions: Predictions,
) -> Iterator[Trial]:
    measured = records.measured(structure_of(kernel), target.cpu, threads)
    if not measured:
        return
    default, _ = schedule_kernel(kernel.clone(), target, threads=threads)
    yield Trial(number, str(default), 1.0, 1.0, not any(record.kept for record in measured))
    for record in measured:
        predicted = record.predicted
        if predicted is None:
            # Of a search by an older version, or with steps that have changed since.
            predicted = predictions.ratio(record.key, record.trace)
        if predicted is not None and record.ratio is not None:
            yield Trial(number, record.trace, predicted, record.ratio, record.kept)
