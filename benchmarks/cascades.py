"""What it costs to add up long sums in chunks: kernels with their cascades and without.

    python benchmarks/cascades.py               # everything, on one thread
    python benchmarks/cascades.py --only conv   # some cases

Processor time of interleaved calls, in turns of about a millisecond, so that other work on the
machine counts little. The ratio is the time with cascades over that without, of the minima and
of the medians.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from large_graphs import WIDTH, module
from operators import Operator, conv, normal, unary
from parts import graph_of
from rich.console import Console
from rich.table import Table

import stepwell as sw

TURN_SECONDS = 1e-3
ROUNDS = 200
CASCADE = re.compile(r"(?:; )?cascade\([^)]*\)")
KERNEL = re.compile(r'loop\.kernel @(\w+).*loop\.schedule = "([^"]*)"')


def dense(rows: int, terms: int, columns: int) -> Operator:
    """A product with weights."""
    return unary("MatMul", (rows, terms), (normal(terms, columns),))


CASES: dict[str, Operator] = {
    "dense 64 x 784 x 128": dense(64, 784, 128),
    "dense 1 x 784 x 128": dense(1, 784, 128),
    "dense 256 x 1024 x 1024": dense(256, 1024, 1024),
    "dense 128 x 768 x 3072": dense(128, 768, 3072),
    "dense 128 x 3072 x 768": dense(128, 3072, 768),
    "dense 16 x 4096 x 4096": dense(16, 4096, 4096),
    "conv 3x3, 64 channels, 56 x 56": conv(64, 56, 64, 3, 1, 1),
    "conv 3x3, 128 channels, 28 x 28": conv(128, 28, 128, 3, 1, 1),
    "conv 3x3, 256 channels, 14 x 14": conv(256, 14, 256, 3, 1, 1),
    "conv 3x3, 512 channels, 7 x 7": conv(512, 7, 512, 3, 1, 1),
    "conv 1x1, 1024 channels, 14 x 14": conv(1024, 14, 256, 1, 1, 0),
    "conv 7x7, 3 channels, 224 x 224": conv(3, 224, 64, 7, 2, 3),
}


@dataclass(frozen=True)
class Network:
    """A network of two layers and 64 features on a power-law graph."""

    name: str
    nodes: int

    def module(self) -> sw.Module:
        return module(self.name)

    def arrays(self) -> tuple[Any, ...]:
        graph = graph_of(self.nodes, 4 * self.nodes)
        return graph.to_csr(), normal(self.nodes, WIDTH)


NETWORKS = {
    f"{name}, {nodes:,} nodes": Network(name, nodes)
    for nodes in (2_708, 50_000)
    for name in ("GCN", "SAGE", "GAT")
}


def without_cascades(exe: sw.Executable) -> dict[str, str]:
    """The schedules of the kernels of a program, without the steps that make cascades."""
    return {name: CASCADE.sub("", steps) for name, steps in KERNEL.findall(exe.ir("scheduled"))}


def times(calls: list[Callable[[], object]]) -> list[tuple[float, float]]:
    """The minimum and the median of the processor time of each call, in seconds."""
    start = time.thread_time()
    for call in calls:
        call()
    count = max(1, round(TURN_SECONDS * len(calls) / (time.thread_time() - start)))
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for samples, call in zip(found, calls, strict=True):
            start = time.thread_time()
            for _ in range(count):
                call()
            samples.append((time.thread_time() - start) / count)
    return [(min(samples), float(np.median(samples))) for samples in found]


def main(
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
) -> None:
    """Print the table."""
    table = Table("kernel", "without", "with, minimum", "with, median")
    for name, operator in (CASES | NETWORKS).items():
        if only not in name:
            continue
        arrays = operator.arrays()
        new = sw.compile(operator.module(), threads=1, records=False)
        old = sw.compile(operator.module(), threads=1, schedule=without_cascades(new))
        (least, median), (new_least, new_median) = times(
            [functools.partial(exe, *arrays) for exe in (old, new)]
        )
        ratios = f"{new_least / least:.3f}", f"{new_median / median:.3f}"
        table.add_row(name, f"{least * 1e6:.4g} us", *ratios)
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
