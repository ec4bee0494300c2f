"""`schedule`: the schedule of one kernel, changed step by step, each of which is checked."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from xdsl.utils.exceptions import VerifyException

from ..backends.llvm.machine import check_runs_here
from ..backends.reference.samples import random_inputs
from ..core.display import ScheduledKernel, displayed
from ..core.errors import CompileError, MiscompilationError, explain, first_line
from ..core.ir.module import Module
from ..core.pipelines.staircase import threads_of
from ..core.target import Target
from ..dialects.loop.nests import ScheduleError, kernel_named, loops_of
from ..dialects.loop.ops import SCHEDULE, KernelOp
from ..dialects.loop.trace import structure_of, trace_of
from ..dialects.loop.trace_text import Step, parse_traces
from ..driver.compilation import Compilation
from ..driver.request import Request
from ..passes.loop.schedule import schedule_kernel
from ..passes.loop.scheduler.predictions import Predictions
from ..passes.loop.scheduler.records import Record, default_path, write_records
from ..passes.loop.scheduler.replay import take
from .measuring import Bench
from .steps import Steps

STARTS = ("default", "none")


@dataclass(frozen=True)
class ScheduleTime:
    """The time of a call of a program under a schedule, beside that under the default one.

    `seconds` and `default` are the lower deciles of calls, `ratio` is that of both, and `noise`
    the standard error of the ratio.
    """

    seconds: float
    default: float
    ratio: float
    noise: float

    def __str__(self) -> str:
        return (
            f"{1e6 * self.seconds:.4g} us a call, {self.ratio:.2f} (+- {self.noise:.2f}) times "
            f"the {1e6 * self.default:.4g} us of the default schedule"
        )

    def _repr_markdown_(self) -> str:
        return str(self)


@dataclass(frozen=True)
class _State:
    """Steps, and the kernel that they make."""

    steps: tuple[Step, ...]
    kernel: KernelOp


class KernelSchedule(Steps):
    """The schedule of a kernel; each primitive is a method, which takes a step.

        s = sw.schedule(module, "fused_dense_relu", start="none")
        s.split("j", 32, tail="mask").vectorize("j1")
        exe = sw.compile(module, schedule=s)

    A step that is not legal is a `CompileError`, and changes nothing. `str` is a list of the steps;
    notebooks show it with the scheduled kernel.

    Attributes:
        kernel: the name of the kernel.
    """

    def __init__(self, compilation: Compilation, kernel: KernelOp, start: str) -> None:
        self.kernel: str = kernel.sym_name.data
        self._compilation = compilation
        kernel.detach()
        kernel.attributes.pop(SCHEDULE, None)
        self._unscheduled = kernel
        self._threads = max(threads_of(compilation.passes))
        self._timed: tuple[tuple[Step, ...], ScheduleTime] | None = None
        self._states = [_State((), kernel)]
        default = str(schedule_kernel(kernel.clone(), compilation.target, threads=self._threads)[0])
        self._default = tuple(parse_traces(default).get(None, ()))
        if start == "default":
            self._states = [self._replayed(self._default)]

    @property
    def steps(self) -> list[str]:
        """The text of each step."""
        return list(map(str, self._states[-1].steps))

    @property
    def trace(self) -> str:
        """The steps as text, for `stepwell.compile` and `loop-schedule`."""
        return "; ".join(self.steps)

    @property
    def loops(self) -> list[str]:
        """The names of the loops that the kernel has now, outer ones first."""
        return [loop.loop_name.data for loop in loops_of(self._states[-1].kernel)]

    def ir(self) -> str:
        """The text of the kernel as it is now."""
        return str(self._states[-1].kernel)

    def take(self, step: str | Step) -> Self:
        """Take a step, or several in one text: ``"split(i, 8); vectorize(i1)"``.

        Raises:
            CompileError: if one is malformed, unknown or not legal; none of them is taken.
        """
        state = self._states[-1]
        return self._change(state, (*state.steps, *_parsed(step)))

    def insert(self, place: int, step: str) -> Self:
        """Put steps before the one at a place, counted from 0, or from the end if negative.

        Raises:
            CompileError: if there is no such place, or a step is not legal, one after it included.
        """
        steps = self._states[-1].steps
        at = self._place(place, len(steps) + 1)
        return self._change(None, (*steps[:at], *_parsed(step), *steps[at:]))

    def replace(self, place: int, step: str) -> Self:
        """Take steps instead of the one at a place; see `insert`.

        Raises:
            CompileError: if there is no such place, or a step is not legal, one after it included.
        """
        steps = self._states[-1].steps
        at = self._place(place, len(steps))
        return self._change(None, (*steps[:at], *_parsed(step), *steps[at + 1 :]))

    def remove(self, place: int = -1) -> Self:
        """Take the step at a place back; see `insert`.

        Raises:
            CompileError: if there is no such place, or a later step is not legal without it.
        """
        return self.replace(place, "")

    def undo(self) -> Self:
        """Go back to before the last change.

        Raises:
            CompileError: if there was none.
        """
        if len(self._states) == 1:
            raise CompileError(explain("schedule", f"nothing of @{self.kernel} can be undone"))
        self._states.pop()
        return self

    def time(
        self, *inputs: object, sizes: Mapping[str, int] | None = None, seconds: float = 1.0
    ) -> ScheduleTime:
        """Time the program under this schedule and under the default one, call by call in turns.

        Args:
            inputs: the arguments of the call; by default made-up arrays.
            sizes: symbolic sizes of made-up arrays; else 1.
            seconds: the approximate time to measure.

        Raises:
            CompileError: if the program does not compile.
            InputError: if the inputs do not fit.
            MiscompilationError: if the results differ from those under the default schedule.
            TargetError: if the target is another machine.
        """
        found = self._compilation
        check_runs_here(found.target)
        given = list(inputs) or random_inputs(found.module.inputs, sizes or {}, found.module)
        state = self._states[-1]
        bench = Bench(found.module, given, found.passes, found.target)
        default = "; ".join(map(str, self._default))
        compared = bench.compared({self.kernel: default}, {self.kernel: self.trace}, seconds)
        if "error" in compared:
            fact = "the results differ from those under the default schedule"
            raise MiscompilationError(explain(f"schedule of @{self.kernel}", fact))
        time, base = compared["seconds"], compared["base"]
        timed = ScheduleTime(time, base, compared["ratio"], compared["noise"])
        self._timed = state.steps, timed
        return timed

    def record(self, records: str | Path | None = None) -> Path:
        """Save the schedule in the database of `tune`, for kernels of this structure.

        Args:
            records: the database; by default that of `STEPWELL_TUNING`, or of the user.

        Returns:
            The path of the database.

        Raises:
            CompileError: if the schedule has not been timed as it is now, if there is no database,
                or if it cannot be written.
        """
        path = default_path() if records is None else Path(records)
        subject = f"schedule of @{self.kernel}"
        if path is None:
            fact, expected = "there is no database", "STEPWELL_TUNING, or records"
            raise CompileError(explain(subject, fact, expected=expected))
        if self._timed is None or self._timed[0] != self._states[-1].steps:
            fact, expected = "it has not been timed as it is now", "time() first"
            raise CompileError(explain(subject, fact, expected=expected))
        timed = self._timed[1]
        # The predicted time of the program, relative to that with default schedules.
        found = self._compilation
        predictions = Predictions(found.unscheduled().op, found.target, self._threads)
        record = Record(
            structure_of(self._unscheduled),
            self._compilation.target.cpu,
            self._threads,
            self.trace,
            timed.ratio,
            kept=True,
            kernel=self.kernel,
            seconds=timed.seconds,
            predicted=predictions.ratio(structure_of(self._unscheduled), self.trace),
            versions={name: importlib.metadata.version(name) for name in ("stepwell", "llvmlite")},
        )
        write_records(path, [record])
        return path

    def __str__(self) -> str:
        lines = [f"{number:3}  {step}" for number, step in enumerate(self.steps)]
        return "\n".join([f"@{self.kernel}", *(lines or ["  no steps"])])

    def __repr__(self) -> str:
        return f"<schedule of @{self.kernel}: {self.trace}>"

    def _repr_html_(self) -> str:
        return displayed(ScheduledKernel(self.kernel, self.steps, self.ir()))

    def _repr_markdown_(self) -> str:
        steps = "".join(f"{number}. `{step}`\n" for number, step in enumerate(self.steps))
        return f"**@{self.kernel}**\n\n{steps}\n```mlir\n{self.ir()}\n```\n"

    def _change(self, begin: _State | None, steps: Sequence[Step]) -> Self:
        self._states.append(self._replayed(steps, begin))
        return self

    def _replayed(self, steps: Sequence[Step], begin: _State | None = None) -> _State:
        """The kernel after steps, of which a state has taken the first.

        Raises:
            CompileError: naming the first step that is unknown or not legal, or the last one if it
                is not proved that the iterations of the kernel's loops are independent.
        """
        known = _State((), self._unscheduled) if begin is None else begin
        kernel = known.kernel.clone()
        for number in range(len(known.steps), len(steps)):
            try:
                kernel = take(kernel, steps[number])
            except ScheduleError as error:
                raise self._refused(number, steps, error) from error
        try:
            kernel.verify()
        except VerifyException as error:
            raise self._refused(len(steps) - 1, steps, first_line(error)) from error
        # As the kernel notes them: with all their arguments, and those that did something.
        return _State(tuple(_parsed(trace_of(kernel))), kernel)

    def _refused(self, place: int, steps: Sequence[Step], reason: object) -> CompileError:
        subject = f"schedule of @{self.kernel}: place {place}, {steps[place]}"
        return CompileError(f"{subject}: {reason}")

    def _place(self, place: int, count: int) -> int:
        if not -count <= place < count:
            fact = f"no place {place} among the steps of @{self.kernel}"
            raise CompileError(explain("schedule", fact, expected=f"{-count} <= place < {count}"))
        return place + count if place < 0 else place


def schedule(
    module: Module,
    kernel: str,
    start: str = "default",
    *,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    pipeline: str | Mapping[str, str] | None = None,
) -> KernelSchedule:
    """The schedule of a kernel of a module, to be changed and given to `compile`.

        s = sw.schedule(module, "fused_dense_relu")
        s.replace(0, "split(j, 64, tail=mask)")
        print(s.time())
        exe = sw.compile(module, schedule=s)

    Args:
        module: the module; it is not changed.
        kernel: the name of the kernel, as ``exe.ir("kernels")`` shows it.
        start: "default" for the steps of the default schedule, "none" for none.
        target, threads, opt_level, pipeline: as for `compile`, which has to be given the same.

    Raises:
        CompileError: if the module cannot be compiled, or has no such kernel, naming the nearest
            one; if the passes schedule nothing; or if there is no such start.
        TargetError: if the target is unknown.
    """
    if start not in STARTS:
        expected = " or ".join(f'"{name}"' for name in STARTS)
        raise CompileError(explain("schedule", "unknown start", expected=expected, got=start))
    found = Compilation.of(Request(module, target, threads, opt_level, pipeline))
    try:
        op = kernel_named("schedule", found.unscheduled().op, kernel.removeprefix("@"))
    except ScheduleError as error:
        raise CompileError(str(error)) from error
    return KernelSchedule(found, op, start)


def _parsed(step: str | Step) -> Sequence[Step]:
    """The steps of a text.

    Raises:
        CompileError: if it is malformed, or names a kernel.
    """
    text = str(step)
    try:
        found = parse_traces(text)
    except ScheduleError as error:
        raise CompileError(str(error)) from error
    if strangers := [name for name in found if name is not None]:
        got = f"@{strangers[0]}"
        raise CompileError(explain("schedule", "steps of a kernel", expected="steps only", got=got))
    return found.get(None, ())
