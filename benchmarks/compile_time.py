"""The time of `sw.compile` for a finished module, on one thread.

    python benchmarks/run.py compile_time
    python benchmarks/run.py compile_time --against FOLDER

Times are processor times, the minimum of several compilations in a process that has compiled
something before. With `--against`, a second process does the same with the package `stepwell` in
that folder, such as a link to a checkout of another commit, and the two take turns. Weights are
random; those of the models in ONNX's test data are small.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache, partial

from harness import Row, Table
from image_models import LIGHT, resnet18
from models import gcn_of_cora, perceptron
from turns import compared, turns, versions

import stepwell as sw

MODELS: dict[str, Callable[[], sw.Module]] = {
    "MLP, batch 64": partial(perceptron, 64, 784, 128, 10),
    "MLP, any batch": partial(perceptron, "batch", 784, 128, 10),
    "GCN": gcn_of_cora,
    "ResNet-18": lambda: sw.from_onnx(resnet18()),
    "ResNet-50": partial(sw.from_onnx, LIGHT / "light_resnet50.onnx"),
    "DenseNet-121": partial(sw.from_onnx, LIGHT / "light_densenet121.onnx"),
}


@cache
def module(name: str) -> sw.Module:
    return MODELS[name]()


@cache
def warm() -> None:
    """Compile something, which imports what a compilation needs."""
    sw.compile(module("MLP, batch 64"), threads=1, records=False)


def seconds(name: str) -> float:
    warm()
    finished = module(name)
    gc.collect()
    start = time.process_time()
    sw.compile(finished, threads=1, records=False)
    return time.process_time() - start


def row(name: str, make: Callable[[], sw.Module], *, rounds: int = 5, against: str = "") -> Row:
    return compared(turns(versions("compile_time", against), name, rounds), "{:.3f} s".format)


TABLES = [Table("model", MODELS, row)]
