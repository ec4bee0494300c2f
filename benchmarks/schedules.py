"""The time to make the default schedule of each kernel.

The kernels are those of the programs in `cases.py`, and of others, most of them with unknown sizes.
The time is the processor time of `schedule_kernel` on a kernel in no module, the minimum of several
runs in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cases import CASES
from harness import Row, Table
from models import Weights, built, perceptron
from symbolic_batch import convolution, layer_norm, softmax

import stepwell as sw
from stepwell.core.collector import without_collector
from stepwell.core.target import Target, named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace_text import parse_traces
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.frontends.builder import Value
from stepwell.passes.loop.schedule import schedule_kernel


def products(b: sw.Builder, x: Value, y: Value) -> Value:
    return b.matmul(x, y)


def columns(b: sw.Builder, *tables: Value) -> Value:
    return b.exp(b.concat(tables, axis=1))


def attention() -> sw.Module:
    """A graph attention layer of 4 heads, its graph an input of any size."""
    layer = gnn.GATConv(*map(Weights().array, (64, 4, 4), (64, 16, 16)))
    return gnn.Sequential(layer).to_module(gnn.GraphSpec(), sw.TensorSpec((None, 64), "f32"))


OTHERS: dict[str, Callable[[], sw.Module]] = {
    "MLP 784-128-10, any batch": partial(perceptron, "batch", 784, 128, 10),
    "MLP 1024 x 4, any batch": partial(perceptron, "batch", *[1024] * 4),
    "MLP 4096-4096-4096-1000, any batch": partial(perceptron, "batch", 4096, 4096, 4096, 1000),
    "Product 512 x 512": partial(built, products, (512, 512), (512, 512)),
    "Product of any size": partial(built, products, ("m", "k"), ("k", "n")),
    "Products of a batch of 8": partial(built, products, (8, 100, 64), (8, 64, 100)),
    "Products of any batch": partial(built, products, ("batch", 100, 64), ("batch", 64, 100)),
    "Convolution 3x3, any batch": partial(built, convolution, ("batch", 32, 28, 28)),
    "Softmax, any rows": partial(built, softmax, ("rows", 1024)),
    "Layer norm, any rows": partial(built, layer_norm, ("rows", 1024)),
    "Gelu, any rows": partial(built, lambda b, x: b.gelu(x), ("rows", 1024)),
    "Graph attention, any graph": attention,
    "3 tables beside each other": partial(built, columns, *[(40, 7)] * 3),
    "8 tables beside each other": partial(built, columns, *[(40, 7)] * 8),
}
"""Programs beside those of `cases.py`."""


def kernels(module: sw.Module) -> list[KernelOp]:
    """The kernels of a program before they are scheduled, each in no module."""
    work = Compilation.of(Request(module, threads=1)).at("kernels")
    found = [kernel for kernel in work.op.ops if isinstance(kernel, KernelOp)]
    for kernel in found:
        kernel.detach()
    return found


def scheduled(kernel: KernelOp, target: Target, rounds: int) -> tuple[float, str]:
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
    for kernel in kernels(make()):
        seconds, trace = scheduled(kernel, named(target), rounds)
        yield {
            "kernel": kernel.sym_name.data,
            "operations": str(sum(1 for _ in kernel.walk()) - 1),
            "steps": str(len(parse_traces(trace).get(None, []))),
            "time": f"{1e3 * seconds:.1f} ms",
        }


def longest(rows: Sequence[Row]) -> str:
    row = max(rows, key=lambda row: float(row["time"].removesuffix(" ms")))
    return f"longest: {row['time']}, @{row['kernel']} of {row['program']}"


PROGRAMS = {name: lambda make=make: make().program for name, make in CASES.items()} | OTHERS
TABLES = [Table("program", PROGRAMS, rows, summary=longest)]
