"""Operators one by one, beside onnxruntime and PyTorch.

Single precision; bytes are those of the inputs and of the result, and the limit is a read of as
many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from harness import Case, Make, Table, run
from models import built
from onnx_writer import Node

IMAGE, MATRIX = (1, 64, 56, 56), (512, 1024)
Input = tuple[int, ...] | Callable[[np.random.Generator], np.ndarray]
"""The shape of normally distributed numbers, or what makes other ones."""


def places(below: int, *shape: int) -> Input:
    """Random integers from 0 on, below a number."""
    return lambda rng: rng.integers(0, below, shape)


def operator(
    inputs: Sequence[Input],
    node: Node | None = None,
    build: Callable[..., Any] | None = None,
    torch: Callable[..., Any] | None = None,
    numpy: Callable[..., np.ndarray] | None = None,
    **options: Any,
) -> Make:
    """An operator on random inputs, and the same in peers.

    Args:
        inputs: the inputs.
        node: the operator in ONNX.
        build: adds it to a program; by default the program is that of the node.
        torch: the operator in PyTorch, given the module and tensors.
        numpy: the operator in NumPy.
        options: further ones of a case.
    """

    def make() -> Case:
        rng = np.random.default_rng(0)
        arrays = [
            rng.standard_normal(spec, np.float32) if isinstance(spec, tuple) else spec(rng)
            for spec in inputs
        ]
        return Case(
            arrays,
            node and node.model(arrays),
            build and built(build, *arrays),
            torch=torch,
            others=lambda threads: {"numpy": partial(numpy, *arrays)} if numpy else {},
            flops=0,
            **options,
        )

    return make


def onnx(
    kind: str,
    *inputs: Input,
    constants: Sequence[np.ndarray] = (),
    torch: Callable[..., Any] | None = None,
    reads_all: bool = True,
    **attributes: Any,
) -> Make:
    """A node of ONNX; the constants follow the inputs."""
    node = Node(kind, attributes, tuple(constants))
    return operator(inputs, node, torch=torch, reads_all=reads_all)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def window(size: int, stride: int = 1, pad: int = 0) -> dict[str, Any]:
    return {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def conv(channels: int, size: int, filters: int, kernel: int, stride: int, pad: int) -> Make:
    weights = normal(filters, channels, kernel, kernel)
    image = (1, channels, size, size)
    return onnx("Conv", image, constants=[weights], **window(kernel, stride, pad))


def reduction(kind: str, shape: tuple[int, ...], *axes: int) -> Make:
    return onnx(kind, shape, constants=[np.array(axes)], keepdims=0)


def scattered(kind: str, indices: Input, count: int, *shape: int) -> Make:
    """Rows or numbers that are added at random places of the first axis."""

    def in_torch(t: Any, x: Any, i: Any, u: Any) -> Any:
        return x.index_add(0, i.flatten(), u)

    updates = (count, *shape[1:])
    return onnx(kind, shape, indices, updates, torch=in_torch, reduction="add")


def segments(rows: int, count: int, *width: int) -> Make:
    """Sums of some of the rows of a matrix that follow each other, in segments of random sizes."""

    def offsets(rng: np.random.Generator) -> np.ndarray:
        return np.array([0, *np.sort(rng.integers(0, rows + 1, count - 1)), rows])

    return operator(
        ((rows, *width), offsets),
        build=lambda b, *x: b.segment_reduce(*x),
        torch=lambda t, x, ends: t.segment_reduce(x, "sum", offsets=ends, axis=0),
    )


def histogram(count: int, bins: int, *weights: Input) -> Make:
    """Counts of integers, or sums of their weights."""
    return operator(
        (places(bins, count), *weights),
        build=lambda b, x, w=None: b.histogram(x, bins=bins, weights=w),
        torch=lambda t, *x: t.bincount(*x, minlength=bins),
    )


def sort(result: int, *shape: int) -> Make:
    """The sorted elements of rows, or where they come from."""
    return operator(
        (shape,),
        build=lambda b, x: b.sort(x)[result],
        torch=lambda t, x: x.sort(dim=1, stable=True)[result],
    )


def top_k(k: int, *shape: int) -> Make:
    return onnx("TopK", shape, constants=[np.array([k])], torch=lambda t, x: x.topk(k).values)


def search(size: int, count: int) -> Make:
    """The places of random numbers in a sorted row."""
    return operator(
        (lambda rng: np.sort(rng.standard_normal(size, np.float32)), (count,)),
        build=lambda b, *x: b.searchsorted(*x),
        torch=lambda t, row, values: t.searchsorted(row, values),
    )


CASES: dict[str, Make] = {
    "GlobalAveragePool": onnx("GlobalAveragePool", IMAGE),
    "GlobalMaxPool": onnx("GlobalMaxPool", IMAGE),
    "AveragePool 2x2, stride 2": onnx("AveragePool", IMAGE, **window(2, 2)),
    "AveragePool 3x3": onnx("AveragePool", IMAGE, **window(3, 1, 1)),
    "MaxPool 2x2, stride 2": onnx("MaxPool", IMAGE, **window(2, 2)),
    "MaxPool 3x3, stride 2": onnx("MaxPool", IMAGE, **window(3, 2, 1)),
    "Conv 1x1": conv(64, 56, 64, 1, 1, 0),
    "Conv 3x3, stride 2": conv(64, 56, 128, 3, 2, 1),
    "Conv 7x7, stride 2": conv(3, 224, 64, 7, 2, 3),
    "Conv 3x3, each channel": onnx(
        "Conv", IMAGE, constants=[normal(64, 1, 3, 3)], **window(3, 1, 1), group=64
    ),
    "ConvTranspose 2x2, stride 2": onnx(
        "ConvTranspose", (1, 32, 28, 28), constants=[normal(32, 16, 2, 2)], **window(2, 2)
    ),
    "InstanceNormalization": onnx(
        "InstanceNormalization", IMAGE, constants=[normal(64), normal(64)]
    ),
    "ReduceMean of planes": reduction("ReduceMean", IMAGE, 2, 3),
    "ReduceSum of all": reduction("ReduceSum", MATRIX, 0, 1),
    "ReduceSum of columns": reduction("ReduceSum", MATRIX, 0),
    "ReduceMax of rows": reduction("ReduceMax", MATRIX, 1),
    "ReduceLogSumExp of rows": reduction("ReduceLogSumExp", MATRIX, 1),
    "Softmax of short rows": onnx("Softmax", (512, 10), axis=1),
    "Softmax of columns": onnx("Softmax", (64, 1024, 4), axis=1),
    "LogSoftmax": onnx("LogSoftmax", MATRIX, axis=1),
    "LayerNormalization, one row": onnx(
        "LayerNormalization", (1, 768), constants=[normal(768), normal(768)], axis=-1
    ),
    "MatMul, one row": onnx("MatMul", (1, 768), constants=[normal(768, 768)]),
    "MatMul, one column": onnx("MatMul", (768, 768), constants=[normal(768, 1)]),
    "MatMul, scalar product": onnx("MatMul", (100_000,), constants=[normal(100_000)]),
    "Gemm 64 x 100 x 10": onnx(
        "Gemm", (64, 100), constants=[normal(10, 100), normal(10)], transB=1
    ),
    "Exp": onnx("Exp", MATRIX),
    "Tanh": onnx("Tanh", MATRIX),
    "Erf": onnx("Erf", MATRIX),
    "Sigmoid": onnx("Sigmoid", MATRIX),
    "Softplus": onnx("Softplus", MATRIX),
    "Sin": onnx("Sin", MATRIX),
    "Clip": onnx("Clip", MATRIX, constants=[np.array(n, np.float32) for n in (-1, 1)]),
    "Tile": onnx("Tile", (64, 64), constants=[np.array([4, 4])]),
    "Flatten": onnx("Flatten", IMAGE),
    "CumSum of rows": onnx(
        "CumSum", MATRIX, constants=[np.array(1)], torch=lambda t, x: x.cumsum(1)
    ),
    "CumSum of columns": onnx(
        "CumSum", MATRIX, constants=[np.array(0)], torch=lambda t, x: x.cumsum(0)
    ),
    "CumProd of rows": operator(
        (MATRIX,),
        build=lambda b, x: b.cumulative(x, kind="prod"),
        torch=lambda t, x: x.cumprod(1),
    ),
    "ArgMax of rows": onnx("ArgMax", MATRIX, torch=lambda t, x: x.argmax(1), axis=1, keepdims=0),
    "ArgMax of columns": onnx("ArgMax", MATRIX, torch=lambda t, x: x.argmax(0), axis=0, keepdims=0),
    "Gather of rows": onnx(
        *("Gather", (30_000, 256), places(30_000, 4096)),
        torch=lambda t, x, i: x.index_select(0, i),
        reads_all=False,
    ),
    "GatherElements": onnx(
        *("GatherElements", MATRIX, places(1024, *MATRIX)),
        torch=lambda t, x, i: x.gather(1, i),
        axis=1,
    ),
    "GatherND of elements": onnx(
        *("GatherND", MATRIX, places(512, 200_000, 2)),
        torch=lambda t, x, i: x[i[:, 0], i[:, 1]],
        reads_all=False,
    ),
    "ScatterElements": onnx(
        *("ScatterElements", MATRIX, places(1024, *MATRIX), MATRIX),
        torch=lambda t, x, i, u: x.scatter_add(1, i, u),
        axis=1,
        reduction="add",
    ),
    "ScatterElements of columns": onnx(
        *("ScatterElements", MATRIX, places(512, *MATRIX), MATRIX),
        torch=lambda t, x, i, u: x.scatter_add(0, i, u),
        axis=0,
        reduction="add",
    ),
    "ScatterElements of one dimension": scattered(
        "ScatterElements", places(100_000, 1_000_000), 1_000_000, 100_000
    ),
    "ScatterND, 10,000 rows": scattered("ScatterND", places(2000, 10_000, 1), 10_000, 2000, 64),
    "ScatterND, 1,000,000 rows": scattered(
        "ScatterND", places(100_000, 1_000_000, 1), 1_000_000, 100_000, 64
    ),
    "segment sums, 10,000 rows": segments(10_000, 2000, 64),
    "segment sums, 1,000,000 rows": segments(1_000_000, 100_000, 64),
    "segment sums of numbers": segments(1_000_000, 100_000),
    "histogram, 256 bins": histogram(1_000_000, 256),
    "histogram, 100,000 bins": histogram(1_000_000, 100_000),
    "histogram of weights": histogram(1_000_000, 256, (1_000_000,)),
    "Sort of one row": sort(0, 1, 1_000_000),
    "Sort of rows": sort(0, 4096, 1024),
    "Sort of short rows": sort(0, 64, 100),
    "Argsort of one row": sort(1, 1, 1_000_000),
    "Argsort of rows": sort(1, 4096, 1024),
    "Argsort of short rows": sort(1, 64, 100),
    "TopK, 10 of 1024": top_k(10, 512, 1024),
    "TopK, 10 of 100,000": top_k(10, 1, 100_000),
    "TopK, 1000 of 100,000": top_k(1000, 1, 100_000),
    "searches in 100 numbers": search(100, 1_000_000),
    "searches in 100,000 numbers": search(100_000, 1_000_000),
    "OneHot": onnx(
        *("OneHot", places(256, 4096)),
        constants=[np.array(256), np.array([0, 1], np.float32)],
        torch=lambda t, i: t.zeros(len(i), 256).scatter_(1, i[:, None], 1.0),
    ),
}
TABLES = [Table("operator", CASES, run)]
