"""`Executable`: a compiled program that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..core.boundary import arguments
from ..core.boundary.argument_order import graph_first, in_order
from ..core.boundary.labels import returned
from ..core.boundary.nested_arguments import flattened
from ..core.boundary.specs import ValueSpec
from ..core.display import displayed, write_page
from ..core.errors import CompileError, TargetError, explain, without_compiler
from ..core.folding import folded
from ..core.pipelines.stages import IR_STAGES, check_stage
from . import results
from .artefacts import container
from .frames import Frames
from .loaded import Loaded, Program
from .objects import look_for_scipy
from .plan import plan_of
from .profile import CallFacts
from .vectorcall import attach, fast_type

if TYPE_CHECKING:
    from ..backends.llvm.boundary.layout import Boundary
    from ..backends.ptx.counters import Emulation
    from ..core.ir.context import Change
    from ..core.ir.weights import WeightStore
    from ..core.pipelines.decisions import Decision
    from .artefacts.reading import Artefact
    from .artefacts.verifying import Verification
    from .fate import Fate
    from .profile import Profile
    from .staircase import Origin, Staircase


class Executable:
    """A compiled program. Call it with one argument for each input, in order or by name, or with
    one dict of all by name.

    Where the first input is a graph, the features may come before it: ``exe(x, edge_index)``. What
    was a dictionary or a sequence for the model may be one for a call, by position or by the name
    that the model has for it: ``exe(x_dict, edge_index_dict)``.

    Dense arguments are arrays of exactly the dtype of the input, sparse ones `scipy.sparse`
    matrices, graphs, edge lists of shape (2, E) or ``(indptr, indices, values)``. One result is an
    array, several are a tuple. Arguments are only read; results are new arrays, or those given as
    `out`: an array, or a tuple with an array or None for each result, of its dtype and shape,
    contiguous. For strings it is one of objects, or of i64 for their numbers. A result whose size
    depends on values is always a new array, of exactly that size. `out` may overlap arguments; an
    input named "out" is given by position or in a dict. Threads may call concurrently, and calls
    release the GIL. See `docs/calls.md` for what they may write to.

    Raises:
        InputError: when called with arguments that do not fit `inputs`.
    """

    # Compiled code handles calls of an instance of the fast subtype, and falls back to `__call__`
    # for arguments that need conversion.
    __slots__ = (
        "__weakref__",
        "_code",
        "_loaded",
        "_origin",
        "_replaced",
        "changes",
        "stages",
    )

    def __init__(
        self, loaded: Loaded, code: Boundary | None = None, origin: Origin | None = None
    ) -> None:
        self._code, self._origin = code, origin
        self._replaced: list[Loaded] = []
        self._take(loaded)
        self.stages: tuple[str, ...] = () if origin is None else tuple(origin.stages)
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

    def ir(self, stage: str, *, brief: bool = False) -> str:
        """The text of a stage of the staircase; see `stages`.

        `brief` text is for people only: a nest of a remainder is one line, and long lines are cut.

        Raises:
            CompileError: if there is no stage of this name.
        """
        text = self._stages_with(stage).text(stage)
        return folded(text) if brief else text

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names, for `stepwell.from_mlir`.

        Raises:
            CompileError: if there is no stage of this name.
        """
        return self._stages_with(stage).weights(stage)

    def run_at(self, stage: str, *inputs: object) -> Any:
        """The results of a call, with a stage interpreted operation by operation.

        Every access to memory is checked, and uninitialised memory holds NaN. For the stages after
        `llvm`, which are text for people, the compiled program runs instead.

        Raises:
            CompileError: if there is no stage of this name, or it makes an invalid access.
            InputError: if the arguments do not fit `inputs`.
        """
        if check_stage(stage) not in IR_STAGES:
            return self(*inputs)
        return self._stages_with(stage).run(stage, inputs)

    @property
    def launches(self) -> tuple[Emulation, ...]:
        """The launches of the latest call on an emulated device, counted; empty without one.

        Each is one nest of a kernel, in the order of the program.
        """
        device = self._loaded.program.device
        return () if device is None else tuple(device.launches)

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
        return self._came_from.staircase.profile(inputs, repeat)

    def why(self, node: str) -> Fate:
        """What became of a node of the model, at every stage and by which passes.

        Raises:
            InputError: if the model has no such node, naming the nearest ones.
        """
        return self._came_from.staircase.why(node)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        inputs: Sequence[object] = (),
        repeat: int | None = None,
        against: str | os.PathLike[str] | None = None,
    ) -> str:
        """A page to look at the program with: the model, its kernels at every stage, what passes
        changed and decided.

        It is one file of HTML that loads nothing else; see `docs/report.md`.

        Args:
            path: the file to write, if any.
            inputs: the arguments of calls to profile; the page then also shows times, the arena
                and the patterns of sparse arguments.
            repeat: the number of profiled runs, as for `profile`.
            against: the file of an earlier report to compare with: of the same model before a
                change, with other options, or on another machine.

        Returns:
            The HTML. Notebooks display it.

        Raises:
            CompileError: if the program is interpreted.
            InputError: if the inputs do not fit, or `against` is not a page of a report.
            StepwellError: if the file cannot be written.
        """
        calls = CallFacts()
        if inputs:
            checked = arguments.taken(self._loaded.signature.arguments, inputs)
            sizes = self._loaded.sizes(checked)
            calls = CallFacts(self.profile(*inputs, repeat=repeat), checked, sizes)
        page = self._came_from.staircase.report(calls, against)
        if path is not None:
            write_page(path, page)
        return page

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
        origin = self._came_from
        program, staircase = origin.staircase.updated(self._loaded.program, weights)
        loaded = _loaded(program, self._code)
        with Frames.lock:
            # Memory that a call is using stays until it has ended.
            self._replaced = [old for old in (*self._replaced, self._loaded) if old.frames.busy]
            self._origin = replace(origin, make=lambda: staircase, artefact=None)
            self._take(loaded)

    def save(self, path: str | os.PathLike[str], *, targets: Sequence[str] | None = None) -> None:
        """Write the program to a file, which `stepwell.load` runs without compiling; see
        `docs/artefacts.md`.

        The file has the machine code and the packed weights, and the IR of stage `optimized`, of
        which another machine can compile the program anew. It appears complete or not at all.

        Args:
            path: the file, by custom ``*.stepwell``.
            targets: names of targets to hold machine code for, each compiled anew; `load` takes
                the best one that its machine runs. By default that for which the program was
                compiled.

        Raises:
            CompileError: if the program is interpreted, or calls a registered function that another
                process cannot find.
            ImportModelError: if the file cannot be written.
            TargetError: if a target is unknown, or of another architecture than x86-64.
        """
        with container.written(path) as writer:
            self._write(writer, targets)

    def verify(self) -> Verification:
        """Check the file that the program was loaded from, and run its examples.

        Returns:
            How much was checked, and how far results are from those at the time of saving, in units
            in the last place of the largest element of each result.

        Raises:
            CompileError: if the program was compiled by this process.
            ImportModelError: if a part of the file is damaged.
            MiscompilationError: if a result is further away than sums in another order can explain.
        """
        from .artefacts.verifying import verify

        if self._artefact is None:
            fact = "this program was not loaded from a file"
            raise CompileError(explain("verify", fact, hint="load(path).verify()"))
        return verify(self._artefact, self, self.outputs)

    def __copy__(self) -> Executable:
        """Another executable with the same program: what updates one does not change the other."""
        made = executable(self._loaded.program, self._code, self._origin)
        made.changes = self.changes
        return made

    def __deepcopy__(self, memo: object) -> Executable:
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[[bytes], Executable], tuple[bytes]]:
        file, restored = io.BytesIO(), self._came_from.restored
        if restored is None:
            fact = "only programs of stepwell.compile and stepwell.load can be"
            raise CompileError(explain("pickle", fact))
        self._write(container.ArtefactWriter(file), None)
        return restored, (file.getvalue(),)

    def _write(self, writer: container.ArtefactWriter, targets: Sequence[str] | None) -> None:
        """Write the program as an artefact."""
        if self._artefact is not None and targets is None:
            writer.copy(self._artefact.archive)
            return
        try:
            from .artefacts.writing import write
            from .lowered import generated_of
        except ModuleNotFoundError as error:
            raise without_compiler("save", error) from error

        way, own = self._came_from.staircase, generated_of(self._loaded.program)
        names = (None,) if targets is None else tuple(targets)
        if not names:
            raise TargetError(explain("save", "no targets", expected="one or more names"))
        programs = [own if own and name is None else way.generated(name) for name in names]
        write(writer, programs, way.source(), self.decisions, self)

    @property
    def _came_from(self) -> Origin:
        if self._origin is None:
            raise CompileError(explain("stage", "this program is interpreted and has none"))
        return self._origin

    def _stages_with(self, stage: str) -> Staircase:
        """The stages of the program, which has this one.

        Raises:
            CompileError: if there is no stage of this name, or it is before that of a file.
        """
        if self._artefact is not None and check_stage(stage) not in self.stages:
            first, fact = self.stages[0], "a saved program has none before the one in its file"
            raise CompileError(explain("stage", fact, expected=f'"{first}"', got=f'"{stage}"'))
        return self._came_from.staircase

    @property
    def _artefact(self) -> Artefact | None:
        """The file that the program was loaded from, if any."""
        return None if self._origin is None else self._origin.artefact

    def _take(self, loaded: Loaded) -> None:
        """Make calls run a program, those by compiled code as well."""
        self._loaded = loaded
        if self._code is not None and loaded.plan is not None:
            attach(self, loaded.plan.address, self._code.call)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that passes took, in order."""
        return () if self._origin is None else self._origin.decisions

    def explain(self, format: str = "text") -> str:
        """The decisions that passes took, by stage and pass.

        Args:
            format: "text", or "json" for programs, described in `docs/pipeline.md`.

        Raises:
            InputError: if there is no such format.
        """
        from ..core.pipelines.explanation import explanation

        return explanation(self.decisions, format)

    def _repr_html_(self) -> str:
        return displayed(self)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._loaded.signature.inputs))
        outputs = ", ".join(map(str, self._loaded.signature.outputs))
        return f"Executable({inputs} -> {outputs})"

    def __call__(self, /, *inputs: object, out: object = None, **named: object) -> Any:
        loaded = self._loaded
        signature = loaded.signature
        if (flat := flattened(signature.inputs, inputs, named)) is not None:
            return self(*flat, out=out)
        by_name: Mapping[str, object] | None = named or None
        if len(inputs) == 1 and not named and isinstance(inputs[0], Mapping):
            inputs, by_name = (), cast("Mapping[str, object]", inputs[0])
        if by_name is not None:
            # With arguments in order, the call takes the compiled path.
            return self(*in_order(signature.inputs, inputs, by_name), out=out)
        if (arrays := arguments.arrays_of_tensors(inputs)) is not None:
            return self(*arrays, out=out)
        if (ordered := graph_first(signature.inputs, inputs)) is not None:
            return self(*ordered, out=out)
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
        read = [array for value in checked for array in arguments.parts(value)]
        targets = results.targets(signature.outputs, arrays, read) if out is not None else arrays
        for number, array in enumerate(loaded.run(checked, targets, sizes)):
            if array is targets[number] and array is not arrays[number]:
                arrays[number][...] = array
            else:
                arrays[number] = array
        # Return the object that the caller passed, not a view of it.
        answers = returned(signature.outputs, arrays, given)
        return answers[0] if len(answers) == 1 else tuple(answers)

    def call_named(self, /, *inputs: object, **named: object) -> dict[str, Any]:
        """The results of a call by their names.

        Raises:
            InputError: if the arguments do not fit `inputs`.
        """
        results = self(*inputs, **named)
        several = results if isinstance(results, tuple) else (results,)
        return {spec.name: r for spec, r in zip(self.outputs, several, strict=True)}

    def map(self, batches: Any) -> Any:
        """The results for many batches.

        Of an array of Dask, whose blocks along the first dimension are batches, it is an array of
        Dask: nothing is computed yet, and blocks are computed on the workers that have them. Of
        any other iterable it is a generator. See `docs/deploying.md`.

        Raises:
            InputError: if the array does not fit the argument; if the program has several arguments
                or results, or they do not have one row for each element of a batch.
        """
        from .batches import mapped

        return mapped(self, batches)

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
    program: Program, code: Boundary | None = None, origin: Origin | None = None
) -> Executable:
    """An executable of a program, which compiled code calls if there is some, and a plan for it."""
    loaded = _loaded(program, code)
    kind = Executable if loaded.plan is None else fast_type(Executable)
    return kind(loaded, code, origin)


def _loaded(program: Program, code: Boundary | None) -> Loaded:
    """A program with the frames of its calls; with a plan if compiled code calls it."""
    signature = program.interface.signature
    # Python makes strings of results, and begins the call of a device.
    slow = program.device is not None or any(spec.labels for spec in signature.outputs)
    if code is None or slow:
        return Loaded(program)
    call, fail = Executable.__call__, Executable._fail_at
    plan = plan_of(signature, program.entry, call, fail)
    return Loaded(program, plan, ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.frame))


def program_of(exe: Executable) -> Program:
    """The program that an executable calls."""
    return exe._loaded.program
