"""The time from a saved program to its first result, in fresh processes, on one thread.

    python benchmarks/artefacts.py
    python benchmarks/artefacts.py --only MLP --rounds 30

A process imports NumPy, makes the arguments, and then takes the time of importing Stepwell, loading
the file and one call: elapsed time, and processor time, each the minimum of all processes. Weights
are random. The file is in the cache of the system, as after the first load.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from compile_time import graph_convolutions, perceptron
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array, random_array
from weights import Weights

import stepwell as sw

ROUNDS = 15
_BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""The channels, the number and the stride of the blocks of each part."""
_FIRST = """
import sys, time
import numpy as np
inputs = [np.load(path) for path in sys.argv[2:]]
arguments = [tuple(inputs[:3]), *inputs[3:]] if len(inputs) > 1 else inputs
start, used = time.perf_counter(), time.process_time()
import stepwell as sw
sw.load(sys.argv[1])(*arguments)
print(time.perf_counter() - start, time.process_time() - used)
"""


def on_a_graph() -> sw.Module:
    """Two graph convolutions on a graph that is an input."""
    b, w = sw.Builder("main"), Weights()
    graph = b.input("graph", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", 1433))
    hidden = b.relu(b.spmm(graph, b.dense(x, w.array(16, 1433))))
    b.output(b.spmm(graph, b.dense(hidden, w.array(7, 16))), name="y")
    return b.module()


def resnet50() -> sw.Module:
    """ResNet-50 for an image of 224 x 224, its batch norms folded into its convolutions."""
    b, w = sw.Builder("main"), Weights()

    def conv(x: object, channels: int, filters: int, size: int, stride: int) -> object:
        if border := size // 2:
            x = b.pad(x, [0, 0, border, border], [0, 0, border, border])
        kernel = w.array(filters, channels, size, size)
        return b.conv(x, kernel, bias=w.array(filters), strides=(stride, stride))

    x = b.relu(conv(b.input("x", (1, 3, 224, 224), "f32"), 3, 64, 7, 2))
    x = b.pool(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), "max", [3, 3], strides=(2, 2))
    channels = 64
    for filters, count, first in _BLOCKS:
        for stride in (first, *[1] * (count - 1)):
            y = b.relu(conv(x, channels, filters, 1, 1))
            y = conv(b.relu(conv(y, filters, filters, 3, stride)), filters, 4 * filters, 1, 1)
            same = stride == 1 and channels == 4 * filters
            x = b.relu(b.add(y, x if same else conv(x, channels, 4 * filters, 1, stride)))
            channels = 4 * filters
    x = b.dense(b.reduce(x, "mean", [2, 3]), w.array(1000, 2048), bias=w.array(1000))
    b.output(x, name="y")
    return b.module()


def graph_inputs() -> list[np.ndarray]:
    """A graph of the size of Cora as three arrays, and features."""
    random = np.random.default_rng(0)
    graph = csr_array(random_array((2708, 2708), density=0.0018, dtype=np.float32, rng=random))
    parts = graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.data
    return [*parts, np.zeros((2708, 1433), np.float32)]


def zeros(*shape: int) -> Callable[[], Sequence[np.ndarray]]:
    """One argument of this shape."""
    return lambda: [np.zeros(shape, np.float32)]


MODELS: dict[str, tuple[Callable[[], sw.Module], Callable[[], Sequence[np.ndarray]]]] = {
    "MLP": (lambda: perceptron("batch"), zeros(1, 784)),
    "GCN": (on_a_graph, graph_inputs),
    "GCN, constant graph": (graph_convolutions, zeros(2708, 1433)),
    "ResNet-50": (resnet50, zeros(1, 3, 224, 224)),
}


def times(path: Path, inputs: Sequence[np.ndarray], rounds: int) -> tuple[float, float]:
    """The least elapsed time and processor time of processes that load and call a program."""
    places: list[str] = []
    for number, array in enumerate(inputs):
        places.append(str(path.with_name(f"input{number}.npy")))
        np.save(places[-1], array)
    # As for users, modules are compiled to bytecode once.
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _FIRST, str(path), *places]
    found: list[list[float]] = []
    for _ in range(rounds + 1):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found.append([float(number) for number in done.stdout.split()])
    elapsed, used = zip(*found, strict=True)
    return min(elapsed), min(used)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=MODELS, help="this model, and no other")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes for each model")
    options = parser.parse_args()
    table = Table("model", "file", "save", "load", "verify", "first result", "of the processor")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or MODELS:
            module, inputs = MODELS[name]
            exe = sw.compile(module(), threads=1, records=False)
            path = Path(folder) / "program.stepwell"
            marks = [time.perf_counter()]
            exe.save(path)
            marks.append(time.perf_counter())
            loaded = sw.load(path)
            marks.append(time.perf_counter())
            loaded.verify()
            marks.append(time.perf_counter())
            first = times(path, inputs(), options.rounds)
            save, load, verify = np.diff(marks)
            size = f"{os.path.getsize(path) / 1e6:.1f} MB"
            row = [f"{seconds * 1e3:.1f} ms" for seconds in (load, verify, *first)]
            table.add_row(name, size, f"{save:.2f} s", *row)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
