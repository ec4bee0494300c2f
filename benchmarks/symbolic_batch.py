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

import numpy as np
from harness import Case, Row, Table
from models import Weights, perceptron
from rich.text import Text

import stepwell as sw
from stepwell.tools.timing import duration, measure_pair

BATCHES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 25, 37, 64, 100, 256)
IMAGES = (1, 2, 3, 5, 8, 13)
"""Batches of a convolution: each image is many rows."""
GOAL = 1.1
"""The largest acceptable ratio to the time of a program compiled for the batch."""

Batch = int | str


@dataclass(frozen=True)
class Batches:
    """A program for a batch (a number or the name of a size), and the shape of its input."""

    build: Callable[[Batch], sw.Module]
    shape: tuple[int, ...]
    """Without the batch, which comes first."""
    batches: Sequence[int] = BATCHES

    def of_any(self, batch: int) -> OfAny:
        """The program for any batch, called with this one."""
        return OfAny(self, batch)


@dataclass(frozen=True)
class OfAny(Case):
    """A program for any batch, and a batch."""

    program: Batches
    batch: int

    def module(self) -> sw.Module:
        return self.program.build("batch")

    def arrays(self) -> list[np.ndarray]:
        shape = (self.batch, *self.program.shape)
        return [np.random.default_rng(self.batch).standard_normal(shape, np.float32)]


def mlp(*widths: int) -> Batches:
    """Dense layers with a bias, and relu between them."""
    return Batches(lambda batch: perceptron(batch, *widths), widths[:1])


def batched_matmul(rows: int, inner: int, columns: int) -> Batches:
    """A product of stacked matrices with a constant one, and one with themselves."""

    def build(batch: Batch) -> sw.Module:
        b, w = sw.Builder("main"), Weights()
        x = b.input("x", (batch, rows, inner), "f32")
        h = b.matmul(x, w.scaled(inner, columns))
        b.output(b.matmul(h, b.transpose(h, [0, 2, 1])), name="y")
        return b.module()

    return Batches(build, (rows, inner))


def convolution(channels: int, size: int) -> Batches:
    """A padded 3 x 3 convolution with a bias and relu."""

    def build(batch: Batch) -> sw.Module:
        b, w = sw.Builder("main"), Weights()
        x = b.pad(b.input("x", (batch, channels, size, size), "f32"), [0, 0, 1, 1], [0, 0, 1, 1])
        h = b.add(b.conv(x, w.scaled(channels, channels, 3, 3)), w.scaled(channels, 1, 1))
        b.output(b.relu(h), name="y")
        return b.module()

    return Batches(build, (channels, size, size), IMAGES)


def softmax(columns: int) -> Batches:
    """Softmax of each row."""

    def build(batch: Batch) -> sw.Module:
        b = sw.Builder("main")
        b.output(b.softmax(b.input("x", (batch, columns), "f32"), axis=1), name="y")
        return b.module()

    return Batches(build, (columns,))


def layer_norm(columns: int) -> Batches:
    """Layer norm of each row, with a scale and a shift."""

    def build(batch: Batch) -> sw.Module:
        b, w = sw.Builder("main"), Weights()
        x = b.input("x", (batch, columns), "f32")
        norm = b.layer_norm(x, w.scaled(columns), w.scaled(columns), axis=1, epsilon=1e-5)
        b.output(norm, name="y")
        return b.module()

    return Batches(build, (columns,))


CASES = {
    "MLP 784-128-10": mlp(784, 128, 10),
    "MLP 1024 x 4": mlp(1024, 1024, 1024, 1024),
    "MLP 64-64-64": mlp(64, 64, 64),
    "matmul of batches, 24 x 64 x 40": batched_matmul(24, 64, 40),
    "conv 3 x 3, 32 channels, 28 x 28": convolution(32, 28),
    "softmax of 512": softmax(512),
    "layer norm of 512": layer_norm(512),
}


def rows(name: str, case: Batches, *, threads: int = 1) -> Iterator[Row]:
    """Time both programs for each batch.

    Raises:
        SystemExit: if their results differ by more than rounding.
    """
    symbolic = sw.compile(case.build("batch"), threads=threads)
    for batch in case.batches:
        (x,) = case.of_any(batch).arrays()
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
