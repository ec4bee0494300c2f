"""The time of the graph passes of the default pipeline on modules of 200 to 5,000 operators.

    python benchmarks/passes.py

The weights are small, so that passes spend their time on operators and not on arrays. The time is
the processor time of the stages `optimized` and `fused`, the minimum of two runs in one process.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from models import Weights
from rich.console import Console
from rich.table import Table
from scipy.sparse import random_array

import stepwell as sw
from stepwell.core.module import Module
from stepwell.core.pipelines import pipeline, run_passes
from stepwell.core.registry import make_context

SIZES = (200, 500, 1000, 2000, 5000)
ROUNDS = 2
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


def seconds(module: Module, passes: Sequence[str]) -> dict[str, float]:
    """The processor time of each pass list, including the verification after it."""
    copy = module.clone()
    ctx = make_context(copy.weights)
    times: dict[str, float] = {}
    gc.collect()
    gc.disable()
    try:
        for place, step in enumerate(passes):
            start = time.process_time()
            run_passes(ctx, copy.op, step)
            times[f"{place + 1} {step}"] = time.process_time() - start
    finally:
        gc.enable()
    return times


def operators(module: Module) -> int:
    """The number of operators of a module, constants not counted."""
    names = [op.name for op in module.op.walk()]
    return sum(name.startswith("graph.") and name != "graph.constant" for name in names)


def main() -> None:
    """Print the tables, and write the numbers to a file if one is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="a file for the numbers, in seconds")
    parser.add_argument("--passes", action="store_true", help="the passes of the largest modules")
    options = parser.parse_args()
    console = Console(width=110)
    table = Table("operators", *(f"{mix}, each" for mix in MIXES))
    numbers: dict[str, dict[int, float]] = {mix: {} for mix in MIXES}
    texts = pipeline()
    stages = [texts["optimized"], texts["fused"]]
    for size in SIZES:
        row = []
        for mix, build in MIXES.items():
            module = build(size)
            count = operators(module)
            total = min(sum(seconds(module, stages).values()) for _ in range(ROUNDS))
            numbers[mix][count] = total
            row.append(f"{total:.3f} s, {1e6 * total / count:.0f} us")
        table.add_row(str(size), *row)
    console.print(table)
    if options.passes:
        for mix, build in MIXES.items():
            console.print(mix, seconds(build(SIZES[-1]), ",".join(stages).split(",")))
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
