"""`stepwell why`: the fate of a node of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import InputError, explain
from .command import CompileOptions, ModelPath
from .grouped import grouped
from .models import ARTEFACT
from .progress import passes_shown


@grouped
def why(
    node: Annotated[str, typer.Argument(help="The name of a node.", show_default=False)],
    model: ModelPath,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)
    ] = False,
    *,
    options: CompileOptions,
) -> None:
    """List what became of a node at every stage, by which passes, and what they decided about it.

    `stepwell why fc1 model.onnx`
    """
    from ..diagnosis.why import fate

    if not model.exists() and Path(node).is_file():
        hint = f"stepwell why {model} {node}"
        raise InputError(explain("why", "the node comes before the model", hint=hint))
    if model.suffix == ARTEFACT:
        found = options.saved(model).why(node)
    else:
        compilation = options.way_down(options.load(model))
        with passes_shown("compiling"):
            found = fate(compilation, node)
    print(found.json() if as_json else found)
