"""Checked compilation: after each pass the module is run, and compared with what it was before.

Every stage runs on the same inputs, so the first pass after which a result is another one is the
pass to blame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from .backends.reference.interpreter import run
from .backends.reference.memory import Pointer
from .backends.reference.samples import small_inputs
from .core.context import Change, CompilerContext, PassHook
from .core.errors import InputError, MiscompilationError, StepwellError, explain
from .core.module import Module, is_real
from .core.printing import module_text
from .core.provenance import names
from .dialects import rt
from .dialects.graph.ops import CallDpsOp
from .runtime.executable import Executable
from .runtime.interface import Interface, interface_of
from .runtime.interpreted import interpreted

_DIFFERENT = float("inf")


@dataclass(frozen=True)
class Blame:
    """Where a difference shows first."""

    function: str | None = None
    operation: str | None = None
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = [
            f"in @{self.function}" if self.function else "",
            f"at {self.operation}" if self.operation else "",
            f"of {', '.join(self.nodes)}" if self.nodes else "",
        ]
        return " ".join(filter(None, where)) or "in the program"


@dataclass
class Trace:
    """What a run computed on its way: by calls of functions, and by operators of the model."""

    results: tuple[np.ndarray, ...] = ()
    calls: dict[tuple[str, int], tuple[Operation, list[np.ndarray]]] = field(
        default_factory=dict[tuple[str, int], tuple[Operation, list[np.ndarray]]]
    )
    operators: dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]] = field(
        default_factory=dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]]
    )
    _times: Counter[object] = field(default_factory=Counter[object])

    def called(self, op: Operation, name: str, arrays: Sequence[np.ndarray]) -> None:
        """Keep what a call gave: the last of the arrays are its results."""
        self._times[name] += 1
        self.calls[name, self._times[name]] = op, [array.copy() for array in arrays]

    def observe(self, op: Operation, results: Sequence[Any]) -> None:
        """Keep what an operation of the graph level gave."""
        arrays = [_dense(result) for result in results]
        if isinstance(op, func.CallOp | CallDpsOp):
            self.called(op, op.callee.root_reference.data, arrays)
        elif key := names(op):
            self._times[key] += 1
            self.operators[key, self._times[key]] = op, arrays


class _Calls(Interpreter.Listener):
    """Keeps what functions on buffers write."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._open: list[PythonValues] = []

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        if isinstance(op, rt.CallOp | func.CallOp | llvm.CallOp):
            self._open.append(args)

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        if not isinstance(op, rt.CallOp | func.CallOp | llvm.CallOp):
            return
        args = self._open.pop()
        if op.callee is not None and not results:
            arrays = [memory for arg in args if (memory := _memory(arg)) is not None]
            self._trace.called(op, op.callee.root_reference.data, arrays)


def _memory(value: Any) -> np.ndarray | None:
    """What a function can write to: a buffer, or the bytes from an address on."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Pointer) and value.allocation is not None:
        return value.allocation.bytes[value.offset :]
    return None


def _dense(value: Any) -> np.ndarray:
    """A result as an array: of a sparse matrix its stored values."""
    return value if isinstance(value, np.ndarray) else np.asarray(getattr(value, "data", value))


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

    def finish(self, executable: Executable) -> None:
        """Compare with machine code.

        Raises:
            MiscompilationError: if that gives another result.
        """
        traces: list[Trace] = []
        for arrays, before in zip(self._inputs, self._traces, strict=True):
            traces.append(Trace(_tuple(executable(*arrays))))
            self._compare("asm", "code generation", before, traces[-1], "code generation", arrays)
        self._keep("asm", "code generation", traces, "code generation")

    def _keep(self, stage: str, pass_name: str, traces: list[Trace], how: str) -> None:
        far = [
            distance(got, want)
            for before, after in zip(self._traces, traces, strict=True)
            for got, want in zip(after.results, before.results, strict=True)
        ]
        ulp = max((ulp for ulp, _ in far), default=0.0)
        elements = sum(count for _, count in far)
        self._note(Change(stage, pass_name, ulp, elements, how if elements else ""))
        if self._expected is not None:
            for trace in traces:
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
                return Blame(name, None, names(op))
        return None

    def _differ(self, got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
        """Whether arrays differ; what is an address on one side has the bytes of the other."""
        for one, other in zip(reversed(got), reversed(expected), strict=False):
            if one.dtype != other.dtype and np.uint8 in (one.dtype, other.dtype):
                typed, raw = (other, one) if one.dtype == np.uint8 else (one, other)
                if raw.size < typed.nbytes:
                    return True
                one, other = raw[: typed.nbytes].view(typed.dtype), typed.reshape(-1)
            if one.dtype == np.uint8:
                continue  # bytes of any type on both sides
            if one.size == other.size and distance(one.reshape(-1), other.reshape(-1))[
                0
            ] > self._limit(other):
                return True
        return False

    def _run(self, module: Module, inputs: Sequence[Any]) -> Trace:
        trace = Trace()
        interface = self._interface_of(module)
        if interface is None:
            trace.results = tuple(map(_dense, run(module, inputs, trace.observe)))
            return trace
        program = interpreted(module.op, interface, [_Calls(trace)])
        trace.results = _tuple(program(*inputs))
        return trace

    def _interface_of(self, module: Module) -> Interface | None:
        """What the program is called with once its public function takes buffers."""
        if self._interface is None and _is_on_buffers(module.main):
            self._interface = interface_of(module)
        return self._interface


def _error(
    message: str, blame: Blame, change: Change, inputs: Sequence[Any]
) -> MiscompilationError:
    error = MiscompilationError(message)
    error.stage, error.pass_name, error.ulp = change.stage, change.pass_name, change.ulp
    error.function, error.operation, error.nodes = blame.function, blame.operation, blame.nodes
    error.inputs = tuple(inputs)
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
