"""Operators one by one, beside onnxruntime and PyTorch.

    python benchmarks/operators.py               # everything, on one thread
    python benchmarks/operators.py --only Pool   # some cases

Single precision; bytes are those of the inputs and of the result, and the limit is a read of as
many. A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from harness import Case, command, run
from onnx import ModelProto
from peers import Call, in_onnxruntime, in_torch, one_node

import stepwell as sw

IMAGE, MATRIX = (1, 64, 56, 56), (512, 1024)


@dataclass(frozen=True)
class Places:
    """An input of random integers from 0 on, below a number."""

    shape: tuple[int, ...]
    below: int


@dataclass(frozen=True)
class Sorted:
    """An input of a row of sorted numbers."""

    size: int


@dataclass(frozen=True)
class Offsets:
    """An input of offsets that divide rows into segments of random sizes."""

    segments: int
    rows: int


Input = tuple[int, ...] | Places | Offsets | Sorted
"""The shape of normally distributed numbers, or integers."""


@dataclass(frozen=True)
class Operator(Case):
    """An operator on inputs; `torch` is the same in PyTorch."""

    inputs: tuple[Input, ...]
    torch: Callable[..., Any] | None = field(default=None, kw_only=True)
    reads_all: bool = field(default=True, kw_only=True)
    """Whether all elements of the inputs are read, not just as many as there are results."""

    def arrays(self) -> list[np.ndarray]:
        """The inputs."""
        rng = np.random.default_rng(0)
        return [_random(rng, spec) for spec in self.inputs]

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        """The peers that are installed, each on the inputs."""
        return {} if self.torch is None else in_torch(self.torch, arrays, threads)

    def moved(self, arrays: Sequence[np.ndarray], result: np.ndarray) -> int:
        """The bytes that have to be read and written."""
        if self.reads_all:
            return super().moved(arrays, result)
        return 2 * result.nbytes + sum(a.nbytes for a in arrays if a.dtype.kind == "i")


def _random(rng: np.random.Generator, spec: Input) -> np.ndarray:
    if isinstance(spec, Places):
        return rng.integers(0, spec.below, spec.shape)
    if isinstance(spec, Offsets):
        inner = np.sort(rng.integers(0, spec.rows + 1, spec.segments - 1))
        return np.array([0, *inner, spec.rows])
    if isinstance(spec, Sorted):
        return np.sort(rng.standard_normal(spec.size, np.float32))
    return rng.standard_normal(spec, np.float32)


@dataclass(frozen=True)
class Node(Operator):
    """A node of ONNX; the constants follow the inputs."""

    kind: str
    constants: tuple[np.ndarray, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])

    def model(self) -> ModelProto:
        """The model."""
        return one_node(self.kind, self.arrays(), self.constants, self.attributes)

    def module(self) -> sw.Module:
        """The program."""
        return sw.from_onnx(self.model())

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        """The peers that are installed, onnxruntime among them."""
        return super().peers(arrays, threads) | in_onnxruntime(self.model(), arrays, threads)


@dataclass(frozen=True)
class Built(Operator):
    """An operator that onnxruntime does not have; `build` adds it to a program."""

    build: Callable[..., Any]

    def module(self) -> sw.Module:
        """The program."""
        b, given = sw.Builder("main"), list[Any]()
        for number, array in enumerate(self.arrays()):
            kind = "i64" if array.dtype.kind == "i" else "f32"
            given.append(b.input(f"x{number}", array.shape, kind))
        b.output(self.build(b, *given), name="y")
        return b.module()


def unary(
    kind: str,
    shape: tuple[int, ...],
    constants: tuple[np.ndarray, ...] = (),
    attributes: dict[str, Any] | None = None,
) -> Node:
    """A node with one input."""
    return Node((shape,), kind, constants, attributes or {})


def normal(*shape: int) -> np.ndarray:
    """Weights."""
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def window(size: int, stride: int = 1, pad: int = 0) -> dict[str, Any]:
    """The attributes of a square window."""
    return {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def conv(channels: int, size: int, filters: int, kernel: int, stride: int, pad: int) -> Node:
    """A convolution of a square image."""
    weights = normal(filters, channels, kernel, kernel)
    return unary("Conv", (1, channels, size, size), (weights,), window(kernel, stride, pad))


def reduction(kind: str, shape: tuple[int, ...], *axes: int) -> Node:
    """A reduction over some axes."""
    return unary(kind, shape, (np.array(axes),), {"keepdims": 0})


def scatter_of_rows(count: int, places: int) -> Node:
    """Rows of 64 numbers added to rows of a matrix."""
    return Node(
        ((places, 64), Places((count, 1), places), (count, 64)),
        "ScatterND",
        (),
        {"reduction": "add"},
        torch=lambda x, i, u: x.index_add(0, i[:, 0], u),
    )


def scatter_of_elements(count: int, places: int) -> Node:
    """Numbers added to elements of a vector."""
    return Node(
        ((places,), Places((count,), places), (count,)),
        "ScatterElements",
        (),
        {"reduction": "add"},
        torch=lambda x, i, u: x.index_add(0, i, u),
    )


def segments(rows: int, count: int, *width: int) -> Built:
    """Sums of some of the rows of a matrix that follow each other."""

    def in_torch(x: Any, offsets: Any) -> Any:
        import torch

        return torch.segment_reduce(x, "sum", offsets=offsets, axis=0)

    shape = (rows, *width)
    return Built((shape, Offsets(count, rows)), lambda b, *x: b.segment_reduce(*x), torch=in_torch)


def histogram(count: int, bins: int, weighted: bool = False) -> Built:
    """Counts of integers, or sums of their weights."""
    inputs: tuple[Input, ...] = (Places((count,), bins), *([(count,)] if weighted else []))

    def in_torch(*inputs: Any) -> Any:
        import torch

        return torch.bincount(*inputs, minlength=bins)

    def build(b: Any, x: Any, weights: Any = None) -> Any:
        return b.histogram(x, bins=bins, weights=weights)

    return Built(inputs, build, torch=in_torch)


def one_hot_in_torch(indices: Any) -> Any:
    """A one in each row of zeros."""
    import torch

    return torch.zeros(len(indices), 256).scatter_(1, indices[:, None], 1.0)


def sorting(*shape: int) -> Built:
    """The sorted elements of rows."""
    return Built(
        (shape,), lambda b, x: b.sort(x)[0], torch=lambda x: x.sort(dim=1, stable=True).values
    )


def argsort(*shape: int) -> Built:
    """Where the sorted elements of rows come from."""
    return Built((shape,), lambda b, x: b.sort(x)[1], torch=lambda x: x.argsort(stable=True, dim=1))


def top_k(k: int, *shape: int) -> Node:
    """The largest elements of rows, and where they come from."""
    return Node((shape,), "TopK", (np.array([k]),), torch=lambda x: x.topk(k).values)


def search(size: int, count: int) -> Built:
    """The places of random numbers in a sorted row."""

    def in_torch(row: Any, values: Any) -> Any:
        import torch

        return torch.searchsorted(row, values)

    return Built((Sorted(size), (count,)), lambda b, *x: b.searchsorted(*x), torch=in_torch)


FLAT = {"keepdims": 0}
OPERATORS: dict[str, Operator] = {
    "GlobalAveragePool": unary("GlobalAveragePool", IMAGE),
    "GlobalMaxPool": unary("GlobalMaxPool", IMAGE),
    "AveragePool 2x2, stride 2": unary("AveragePool", IMAGE, (), window(2, 2)),
    "AveragePool 3x3": unary("AveragePool", IMAGE, (), window(3, 1, 1)),
    "MaxPool 2x2, stride 2": unary("MaxPool", IMAGE, (), window(2, 2)),
    "MaxPool 3x3, stride 2": unary("MaxPool", IMAGE, (), window(3, 2, 1)),
    "Conv 1x1": conv(64, 56, 64, 1, 1, 0),
    "Conv 3x3, stride 2": conv(64, 56, 128, 3, 2, 1),
    "Conv 7x7, stride 2": conv(3, 224, 64, 7, 2, 3),
    "Conv 3x3, each channel": unary(
        "Conv", IMAGE, (normal(64, 1, 3, 3),), window(3, 1, 1) | {"group": 64}
    ),
    "ConvTranspose 2x2, stride 2": unary(
        "ConvTranspose", (1, 32, 28, 28), (normal(32, 16, 2, 2),), window(2, 2)
    ),
    "InstanceNormalization": unary("InstanceNormalization", IMAGE, (normal(64), normal(64))),
    "ReduceMean of planes": reduction("ReduceMean", IMAGE, 2, 3),
    "ReduceSum of all": reduction("ReduceSum", MATRIX, 0, 1),
    "ReduceSum of columns": reduction("ReduceSum", MATRIX, 0),
    "ReduceMax of rows": reduction("ReduceMax", MATRIX, 1),
    "ReduceLogSumExp of rows": reduction("ReduceLogSumExp", MATRIX, 1),
    "Softmax of short rows": unary("Softmax", (512, 10), (), {"axis": 1}),
    "Softmax of columns": unary("Softmax", (64, 1024, 4), (), {"axis": 1}),
    "LogSoftmax": unary("LogSoftmax", MATRIX, (), {"axis": 1}),
    "LayerNormalization, one row": unary(
        "LayerNormalization", (1, 768), (normal(768), normal(768)), {"axis": -1}
    ),
    "MatMul, one row": unary("MatMul", (1, 768), (normal(768, 768),)),
    "MatMul, one column": unary("MatMul", (768, 768), (normal(768, 1),)),
    "MatMul, scalar product": unary("MatMul", (100_000,), (normal(100_000),)),
    "Gemm 64 x 100 x 10": unary("Gemm", (64, 100), (normal(10, 100), normal(10)), {"transB": 1}),
    "Exp": unary("Exp", MATRIX),
    "Tanh": unary("Tanh", MATRIX),
    "Erf": unary("Erf", MATRIX),
    "Sigmoid": unary("Sigmoid", MATRIX),
    "Softplus": unary("Softplus", MATRIX),
    "Sin": unary("Sin", MATRIX),
    "Clip": unary("Clip", MATRIX, (np.array(-1, np.float32), np.array(1, np.float32))),
    "Tile": unary("Tile", (64, 64), (np.array([4, 4]),)),
    "Flatten": unary("Flatten", IMAGE),
    "CumSum of rows": Node((MATRIX,), "CumSum", (np.array(1),), torch=lambda x: x.cumsum(1)),
    "CumSum of columns": Node((MATRIX,), "CumSum", (np.array(0),), torch=lambda x: x.cumsum(0)),
    "CumProd of rows": Built(
        (MATRIX,), lambda b, x: b.cumulative(x, kind="prod"), torch=lambda x: x.cumprod(1)
    ),
    "ArgMax of rows": Node(
        (MATRIX,), "ArgMax", (), FLAT | {"axis": 1}, torch=lambda x: x.argmax(1)
    ),
    "ArgMax of columns": Node(
        (MATRIX,), "ArgMax", (), FLAT | {"axis": 0}, torch=lambda x: x.argmax(0)
    ),
    "Gather of rows": Node(
        ((30_000, 256), Places((4096,), 30_000)),
        "Gather",
        torch=lambda x, i: x.index_select(0, i),
        reads_all=False,
    ),
    "GatherElements": Node(
        (MATRIX, Places(MATRIX, 1024)),
        "GatherElements",
        (),
        {"axis": 1},
        torch=lambda x, i: x.gather(1, i),
    ),
    "GatherND of elements": Node(
        (MATRIX, Places((200_000, 2), 512)),
        "GatherND",
        torch=lambda x, i: x[i[:, 0], i[:, 1]],
        reads_all=False,
    ),
    "ScatterElements": Node(
        (MATRIX, Places(MATRIX, 1024), MATRIX),
        "ScatterElements",
        (),
        {"axis": 1, "reduction": "add"},
        torch=lambda x, i, u: x.scatter_add(1, i, u),
    ),
    "ScatterElements of columns": Node(
        (MATRIX, Places(MATRIX, 512), MATRIX),
        "ScatterElements",
        (),
        {"axis": 0, "reduction": "add"},
        torch=lambda x, i, u: x.scatter_add(0, i, u),
    ),
    "ScatterElements of one dimension": scatter_of_elements(1_000_000, 100_000),
    "ScatterND, 10,000 rows": scatter_of_rows(10_000, 2000),
    "ScatterND, 1,000,000 rows": scatter_of_rows(1_000_000, 100_000),
    "segment sums, 10,000 rows": segments(10_000, 2000, 64),
    "segment sums, 1,000,000 rows": segments(1_000_000, 100_000, 64),
    "segment sums of numbers": segments(1_000_000, 100_000),
    "histogram, 256 bins": histogram(1_000_000, 256),
    "histogram, 100,000 bins": histogram(1_000_000, 100_000),
    "histogram of weights": histogram(1_000_000, 256, weighted=True),
    "Sort of one row": sorting(1, 1_000_000),
    "Sort of rows": sorting(4096, 1024),
    "Sort of short rows": sorting(64, 100),
    "Argsort of one row": argsort(1, 1_000_000),
    "Argsort of rows": argsort(4096, 1024),
    "Argsort of short rows": argsort(64, 100),
    "TopK, 10 of 1024": top_k(10, 512, 1024),
    "TopK, 10 of 100,000": top_k(10, 1, 100_000),
    "TopK, 1000 of 100,000": top_k(1000, 1, 100_000),
    "searches in 100 numbers": search(100, 1_000_000),
    "searches in 100,000 numbers": search(100_000, 1_000_000),
    "OneHot": Node(
        (Places((4096,), 256),),
        "OneHot",
        (np.array(256), np.array([0, 1], np.float32)),
        torch=one_hot_in_torch,
    ),
}


if __name__ == "__main__":
    command("operator", OPERATORS, run)
