"""`stepwell profile`: where the time of a model goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from .command import CallOptions, CompileOptions, ModelPath, out
from .grouped import grouped
from .progress import passes_shown

if TYPE_CHECKING:
    from ..runtime.profile import Row


@grouped
def profile(
    model: ModelPath,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)
    ] = False,
    *,
    calls: CallOptions,
    options: CompileOptions,
) -> None:
    """Report where the time of a model goes, by kernel and by node.

    `stepwell profile model.onnx --size batch=64`
    """
    exe, arrays = options.called(model, calls.arrays)
    with passes_shown("profiling"):
        found = exe.profile(*arrays, repeat=calls.repeat)
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
