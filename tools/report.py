"""`stepwell report`: a page to look at a model and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.display import write_page
from .command import CallOptions, CompileOptions, ModelPath
from .grouped import grouped
from .models import ARTEFACT
from .outputs import check_output
from .progress import passes_shown


@grouped
def report(
    model: ModelPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, of HTML.")
    ] = Path("report.html"),
    profile: Annotated[
        bool,
        typer.Option("--profile/--no-profile", help="Whether to run the model, for times."),
    ] = True,
    *,
    calls: CallOptions,
    options: CompileOptions,
) -> None:
    """Write a page to look at a model: its graph, its kernels at every stage, passes, times.

    `stepwell report model.onnx -o report.html --size batch=64`

    The page is one file, which any browser opens from disk. A click on a node, a kernel, a line of
    code or an instruction marks what it became at all other stages. Without a profile, the
    `--target` may be another machine than this one.
    """
    check_output("--output", output, "a page", (".html", ".htm"))
    if profile:
        exe, arrays = options.called(model, calls.arrays)
        with passes_shown("profiling, and collecting the stages"):
            exe.report(output, inputs=arrays, repeat=calls.repeat)
    elif model.suffix == ARTEFACT:
        exe = options.saved(model)
        with passes_shown("collecting the stages"):
            exe.report(output)
    else:
        from ..report.collecting import collect
        from ..report.page import page

        compilation = options.way_down(options.load(model))
        with passes_shown("collecting the stages"):
            text = page(collect(compilation))
        write_page(output, text)
    print(f"wrote {output}, {output.stat().st_size / 1e6:.1f} MB")
