"""The time of `sw.compile` for a finished module, on one thread.

    python benchmarks/compile_time.py
    python benchmarks/compile_time.py --against FOLDER

Times are processor times, the minimum of several compilations in a process that has compiled
something before. With `--against`, a second process does the same with the package `stepwell` in
that folder, such as a link to a checkout of another commit, and the two take turns. Weights are
random; those of the models in ONNX's test data are small.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from models import Weights, gcn, perceptron
from rich.console import Console
from rich.table import Table
from turns import Worker, answer, turns

import stepwell as sw
from stepwell.frontends import gnn

# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"
ROUNDS = 5
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_BLOCKS = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
"""The channels and the stride of each residual block."""


def graph_convolutions() -> sw.Module:
    """Two graph convolutions on a graph of the size of Cora."""
    nodes = 2708
    edges = np.random.default_rng(0).integers(0, nodes, (2, 5000))
    graph = gnn.Graph.from_edge_index(np.concatenate([edges, edges[::-1]], 1), nodes)
    return gcn(1433, 16, 7).to_module(graph, features=sw.TensorSpec((nodes, 1433), "f32"))


def resnet18() -> sw.Module:
    """ResNet-18 for an image of 224 x 224 as trained: batch norms are still operators."""
    b, w = sw.Builder("main"), Weights()

    def conv(x: object, channels: int, filters: int, size: int, stride: int) -> object:
        if border := size // 2:
            x = b.pad(x, [0, 0, border, border], [0, 0, border, border])
        x = b.conv(x, w.array(filters, channels, size, size), strides=(stride, stride))
        return b.batch_norm(x, *(w.positive(filters) for _ in range(4)), epsilon=1e-5, axis=1)

    x = b.relu(conv(b.input("x", (1, 3, 224, 224), "f32"), 3, 64, 7, 2))
    x = b.pool(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), "max", [3, 3], strides=(2, 2))
    channels = 64
    for filters, stride in _BLOCKS:
        y = conv(b.relu(conv(x, channels, filters, 3, stride)), filters, filters, 3, 1)
        same = stride == 1 and channels == filters
        x = b.relu(b.add(y, x if same else conv(x, channels, filters, 1, stride)))
        channels = filters
    x = b.dense(b.reduce(x, "mean", [2, 3]), w.array(1000, 512), bias=w.array(1000))
    b.output(x, name="y")
    return b.module()


def light(name: str) -> Callable[[], sw.Module]:
    """A model of ONNX's test data, whose weights are made by operators."""
    return lambda: sw.from_onnx(LIGHT / f"light_{name}.onnx")


MODELS: dict[str, Callable[[], sw.Module]] = {
    "MLP, batch 64": lambda: perceptron(64, 784, 128, 10),
    "MLP, any batch": lambda: perceptron("batch", 784, 128, 10),
    "GCN": graph_convolutions,
    "ResNet-18": resnet18,
    "ResNet-50": light("resnet50"),
    "DenseNet-121": light("densenet121"),
}


@cache
def module(name: str) -> sw.Module:
    """A model."""
    return MODELS[name]()


def seconds(name: str) -> float:
    """The processor time of a compilation of a model."""
    finished = module(name)
    gc.collect()
    start = time.process_time()
    sw.compile(finished, threads=1, records=False)
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a folder with another package `stepwell`")
    parser.add_argument("--only", action="append", choices=MODELS, help="this model, and no other")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="compilations of each")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        answer(seconds)
        return
    before = [] if options.against is None else [Worker(__file__, options.against)]
    workers = [*before, Worker(__file__)]
    for worker in workers:
        worker.seconds("MLP, batch 64")
    compared = ("before", "now", "ratio", "median of the ratios")
    table = Table("model", *(compared if before else ("now",)))
    for model in options.only or MODELS:
        times = turns(workers, model, options.rounds)
        row = [f"{min(column):.3f} s" for column in times]
        if before:
            ratios = [now / then for then, now in zip(*times, strict=True)]
            row += [f"{min(times[1]) / min(times[0]):.2f}", f"{median(ratios):.2f}"]
        table.add_row(model, *row)
    for worker in workers:
        worker.end()
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
