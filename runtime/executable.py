"""`Executable`: a compiled program that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core import arguments
from ..core.errors import CompileError, explain
from ..core.explanation import explanation
from ..core.specs import ValueSpec
from ..core.stages import TEXT_STAGES, check_stage
from . import results
from .frames import Frames
from .loaded import Loaded, Program
from .objects import look_for_scipy
from .plan import plan_of
from .vectorcall import attach, boundary, fast_type

if TYPE_CHECKING:
    from ..core.context import Change
    from ..core.decisions import Decision
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

    def updated(self, program: Program, weights: Mapping[str, object]) -> tuple[Program, Staircase]:
        """The program with new weights."""
        ...


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
        "_decisions",
        "_loaded",
        "_replaced",
        "_staircase",
        "changes",
        "stages",
    )

    def __init__(
        self,
        loaded: Loaded,
        staircase: Staircase | None = None,
        stages: Sequence[str] = (),
        decisions: Sequence[Decision] = (),
    ) -> None:
        self._loaded = loaded
        self._replaced: list[Loaded] = []
        self._staircase = staircase
        self._decisions = tuple(decisions)
        self.stages: tuple[str, ...] = tuple(stages)
        self.changes: tuple[Change, ...] = ()
        """How each pass changed the results, if compilation was checked."""

    @property
    def inputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the arguments, in order."""
        return list(self._loaded.signature.inputs)

    @property
    def outputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the results, in order."""
        return list(self._loaded.signature.outputs)

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

    def update(self, weights: Mapping[str, object]) -> None:
        """Take new weights, which otherwise are those at the time of compilation.

        Packed and folded copies are made again from copies of the arrays. The machine code stays
        unless what passes decided depends on values of weights, such as those that are 0: then it
        is made again as well. A call uses the old weights or the new ones, and never some of each:
        the change is for calls that begin after it.

        Args:
            weights: an array for each weight of the module: of a model of torch, its
                ``state_dict()``; else by the names of the arrays in `Module.weights`. Tensors of
                torch on the CPU are arrays; a matrix of `scipy.sparse` has as many stored entries
                as the old one.

        Raises:
            InputError: if a name is unknown or missing, or an array has another shape or dtype.
            CompileError: if a pass refuses the new weights. In both cases nothing changes.
        """
        program, staircase = self._way_down.updated(self._loaded.program, weights)
        loaded = _loaded(program)
        with Frames.lock:
            # Memory that a call is using stays until it has ended.
            self._replaced = [old for old in (*self._replaced, self._loaded) if old.frames.busy]
            self._loaded, self._staircase = loaded, staircase
            _attach(self)

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
        inputs = ", ".join(map(str, self._loaded.signature.inputs))
        outputs = ", ".join(map(str, self._loaded.signature.outputs))
        return f"Executable({inputs} -> {outputs})"

    def __call__(self, /, *inputs: object, out: object = None, **named: object) -> Any:
        loaded = self._loaded
        signature = loaded.signature
        if named:
            # With arguments in order, the call takes the compiled path.
            return self(*arguments.in_order(signature.inputs, inputs, named), out=out)
        if (arrays := arguments.arrays_of_tensors(inputs)) is not None:
            return self(*arrays, out=out)
        checked = arguments.taken(signature.arguments, inputs)
        look_for_scipy()
        sizes = loaded.sizes(checked)
        loaded.check_arena(sizes)
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
        for number, array in enumerate(loaded.run(checked, targets, sizes)):
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
        loaded = self._loaded
        return loaded.sizes(arguments.taken(loaded.signature.arguments, inputs))

    def _fail_at(self, status: int, address: int) -> None:
        """Raise the error of a call from compiled code, from the frame at an address."""
        every = (self._loaded, *self._replaced)
        loaded = next(loaded for loaded in every if address in loaded.frames)
        frame = loaded.frames.at(address)
        try:
            loaded.fail(status, frame)
        finally:
            frame.give_back()


def executable(
    program: Program,
    staircase: Staircase | None = None,
    stages: Sequence[str] = (),
    decisions: Sequence[Decision] = (),
) -> Executable:
    """An `Executable`, called by compiled code if objects have the expected layout."""
    loaded = _loaded(program)
    kind = Executable if loaded.plan is None else fast_type(Executable)
    made = kind(loaded, staircase, stages, decisions)
    _attach(made)
    return made


def _loaded(program: Program) -> Loaded:
    """A program, with a plan if compiled code can call it."""
    code = boundary(Executable)
    if code is None:
        return Loaded(program)
    slow, fail = Executable.__call__, Executable._fail_at
    plan = plan_of(program.interface.signature, program.entry, slow, fail)
    return Loaded(program, plan, ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.frame))


def _attach(made: Executable) -> None:
    """Let compiled code handle calls, if there is a plan for it."""
    code, plan = boundary(Executable), made._loaded.plan
    if code is not None and plan is not None:
        attach(made, plan.address, code.call)


def _arrays(value: np.ndarray | arguments.Csr) -> tuple[np.ndarray, ...]:
    if isinstance(value, arguments.Csr):
        return value.indptr, value.indices, value.values
    return (value,)
