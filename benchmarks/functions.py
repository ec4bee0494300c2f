"""Times of functions of elements and rows, beside those of PyTorch and of another version.

    python benchmarks/functions.py                     # this version
    python benchmarks/functions.py --before FOLDER     # and that in FOLDER/stepwell
    python benchmarks/functions.py --only asin

Nanoseconds of processor time for an element, on one thread: the smallest of turns that the
versions and PyTorch take one after the other, of 100,000 numbers.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from harness import processor_times
from rich.console import Console
from rich.table import Table
from turns import Worker, answer, turns

COUNT, ROUNDS, CALLS = 100_000, 30, 5
NAMES = {
    "f32": ("acos", "asin", "atan", "layer_norm"),
    "f64": (
        *("exp", "expm1", "log", "log1p", "pow", "erf"),
        *("acos", "asin", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    ),
}
"""The functions that are timed for each element type."""
DOMAINS = {
    **dict.fromkeys(("acos", "asin", "atanh"), (-1.0, 1.0)),
    **dict.fromkeys(("log", "log1p", "pow"), (0.01, 10.0)),
    "acosh": (1.0, 10.0),
}
"""The ranges of arguments; -5 to 5 of others."""
SHAPES = {"layer_norm": (100, 1000)}
"""The shapes of arguments of functions of rows; the others have one dimension."""


def arguments(name: str, kind: str) -> list[np.ndarray]:
    """Numbers within the domain of a function."""
    rng = np.random.default_rng(0)
    ranges = [DOMAINS.get(name, (-5.0, 5.0)), *[(-5.0, 5.0)] * (name == "pow")]
    numbers = [rng.uniform(*ends, COUNT).astype(f"float{kind[1:]}") for ends in ranges]
    return [x.reshape(SHAPES.get(name, -1)) for x in numbers]


def ours(name: str, kind: str) -> Any:
    """A compiled call of the function."""
    import stepwell as sw

    b = sw.Builder("main")
    values = [b.input(f"x{n}", x.shape, kind) for n, x in enumerate(arguments(name, kind))]
    b.output(getattr(b, name)(*values), name="y")
    return sw.compile(b.module(), threads=1)


def torch_function(name: str) -> Any:
    """The function of PyTorch, of arrays."""
    import torch

    torch.set_num_threads(1)
    if name == "layer_norm":
        layer_norm = torch.nn.functional.layer_norm
        return lambda x: layer_norm(torch.from_numpy(x), x.shape[1:])
    of_tensors = getattr(torch.special if name == "erf" else torch, name)
    return lambda *arrays: of_tensors(*map(torch.from_numpy, arrays))


@cache
def made(line: str) -> tuple[Any, list[np.ndarray]]:
    """A function and its arguments, of a line with who computes it, its name and element type."""
    who, name, kind = line.split()
    call = torch_function(name) if who == "torch" else ours(name, kind)
    return call, arguments(name, kind)


def seconds(line: str) -> float:
    """The processor time of a call."""
    call, arrays = made(line)
    times = processor_times({line: lambda: call(*arrays)}, CALLS)
    return times[line].minimum


def main(
    before: Annotated[Path | None, typer.Option(help="a folder with another `stepwell`")] = None,
    only: Annotated[str, typer.Option(help="only the functions with this text")] = "",
) -> None:
    """Print the table."""
    versions = [Worker(__file__), *([] if before is None else [Worker(__file__, before)])]
    peer = Worker(__file__)
    columns = ["stepwell", *(["before"] if before else []), "torch"]
    table = Table("function", "type", *columns, title="nanoseconds for an element")
    for kind, names in NAMES.items():
        for name in names:
            if only not in name:
                continue
            times = turns(versions, f"ours {name} {kind}", ROUNDS)
            times += turns([peer], f"torch {name} {kind}", ROUNDS)
            table.add_row(name, kind, *(f"{min(column) / COUNT * 1e9:.3f}" for column in times))
    Console().print(table)
    for worker in (*versions, peer):
        worker.end()


if __name__ == "__main__":
    answer(seconds) if "--work" in sys.argv else typer.run(main)
