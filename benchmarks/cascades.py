"""What it costs to add up long sums in chunks: kernels with their cascades and without.

Processor time of interleaved calls, in turns of about a millisecond, so that other work on the
machine counts little. The ratio is the time with cascades over that without, of the minima and
of the medians.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

from harness import Case, Make, Row, Table, processor_times
from large_graphs import WIDTH, module
from operators import conv, normal, onnx
from rmat import graph_of

import stepwell as sw

TURN_SECONDS = 1e-3
CASCADE = re.compile(r"(?:; )?cascade\([^)]*\)")
KERNEL = re.compile(r'loop\.kernel @(\w+).*loop\.schedule = "([^"]*)"')


def dense(rows: int, terms: int, columns: int) -> Make:
    return onnx("MatMul", (rows, terms), constants=[normal(terms, columns)])


def network(name: str, nodes: int) -> Case:
    """A network of two layers and 64 features on a power-law graph."""
    return Case([graph_of(nodes, 4 * nodes).to_csr(), normal(nodes, WIDTH)], module=module(name))


CASES: dict[str, Make] = {
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
} | {
    f"{name}, {nodes:,} nodes": partial(network, name, nodes)
    for nodes in (2_708, 50_000)
    for name in ("GCN", "SAGE", "GAT")
}


def several(call: Callable[[], object], count: int) -> None:
    for _ in range(count):
        call()


def row(name: str, make: Make, *, rounds: int = 200) -> Row:
    case = make()
    new = sw.compile(case.program, threads=1, records=False)
    plain = {name: CASCADE.sub("", steps) for name, steps in KERNEL.findall(new.ir("scheduled"))}
    old = sw.compile(case.program, threads=1, schedule=plain)
    calls = {w: partial(exe, *case.arrays) for w, exe in (("without", old), ("with", new))}
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


TABLES = [Table("kernel", CASES, row)]
