"""`stepwell bench`: the time of a model, beside other runtimes."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import typer
from rich.table import Table

from ..core.progress import progress, report
from .command import CompileOptions, ModelPath, err, out
from .grouped import grouped
from .models import ARTEFACT, parse_sizes
from .timing import ROUNDS, duration, measure


@grouped
def bench(
    model: ModelPath,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--vs",
            help="Compare with `numpy`, `onnxruntime`, `openvino` or `torch`; repeatable.",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="A symbolic size, as in `batch=64` (else 1); repeatable."),
    ] = None,
    *,
    options: CompileOptions,
) -> None:
    """Time a model on random inputs, along with other runtimes in the same process.

    `stepwell bench model.onnx --vs onnxruntime`
    """
    from ..backends.reference.samples import random_inputs
    from .peers import peer

    module = options.load(model)
    inputs = random_inputs(module.inputs, parse_sizes(sizes or []), module)
    peers = {name: peer(name, module, model, inputs, options.threads) for name in versus or []}
    exe = options.saved(model) if model.suffix == ARTEFACT else options.compiled(module)[0]
    ours = exe(*inputs)
    calls: dict[str, Any] = {"stepwell": lambda: exe(*inputs)}
    differences = {"stepwell": "-"}
    for name, (call, theirs) in peers.items():
        calls[name] = call
        differences[name] = f"{_difference(ours, theirs):.1e}"
    rounds = itertools.count(1)
    with progress("timing", console=err):
        times = measure(calls, lambda: report("timing", next(rounds), ROUNDS))
    table = Table("", "median", "minimum", "times stepwell's", "largest difference")
    for name, timing in times.items():
        ratio = f"{timing.median / times['stepwell'].median:.2f}"
        median, minimum = duration(timing.median), duration(timing.minimum)
        table.add_row(name, median, minimum, ratio, differences[name])
    out.print(table)


def _difference(ours: Any, theirs: Any) -> float:
    """The largest absolute difference of two results or tuples of results."""
    import numpy as np

    pairs = zip(_tuple(ours), _tuple(theirs), strict=True)
    return max(
        float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)), initial=0))
        for a, b in pairs
    )


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
