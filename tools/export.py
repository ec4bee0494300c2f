"""`stepwell export`: a model as a library for C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .command import CompileOptions, ModelPath, err, out
from .grouped import grouped
from .outputs import check_folder
from .progress import passes_shown


@grouped
def export(
    model: ModelPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the files.", show_default=False)
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="What names of files and functions begin with (else the name of the file).",
            show_default=False,
        ),
    ] = None,
    weights_in_file: Annotated[
        bool,
        typer.Option("--weights-in-file", help="Write the weights to a file, to be mapped."),
    ] = False,
    targets: Annotated[
        list[str] | None,
        typer.Option("--for", help="Instead of `--target`: a target to hold code for; repeatable."),
    ] = None,
    *,
    options: CompileOptions,
) -> None:
    """Compile a model to a library with C functions, which runs without Python.

    `stepwell export model.onnx -o folder --target x86-64-v3`

    `stepwell export model.onnx -o folder --for x86-64-v3 --for x86-64-v4`

    Without `--threads` the library has no threads.
    """
    from ..api.exporting import exported
    from ..backends.c.interface import identifier

    options.check_targets(targets)
    check_folder("--output", output)
    module = options.load(model)
    with passes_shown("exporting"):
        prefix = identifier(model.stem) if name is None else name
        request = options.request(module)
        chosen = targets or [request.target]
        done = exported(request, chosen, output, prefix, not weights_in_file)
    for file in done.files:
        size = (done.folder / file).stat().st_size
        out.print(f"[bold]{file}[/] {size} bytes", highlight=False)
    if done.note:
        err.print(f"stepwell: {done.note}", highlight=False)
