"""Times of functions of elements and rows, beside those of PyTorch and of another version.

    python benchmarks/run.py functions                    # this version
    python benchmarks/run.py functions --against FOLDER   # and that in FOLDER/stepwell

Nanoseconds of processor time for an element, on one thread: the smallest of turns that the
versions and PyTorch take one after the other, of 100,000 numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from harness import Row, Table, processor_times
from models import built
from turns import Worker, turns, versions

import stepwell as sw

COUNT, CALLS = 100_000, 5
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
    rng = np.random.default_rng(0)
    ranges = [DOMAINS.get(name, (-5.0, 5.0)), *[(-5.0, 5.0)] * (name == "pow")]
    numbers = [rng.uniform(*ends, COUNT).astype(f"float{kind[1:]}") for ends in ranges]
    return [x.reshape(SHAPES.get(name, -1)) for x in numbers]


def ours(name: str, kind: str) -> Any:
    module = built(lambda b, *x: getattr(b, name)(*x), *arguments(name, kind))
    return sw.compile(module, threads=1)


def torch_function(name: str) -> Any:
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
    call, arrays = made(line)
    times = processor_times({line: lambda: call(*arrays)}, CALLS)
    return times[line].minimum


def row(name: str, case: tuple[str, str], *, rounds: int = 30, against: str = "") -> Row:
    who, kind = case
    now, *before = reversed(versions("functions", against))
    lines = f"ours {who} {kind}", f"torch {who} {kind}"
    times = dict(zip(("stepwell", "before"), turns([now, *before], lines[0], rounds), strict=False))
    times |= {"torch": turns([peer()], lines[1], rounds)[0]}
    cells = {title: f"{min(column) / COUNT * 1e9:.3f}" for title, column in times.items()}
    return {"function": who, "type": kind, **cells}


@cache
def peer() -> Worker:
    return Worker("functions")


CASES = {f"{name} {kind}": (name, kind) for kind, names in NAMES.items() for name in names}
TABLES = [Table("function", CASES, row)]
