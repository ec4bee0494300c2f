"""The time of the graph passes of the default pipeline on modules of 200 to 5,000 operators.

The weights are small, so that passes spend their time on operators and not on arrays. The time is
the processor time of the stages `optimized` and `fused`, the minimum of two runs in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from harness import Row, Table
from models import Weights
from scipy.sparse import random_array

import stepwell as sw
from stepwell.core.collector import without_collector
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context

SIZES = (200, 500, 1000, 2000, 5000)
WIDTH = 8
NODES = 6


def perceptron(count: int) -> Module:
    """Layers with a bias, a scale and a residual."""
    b, w = sw.Builder("main"), Weights()
    x = b.input("x", ("batch", WIDTH), "f32")
    for _ in range(count // 5):
        h = b.add(b.dense(x, w.array(WIDTH, WIDTH)), w.array(WIDTH))
        x = b.add(b.relu(b.mul(h, w.positive(WIDTH))), x)
    b.output(x, name="y")
    return b.module()


def convolutions(count: int) -> Module:
    """Blocks of two convolutions with batch norms, and a residual."""
    b, w = sw.Builder("main"), Weights()
    x = b.input("x", ("batch", WIDTH, NODES, NODES), "f32")
    for _ in range(count // 9):
        h = x
        for last in (False, True):
            h = b.conv(b.pad(h, [0, 0, 1, 1], [0, 0, 1, 1]), w.array(WIDTH, WIDTH, 3, 3))
            h = b.batch_norm(h, *(w.positive(WIDTH) for _ in range(4)), epsilon=1e-5, axis=1)
            h = b.add(h, x) if last else b.relu(h)
        x = b.relu(h)
    b.output(x, name="y")
    return b.module()


def graph_convolutions(count: int) -> Module:
    """Graph convolutions of a normalised constant graph, with dropout."""
    b, w = sw.Builder("main"), Weights()
    a = b.constant(random_array((NODES, NODES), density=0.5, rng=w.random, dtype=np.float32))
    x = b.input("x", (NODES, WIDTH), "f32")
    for _ in range(count // 6):
        h = b.spmm(b.normalize(a), b.matmul(b.dropout(x, 0.5), w.array(WIDTH, WIDTH)))
        x = b.relu(b.add(h, w.array(WIDTH)))
    b.output(x, name="y")
    return b.module()


MIXES: dict[str, Callable[[int], Module]] = {
    "layers": perceptron,
    "convolutions": convolutions,
    "graph convolutions": graph_convolutions,
}


def seconds(module: Module, steps: Sequence[str]) -> list[float]:
    """The processor time of each step of passes, including the verification after it."""
    copy, times = module.clone(), list[float]()
    ctx = make_context(copy.weights)
    with without_collector():
        for step in steps:
            start = time.process_time()
            run_passes(ctx, copy.op, step)
            times.append(time.process_time() - start)
    return times


def operators(module: Module) -> int:
    """The number of operators of a module, constants not counted."""
    names = [op.name for op in module.op.walk()]
    return sum(name.startswith("graph.") and name != "graph.constant" for name in names)


def rows(name: str, size: int, *, rounds: int = 2, passes: bool = False) -> Iterator[Row]:
    stages = ",".join(pipeline()[stage] for stage in ("optimized", "fused"))
    steps = stages.split(",") if passes else [stages]
    least, counts = dict[str, list[float]](), dict[str, int]()
    for mix, build in MIXES.items():
        module = build(size)
        counts[mix] = operators(module)
        runs = [seconds(module, steps) for _ in range(rounds)]
        least[mix] = [min(column) for column in zip(*runs, strict=True)]
    for place, step in enumerate(steps):
        cells = {"pass": f"{place + 1} {step}"} if passes else {}
        for mix, times in least.items():
            each = 1e6 * times[place] / counts[mix]
            cells[f"{mix}, each"] = f"{times[place]:.3f} s, {each:.0f} us"
        yield cells


TABLES = [Table("operators", {str(size): size for size in SIZES}, rows)]
