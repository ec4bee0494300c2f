"""Checked compilation: after each pass the module is run, and compared with what it was before.

Every stage runs on the same inputs, so the first pass after which a result is another one is the
pass to blame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..backends.reference.interpreter import run
from ..backends.reference.samples import small_inputs
from ..backends.reference.writes import Writes
from ..core.context import Change, CompilerContext, PassHook
from ..core.errors import InputError, MiscompilationError, StepwellError, explain
from ..core.module import Module, is_real
from ..core.printing import module_text
from ..core.provenance import names
from ..dialects import rt
from ..runtime.executable import Executable
from ..runtime.interface import Interface, interface_of
from ..runtime.interpreted import interpreted
from .traces import Calls, Trace, dense

_DIFFERENT = float("inf")

Natives = Mapping[str, Callable[..., Any]]
"""Machine code of functions, by name."""


@dataclass(frozen=True)
class Blame:
    """Where a difference shows first."""

    function: str | None = None
    operation: str | None = None
    nodes: tuple[str, ...] = ()
    call: int = 0
    """Which call of the function it is, from 1."""

    def __str__(self) -> str:
        where = [
            f"in @{self.function}" if self.function else "",
            f"at {self.operation}" if self.operation else "",
            f"of {', '.join(self.nodes)}" if self.nodes else "",
        ]
        return " ".join(filter(None, where)) or "in the program"


def distance(got: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """How far a result is from another: see `Change`. Integers are equal, or infinitely far."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return _DIFFERENT, max(got.size, expected.size)
    same = got == expected
    if not is_real(got.dtype):
        return (0.0 if same.all() else _DIFFERENT), int(np.count_nonzero(~same))
    same |= np.isnan(got) & np.isnan(expected)
    changed = int(np.count_nonzero(~same))
    if not changed:
        return 0.0, 0
    finite = np.isfinite(got) & np.isfinite(expected)
    if not (finite | same).all():
        return _DIFFERENT, changed
    wide = np.float64 if got.dtype.itemsize < 8 else np.longdouble
    a, b = got[finite].astype(wide), expected[finite].astype(wide)
    largest = np.asarray(max(np.max(np.abs(a)), np.max(np.abs(b)))).astype(got.dtype)
    unit = np.spacing(largest) if got.dtype.kind == "f" else largest * 2.0**-7
    return float(np.max(np.abs(a - b)) / wide(unit)), changed


def elements_apart(got: np.ndarray, expected: np.ndarray, limit: float) -> np.ndarray:
    """Which elements are further than a limit from others, by the measure of `distance`."""
    if not is_real(got.dtype):
        return got != expected
    wide = np.float64 if got.dtype.itemsize < 8 else np.longdouble
    a, b = got.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        far, (ulp, _) = np.abs(a - b), distance(got, expected)
    largest = np.max(far, initial=0, where=np.isfinite(far))
    # The largest difference is `ulp` units.
    near = far <= (limit / ulp * largest if 0 < ulp < _DIFFERENT else 0)
    return ~(near | (got == expected) | (np.isnan(a) & np.isnan(b)))


def budget(dtype: np.dtype[Any]) -> float:
    """How far a pass may move a result, in the unit of `Change`, where nothing else is said.

    Another order of a sum of thousands of terms moves it by a few dozen units; of types with few
    digits, half of which would be more than that, by a quarter of them.
    """
    digits = {"bfloat16": 8, "float16": 11}.get(dtype.name, 24)
    return 2.0 ** (digits // 2 - 2)


class Checker(PassHook):
    """Runs a module after each pass, and refuses a pass that changes a result.

    Args:
        module: the module before the first pass.
        inputs: what it is run on; None for inputs that are made up, edge values among them.
        max_ulp: how far a pass may move a result, in the unit of `Change`; None for a limit that
            another order of sums keeps to.
        expected: the results that are to come out, where those of the module are not to be
            trusted; then each pass is compared with these, and the inputs have to be given.
        tell: is told of each change when it is known.

    Raises:
        InputError: if the inputs or the results do not fit.
        MiscompilationError: if the module itself gives other results than expected.
    """

    def __init__(
        self,
        module: Module,
        inputs: Sequence[object] | None,
        max_ulp: float | None,
        expected: Sequence[np.ndarray] | None = None,
        tell: Callable[[Change], None] = lambda _: None,
    ) -> None:
        self.changes: list[Change] = []
        self._max_ulp, self._tell = max_ulp, tell
        self._expected = None if expected is None else tuple(expected)
        self._inputs = small_inputs(module.inputs) if inputs is None else [list(inputs)]
        self._interface: Interface | None = None
        self._names, self._text = Counter[str](), ""
        try:
            self._traces = [self._run(module, arrays) for arrays in self._inputs]
        except InputError as error:
            if inputs is not None:
                raise
            fact = f"no inputs can be made up ({error})"
            raise InputError(explain("check", fact, hint="give inputs")) from error
        if self._expected is not None:
            self._expect(self._expected, module)

    @property
    def inputs(self) -> list[list[Any]]:
        """What the module is run on: one or more times an array for each input."""
        return self._inputs

    def start_over(self, module: Module, interface: Interface | None) -> None:
        """Compare with what another module computes, from here on.

        Args:
            module: what passes come next.
            interface: what it is called with, where it no longer says so itself.
        """
        self._interface = interface
        self._traces = [self._run(module, arrays) for arrays in self._inputs]

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Remember what the module is made of."""
        self._names, self._text = _histogram(op), module_text(op)

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Run the module, and compare.

        Raises:
            MiscompilationError: if the pass changed a result.
        """
        if module_text(op) == self._text:
            self._note(Change(ctx.stage, ctx.pass_name, 0.0, 0, ""))
            return
        how = _explanation(self._names, _histogram(op))
        traces = self._compared(ctx, op, how)
        self._keep(ctx.stage, ctx.pass_name, traces, how)

    def compare(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Compare as `after_pass` does, and go on as if nothing had been asked.

        Raises:
            MiscompilationError: if the pass changed a result.
        """
        interface = self._interface
        try:
            self._compared(ctx, op, "")
        finally:
            self._interface = interface

    def _compared(self, ctx: CompilerContext, op: ModuleOp, how: str) -> list[Trace]:
        module = Module(op, ctx.weights)
        traces: list[Trace] = []
        for arrays, before in zip(self._inputs, self._traces, strict=True):
            try:
                traces.append(self._run(module, arrays))
            except StepwellError as error:
                change = Change(ctx.stage, ctx.pass_name, _DIFFERENT, 0, how)
                message = explain(ctx.pass_name, f"the program no longer runs: {error}")
                raise _error(message, Blame(), change, arrays) from error
            self._compare(ctx.stage, ctx.pass_name, before, traces[-1], how, arrays)
        return traces

    def finish(
        self, executable: Executable, natives: Callable[[], tuple[ModuleOp, Natives]]
    ) -> None:
        """Compare with machine code.

        Args:
            executable: the program.
            natives: gives its module of the LLVM dialect, and each function of that by itself:
                for blame, where there is a difference.

        Raises:
            MiscompilationError: if that gives another result.
        """
        traces: list[Trace] = []
        name = how = "code generation"
        for arrays, before in zip(self._inputs, self._traces, strict=True):
            traces.append(Trace(_tuple(executable(*arrays))))
            try:
                self._compare("asm", name, before, traces[-1], how, arrays)
            except MiscompilationError:
                module, functions = natives()
                traces[-1].calls = self._called_alone(module, functions, arrays).calls
                self._compare("asm", name, before, traces[-1], how, arrays)
        self._keep("asm", name, traces, how)

    def _called_alone(self, module: ModuleOp, natives: Natives, inputs: Sequence[Any]) -> Trace:
        """A run of machine code for all functions but the public one, which is interpreted."""
        trace, interface = Trace(), self._interface
        assert interface is not None, "machine code is made from a program on buffers"
        private = {name: call for name, call in natives.items() if name != interface.name}
        interpreted(module, interface, [Calls(trace)], private)(*inputs)
        return trace

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
        self._tell(change)

    def _expect(self, expected: tuple[np.ndarray, ...], module: Module) -> None:
        """Take these for the results, to which those of the module have to come near."""
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
            self._compare("", "the model itself", wanted, trace, "", arrays)
            trace.results = expected

    def _compare(
        self, stage: str, name: str, before: Trace, after: Trace, how: str, inputs: list[Any]
    ) -> None:
        for number, (got, want) in enumerate(zip(after.results, before.results, strict=True)):
            ulp, elements = distance(got, want)
            if ulp <= self._limit(want):
                continue
            blame = self._blame(before, after)
            at = _worst(got, want)
            fact = f"it changes result {number} by {ulp:.3g} ulp {blame}"
            if at is not None:
                fact += f", element {list(at)}"
            expected, value = (None, None) if at is None else (want[at], got[at])
            message = explain(name, fact, expected=expected, got=value)
            raise _error(message, blame, Change(stage, name, ulp, elements, how), inputs)

        # A result may not show it: a maximum, or a function that saturates, hides a lot.
        blame = self._blame_call(before, after)
        if blame is not None:
            change = Change(stage, name, _DIFFERENT, 0, how)
            message = explain(name, f"it changes what is computed {blame}")
            raise _error(message, blame, change, inputs)

    def _limit(self, result: np.ndarray) -> float:
        if not is_real(result.dtype):
            return 0.0
        return budget(result.dtype) if self._max_ulp is None else self._max_ulp

    def _blame(self, before: Trace, after: Trace) -> Blame:
        """Where two runs are first apart: in a function, or at an operator."""
        blame = self._blame_call(before, after)
        if blame is not None:
            return blame
        for key, (op, arrays) in after.operators.items():
            known = before.operators.get(key)
            if known is not None and self._differ(arrays, known[1]):
                return Blame(_function(op), op.name, key[0])
        return Blame()

    def _blame_call(self, before: Trace, after: Trace) -> Blame | None:
        """The first function that both runs call and that writes something else."""
        for (name, time), (op, arrays) in after.calls.items():
            known = before.calls.get((name, time))
            if known is not None and self._differ(arrays, known[1]):
                return Blame(name, None, names(op), time)
        return None

    def _differ(self, got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
        """Whether arrays differ; what is an address on one side has the bytes of the other."""
        for one, other in zip(reversed(got), reversed(expected), strict=False):
            pair = alike(one, other)
            if pair is None:
                continue
            if pair[0].size != pair[1].size:
                return True
            if distance(*pair)[0] > self._limit(pair[1]):
                return True
        return False

    def statements(
        self, error: MiscompilationError, before: Module, after: Module
    ) -> tuple[Operation | None, Operation | None]:
        """What writes the first element of a call that differs, before and after a pass.

        That is the element that is written first. None where nothing in a kernel does.

        Args:
            error: what the pass changed, in which call.
            before: the module before it.
            after: the module after it.
        """
        if error.function is None or not error.call:
            return None, None
        key, interface = (error.function, error.call), self._interface
        one, other = Writes(*key), Writes(*key)
        try:
            old = self._run(before, error.inputs, one).calls[key][1]
            new = self._run(after, error.inputs, other).calls[key][1]
        finally:
            self._interface = interface
        found: list[tuple[int, int]] = []
        for place in range(-1, -1 - min(len(old), len(new)), -1):
            pair = alike(old[place], new[place])
            if pair is None or pair[0].size != pair[1].size:
                continue
            apart = np.flatnonzero(elements_apart(pair[1], pair[0], self._limit(pair[0])))
            size, itemsize = pair[0].size, pair[0].dtype.itemsize
            writes = [w.numbers(place, size, itemsize)[apart] for w in (one, other)]
            found += zip(*(numbers.tolist() for numbers in writes), strict=True)
        first = min(found, default=(-1, -1))
        return one.operation(first[0]), other.operation(first[1])

    def _run(self, module: Module, inputs: Sequence[Any], *listeners: Writes) -> Trace:
        trace = Trace()
        interface = self._interface_of(module)
        if interface is None:
            results = run(module, inputs, trace.observe, listeners)
            trace.results = tuple(map(dense, results))
            return trace
        program = interpreted(module.op, interface, [Calls(trace), *listeners])
        trace.results = _tuple(program(*inputs))
        return trace

    def _interface_of(self, module: Module) -> Interface | None:
        """What the program is called with once its public function takes buffers."""
        if self._interface is None and _is_on_buffers(module.main):
            self._interface = interface_of(module)
        return self._interface


def alike(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Two arrays in a row, bytes behind an address as the elements of the other one.

    None where both are bytes of any type, or arrays of different sizes.
    """
    if one.dtype != other.dtype and np.uint8 in (one.dtype, other.dtype):
        typed = other if one.dtype == np.uint8 else one
        pair = (array.reshape(-1).view(np.uint8)[: typed.nbytes] for array in (one, other))
        first, second = (part[: part.size // typed.itemsize * typed.itemsize] for part in pair)
        return first.view(typed.dtype), second.view(typed.dtype)
    if one.dtype == np.uint8 or one.size != other.size:
        return None
    return one.reshape(-1), other.reshape(-1)


def _error(
    message: str, blame: Blame, change: Change, inputs: Sequence[Any]
) -> MiscompilationError:
    error = MiscompilationError(message)
    error.stage, error.pass_name, error.ulp = change.stage, change.pass_name, change.ulp
    error.function, error.operation, error.nodes = blame.function, blame.operation, blame.nodes
    error.inputs, error.call = tuple(inputs), blame.call
    return error


def _is_on_buffers(main: func.FuncOp) -> bool:
    return rt.ContextType() in main.function_type.inputs.data


def _tuple(results: Any) -> tuple[np.ndarray, ...]:
    return results if isinstance(results, tuple) else (results,)


def _histogram(op: ModuleOp) -> Counter[str]:
    return Counter(inner.name for inner in op.walk())


def _explanation(before: Counter[str], after: Counter[str]) -> str:
    """What a small difference comes from."""
    functions = [name for name in before if name.startswith("math.") and name != "math.fma"]
    if any(after[name] < before[name] for name in functions):
        return "approximation"
    fused = ("math.fma", "vector.fma", "llvm.intr.fma", "graph.fma")
    if not any(before[name] for name in fused) and any(after[name] for name in fused):
        return "fused multiply-add"
    return "reassociation"


def _function(op: Operation) -> str | None:
    parent = op.parent_op()
    return parent.sym_name.data if isinstance(parent, func.FuncOp) else None


def _worst(got: np.ndarray, expected: np.ndarray) -> tuple[int, ...] | None:
    """The index of the element that is furthest off."""
    if got.shape != expected.shape or not got.size:
        return None
    wide = np.float64
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(wide) - expected.astype(wide))
    off = np.where(np.isnan(off) & (got != expected), np.inf, np.nan_to_num(off, posinf=np.inf))
    off = np.where(np.isnan(got) & np.isnan(expected), 0, off)
    return cast("tuple[int, ...]", tuple(map(int, np.unravel_index(np.argmax(off), off.shape))))
