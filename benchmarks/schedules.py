"""The time to make the default schedule of each kernel.

The kernels are those of the programs in `cases.py`, and of others, most of them with unknown sizes.
The time is the processor time of `schedule_kernel` on a kernel in no module, the minimum of several
runs in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from cases import CASES
from harness import Row, Table
from models import perceptron
from symbolic_batch import convolution, layer_norm, softmax

import stepwell as sw
from stepwell.core.collector import without_collector
from stepwell.core.pipelines import pipeline, walk_stages
from stepwell.core.registry import make_context
from stepwell.core.target import Target, named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace_text import parse_traces
from stepwell.frontends import gnn
from stepwell.frontends.builder import Builder
from stepwell.passes.loop.schedule import schedule_kernel


def products(*sizes: tuple[int | str, ...]) -> sw.Module:
    """The products of two stacks of matrices of these shapes."""
    b = Builder("main")
    left, right = (b.input(name, shape, "f32") for name, shape in zip("ab", sizes, strict=True))
    b.output(b.matmul(left, right), name="y")
    return b.module()


def gelu() -> sw.Module:
    """The gelu of any number of rows."""
    b = Builder("main")
    b.output(b.gelu(b.input("x", ("rows", 1024), "f32")), name="y")
    return b.module()


def columns(count: int) -> sw.Module:
    """The exponentials of `count` concatenated tables."""
    b = Builder("main")
    tables = [b.input(f"x{n}", (40, 7), "f32") for n in range(count)]
    b.output(b.exp(b.concat(tables, axis=1)), name="y")
    return b.module()


def attention() -> sw.Module:
    """A graph attention layer of 4 heads, its graph an input of any size."""
    random = np.random.default_rng(0)
    weights, source, target = (
        random.standard_normal(shape, np.float32) for shape in ((64, 64), (4, 16), (4, 16))
    )
    layer = gnn.GATConv(weights, source, target)
    return gnn.Sequential(layer).to_module(gnn.GraphSpec(), sw.TensorSpec((None, 64), "f32"))


OTHERS: dict[str, Callable[[], sw.Module]] = {
    "MLP 784-128-10, any batch": lambda: perceptron("batch", 784, 128, 10),
    "MLP 1024 x 4, any batch": lambda: perceptron("batch", *[1024] * 4),
    "MLP 4096-4096-4096-1000, any batch": lambda: perceptron("batch", 4096, 4096, 4096, 1000),
    "Product 512 x 512": lambda: products((512, 512), (512, 512)),
    "Product of any size": lambda: products(("m", "k"), ("k", "n")),
    "Products of a batch of 8": lambda: products((8, 100, 64), (8, 64, 100)),
    "Products of any batch": lambda: products(("batch", 100, 64), ("batch", 64, 100)),
    "Convolution 3x3, any batch": lambda: convolution(32, 28).build("batch"),
    "Softmax, any rows": lambda: softmax(1024).build("rows"),
    "Layer norm, any rows": lambda: layer_norm(1024).build("rows"),
    "Gelu, any rows": gelu,
    "Graph attention, any graph": attention,
    "3 tables beside each other": lambda: columns(3),
    "8 tables beside each other": lambda: columns(8),
}
"""Programs beside those of `cases.py`."""


def kernels(module: sw.Module) -> list[KernelOp]:
    """The kernels of a program before they are scheduled, each in no module."""
    work = module.clone()
    stages = walk_stages(make_context(work.weights), work.op, pipeline())
    op = next(op for stage, op in stages if stage == "kernels")
    found = [kernel for kernel in op.ops if isinstance(kernel, KernelOp)]
    for kernel in found:
        kernel.detach()
    return found


def scheduled(kernel: KernelOp, target: Target, rounds: int) -> tuple[float, str]:
    """The processor time of scheduling in seconds, and the trace."""
    times, trace = list[float](), ""
    with without_collector():
        for _ in range(rounds):
            copy = kernel.clone()
            start = time.process_time()
            schedule, _ = schedule_kernel(copy, target)
            times.append(time.process_time() - start)
            trace = str(schedule)
    return min(times), trace


def rows(
    name: str, make: Callable[[], sw.Module], *, rounds: int = 7, target: str = "host"
) -> Iterator[Row]:
    """Schedule the kernels of a program, for a machine."""
    for kernel in kernels(make()):
        seconds, trace = scheduled(kernel, named(target), rounds)
        yield {
            "kernel": kernel.sym_name.data,
            "operations": str(sum(1 for _ in kernel.walk()) - 1),
            "steps": str(len(parse_traces(trace).get(None, []))),
            "time": f"{1e3 * seconds:.1f} ms",
        }


def longest(rows: Sequence[Row]) -> str:
    """The kernel that takes longest."""
    row = max(rows, key=lambda row: float(row["time"].removesuffix(" ms")))
    return f"longest: {row['time']}, @{row['kernel']} of {row['program']}"


PROGRAMS = {name: lambda make=make: make().program for name, (make, _) in CASES.items()} | OTHERS
TABLES = [Table("program", PROGRAMS, rows, summary=longest)]
