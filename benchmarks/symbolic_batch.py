"""The cost of a symbolic batch: one program for all batches beside a program for each.

The program with an unknown batch is compiled once; the others are compiled for one batch each. Both
get the same arrays, in one process with interleaved runs: a ratio is the median over adjacent
turns, so that a busy machine has little effect on it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from harness import Case, Make, Row, Table
from models import Weights, built, layers
from rich.text import Text

import stepwell as sw
from stepwell.tools.timing import duration, measure_pair

BATCHES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 25, 37, 64, 100, 256)
IMAGES = (1, 2, 3, 5, 8, 13)
"""Batches of a convolution: each image is many rows."""
GOAL = 1.1
"""The largest acceptable ratio to the time of a program compiled for the batch."""


@dataclass(frozen=True)
class Batches:
    """A function that makes a program of an input, its shape without the batch, and batches."""

    program: Callable[..., Any]
    shape: tuple[int, ...]
    batches: Sequence[int] = BATCHES

    def build(self, batch: int | str) -> sw.Module:
        """The program for a batch, or for any by the name of a size."""
        return built(self.program, (batch, *self.shape))

    def inputs(self, batch: int) -> np.ndarray:
        return np.random.default_rng(batch).standard_normal((batch, *self.shape), np.float32)

    def of_any(self, batch: int) -> Make:
        """The program for any batch, called with this one."""
        return lambda: Case([self.inputs(batch)], module=self.build("batch"))


def mlp(*widths: int) -> Batches:
    return Batches(lambda b, x: layers(b, x, *widths), widths[:1])


def products(b: Any, x: Any) -> Any:
    """A product of stacked matrices with a constant one, and one with themselves."""
    h = b.matmul(x, Weights().scaled(64, 40))
    return b.matmul(h, b.transpose(h, [0, 2, 1]))


def convolution(b: Any, x: Any) -> Any:
    w = Weights()
    h = b.conv(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), w.scaled(32, 32, 3, 3))
    return b.relu(b.add(h, w.scaled(32, 1, 1)))


def softmax(b: Any, x: Any) -> Any:
    return b.softmax(x, axis=1)


def layer_norm(b: Any, x: Any) -> Any:
    w, columns = Weights(), x.shape[1]
    return b.layer_norm(x, w.scaled(columns), w.scaled(columns), axis=1, epsilon=1e-5)


CASES = {
    "MLP 784-128-10": mlp(784, 128, 10),
    "MLP 1024 x 4": mlp(1024, 1024, 1024, 1024),
    "MLP 64-64-64": mlp(64, 64, 64),
    "matmul of batches, 24 x 64 x 40": Batches(products, (24, 64)),
    "conv 3 x 3, 32 channels, 28 x 28": Batches(convolution, (32, 28, 28), IMAGES),
    "softmax of 512": Batches(softmax, (512,)),
    "layer norm of 512": Batches(layer_norm, (512,)),
}


def rows(name: str, case: Batches, *, threads: int = 1) -> Iterator[Row]:
    symbolic = sw.compile(case.build("batch"), threads=threads)
    for batch in case.batches:
        x = case.inputs(batch)
        fixed = sw.compile(case.build(batch), threads=threads)
        if not np.allclose(fixed(x), symbolic(x), rtol=1e-3, atol=1e-3):
            raise SystemExit(f"{name}: the programs differ for a batch of {batch}")
        times = measure_pair(partial(fixed, x), partial(symbolic, x))
        first, second = times.first, times.second
        yield {
            "batch": str(batch),
            "compiled for it": f"{duration(first.median)} ({duration(first.minimum)})",
            "symbolic": f"{duration(second.median)} ({duration(second.minimum)})",
            "ratio": f"{'[red]' if times.ratio > GOAL else ''}{times.ratio:.3f}",
            "of minima": f"{second.minimum / first.minimum:.3f}",
        }


def summary(rows: Sequence[Row]) -> str:
    """The worst ratio, and how many are above the goal."""
    ratios = [float(Text.from_markup(row["ratio"]).plain) for row in rows]
    worst = rows[ratios.index(max(ratios))]
    above = sum(ratio > GOAL for ratio in ratios)
    return (
        f"the worst ratio is {max(ratios):.3f}: {worst['case']}, batch {worst['batch']}\n"
        f"their median is {statistics.median(ratios):.3f}; above {GOAL}: {above}"
    )


TABLES = [Table("case", CASES, rows, summary=summary)]
