"""A separate process that compiles and times schedules of one module.

    python -c "from stepwell.tuning.measuring import serve; serve()" FOLDER

Tuning starts it and writes a line of JSON for each comparison; it answers with a line. A candidate
that crashes or hangs only takes this process down.
"""

from __future__ import annotations

import functools
import json
import math
import os
import pickle
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..api.compiler import compile as compile_module
from ..core.collector import without_collector
from ..core.errors import StepwellError
from ..core.ir.module import Module
from ..core.target import Target
from ..frontends.mlir import from_mlir

ROUND_SECONDS = 0.001
"""The least duration of a round: shorter than a time slice on a busy machine."""
LEAST_ROUNDS, MOST_ROUNDS = 7, 400
HOPELESS = 2.0
"""A candidate this many times slower at first is not measured further."""
TOLERANCE = 1e-3
"""The allowed difference from the default schedule, relative to the largest element."""
KEPT = 8
"""The number of compiled programs that are cached."""

Traces = Mapping[str, str]
"""The trace of each kernel that does not get its default schedule."""


class Bench:
    """Compiles a module under schedules, and compares two of them.

    Args:
        module: the module.
        inputs: the arguments of calls.
        passes: the passes of each stage after that of the module.
        target: the machine.
    """

    def __init__(
        self,
        module: Module,
        inputs: Sequence[Any],
        passes: Mapping[str, str],
        target: str | Target,
    ) -> None:
        self.module, self.inputs, self.passes, self.target = module, inputs, passes, target
        self.programs: dict[str, Callable[..., Any]] = {}

    @staticmethod
    def of_folder(folder: Path) -> Bench:
        """That of a folder with `module.mlir`, `inputs.pickle` and `options.json`."""
        options = json.loads((folder / "options.json").read_text())
        module = from_mlir(folder / "module.mlir", trusted=True)
        inputs = pickle.loads((folder / "inputs.pickle").read_bytes())
        return Bench(module, inputs, options["passes"], Target(**options["target"]))

    def program(self, traces: Traces) -> Callable[..., Any]:
        """The program under a schedule."""
        name = json.dumps(traces, sort_keys=True)
        if name not in self.programs:
            if len(self.programs) >= KEPT:
                del self.programs[next(iter(self.programs))]
            schedule = traces or None
            self.programs[name] = compile_module(
                self.module, self.target, pipeline=self.passes, records=False, schedule=schedule
            )
        return self.programs[name]

    def compared(self, base: Traces, traces: Traces, seconds: float) -> dict[str, Any]:
        """Time calls under `traces` and under `base`, interleaved.

        Args:
            base: one schedule.
            traces: the other one.
            seconds: the approximate time to measure.

        Returns:
            `ratio`, the lower decile under `traces` over that under `base` (a busy machine makes
            some rounds longer, and none shorter), `noise`, the standard error of the median ratio
            of rounds, and `seconds` and `base`, the lower deciles.
        """
        programs = [self.program(base), self.program(traces)]
        before, after = (program(*self.inputs) for program in programs)
        if not _close(before, after):
            return {"error": "the results differ"}
        calls = [functools.partial(program, *self.inputs) for program in programs]
        pairs = _paired(calls[0], calls[1], seconds)
        ratios = [second / first for first, second in pairs]
        middle = statistics.median(ratios)
        # For a normal distribution: standard from median deviation, and the error of a median.
        spread = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
        # Of each program the lower decile.
        first, second = (sorted(times)[len(times) // 10] for times in zip(*pairs, strict=True))
        return {
            "ratio": second / first,
            "noise": 1.2533 * spread / math.sqrt(len(ratios)),
            "seconds": second,
            "base": first,
        }


def _paired(
    first: Callable[[], object], second: Callable[[], object], seconds: float
) -> list[tuple[float, float]]:
    """Seconds for a call of each, interleaved; the order alternates."""
    with without_collector():
        pairs = [(_seconds(first, 1), _seconds(second, 1)) for _ in range(3)]
        once = [min(pair[side] for pair in pairs) for side in (0, 1)]
        if once[1] > HOPELESS * once[0]:
            return pairs
        count = max(1, min(10_000, int(ROUND_SECONDS / max(*once, 1e-7))))
        rounds = int(seconds / (count * max(sum(once), 1e-7)))
        pairs = []
        for number in range(max(LEAST_ROUNDS, min(MOST_ROUNDS, rounds))):
            if number % 2:
                later = _seconds(second, count)
                pairs.append((_seconds(first, count), later))
            else:
                earlier = _seconds(first, count)
                pairs.append((earlier, _seconds(second, count)))
        return pairs


def _seconds(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _close(before: Any, after: Any) -> bool:
    """Whether results agree up to the order of additions."""
    if isinstance(before, tuple):
        return all(map(_close, before, after))
    expected, got = _numbers(before), _numbers(after)
    if expected.dtype.kind not in "fV":
        return bool(np.array_equal(expected, got))
    left, right = expected.astype(np.float64), got.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0, where=np.isfinite(left))) or 1.0
    return bool(np.allclose(right, left, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True))


def _numbers(value: Any) -> np.ndarray:
    """The elements of a result; the stored ones of a sparse result."""
    return np.asarray(value.data if hasattr(value, "indptr") else value)


def serve() -> None:
    """Answer requests for comparisons until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep printed text out of the answers

    def answer(what: Mapping[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        bench = Bench.of_folder(Path(sys.argv[-1]))
        bench.program({})(*bench.inputs)
    except StepwellError as error:
        answer({"error": str(error)})
        return
    answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer(bench.compared(request["base"], request["traces"], request["seconds"]))
        except StepwellError as error:
            answer({"error": str(error)})
