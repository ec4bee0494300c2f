"""`stepwell`: run, compile and time models, and inspect every stage."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from ..core.errors import CompileError, StepwellError
from ..core.errors import explain as explained
from ..core.folding import folded
from ..core.pipelines.explanation import explanation, sections
from ..core.pipelines.stages import DEVICE_STAGES, EVERY_STAGE, IR_STAGES, check_stage, stages_from
from . import finding
from .bench import bench
from .cache import cache
from .command import CompileOptions, Level, ModelPath, TargetName, Threads, out
from .export import export
from .grouped import grouped
from .instrumented import instrumented
from .instruments import Instruments
from .messages import worded
from .models import ARTEFACT, stage_in
from .outputs import check_compiled, check_folder
from .profile import profile
from .progress import passes_shown
from .report import report
from .run import run, verify
from .timing import duration
from .tune import tune
from .why import why

if TYPE_CHECKING:
    from ..core.ir.context import PassHook
    from ..core.ir.module import Module
    from ..core.pipelines.decisions import Decision
    from ..driver.compilation import Compilation
    from ..runtime.executable import Executable

app = typer.Typer(
    name="stepwell",
    help=(
        "Compile MLP, CNN and GNN models to machine code, one small step at a time.\n\n"
        "New here? `stepwell demo` compiles and runs two models that ship with the package."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"stepwell {importlib.metadata.version('stepwell')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the compiler an error arose.")
    ] = False,
) -> None:
    """Options of the command itself: each takes effect when it is parsed."""
    del version, traceback


@app.command("compile")
@instrumented
@grouped
def compile_(
    *,
    model: ModelPath,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            autocompletion=lambda: [*EVERY_STAGE],
            help=f"Print one stage: {', '.join(EVERY_STAGE)}.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file for the program, or with `--emit` for the stage, beside its weights.",
        ),
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--for", help="With `--output`: a target to hold code for; repeatable."),
    ] = None,
    brief: Annotated[
        bool,
        typer.Option(
            "--brief",
            help="With `--emit`: each nest of a remainder in one line, and long lines cut.",
        ),
    ] = False,
    options: CompileOptions,
    instruments: Instruments,
) -> None:
    """Compile a model, and show any stage of it.

    `stepwell compile model.onnx --output model.stepwell`

    `stepwell compile model.onnx --emit loops`

    Without `--emit`, prints inputs and outputs, the compile time, and the decisions of passes. A
    program that was written before is shown as it is, from stage `optimized` on.
    """
    _check_written(emit, output, targets, brief)
    options.check_targets(targets)
    if model.suffix == ARTEFACT:
        # A saved program: it, or one of its stages, is shown, or written for other targets.
        exe = options.saved(model)
        if emit is not None:
            reached = stage_in(exe, emit) if emit in IR_STAGES else exe.ir(emit)
            _write_stage(reached, output, brief)
            return
        if output is not None:
            exe.save(output, targets=targets or None)
        show(exe)
        return
    with instruments.phase("parse"):
        module = options.load(model)
    hooks = instruments.hooks()
    if emit is None:
        exe, seconds = options.compiled(module, hooks)
        if output is not None:
            exe.save(output, targets=targets or None)
        show(exe, seconds)
        return
    compilation = _compilation(module, emit, options, hooks)
    with passes_shown(f"lowering to {emit}"):
        reached = compilation.at(emit) if emit in IR_STAGES else compilation.text(emit)
    _write_stage(reached, output, brief)


def _check_written(
    emit: str | None, output: Path | None, targets: list[str] | None, brief: bool
) -> None:
    """Check the options about what is written, before anything is computed.

    Raises:
        StepwellError: if they do not fit together.
    """
    if emit is not None:
        check_stage(emit)
    if targets and (emit is not None or output is None):
        fact, expected = "there is no program to write", "--output, and no --emit"
        raise CompileError(explained("--for", fact, expected=expected))
    if brief and (emit is None or output is not None):
        fact, expected = "there is no text to print", "--emit, and no --output"
        raise CompileError(explained("--brief", fact, expected=expected))
    if output is not None:
        check_compiled(output, emit)


def _write_stage(reached: str | Module, output: Path | None, brief: bool) -> None:
    """Print the text of a stage, or write it to a file, with its weights.

    Raises:
        StepwellError: if it cannot be written.
    """
    if output is None:
        text = reached if isinstance(reached, str) else reached.text()
        sys.stdout.write(folded(text) if brief else text)
        return
    from ..core.files.writing import write_atomically

    try:
        if isinstance(reached, str):
            write_atomically(output, reached.encode())
        else:
            reached.save(output)
    except OSError as error:
        raise StepwellError(f"cannot write {output}: {error.strerror}") from error


@app.command()
@grouped
def explain(
    model: ModelPath,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)
    ] = False,
    *,
    options: CompileOptions,
) -> None:
    """Report what the passes decided about a model, why, and at what cost.

    `stepwell explain model.onnx`
    """
    exe = options.program(model)
    if as_json:
        print(exe.explain("json"))
    else:
        _print_decisions(exe.decisions)


@app.command()
def demo(
    save: Annotated[
        Path | None,
        typer.Option("--save", help="A folder for both models as MLIR text, to play with."),
    ] = None,
) -> None:
    """Compile and run a graph neural network and a digit classifier of this package."""
    from .demo import demonstrate

    if save is not None:
        check_folder("--save", save)
    demonstrate(out, save)


@app.command()
def pipeline(
    level: Level = 3,
    target: TargetName = "host",
    threads: Threads = None,
    stages: Annotated[
        bool, typer.Option("--stages", help="Print a table with the stages, a line each.")
    ] = False,
) -> None:
    """Print all passes of a compilation, as text to edit.

    `stepwell-opt model.mlir -p "$(stepwell pipeline --level 3)"`

    These are the passes that `compile` runs; `compile`, `run` and `explain` take an edited text
    with `--pipeline FILE`.
    """
    from ..core.pipelines import staircase as pipelines
    from ..core.target import default_threads, named

    count = default_threads(named(target)) if threads is None else threads
    texts = pipelines.pipeline(level, count)
    if not stages:
        print(pipelines.pipeline_text(texts), end="")
        return
    for stage, passes in texts.items():
        print(f"{stage:10} {passes or '(none at this level)'}")


def show(exe: Executable, seconds: float | None = None) -> None:
    """Print a summary of an executable, and the seconds that it took to compile it, if it did."""
    for title, specs in (("takes", exe.inputs), ("gives", exe.outputs)):
        for spec in specs:
            out.print(f"[bold]{title}[/] {spec}", highlight=False)
    stages = " > ".join(exe.stages)
    if seconds is None:
        out.print(f"[bold]compiled[/] before, with {stages}")
    else:
        out.print(f"[bold]compiled[/] in {duration(seconds)}, through {stages}")
    _print_decisions(exe.decisions)


def _print_decisions(decisions: Sequence[Decision]) -> None:
    """Print the text of `Executable.explain`, with colours on a terminal."""
    if not out.is_terminal:
        print(explanation(decisions, "text"))
        return
    stage = None
    for section in sections(decisions):
        if section.stage != stage:
            stage = section.stage
            out.print(Text(stage, "bold"))
        out.print(Text(f"  {section.pass_name}", "cyan"))
        for line in section.lines:
            words = Text.assemble((line.subject, "green"), f": {line.what}")
            words.append(f", because {line.why}", "dim")
            words.append(f" [{line.cost}]" if line.cost else "", "yellow")
            out.print(Padding(words, (0, 0, 0, 4)))


def _compilation(
    module: Module,
    stage: str,
    options: CompileOptions,
    hooks: Sequence[PassHook],
) -> Compilation:
    """The compilation to a later stage; this machine need not be able to run the target."""
    from ..dialects.stages import stage_of

    start = stage_of(module.op)
    if stage not in (*stages_from(start), *DEVICE_STAGES):
        got = stage
        raise CompileError(explained("--emit", f"the model is at stage {start} already", got=got))
    return options.way_down(module, hooks)


for command in (
    bench,
    run,
    verify,
    export,
    profile,
    report,
    why,
    tune,
    cache,
    finding.bisect,
    finding.reduce,
):
    app.command(command.__name__)(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; an error is printed as one line, with exit status 1."""
    arguments = sys.argv[1:] if args is None else list(args)
    try:
        app(args=arguments, prog_name="stepwell")
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): discard what Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:
            # Typer has caught the interrupt silently.
            print("stepwell: interrupted", file=sys.stderr)
        raise
    except Exception as error:
        # The boundary of the process: report every failure as one line.
        if arguments[:1] == ["--traceback"]:
            raise
        print(f"stepwell: error: {worded(error)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
