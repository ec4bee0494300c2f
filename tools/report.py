"""`stepwell report`: a page to look at a model and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.display import write_page
from ..core.errors import InputError, explain
from .command import CallOptions, CompileOptions
from .grouped import grouped
from .models import ARTEFACT
from .outputs import check_output
from .progress import passes_shown

_PAGES = (".html", ".htm")


@grouped
def report(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model or a saved program, as for other commands; or with `--against` a page "
            "that was written before.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, of HTML.")
    ] = Path("report.html"),
    profile: Annotated[
        bool,
        typer.Option("--profile/--no-profile", help="Whether to run the model, for times."),
    ] = True,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", help="The page of an earlier report to compare with.", show_default=False
        ),
    ] = None,
    *,
    calls: CallOptions,
    options: CompileOptions,
) -> None:
    """Write a page to look at a model: its graph, its kernels at every stage, passes, times.

    `stepwell report model.onnx -o report.html --size batch=64`

    The page is one file, which any browser opens from disk. A click on a node, a kernel, a line of
    code or an instruction marks what it became at all other stages. Without a profile, the
    `--target` may be another machine than this one.

    `stepwell report after.html --against before.html -o both.html` compares two pages.
    """
    check_output("--output", output, "a page", _PAGES)
    if model.suffix in _PAGES:
        if against is None:
            fact = "a page is read to be compared with another one"
            raise InputError(explain("report", fact, expected="--against", got=model.name))
        from ..report.comparing import compared, read_page

        write_page(output, compared(read_page(model), against))
    elif profile:
        exe, arrays = options.called(model, calls.arrays)
        with passes_shown("profiling, and collecting the stages"):
            exe.report(output, inputs=arrays, repeat=calls.repeat, against=against)
    elif model.suffix == ARTEFACT:
        exe = options.saved(model)
        with passes_shown("collecting the stages"):
            exe.report(output, against=against)
    else:
        from ..diagnosis.inspection import inspected
        from ..runtime.profile import CallFacts

        compilation = options.way_down(options.load(model))
        with passes_shown("collecting the stages"):
            text = inspected(compilation).report(CallFacts(), against)
        write_page(output, text)
    print(f"wrote {output}, {output.stat().st_size / 1e6:.1f} MB")
