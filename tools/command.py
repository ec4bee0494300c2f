"""Common parts of the commands of `stepwell`: options, reading models, compiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InputError, explain
from .console import err as err
from .console import out as out
from .models import (
    ARTEFACT,
    load_model,
    parse_shapes,
    read_option,
    read_or_make_inputs,
    stage_in,
)
from .progress import passes_shown

if TYPE_CHECKING:
    from ..core.boundary.specs import ValueSpec
    from ..core.ir.context import PassHook
    from ..core.ir.module import Module
    from ..driver.compilation import Compilation
    from ..driver.request import Request
    from ..runtime.executable import Executable
    from .models import Program

ModelPath = Annotated[
    Path,
    typer.Argument(
        help="An ONNX model (.onnx), an exported program of torch (.pt2), MLIR text (.mlir), or a "
        "saved program (.stepwell).",
        show_default=False,
    ),
]
Level = Annotated[int, typer.Option("--level", "-O", help="Optimisation level, 0 to 3.")]
TargetName = Annotated[
    str, typer.Option("--target", help="The machine to compile for: `host`, `x86-64-v3`, ...")
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", help="The number of threads that a call may use (else `STEPWELL_NUM_THREADS`)."
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """Options of commands that compile a model."""

    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            help="Fix the shape of an input of an ONNX model, as in `x=64x784`; repeatable.",
        ),
    ] = None
    trusted: Annotated[
        bool,
        typer.Option(
            "--trusted",
            help="Accept kernels in MLIR text without a proof that computed indices are inside of "
            "buffers and that whole results are stored: only for text that Stepwell wrote.",
        ),
    ] = False
    level: Level = 3
    target: TargetName = "host"
    threads: Threads = None

    def check_targets(self, targets: Sequence[str] | None) -> None:
        """Check that the targets of `--for` are the only ones.

        Raises:
            InputError: if `--target` names another one.
        """
        if targets and self.target != "host":
            fact = f"--target {self.target} names a target as well"
            raise InputError(explain("--for", fact, expected="only one of these options"))

    def load(self, path: Path) -> Module:
        """The model in a file."""
        with err.status(f"reading {path.name}"):
            return load_model(path, parse_shapes(self.shapes or []), self.trusted)


@dataclass(frozen=True)
class CompileOptions(ModelOptions):
    """Options of commands that may compile with a pipeline of the user's."""

    pipeline: Annotated[
        Path | None,
        typer.Option(
            "--pipeline",
            help="A file with the passes to run, as `stepwell pipeline` prints them; then "
            "`--level` and `--threads` have no effect.",
            show_default=False,
        ),
    ] = None

    schedule: Annotated[
        Path | None,
        typer.Option(
            "--schedule",
            help="A file with traces of kernels, `@name: split(i, 16); ...`, to take instead of "
            "their default schedules; `#` begins a comment.",
            show_default=False,
        ),
    ] = None

    def compiled(self, module: Module, hooks: Sequence[PassHook] = ()) -> tuple[Executable, float]:
        """The program of a module, and the seconds that it took to compile it."""
        from ..api.compiler import compiled

        request = self.request(module)
        start = time.perf_counter()
        with passes_shown("compiling"):
            exe = compiled(request, hooks)
        return exe, time.perf_counter() - start

    def program(self, path: Path) -> Executable:
        """The saved program in a file, or the compiled one of the model in it.

        Raises:
            InputError: if options say how to compile, and it is a saved program.
        """
        return self.called(path, lambda specs, module: [])[0]

    def called(
        self, path: Path, arguments: Callable[[Sequence[ValueSpec], Program], list[Any]]
    ) -> tuple[Executable, list[Any]]:
        """The program of a file, and the arguments for its inputs, which are read first.

        Args:
            path: the file.
            arguments: returns them for the inputs; it also takes a function that returns the
                program as a module.

        Raises:
            InputError: if options say how to compile, and it is a saved program.
        """
        if path.suffix == ARTEFACT:
            exe = self.saved(path)
            return exe, arguments(exe.inputs, lambda: stage_in(exe, "optimized"))
        module = self.load(path)
        arrays = arguments(module.inputs, lambda: module)
        return self.compiled(module)[0], arrays

    def saved(self, path: Path) -> Executable:
        """The saved program in a file.

        Raises:
            InputError: if options say how to compile.
        """
        from ..api.loading import load

        for option in fields(self):
            if getattr(self, option.name) != option.default:
                name = "--shape" if option.name == "shapes" else f"--{option.name}"
                raise InputError(explain(name, f"{path.name} is compiled already"))
        with err.status(f"loading {path.name}"):
            return load(path)

    def request(self, module: Module) -> Request:
        """What these options say of the compilation of a module.

        Raises:
            StepwellError: if a file that an option names cannot be read.
        """
        from ..driver.request import Request

        passes, traces = (
            None if path is None else read_option(option, path)
            for option, path in (("--pipeline", self.pipeline), ("--schedule", self.schedule))
        )
        if traces is not None:
            from ..dialects.loop.trace_text import traces_text

            traces = traces_text(traces)
        return Request(
            module,
            self.target,
            self.threads,
            self.level,
            passes,
            records=None,
            schedule=traces,
        )

    def way_down(self, module: Module, hooks: Sequence[PassHook] = ()) -> Compilation:
        """The compilation of a module; this machine need not be able to run the target."""
        from ..diagnosis.reproducer import Reproducing
        from ..driver.compilation import Compilation

        return Compilation.of(self.request(module), (*hooks, Reproducing()))


@dataclass(frozen=True)
class CallOptions:
    """The options of commands that call a model to measure it."""

    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="An input, as in `x=x.npy` (sparse: SciPy's .npz); repeatable. Without any, all "
            "are made up.",
        ),
    ] = None
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            help="A symbolic size of made-up inputs, as in `batch=64` (else 1); repeatable.",
        ),
    ] = None
    repeat: Annotated[
        int | None, typer.Option("--repeat", help="The number of runs (else about 0.3 s of them).")
    ] = None

    def arrays(self, specs: Sequence[ValueSpec], program: Program) -> list[Any]:
        """The arguments of calls of a program with these inputs.

        Raises:
            InputError: if an option is wrong.
        """
        return read_or_make_inputs(self.inputs, self.sizes, specs, program)
