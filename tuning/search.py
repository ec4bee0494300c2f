"""`tune`: search for better schedules of a module's kernels, by measured runs.

The search starts from the default schedule: it sets choices of the rules (see `Knobs`), which then
yield a trace. Each trace is compiled and timed against the default in a separate process, so that a
crash or a hang costs one candidate. Traces that beat the default in a final comparison by more than
the noise are kept.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.llvm.machine import check_runs_here
from ..backends.reference.samples import random_inputs
from ..core.errors import CompileError, StepwellError, explain
from ..core.ir.module import Module
from ..core.logs import logger
from ..core.pipelines.staircase import passes_in
from ..core.progress import report
from ..core.target import Target, default_threads, named
from ..dialects.loop.ops import ForOp, KernelOp
from ..dialects.loop.trace import structure_of
from ..driver.compilation import Compilation
from ..driver.request import Request
from ..passes.loop.schedule import schedule_kernel
from ..passes.loop.scheduler.accesses import cost
from ..passes.loop.scheduler.knobs import ANALYTIC, CHOICES, Knobs
from ..passes.loop.scheduler.predictions import Predictions
from ..passes.loop.scheduler.records import (
    Record,
    Records,
    default_path,
    read_records,
    write_records,
)
from .worker import WorkerProcess

_LOG = logger("tuning")

QUICK, FINAL = 0.15, 1.0
"""Seconds for timing a candidate against the default, at first and in the end."""
FINAL_SHARE = 0.2
"""The part of the budget for the final comparisons."""
FINALISTS = 3
"""The number of traces of a kernel that are compared again, until one of them is better."""
IDLE = 60
"""A kernel is done after this many proposals without a new trace."""
GAIN = 0.01
"""The least gain of a schedule that is kept, beyond the noise."""


@dataclass(frozen=True)
class Progress:
    """The progress of tuning: candidates tried so far, and the best ratio for the kernel."""

    kernel: str
    tried: int
    best: float
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    `kept` are the schedules that are better than the default, `ratio` the time of a call with
    all of them over that with none, `tried` the number of measured candidates, `failed` the number
    of those that crashed, hung or were refused, and `stopped` whether it was interrupted.
    """

    kept: tuple[Record, ...]
    ratio: float
    tried: int
    failed: int
    stopped: bool
    path: Path | None


def tune(
    module: Module,
    budget_s: float = 60.0,
    *,
    target: str | Target = "host",
    threads: int | None = None,
    opt_level: int = 3,
    inputs: Sequence[object] | None = None,
    sizes: Mapping[str, int] | None = None,
    records: str | Path | None = None,
    timeout_s: float = 20.0,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Tuned:
    """Search for schedules that are faster than the default ones, and record them.

    What an earlier search recorded is not measured again. An interrupt (Ctrl-C) ends the search;
    what was found until then is compared and recorded.

    Args:
        module: the module.
        budget_s: the approximate time limit of the search.
        target: the machine, which has to be this one.
        threads: the number of threads that a call may use, as for `compile`.
        opt_level: as for `compile`.
        inputs: the inputs to time the program on; by default made-up arrays.
        sizes: symbolic sizes of made-up arrays; else 1.
        records: the database; by default that of `STEPWELL_TUNING`, or of the user.
        timeout_s: the time limit of a candidate.
        progress: called for each candidate.

    Raises:
        CompileError: if the module cannot be compiled, its records are corrupt, or it has no
            kernels to schedule.
        InputError: if the inputs do not fit.
        StepwellError: if optuna is not installed.
    """
    _optuna()
    chosen = named(target)
    check_runs_here(chosen)
    for what, seconds in (("budget", budget_s), ("timeout", timeout_s)):
        if not seconds > 0:
            raise CompileError(explain("tune", f"wrong {what}", expected="above 0", got=seconds))
    count = default_threads(chosen) if threads is None else threads
    path = default_path() if records is None else Path(records)
    compilation = Compilation.of(Request(module, chosen, count, opt_level))
    passes = dict(compilation.passes)
    if "scheduled" not in passes or "loop-schedule" not in passes_in(passes):
        fact = "nothing is scheduled"
        raise CompileError(explain("tune", fact, expected="an earlier stage, opt_level 1 to 3"))
    kernels, unscheduled = compilation.at("kernels"), compilation.unscheduled()
    after = list(passes)[list(passes).index("scheduled") :]
    given = (
        list(inputs) if inputs is not None else random_inputs(module.inputs, sizes or {}, module)
    )
    with tempfile.TemporaryDirectory() as folder:
        machine = compilation.request.recipe("kernels")["target"]
        options = {"passes": {s: passes[s] for s in after}, "target": machine}
        kernels.save(Path(folder) / "module.mlir")
        (Path(folder) / "inputs.pickle").write_bytes(pickle.dumps(given))
        (Path(folder) / "options.json").write_text(json.dumps(options))
        with WorkerProcess(worker_command(folder), timeout_s) as worker:
            search = _Search(worker, unscheduled, chosen, count, path, progress)
            return search.run(budget_s)


_SERVE = """import sys
sys.path[:0] = sys.argv[1:-1]
from stepwell.tuning.measuring import serve
serve()"""


def worker_command(folder: str) -> list[str]:
    """The command of a process that measures the module in a folder."""
    return [sys.executable, "-c", _SERVE, *sys.path, folder]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        fact, hint = "optuna is not installed", "pip install 'stepwell[tune]'"
        raise StepwellError(explain("tune", fact, hint=hint)) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass
class _Kernel:
    """The kernels of one structure, and what is known about their schedules."""

    key: str
    names: tuple[str, ...]
    op: KernelOp
    default: str
    work: int
    ratios: dict[str, float | None] = dataclasses.field(default_factory=dict)
    """The ratio of each trace, None where it did not run."""
    fresh: set[str] = dataclasses.field(default_factory=set)
    """The traces that this search has measured."""
    knobs: dict[str, Knobs] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    def best(self) -> float:
        """The ratio of the best trace."""
        return min([1.0, *(ratio for ratio in self.ratios.values() if ratio is not None)])

    def traces(self, trace: str) -> dict[str, str]:
        """The trace for each of the kernels; empty for the default."""
        return {} if trace == self.default else dict.fromkeys(self.names, trace)


class _Search:
    """The search over the kernels of one module."""

    def __init__(
        self,
        worker: WorkerProcess,
        module: Module,
        target: Target,
        threads: int,
        path: Path | None,
        progress: Callable[[Progress], None],
    ) -> None:
        self.worker, self.target, self.threads = worker, target, threads
        self.path, self.progress = path, progress
        self.budget_s = 0.0
        self.tried = self.failed = 0
        self.begun = time.monotonic()
        self.kernels = _kernels_of(module, target, threads)
        if not self.kernels:
            raise CompileError(explain("tune", "the module has no kernel to schedule"))
        self.predictions = Predictions(module.op, target, threads)
        # The measurements of earlier searches.
        known = Records() if self.path is None else read_records(self.path)
        for kernel in self.kernels:
            for record in known.measured(kernel.key, self.target.cpu, self.threads):
                kernel.ratios[record.trace] = record.ratio
                kernel.knobs[record.trace] = _knobs(record.knobs)

    def run(self, budget_s: float) -> Tuned:
        """Search, compare the best with the default again, and record."""
        stopped, self.budget_s = False, budget_s
        try:
            end = self.begun + budget_s * (1 - FINAL_SHARE)
            self.worker.start()
            left = list(self.kernels)
            while left:
                kernel, *rest = left
                now = time.monotonic()
                share = kernel.work / max(1, sum(k.work for k in left))
                self._search_kernel(kernel, now + max(0.0, end - now) * share)
                left = rest
        except KeyboardInterrupt:
            stopped = True
            self.worker.stop()
        self._save([])
        kept, ratio = self._kept()
        self._save(kept)
        records = tuple(self._record(k, trace, kept=True) for k, trace in kept)
        return Tuned(records, ratio, self.tried, self.failed, stopped, self.path)

    def _search_kernel(self, kernel: _Kernel, end: float) -> None:
        """Try neighbours of the default, then the proposals of the sampler."""
        space = self._beside(kernel, end)
        if not space:
            return
        optuna = _optuna()
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        kinds = {
            name: optuna.distributions.CategoricalDistribution(values)
            for name, values in space.items()
        }
        for trace, ratio in kernel.ratios.items():
            found = dataclasses.asdict(kernel.knobs.get(trace, ANALYTIC))
            params = {name: found[name] for name in space}
            if ratio is not None and all(params[name] in space[name] for name in space):
                study.add_trial(
                    optuna.trial.create_trial(params=params, distributions=kinds, value=ratio)
                )
        idle = 0
        while time.monotonic() < end and idle < IDLE:
            trial = study.ask(kinds)
            before = len(kernel.ratios)
            ratio = self._try(kernel, _knobs(trial.params))
            idle = 0 if len(kernel.ratios) > before else idle + 1
            if ratio is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, ratio)

    def _beside(self, kernel: _Kernel, end: float) -> dict[str, tuple[Any, ...]]:
        """Measure each schedule that differs by one choice; return the choices that matter."""
        space: dict[str, tuple[Any, ...]] = {}
        for name, values in CHOICES.items():
            matter = [values[0]]
            for value in values[1:]:
                knobs = _knobs({name: value})
                if self._trace(kernel, knobs) == kernel.default:
                    continue
                matter.append(value)
                if time.monotonic() < end:
                    self._try(kernel, knobs)
            if len(matter) > 1:
                space[name] = tuple(matter)
        return space

    def _trace(self, kernel: _Kernel, knobs: Knobs) -> str:
        return str(schedule_kernel(kernel.op.clone(), self.target, knobs, self.threads)[0])

    def _try(self, kernel: _Kernel, knobs: Knobs) -> float | None:
        """The ratio of the trace of these choices, measured unless known."""
        trace = self._trace(kernel, knobs)
        if trace == kernel.default:
            return 1.0
        if trace not in kernel.ratios:
            found = self._compare({}, kernel.traces(trace), QUICK)
            self.tried += 1
            kernel.ratios[trace] = found.get("ratio")
            kernel.knobs[trace] = knobs
            kernel.fresh.add(trace)
            if "error" in found:
                self.failed += 1
            else:
                kernel.seconds[trace] = found["seconds"]
            got, predicted = found.get("ratio"), self.predictions.ratio(kernel.key, trace)
            found_text = found.get("error", f"{got}, predicted {predicted}")
            _LOG.debug("@%s: %s: %s", kernel.names[0], found_text, trace)
            elapsed = time.monotonic() - self.begun
            self.progress(Progress(kernel.names[0], self.tried, kernel.best(), elapsed))
            note = f"{self.tried} schedules, best {kernel.best():.2f}"
            report(f"tuning @{kernel.names[0]}", elapsed, self.budget_s, note)
        return kernel.ratios[trace]

    def _compare(
        self, base: Mapping[str, str], traces: Mapping[str, str], seconds: float
    ) -> dict[str, Any]:
        return self.worker.ask({"base": base, "traces": traces, "seconds": seconds})

    def _kept(self) -> tuple[list[tuple[_Kernel, str]], float]:
        """The schedules that beat the default, kernel by kernel and all together."""
        kept: list[tuple[_Kernel, str]] = []
        used: dict[str, str] = {}
        for kernel in self.kernels:
            # Those that seem to be better than the default, the best first.
            better = {
                t: ratio for t, ratio in kernel.ratios.items() if ratio is not None and ratio < 1
            }
            for trace in sorted(better, key=lambda trace: (better[trace], trace))[:FINALISTS]:
                kernel.fresh.add(trace)
                with_it = {**used, **kernel.traces(trace)}
                found = self._compare(used, with_it, FINAL)
                if _is_better(found):
                    # The earlier ratio, the best of many, is biased by chance.
                    kernel.ratios[trace], kernel.seconds[trace] = found["ratio"], found["seconds"]
                    _LOG.info("@%s: %.2f of the time: %s", kernel.names[0], found["ratio"], trace)
                    kept.append((kernel, trace))
                    used = with_it
                    break
        if not kept:
            return [], 1.0
        found = self._compare({}, used, FINAL)
        return (kept, found["ratio"]) if _is_better(found) else ([], 1.0)

    def _save(self, kept: Sequence[tuple[_Kernel, str]]) -> None:
        """Record what has been measured so far."""
        if self.path is None:
            return
        chosen = {kernel.key: trace for kernel, trace in kept}
        measured = [(kernel, trace) for kernel in self.kernels for trace in sorted(kernel.fresh)]
        write_records(
            self.path,
            [self._record(k, trace, kept=chosen.get(k.key) == trace) for k, trace in measured],
        )

    def _record(self, kernel: _Kernel, trace: str, *, kept: bool) -> Record:
        knobs = dataclasses.asdict(kernel.knobs.get(trace, ANALYTIC))
        plain = dataclasses.asdict(ANALYTIC)
        return Record(
            kernel.key,
            self.target.cpu,
            self.threads,
            trace,
            kernel.ratios[trace],
            kept,
            kernel.names[0],
            kernel.seconds.get(trace),
            self.predictions.ratio(kernel.key, trace),
            {name: value for name, value in knobs.items() if value != plain[name]},
            {name: importlib.metadata.version(name) for name in ("stepwell", "llvmlite")},
        )


def _is_better(found: Mapping[str, Any]) -> bool:
    """Whether a comparison shows a gain beyond the noise."""
    return "error" not in found and found["ratio"] + 2 * found["noise"] < 1 - GAIN


def _knobs(choices: Mapping[str, Any]) -> Knobs:
    known = {name: value for name, value in choices.items() if name in CHOICES}
    return dataclasses.replace(ANALYTIC, **known)


def _kernels_of(module: Module, target: Target, threads: int = 1) -> list[_Kernel]:
    """The kernels of a module by structure, those with the most work first."""
    found: dict[str, _Kernel] = {}
    for op in module.op.ops:
        if not isinstance(op, KernelOp):
            continue
        key, name = structure_of(op), op.sym_name.data
        if (known := found.get(key)) is not None:
            known.work += known.work // len(known.names)
            known.names += (name,)
            continue
        default = str(schedule_kernel(op.clone(), target, threads=threads)[0])
        loops = [inner for inner in op.body.block.ops if isinstance(inner, ForOp)]
        if loops:
            found[key] = _Kernel(key, (name,), op, default, 1 + sum(map(cost, loops)))
    return sorted(found.values(), key=lambda kernel: -kernel.work)
