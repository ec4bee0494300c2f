"""Runs a program in several ways and compares the results with those of the reference."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker, RewritePattern

import stepwell as sw
from stepwell.core.distances import distance, scale, worst
from stepwell.core.dtype_names import is_real
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.budgets import SUMS, Budget, together
from stepwell.core.pipelines.exactness import with_rounding
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context, own_passes
from stepwell.core.target import named
from stepwell.diagnosis.growth import digits_of, growth, longest_sum
from stepwell.dialects.graph.ops.control.conditional import UnusedResult
from stepwell.dialects.graph.ops.control.loop_rewrites import UnchangedCarry, UnusedInLoop
from stepwell.dialects.graph.ops.control.regions import UnusedCapture
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import results
from .choices import Choices
from .outcomes import Counts, DifferenceError, Outcome
from .programs import Case
from .schedules import schedule

BUDGET = together([SUMS, SUMS, Budget(8), Budget(8)])
"""How far all passes together may move what one operator computes: sums are reordered, products
contracted with sums, constants folded, functions approximated."""
NARROW = Budget(4)
"""Beside it where `graph-to-mixed-precision` runs, in units of bf16."""
OTHER_RESULTS = ("graph-to-mixed-precision",)
"""Passes whose purpose is another result."""
NEEDED = ("graph-decompose-sparse", "graph-legalize")
"""What `opt_level=0` runs before operators become kernels, which need it."""


INVALID = "result does not verify"
"""Part of the error for a pass that makes invalid IR."""
BOUND = "graph-bind-params{names=x0}"
"""Makes the first input a constant."""
DEVICE, DEVICE_SHARE = "cuda:sm_80,emulated", 0.1
"""The device for a part of the programs: what its emulator executes takes longer."""
MOST_ON_DEVICE = 50_000
"""The most elements of inputs of other sizes on a device: each may be a thread or more."""
LIMITS = (
    "an opaque operator has no kernel",
    "expected a size with an upper bound",
    "is not that of an argument",
    "func.call: cannot be converted to the run time",
    "the host would execute",
)
"""Parts of errors for what has no kernel, unless it is folded or replaced where a pass knows its
user, for memory that has to be allocated earlier, for a quotient that users have to name, for what
`graph-split-at-halo` cut, which runs on parts of a graph, and for kernels whose random primitives
left what no thread of a device can run, such as blocks at the top."""


@dataclass(frozen=True)
class Way:
    """How a program is compiled; see `stepwell.compile`."""

    opt_level: int = 3
    threads: int = 1
    target: str = "host"
    rounding: str | None = None
    copy_indices: bool = False
    skipped: str = ""
    """A pass that does not run."""
    before: str = ""
    """Passes that run first, and after which the program is compared too."""
    stage: str = ""
    """A stage that is interpreted too."""
    primitives: int = 0
    """How many random primitives are tried on the kernels before they are scheduled."""
    choices: str = "corpus"
    """What decides which primitives, and on which other sizes the program runs; see `Choices`."""

    @staticmethod
    def random(seed: str, special: bool) -> Way:
        """A way; only exact rewrites keep NaN, infinities and signs of zero."""
        choices = Choices(seed)
        levels = pipeline(3)
        optional = f"{levels['optimized']},{levels['scheduled']}".split(",")
        skipped = [step for step in dict.fromkeys(optional) if step not in NEEDED]
        other = (*NEEDED, "graph-fuse-ops")
        extra = [step for step in graph_passes() if step not in other]
        on_device = Choices(f"device of {seed}").chance(DEVICE_SHARE)
        way = Way(
            opt_level=choices.among(3, 3, 3, 2, 1, 0),
            threads=choices.among(1, 2),
            target=choices.among("host", "host", "host", "x86-64-v3", "x86-64-v2"),
            rounding="kept" if special else choices.among(None, None, "kept"),
            copy_indices=choices.chance(0.2),
            skipped=choices.choice(skipped) if choices.chance(0.4) else "",
            before=",".join(choices.some(extra, 4)) if choices.chance(0.5) else "",
            stage=choices.among("kernels", "scheduled", "buffers", "loops", "llvm")
            if choices.chance(0.05)
            else "",
            primitives=choices.randint(1, 8) if choices.chance(0.3) else 0,
            choices=f"rest of {seed}",
        )
        return replace(way, target=DEVICE) if on_device else way


@functools.cache
def graph_passes() -> tuple[str, ...]:
    """The passes of the graph level."""
    found = [name for name in own_passes() if name.startswith("graph-")]
    return tuple(BOUND if BOUND.startswith(name) else name for name in found)


def compare(case: Case, way: Way, compiles: bool = True) -> Outcome:
    """Compile a program in one way, and compare.

    Args:
        case: the program.
        way: how it is compiled.
        compiles: whether it becomes machine code; otherwise only the first passes run.

    Raises:
        DifferenceError: if anything differs, or an error is none of those that users are to see.
    """
    counts = Counts(way.skipped)
    counts.occur(case.module.op)
    compared, refusal = Comparison(case, way), ""
    try:
        kinds = [compared.before(counts)]
        if compiles:
            kinds.append(compared.compiled(counts, Choices(way.choices)))
    except sw.UnsupportedError as error:
        kinds, refusal = ["refused"], str(error)
    except sw.CompileError as error:
        if not any(limit in str(error) for limit in LIMITS):
            raise DifferenceError(f"{type(error).__name__}: {error} {compared.steps}") from error
        kinds, refusal = ["refused"], str(error)
    except DifferenceError as error:
        raise DifferenceError(f"{error} {compared.steps or ''}") from error
    order = ("refused", "unmeasured", "same")
    return Outcome(min(kinds, key=order.index), counts.passes, counts.operations, refusal)


class Comparison:
    """The results of the reference for a program, and how far others may be from them."""

    steps: Sequence[str] = ()
    """The primitives that were legal, and the passes after them."""
    used_only = False
    """Whether the program has nothing that no result depends on: calls need not check that."""

    def __init__(self, case: Case, way: Way) -> None:
        self.case, self.way = case, way
        steps = way.before.split(",")
        narrow = any(step in OTHER_RESULTS for step in steps)
        self.digits = 8 if narrow else digits_of(case.module.op)
        self.budget = together([BUDGET, NARROW]) if narrow else BUDGET
        self._known: tuple[np.ndarray, ...] | str | None = None

    def before(self, counts: Counts) -> str:
        """Compare after the first passes alone."""
        self.module = self.case.module.clone()
        if not self.way.before:
            return "same"
        if self.way.rounding is not None:
            self.module = with_rounding(self.module, self.way.rounding)
        given = dict(zip((spec.name for spec in self.module.inputs), self.case.inputs, strict=True))
        for name in self.way.before.split(","):
            module = self.module.clone()
            if name == BOUND and given:
                weight = next(iter(given))
                module.weights.add(weight, given[weight])
            ctx = make_context(module.weights, named(self.way.target))
            ctx.verify = "pass"
            ctx.hooks.append(counts)
            try:
                run_passes(ctx, module.op, name)
            except sw.InternalError:
                raise
            except sw.CompileError as error:
                if INVALID in str(error):
                    raise DifferenceError(str(error)) from error
                continue  # it is for other programs, and says so
            self.module = module
        return self.same(
            "passes", self.case.inputs, lambda x: _arrays(self.module.run_reference(*self._left(x)))
        )

    def _left(self, inputs: list[Any]) -> list[Any]:
        """The inputs that the passes have left."""
        specs, left = self.case.module.inputs, {spec.name for spec in self.module.inputs}
        return [one for spec, one in zip(specs, inputs, strict=True) if spec.name in left]

    def compiled(self, counts: Counts, choices: Choices) -> str:
        """Compare machine code, on the inputs and on others of other sizes."""
        way, inputs = self.way, self.case.inputs
        exe = self._executable(counts, choices)

        def run(arrays: list[Any]) -> tuple[Any, ...]:
            return _arrays(exe(*self._left(arrays)))

        kinds = [self.same("machine code", inputs, run)]
        if way.stage:

            def run_at(arrays: list[Any]) -> tuple[Any, ...]:
                return _arrays(exe.run_at(way.stage, *self._left(arrays)))

            kinds.append(self.same(f"stage {way.stage}", inputs, run_at))
        others = resized(self.case, choices)
        if others is not None and way.target == DEVICE:
            others = others if sum(one.size for one in others) <= MOST_ON_DEVICE else None
        if others is not None and len(self._left(inputs)) == len(inputs):
            kinds.append(self.same("other sizes", others, run))
        return min(kinds, key=("unmeasured", "same").index)

    def _executable(self, counts: Counts, choices: Choices) -> sw.Executable:
        way = self.way
        if way.primitives:
            return self._scheduled(counts, choices)
        return sw.compile(
            self.module,
            target=way.target,
            threads=way.threads,
            opt_level=way.opt_level,
            rounding=way.rounding,
            copy_indices=way.copy_indices,
            hooks=[counts],
            records=False,
        )

    def _scheduled(self, counts: Counts, choices: Choices) -> sw.Executable:
        """The program with kernels whose loops are transformed at random."""
        way = self.way
        passes = pipeline(way.opt_level, way.threads, way.copy_indices)
        skipping = Counts(way.skipped)
        compilation = Compilation.of(
            Request(self.module, way.target, pipeline=passes, rounding=way.rounding), [skipping]
        )
        work, ctx = compilation.begin()
        for stage in compilation.descend(work, ctx):
            if stage == "kernels":
                break
        _, steps = schedule(choices, ctx, work.op, way.primitives)
        # A device runs nothing that no schedule has bound.
        least = "loop-schedule" if way.target == DEVICE else ""
        last = choices.among(least, least, passes["scheduled"] or least)
        self.steps = [*steps, *filter(None, [last])]
        passes["scheduled"] = ",".join(self.steps)
        return sw.compile(
            self.module,
            way.target,
            pipeline=passes,
            rounding=way.rounding,
            hooks=[counts],
            records=False,
        )

    def same(
        self, what: str, inputs: list[Any], run: Callable[[list[Any]], tuple[np.ndarray, ...]]
    ) -> str:
        """Compare results, or that both runs refuse the inputs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = self._expected(inputs)
            got = _results(run, inputs)
        if isinstance(expected, str) or isinstance(got, str):
            if isinstance(expected, str) and isinstance(got, str):
                return "same"
            if not isinstance(got, str) and not self.used_only:
                used = Comparison(replace(self.case, module=only_used(self.case.module)), self.way)
                used.used_only = True
                return used.same(what, inputs, lambda _: got)
            raise DifferenceError(f"{what}: expected {expected}, got {got}")
        if not self.case.special and not all(map(_is_finite, expected)):
            return "unmeasured"
        far = [distance(one, other) for one, other in zip(got, expected, strict=True)]
        if not any(ulp for ulp, _ in far):
            return "same"
        limit, measured = self._limit(inputs, expected, [ulp for ulp, _ in far])
        for n, (ulp, _) in enumerate(far):
            if ulp > self._allowed(limit, expected[n]):
                at = worst(got[n], expected[n])
                values = (expected[n][at], got[n][at]) if at is not None else (expected[n], got[n])
                raise DifferenceError(
                    f"{what}: result {n} is {ulp:.3g} ulp off, limit {limit:.3g}, at {at}: "
                    f"expected {values[0]}, got {values[1]}"
                )
        return measured

    def _expected(self, inputs: list[Any]) -> tuple[np.ndarray, ...] | str:
        """What the reference says, once for the inputs of the program."""
        if inputs is not self.case.inputs:
            return _results(lambda x: _arrays(self.case.module.run_reference(*x)), inputs)
        if self._known is None:
            self._known = _results(lambda x: _arrays(self.case.module.run_reference(*x)), inputs)
        return self._known

    def _limit(
        self, inputs: list[Any], expected: Sequence[np.ndarray], far: Sequence[float]
    ) -> tuple[float, str]:
        """The allowed distance: of one operator, or as it grows in the whole program."""
        limit = self.budget.of(longest_sum(self.case.module, inputs), self.digits)
        pairs = list(zip(far, expected, strict=True))
        if all(ulp <= self._allowed(limit, one) for ulp, one in pairs):
            return limit, "same"
        grown = max(growth(self.case.module, inputs, limit, self.digits).values(), default=0.0)
        return max(limit, grown), "unmeasured" if math.isinf(grown) else "same"

    def _allowed(self, limit: float, expected: np.ndarray) -> float:
        if not is_real(expected.dtype):
            return 0.0
        return limit * scale(expected.dtype, self.digits)


def only_used(module: Module) -> Module:
    """The module without what no result depends on."""
    copy = module.clone()
    loops = UnchangedCarry(), UnusedInLoop()
    rules: list[RewritePattern] = [UnusedCapture(), UnusedResult(), *loops]
    walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
    walker.rewrite_module(copy.op)
    return copy


def _results(run: Callable[[list[Any]], Any], inputs: list[Any]) -> tuple[np.ndarray, ...] | str:
    """The results of a run, or that it refuses the inputs."""
    try:
        return run(inputs)
    except sw.InputError as error:
        return f"InputError: {error}"


def resized(case: Case, choices: Choices) -> list[Any] | None:
    """Inputs of other sizes where some are symbolic; None where there are none."""
    specs = case.module.inputs
    names = sorted({d for spec in specs for d in spec.shape if isinstance(d, str)})
    if not names or not choices.chance(0.6):
        return None
    if any(spec.format is not None for spec in specs):
        return None
    sizes = {name: choices.among(0, 1, 2, 3, 6, 17, 37) for name in names}
    found: list[Any] = []
    for spec, array in zip(specs, case.inputs, strict=True):
        shape = [sizes.get(str(d), n) for d, n in zip(spec.shape, array.shape, strict=True)]
        found.append(np.resize(array, shape) if array.size else np.zeros(shape, array.dtype))
    return found


def _is_finite(array: np.ndarray) -> bool:
    return not is_real(array.dtype) or bool(np.isfinite(array.astype(np.float64)).all())


def _arrays(found: Any) -> tuple[np.ndarray, ...]:
    return tuple(map(np.asarray, results(found)))
