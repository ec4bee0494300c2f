"""`Executable`: a compiled program that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..backends.llvm.boundary.plan import ARGUMENTS, LARGEST_ARENA, Plan
from ..core import arguments
from ..core.errors import CompileError, InputError, StepwellError, explain
from ..core.explanation import explanation
from ..core.module import ValueSpec
from ..core.pipelines import TEXT_STAGES, check_stage
from ..dialects.rt.abi import ARENA_TOO_SMALL, DETAIL_WORDS, Word
from . import results
from .frames import Frame, Frames, no_memory
from .functions import take_error
from .interface import Interface
from .objects import look_for_scipy
from .plan import ExecutablePlan, frame_size, is_passed, plan_of
from .vectorcall import attach, boundary, fast_type

if TYPE_CHECKING:
    from ..backends.llvm.boundary.code import Boundary
    from ..core.context import Change, Decision
    from ..core.fate import Fate
    from ..core.weights import WeightStore
    from .profile import Profile


class Staircase(Protocol):
    """The stages of a program, recomputed on request."""

    def text(self, stage: str) -> str:
        """The text of a stage."""
        ...

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names."""
        ...

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage."""
        ...

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """A profile of the time."""
        ...

    def why(self, node: str) -> Fate:
        """The fate of a node."""
        ...


@dataclass(frozen=True)
class Program:
    """The code of a program, and its interface.

    `entry` is the address of a function that takes a frame and calls the public function, `keep`
    the owner of that code.
    """

    interface: Interface
    entry: int
    keep: Any


class Executable:
    """A compiled program. Call it with one argument for each input, in order or by name.

    Dense arguments are arrays of exactly the dtype of the input, sparse ones `scipy.sparse`
    matrices, graphs or ``(indptr, indices, values)``. One result is an array, several are a
    tuple. Arguments are only read; results are new arrays, or those given as `out`: an array, or
    a tuple with an array or None for each result, of its dtype and shape, contiguous. A result
    whose size depends on values is always a new array, of exactly that size. `out` may
    overlap arguments; an input named "out" must be given by position. Threads may call
    concurrently, and calls release the GIL. See `docs/calls.md` for what they may write to.

    Raises:
        InputError: when called with arguments that do not fit `inputs`.
    """

    # Compiled code handles calls of an instance of the fast subtype, and falls back to `__call__`
    # for arguments that need conversion.
    __slots__ = (
        "__weakref__",
        "_constants",
        "_decisions",
        "_entry",
        "_frames",
        "_functions",
        "_plan",
        "_program",
        "_signature",
        "_staircase",
        "changes",
        "stages",
    )

    def __init__(
        self,
        program: Program,
        staircase: Staircase | None = None,
        stages: Sequence[str] = (),
        decisions: Sequence[Decision] = (),
    ) -> None:
        interface = program.interface
        self._signature = interface.signature
        self._program = program
        self._staircase = staircase
        self._decisions = tuple(decisions)
        self.stages: tuple[str, ...] = tuple(stages)
        self.changes: tuple[Change, ...] = ()
        """How each pass changed the results, if compilation was checked."""
        self._constants = _table(arguments.address(a) for a in interface.constants)
        self._functions = _table(
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in interface.functions
        )
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(program.entry)
        tables = map(ctypes.addressof, (self._constants, self._functions))
        self._frames = Frames(frame_size(self._signature), *tables)
        self._plan: ExecutablePlan | None = None

    @property
    def inputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the arguments, in order."""
        return list(self._signature.inputs)

    @property
    def outputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the results, in order."""
        return list(self._signature.outputs)

    def ir(self, stage: str) -> str:
        """The text of a stage of the staircase; see `stages`.

        Raises:
            CompileError: if there is no stage of this name.
        """
        return self._way_down.text(stage)

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names, for `stepwell.from_mlir`.

        Raises:
            CompileError: if there is no stage of this name.
        """
        return self._way_down.weights(stage)

    def run_at(self, stage: str, *inputs: object) -> Any:
        """The results of a call, with a stage interpreted operation by operation.

        Every access to memory is checked, and uninitialised memory holds NaN. For the stages after
        `llvm`, which are text for people, the compiled program runs instead.

        Raises:
            CompileError: if there is no stage of this name, or it makes an invalid access.
            InputError: if the arguments do not fit `inputs`.
        """
        if check_stage(stage) in TEXT_STAGES:
            return self(*inputs)
        return self._way_down.run(stage, inputs)

    def profile(self, *inputs: object, repeat: int | None = None) -> Profile:
        """The time of a call, by kernel and by node of the model.

        The program is compiled again with a timer around each kernel, and run.

        Args:
            inputs: the arguments of the call.
            repeat: the number of runs; None for a number that takes a moment. See
                `docs/profiling.md`.

        Raises:
            InputError: if the arguments do not fit `inputs`, or `repeat` is below 1.
            StepwellError: if this machine has no suitable clock.
        """
        return self._way_down.profile(inputs, repeat)

    def why(self, node: str) -> Fate:
        """What became of a node of the model, at every stage and by which passes.

        Raises:
            InputError: if the model has no such node, naming the nearest ones.
        """
        return self._way_down.why(node)

    @property
    def _way_down(self) -> Staircase:
        if self._staircase is None:
            raise CompileError(explain("stage", "this program is interpreted and has none"))
        return self._staircase

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that passes took, in order."""
        return self._decisions

    def explain(self, format: str = "text") -> str:
        """The decisions that passes took, by stage and pass.

        Args:
            format: "text", or "json" for programs, described in `docs/pipeline.md`.

        Raises:
            InputError: if there is no such format.
        """
        return explanation(self._decisions, format)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._signature.inputs))
        outputs = ", ".join(map(str, self._signature.outputs))
        return f"Executable({inputs} -> {outputs})"

    def __call__(self, /, *inputs: object, out: object = None, **named: object) -> Any:
        signature = self._signature
        if named:
            # With arguments in order, the call takes the compiled path.
            return self(*arguments.in_order(signature.inputs, inputs, named), out=out)
        if (arrays := arguments.arrays_of_tensors(inputs)) is not None:
            return self(*arrays, out=out)
        checked = self._checked(inputs)
        look_for_scipy()
        sizes = self._sizes(checked)
        self._check_arena(sizes)
        given = results.given(signature.outputs, out)
        results.refuse_where_computed(signature, given)
        arrays = [
            results.array(spec, shape, value, bool(signature.computed))
            for spec, shape, value in zip(
                signature.outputs, results.begun(signature, sizes), given, strict=True
            )
        ]
        read = [array for value in checked for array in _arrays(value)]
        targets = results.targets(signature.outputs, arrays, read) if out is not None else arrays
        for number, array in enumerate(self._run(checked, targets, sizes)):
            if array is targets[number] and array is not arrays[number]:
                arrays[number][...] = array
            else:
                arrays[number] = array
        # Return the object that the caller passed, not a view of it.
        answers = [a if value is None else value for a, value in zip(arrays, given, strict=True)]
        return answers[0] if len(answers) == 1 else tuple(answers)

    def sizes_of(self, *inputs: object) -> dict[str, int]:
        """The sizes of the symbols of the program for these arguments.

        Raises:
            InputError: if they do not fit `inputs`.
        """
        return self._sizes(self._checked(inputs))

    def _checked(self, inputs: Sequence[object]) -> list[np.ndarray | arguments.Csr]:
        """The arguments in the form of compiled code.

        Raises:
            InputError: if one is missing or does not fit.
        """
        return arguments.taken(self._signature.arguments, inputs)

    def _sizes(self, checked: Sequence[np.ndarray | arguments.Csr]) -> dict[str, int]:
        """The sizes of the symbols in this call.

        Raises:
            InputError: if two dimensions of one name differ.
        """
        sizes = arguments.sizes(self._signature.arguments, checked)
        self._check_equal(sizes)
        return sizes

    def _check_equal(self, sizes: Mapping[str, int]) -> None:
        for left, right in self._signature.equal:
            if left.evaluate(sizes) != right.evaluate(sizes):
                raise InputError(
                    explain(
                        "call",
                        f"dimensions {left} and {right} must agree",
                        expected=left.evaluate(sizes),
                        got=right.evaluate(sizes),
                    )
                )

    def _check_arena(self, sizes: Mapping[str, int]) -> None:
        """Refuse sizes for which address arithmetic in compiled code would overflow."""
        size = self._signature.arena.evaluate(sizes)
        if size > LARGEST_ARENA:
            raise no_memory(f"an arena of {size} bytes")

    def _run(
        self,
        checked: Sequence[np.ndarray | arguments.Csr],
        targets: Sequence[np.ndarray],
        sizes: Mapping[str, int],
    ) -> Sequence[np.ndarray]:
        """Run the program; returns the results, in `targets` where callers could allocate them."""
        reported = np.zeros(self._signature.reported, np.int64)
        words: list[int] = []
        for spec, value in zip(self._signature.inputs, checked, strict=True):
            words += _words(spec, value)
        for spec, value in zip(self._signature.outputs, targets, strict=True):
            words += _words(spec, value)
        if reported.size:
            words.append(arguments.address(reported))
        frame = self._frames.take()
        try:
            frame.words[ARGUMENTS : ARGUMENTS + len(words)] = words
            status = self._entry(frame.address)
            while status == ARENA_TOO_SMALL:
                frame.grow(frame.words[Word.DETAILS])
                status = self._entry(frame.address)
            if status:
                self._fail(status, frame)
            if not reported.size:
                return targets
            return results.exact(self._signature, targets, sizes, reported, frame.arena)
        finally:
            frame.give_back()

    def _fail(self, status: int, frame: Frame) -> None:
        raised = take_error()
        if raised is not None:
            raise raised
        messages = self._program.interface.messages
        if not 0 < status <= len(messages):
            raise StepwellError(explain("call", "unknown status", got=status))
        details = frame.words[Word.DETAILS : Word.DETAILS + DETAIL_WORDS]
        raise InputError(messages[status - 1](details))

    def _connect(self, plan: ExecutablePlan, code: Boundary) -> None:
        """Let compiled code handle calls, according to a plan."""
        self._plan = plan
        self._frames.claim = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.frame)
        plan.words[Plan.FRAMES] = self._frames.head
        attach(self, plan.address, code.call)

    def _fail_at(self, status: int, address: int) -> None:
        """Raise the error of a call from compiled code, from the frame at an address."""
        frame = self._frames.at(address)
        try:
            self._fail(status, frame)
        finally:
            frame.give_back()


def executable(
    program: Program,
    staircase: Staircase | None = None,
    stages: Sequence[str] = (),
    decisions: Sequence[Decision] = (),
) -> Executable:
    """An `Executable`, called by compiled code if objects have the expected layout."""
    code, signature = boundary(Executable), program.interface.signature
    plan = (
        None
        if code is None
        else plan_of(signature, program.entry, Executable.__call__, Executable._fail_at)
    )
    kind = Executable if plan is None else fast_type(Executable)
    made = kind(program, staircase, stages, decisions)
    if code is not None and plan is not None:
        made._connect(plan, code)
    return made


def _table(addresses: Any) -> Any:
    values = list(addresses)
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _arrays(value: np.ndarray | arguments.Csr) -> tuple[np.ndarray, ...]:
    if isinstance(value, arguments.Csr):
        return value.indptr, value.indices, value.values
    return (value,)


def _words(spec: ValueSpec, value: np.ndarray | arguments.Csr) -> list[int]:
    """The argument words of a buffer: its address, then its symbolic sizes."""
    passed = is_passed(spec)
    if isinstance(value, arguments.Csr):
        entries = len(value.values)
        return [
            arguments.address(value.indptr),
            *([len(value.indptr)] if passed[0] else []),
            arguments.address(value.indices),
            entries,
            arguments.address(value.values),
            entries,
            *([value.shape[1]] if passed[1] else []),
        ]
    sizes = [size for size, is_word in zip(value.shape, passed, strict=True) if is_word]
    return [arguments.address(value), *sizes]
