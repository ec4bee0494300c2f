"""`stepwell why`: the fate of a node of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import (
    Level,
    ModelPath,
    PipelineFile,
    Shapes,
    TargetName,
    Threads,
    Trusted,
    err,
    load,
    way_down,
)


def why(
    node: Annotated[str, typer.Argument(help="The name of a node.", show_default=False)],
    model: ModelPath,
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
    """List what became of a node at every stage, by which passes, and what they decided about it.

    `stepwell why fc1 model.onnx`
    """
    from ..diagnosis.why import fate

    compilation = way_down(load(model, shapes, trusted), level, target, threads, passes)
    with err.status("compiling"):
        found = fate(compilation, node)
    print(found.json() if as_json else found)
