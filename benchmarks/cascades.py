"""What it costs to add up long sums in chunks: kernels with their cascades and without.

Processor time of interleaved calls, in turns of about a millisecond, so that other work on the
machine counts little. The ratio is the time with cascades over that without, of the minima and
of the medians.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness import Case, Row, Table, processor_times
from large_graphs import WIDTH, module
from operators import Operator, conv, normal, onnx
from rmat import graph_of

import stepwell as sw

TURN_SECONDS = 1e-3
CASCADE = re.compile(r"(?:; )?cascade\([^)]*\)")
KERNEL = re.compile(r'loop\.kernel @(\w+).*loop\.schedule = "([^"]*)"')


def dense(rows: int, terms: int, columns: int) -> Operator:
    """A product with weights."""
    return onnx("MatMul", (rows, terms), constants=[normal(terms, columns)])


CASES: dict[str, Case] = {
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
class Network(Case):
    """A network of two layers and 64 features on a power-law graph."""

    name: str
    nodes: int

    def module(self) -> sw.Module:
        return module(self.name)

    def arrays(self) -> tuple[Any, ...]:
        graph = graph_of(self.nodes, 4 * self.nodes)
        return graph.to_csr(), normal(self.nodes, WIDTH)


NETWORKS: dict[str, Case] = {
    f"{name}, {nodes:,} nodes": Network(name, nodes)
    for nodes in (2_708, 50_000)
    for name in ("GCN", "SAGE", "GAT")
}


def without_cascades(exe: sw.Executable) -> dict[str, str]:
    """The schedules of the kernels of a program, without the steps that make cascades."""
    return {name: CASCADE.sub("", steps) for name, steps in KERNEL.findall(exe.ir("scheduled"))}


def row(name: str, case: Case, *, rounds: int = 200) -> Row:
    """Time a kernel with its cascades and without."""
    arrays = case.arrays()
    new = sw.compile(case.module(), threads=1, records=False)
    old = sw.compile(case.module(), threads=1, schedule=without_cascades(new))
    exes = {"without": old, "with": new}
    calls = {which: partial(exe, *arrays) for which, exe in exes.items()}
    first = processor_times(calls, 1, time.thread_time)
    count = max(1, round(TURN_SECONDS / max(timing.minimum for timing in first.values())))
    turns = {which: partial(several, call, count) for which, call in calls.items()}
    found = processor_times(turns, rounds, time.thread_time)
    before, after = found["without"], found["with"]
    return {
        "without": f"{before.minimum / count * 1e6:.4g} us",
        "with, minimum": f"{after.minimum / before.minimum:.3f}",
        "with, median": f"{after.median / before.median:.3f}",
    }


def several(call: Callable[[], object], count: int) -> None:
    """A turn."""
    for _ in range(count):
        call()


TABLES = [Table("kernel", CASES | NETWORKS, row)]
