"""`stepwell profile`: where the time of a model goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..backends.reference.samples import random_inputs
from .command import (
    Level,
    ModelPath,
    PipelineFile,
    Shapes,
    TargetName,
    Threads,
    Trusted,
    compiled,
    err,
    load,
    out,
)
from .models import parse_sizes, read_inputs

if TYPE_CHECKING:
    from ..runtime.profile import Row


def profile(
    model: ModelPath,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="An input, as in `x=x.npy` (sparse: SciPy's .npz); repeatable. Without any, all "
            "are made up.",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            help="A symbolic size of made-up inputs, as in `batch=64` (else 1); repeatable.",
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", help="The number of runs (else about 0.3 s of them).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)
    ] = False,
    shapes: Shapes = None,
    trusted: Trusted = False,
    level: Level = 3,
    target: TargetName = "host",
    threads: Threads = None,
    passes: PipelineFile = None,
) -> None:
    """Report where the time of a model goes, by kernel and by node.

    `stepwell profile model.onnx --size batch=64`
    """
    module = load(model, shapes, trusted)
    arrays = (
        read_inputs(inputs, module.inputs)
        if inputs
        else random_inputs(module.inputs, parse_sizes(sizes or []))
    )
    exe, _ = compiled(module, level, target, threads, passes)
    with err.status("profiling"):
        found = exe.profile(*arrays, repeat=repeat)
    if as_json:
        print(found.json())
    elif not out.is_terminal:
        print(found)
    else:
        out.print(found.summary(), highlight=False)
        out.print(_table("kernel", "nodes", found.kernels))
        out.print(_table("node", "kernels", found.nodes))


def _table(name: str, members: str, rows: tuple[Row, ...]) -> Table:
    from ..runtime.profile import HEADINGS

    table = Table(name, *HEADINGS, members)
    for column in table.columns[1:-1]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row.cells())
    return table
