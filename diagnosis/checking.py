"""Checked compilation: the module is run after each pass, and its results are compared.

Every stage runs on the same inputs, so the first pass that changes a result is to blame.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..backends.reference.interpreter import run
from ..backends.reference.remembered import Remembered
from ..backends.reference.writes import Writes
from ..core.distances import DIFFERENT, distance, elements_apart
from ..core.errors import InputError, MiscompilationError, StepwellError, explain
from ..core.ir.context import Change, CompilerContext
from ..core.ir.module import Module
from ..core.ir.provenance import names
from ..core.ir.typed import function_around
from ..core.ir.walks import is_same
from ..core.pipelines.budgets import SUMS, Budget, budget_of, together
from ..core.pipelines.stages import IR_STAGES
from ..dialects.program import is_on_buffers
from ..driver.compilation import CODE_GENERATION, Compilation, Observer
from ..runtime.executable import Executable
from ..runtime.interpreted import interpreted
from ..runtime.lowered import lowered
from .barriers import unordered
from .differences import Blame, alike, miscompilation
from .limits import ValueLimits
from .machine_calls import called_alone
from .single_call import SingleCall
from .smaller import made_up
from .traces import CallTracer, Trace, dense, results_of

OF_MACHINE_CODE = SUMS
"""Machine code reorders sums and may call functions of a library."""

ON_TENSORS = IR_STAGES[: IR_STAGES.index("fused") + 1]
"""The stages that NumPy runs."""


class Checker(Observer):
    """Run a module after each pass, and refuse a pass that changes a result.

    Args:
        module: the module before the first pass.
        inputs: the inputs to run it on; None for made-up ones, which include edge values.
        max_ulp: how far a pass may move a result, in the unit of `Change`; None for the budget
            that each pass states (see `core.pipelines.budgets`).
        expected: the correct results, if those of the module cannot be trusted; each pass is then
            compared with these, and the inputs have to be given.
        report: called with each change as soon as it is known.
        single: the call to interpret; other calls have their known results, and are not compared.

    Raises:
        InputError: if the inputs or the results do not fit.
        MiscompilationError: if the module itself does not return the expected results.
    """

    def __init__(
        self,
        module: Module,
        inputs: Sequence[object] | None,
        max_ulp: float | None,
        expected: Sequence[np.ndarray] | None = None,
        report: Callable[[Change], None] = lambda _: None,
        single: SingleCall | None = None,
    ) -> None:
        self.changes: list[Change] = []
        self._report = report
        self._expected = None if expected is None else tuple(expected)
        self._inputs = made_up(module) if inputs is None else [list(inputs)]
        self._limits = ValueLimits(module, max_ulp)
        self._stated: list[Budget] = []
        self._single = single
        self._remembered = Remembered() if single is None else single.replayed()
        try:
            self._begin(module)
        except InputError:
            if inputs is not None:
                raise

            def runs(arrays: Sequence[Any]) -> bool:
                try:
                    self._run(module, arrays)
                except InputError:
                    return False
                return True

            # Begin with samples of sizes that the module takes.
            self._inputs = made_up(module, runs)
            try:
                self._begin(module)
            except InputError as error:
                fact = f"no inputs can be made up ({error})"
                raise InputError(explain("check", fact, hint="give inputs")) from error
        if self._expected is not None:
            self._expect(self._expected, module)

    @property
    def inputs(self) -> list[list[Any]]:
        """The samples that the module is run on, each with an array for every input."""
        return self._inputs

    def start_over(self, module: Module) -> None:
        """From here on, compare with the results of this module."""
        self._limits.narrow(module.op)
        self._begin(module)

    def _begin(self, module: Module) -> None:
        self._traces = [self._run(module, arrays) for arrays in self._inputs]
        self._state = module.op.clone()

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Run the module, and compare.

        Raises:
            MiscompilationError: if the pass changed a result.
        """
        if is_same(op, self._state):
            self._note(Change(ctx.stage, ctx.pass_name, 0.0, 0, ""))
            return
        how = _explanation(_histogram(self._state), _histogram(op))
        traces = self._compared(ctx, op, how)
        self._stated.append(budget_of(ctx.step))
        self._keep(ctx.stage, ctx.pass_name, traces, how)
        self._state = op.clone()
        if ctx.stage in ON_TENSORS:
            self._limits.follow(Module(self._state, ctx.weights))

    def compare(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Compare as `after_pass` does, and leave the state of the checker unchanged.

        Raises:
            MiscompilationError: if the pass changed a result.
        """
        self._compared(ctx, op, "")

    def focused(self, error: MiscompilationError) -> Checker:
        """A checker of the call where a difference was found, and on the inputs with which.

        All other calls have the results that they had before the pass.
        """
        if error.function is None or not error.call or self._single is not None:
            return self
        pairs = zip(self._inputs, self._traces, strict=True)
        found = [
            pair
            for pair in pairs
            if all(a is b for a, b in zip(pair[0], error.inputs, strict=True))
        ]
        if not found:
            return self
        focused, (arrays, trace) = copy.copy(self), found[0]
        focused._inputs, focused._traces = [arrays], [trace]
        focused._single = SingleCall(trace, (error.function, error.call))
        focused._remembered = focused._single.replayed()
        return focused

    def _compared(self, ctx: CompilerContext, op: ModuleOp, how: str) -> list[Trace]:
        module = Module(op, ctx.weights)
        self._limits.narrow(op)
        self._check_barriers(ctx, op, how)
        budget = self._budget(budget_of(ctx.step))
        traces: list[Trace] = []
        for arrays, before in zip(self._inputs, self._traces, strict=True):
            try:
                traces.append(self._run(module, arrays))
            except StepwellError as error:
                change = Change(ctx.stage, ctx.pass_name, DIFFERENT, 0, how)
                message = explain(ctx.pass_name, f"the program no longer runs: {error}")
                raise miscompilation(message, Blame(), change, arrays, 0.0) from error
            change = Change(ctx.stage, ctx.pass_name, 0.0, 0, how)
            self._limits.compare(change, before, traces[-1], arrays, budget)
        return traces

    def _check_barriers(self, ctx: CompilerContext, op: ModuleOp, how: str) -> None:
        """Check that a pass leaves no threads unordered that were in order before.

        Raises:
            MiscompilationError: if it does.
        """
        late = unordered(op)
        if late is None or unordered(self._state) is not None:
            return
        function = function_around(late)
        blame = Blame(function and function.sym_name.data, late.name, names(late))
        fact = f"it leaves threads of a block unordered {blame}"
        message = explain(ctx.pass_name, fact, expected="rt.barrier before it", got="none")
        change = Change(ctx.stage, ctx.pass_name, DIFFERENT, 0, how)
        raise miscompilation(message, blame, change, self._inputs[0], 0.0)

    def _budget(self, budget: Budget) -> Budget:
        """The budget for a comparison: if results are given, earlier passes have spent theirs."""
        return budget if self._expected is None else together([*self._stated, budget])

    def compiled(self, exe: Executable, compilation: Compilation) -> None:
        """Compare with machine code.

        Raises:
            MiscompilationError: if that returns a different result.
        """
        traces: list[Trace] = []
        change = Change("asm", CODE_GENERATION, 0.0, 0, CODE_GENERATION)
        budget = self._budget(OF_MACHINE_CODE)
        for arrays, before in zip(self._inputs, self._traces, strict=True):
            traces.append(Trace(results_of(exe, arrays)))
            try:
                self._limits.compare(change, before, traces[-1], arrays, budget)
            except MiscompilationError:
                work = compilation.at("llvm")
                traces[-1].calls = called_alone(work, compilation.target, arrays).calls
                self._limits.compare(change, before, traces[-1], arrays, budget)
        self._keep("asm", CODE_GENERATION, traces, CODE_GENERATION)
        exe.changes = tuple(self.changes)

    def _keep(self, stage: str, pass_name: str, traces: list[Trace], how: str) -> None:
        far = [
            distance(got, want)
            for before, after in zip(self._traces, traces, strict=True)
            for got, want in zip(after.results, before.results, strict=True)
        ]
        ulp = max((ulp for ulp, _ in far), default=0.0)
        elements = sum(count for _, count in far)
        self._note(Change(stage, pass_name, ulp, elements, how if elements else ""))
        for before, trace in zip(self._traces, traces, strict=True):
            trace.keep_types(before)
            if self._expected is not None:
                trace.results = self._expected
        self._traces = traces

    def _note(self, change: Change) -> None:
        self.changes.append(change)
        self._report(change)

    def _expect(self, expected: tuple[np.ndarray, ...], module: Module) -> None:
        """Use these as the results that the module has to match."""
        specs = module.outputs
        if len(expected) != len(specs):
            fact = "wrong number of expected results"
            raise InputError(explain("check", fact, expected=len(specs), got=len(expected)))
        for spec, result, want in zip(specs, self._traces[0].results, expected, strict=True):
            if (result.shape, result.dtype) != (want.shape, want.dtype):
                fact, given = (
                    f'expected result "{spec.name}" does not fit',
                    (want.shape, want.dtype),
                )
                should = (result.shape, result.dtype)
                raise InputError(explain("check", fact, expected=should, got=given))
        for trace, arrays in zip(self._traces, self._inputs, strict=True):
            wanted = Trace(expected)
            change = Change("", "the model itself", 0.0, 0, "")
            self._limits.compare(change, wanted, trace, arrays, SUMS)
            trace.results = expected

    def statements(
        self, error: MiscompilationError, before: Module, after: Module
    ) -> tuple[Operation | None, Operation | None]:
        """The operations that write the first wrong element of a call, before and after a pass.

        First is the element that is written first. None if no operation of a kernel writes it.

        Args:
            error: the change by the pass, with its call.
            before: the module before it.
            after: the module after it.
        """
        if error.function is None or not error.call:
            return None, None
        key = error.function, error.call
        tolerance = self._limits.tolerance(error.limit)
        one, other = Writes(*key), Writes(*key)
        old = self._run(before, error.inputs, one).calls[key][1]
        new = self._run(after, error.inputs, other).calls[key][1]
        found: list[tuple[int, int]] = []
        for place in range(-1, -1 - min(len(old), len(new)), -1):
            pair = alike(old[place], new[place])
            if pair is None or pair[0].size != pair[1].size:
                continue
            apart = np.flatnonzero(elements_apart(pair[1], pair[0], tolerance.of(pair[0], key)))
            size, itemsize = pair[0].size, pair[0].dtype.itemsize
            writes = [w.numbers(place, size, itemsize)[apart] for w in (one, other)]
            found += zip(*(numbers.tolist() for numbers in writes), strict=True)
        first = min(found, default=(-1, -1))
        return one.operation(first[0]), other.operation(first[1])

    def _run(self, module: Module, inputs: Sequence[Any], *listeners: Writes) -> Trace:
        trace, known = Trace(), self._remembered
        known.begin()
        if not is_on_buffers(module.program):
            results = run(module, inputs, trace.observe, listeners, known)
            trace.results = tuple(map(dense, results))
            return trace
        kept = None if self._single is None else self._single.trace
        all_of = [CallTracer(trace, kept), *listeners]
        program = interpreted(module.op, lowered(module), all_of, remembered=known)
        trace.results = results_of(program, inputs)
        return trace


def _histogram(op: ModuleOp) -> Counter[str]:
    return Counter(inner.name for inner in op.walk())


def _explanation(before: Counter[str], after: Counter[str]) -> str:
    """The likely cause of a small difference."""
    functions = [name for name in before if name.startswith("math.") and name != "math.fma"]
    if any(after[name] < before[name] for name in functions):
        return "approximation"
    fused = ("math.fma", "vector.fma", "llvm.intr.fma", "graph.fma")
    if not any(before[name] for name in fused) and any(after[name] for name in fused):
        return "fused multiply-add"
    return "reassociation"
