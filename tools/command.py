"""Common parts of the commands of `stepwell`: options, reading models, compiling."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..core.context import PassHook
from ..core.errors import StepwellError, explain
from ..core.module import Module
from ..core.reading import LARGEST_LIST, ReadingError, read_text
from .models import load_model, parse_shapes

if TYPE_CHECKING:
    from ..compilation import Compilation
    from ..runtime.executable import Executable

out = Console()
err = Console(stderr=True)

ModelPath = Annotated[
    Path,
    typer.Argument(
        help="An ONNX model (.onnx), an exported program of torch (.pt2) or MLIR text (.mlir).",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", help="Fix the shape of an input of an ONNX model, as in `x=64x784`; repeatable."
    ),
]
Trusted = Annotated[
    bool,
    typer.Option(
        "--trusted",
        help="Accept kernels in MLIR text without a proof that computed indices are inside of "
        "buffers and that whole results are stored: only for text that Stepwell wrote.",
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

PipelineFile = Annotated[
    Path | None,
    typer.Option(
        "--pipeline",
        help="A file with the passes to run, as `stepwell pipeline` prints them; then `--level` "
        "and `--threads` have no effect.",
        show_default=False,
    ),
]


def load(path: Path, shapes: list[str] | None, trusted: bool) -> Module:
    """The model in a file.

    Args:
        path: the file.
        shapes: those of the inputs of an ONNX model, as in `x=64x784`.
        trusted: whether kernels in MLIR text are trusted.
    """
    with err.status(f"reading {path.name}"):
        return load_model(path, parse_shapes(shapes or []), trusted)


def compiled(
    module: Module,
    level: int,
    target: str,
    threads: int | None,
    passes: Path | None,
    hooks: Sequence[PassHook] = (),
) -> tuple[Executable, float]:
    """The program of a module, and the seconds that it took to compile it."""
    from .. import compile as compile_module

    text = read_passes(passes)
    start = time.perf_counter()
    with err.status("compiling"):
        exe = compile_module(module, target, threads, level, text, hooks=hooks)
    return exe, time.perf_counter() - start


def way_down(
    module: Module,
    level: int,
    target: str,
    threads: int | None,
    passes: Path | None,
    hooks: Sequence[PassHook] = (),
) -> Compilation:
    """The compilation of a module; this machine need not be able to run the target."""
    from ..compilation import Compilation
    from ..diagnosis.reproducer import Reproducing

    observers = (*hooks, Reproducing())
    text = read_passes(passes)
    return Compilation.of(module, target, threads, level, text, observers=observers)


def read_passes(path: Path | None) -> str | None:
    """The pipeline text in a file.

    Raises:
        StepwellError: if it cannot be read.
    """
    if path is None:
        return None
    try:
        return read_text(path, LARGEST_LIST)
    except ReadingError as error:
        raise StepwellError(explain("--pipeline", f"cannot read {path}: {error}")) from error
