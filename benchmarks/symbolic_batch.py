"""The cost of a symbolic batch: one program for all batches beside a program for each.

    python benchmarks/symbolic_batch.py                  # everything, on one thread
    python benchmarks/symbolic_batch.py --only MLP -t 2  # some cases, on two

The program with an unknown batch is compiled once; the others are compiled for one batch each. Both
get the same arrays, in one process with interleaved runs: a ratio is the median over adjacent
turns, so that a busy machine has little effect on it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from models import Weights, perceptron
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import stepwell as sw
from stepwell.tools.timing import Pair, duration, measure_pair

BATCHES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 25, 37, 64, 100, 256)
IMAGES = (1, 2, 3, 5, 8, 13)
"""Batches of a convolution: each image is many rows."""
GOAL = 1.1
"""The largest acceptable ratio to the time of a program compiled for the batch."""

Batch = int | str


@dataclass(frozen=True)
class Case:
    """A program for a batch (a number or the name of a size), and the shape of its input."""

    build: Callable[[Batch], sw.Module]
    shape: tuple[int, ...]
    """Without the batch, which comes first."""
    batches: Sequence[int] = BATCHES

    def array(self, batch: int) -> np.ndarray:
        """The input."""
        return np.random.default_rng(batch).standard_normal((batch, *self.shape), np.float32)


@dataclass(frozen=True)
class Result:
    """The program compiled for a batch, then the one for any."""

    case: str
    batch: int
    times: Pair


_weights = Weights().scaled


def mlp(*widths: int) -> Case:
    """Dense layers with a bias, and relu between them."""
    return Case(lambda batch: perceptron(batch, *widths), widths[:1])


def batched_matmul(rows: int, inner: int, columns: int) -> Case:
    """A product of stacked matrices with a constant one, and one with themselves."""

    def build(batch: Batch) -> sw.Module:
        b = sw.Builder("main")
        x = b.input("x", (batch, rows, inner), "f32")
        h = b.matmul(x, _weights(inner, columns))
        b.output(b.matmul(h, b.transpose(h, [0, 2, 1])), name="y")
        return b.module()

    return Case(build, (rows, inner))


def convolution(channels: int, size: int) -> Case:
    """A padded 3 x 3 convolution with a bias and relu."""

    def build(batch: Batch) -> sw.Module:
        b = sw.Builder("main")
        x = b.pad(b.input("x", (batch, channels, size, size), "f32"), [0, 0, 1, 1], [0, 0, 1, 1])
        h = b.add(b.conv(x, _weights(channels, channels, 3, 3)), _weights(channels, 1, 1))
        b.output(b.relu(h), name="y")
        return b.module()

    return Case(build, (channels, size, size), IMAGES)


def softmax(columns: int) -> Case:
    """Softmax of each row."""

    def build(batch: Batch) -> sw.Module:
        b = sw.Builder("main")
        b.output(b.softmax(b.input("x", (batch, columns), "f32"), axis=1), name="y")
        return b.module()

    return Case(build, (columns,))


def layer_norm(columns: int) -> Case:
    """Layer norm of each row, with a scale and a shift."""

    def build(batch: Batch) -> sw.Module:
        b = sw.Builder("main")
        x = b.input("x", (batch, columns), "f32")
        norm = b.layer_norm(x, _weights(columns), _weights(columns), axis=1, epsilon=1e-5)
        b.output(norm, name="y")
        return b.module()

    return Case(build, (columns,))


CASES = {
    "MLP 784-128-10": mlp(784, 128, 10),
    "MLP 1024 x 4": mlp(1024, 1024, 1024, 1024),
    "MLP 64-64-64": mlp(64, 64, 64),
    "matmul of batches, 24 x 64 x 40": batched_matmul(24, 64, 40),
    "conv 3 x 3, 32 channels, 28 x 28": convolution(32, 28),
    "softmax of 512": softmax(512),
    "layer norm of 512": layer_norm(512),
}


def compare(name: str, case: Case, threads: int, progress: Callable[[], None]) -> list[Result]:
    """Time both programs for each batch.

    Raises:
        SystemExit: if their results differ by more than rounding.
    """
    symbolic = sw.compile(case.build("batch"), threads=threads)
    results = []
    for batch in case.batches:
        x = case.array(batch)
        fixed = sw.compile(case.build(batch), threads=threads)
        if not np.allclose(fixed(x), symbolic(x), rtol=1e-3, atol=1e-3):
            raise SystemExit(f"{name}: the programs differ for a batch of {batch}")
        times = measure_pair(lambda f=fixed, x=x: f(x), lambda x=x: symbolic(x))
        results.append(Result(name, batch, times))
        progress()
    return results


def table(results: Sequence[Result]) -> Table:
    """The results as a table to read."""
    view = Table("case", "batch", "compiled for it", "symbolic", "ratio", "of minima")
    for r in results:
        first, second, ratio = r.times.first, r.times.second, r.times.ratio
        times = [f"{duration(t.median)} ({duration(t.minimum)})" for t in (first, second)]
        colour = "[red]" if ratio > GOAL else ""
        of_minima = f"{second.minimum / first.minimum:.3f}"
        view.add_row(r.case, str(r.batch), *times, f"{colour}{ratio:.3f}", of_minima)
    return view


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each program")] = 1,
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
) -> None:
    """Print the table, and its worst ratio."""
    console = Console(width=110)
    cases = {name: case for name, case in CASES.items() if only in name}
    if not cases:
        raise typer.BadParameter(f'no case has "{only}" in its name: {", ".join(CASES)}')
    results: list[Result] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=sum(len(case.batches) for case in cases.values()))
        for name, case in cases.items():
            progress.update(task, description=name)
            results += compare(name, case, threads, lambda: progress.advance(task))
    console.print(table(results))
    worst = max(results, key=lambda r: r.times.ratio)
    ratios = [r.times.ratio for r in results]
    console.print(f"the worst ratio is {max(ratios):.3f}: {worst.case}, batch {worst.batch}")
    above = sum(ratio > GOAL for ratio in ratios)
    console.print(f"their median is {statistics.median(ratios):.3f}; above {GOAL}: {above}")


if __name__ == "__main__":
    typer.run(main)
