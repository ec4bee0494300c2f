"""Operators of ONNX one by one, beside onnxruntime.

    python benchmarks/operators.py               # everything, on one thread
    python benchmarks/operators.py --only Pool   # some cases

Single precision; bytes are those of the input and of the result. A ratio is the time of
onnxruntime over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer
from moves import Result, show
from onnx import ModelProto
from peers import OURS, Call, installed, one_node, onnx_runtime

import stepwell as sw
from stepwell.tools.timing import measure

TOLERANCE = 1e-5
"""The largest difference to onnxruntime's result, relative to its largest element."""
IMAGE, MATRIX = (1, 64, 56, 56), (512, 1024)


@dataclass(frozen=True)
class Node:
    """A node, the shape of its first input, and the constants that follow it."""

    kind: str
    shape: tuple[int, ...]
    constants: tuple[np.ndarray, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])

    def model(self) -> ModelProto:
        """The model."""
        return one_node(self.kind, [self.shape], self.constants, self.attributes)

    def module(self) -> sw.Module:
        """The program."""
        return sw.from_onnx(self.model())

    def array(self) -> np.ndarray:
        """The input."""
        return np.random.default_rng(0).standard_normal(self.shape, np.float32)


def normal(*shape: int) -> np.ndarray:
    """Weights."""
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def window(size: int, stride: int = 1, pad: int = 0) -> dict[str, Any]:
    """The attributes of a square window."""
    return {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def conv(channels: int, size: int, filters: int, kernel: int, stride: int, pad: int) -> Node:
    """A convolution of a square image."""
    weights = normal(filters, channels, kernel, kernel)
    return Node("Conv", (1, channels, size, size), (weights,), window(kernel, stride, pad))


def reduction(kind: str, shape: tuple[int, ...], *axes: int) -> Node:
    """A reduction over some axes."""
    return Node(kind, shape, (np.array(axes),), {"keepdims": 0})


NODES: dict[str, Node] = {
    "GlobalAveragePool": Node("GlobalAveragePool", IMAGE),
    "GlobalMaxPool": Node("GlobalMaxPool", IMAGE),
    "AveragePool 2x2, stride 2": Node("AveragePool", IMAGE, (), window(2, 2)),
    "AveragePool 3x3": Node("AveragePool", IMAGE, (), window(3, 1, 1)),
    "MaxPool 2x2, stride 2": Node("MaxPool", IMAGE, (), window(2, 2)),
    "MaxPool 3x3, stride 2": Node("MaxPool", IMAGE, (), window(3, 2, 1)),
    "Conv 1x1": conv(64, 56, 64, 1, 1, 0),
    "Conv 3x3, stride 2": conv(64, 56, 128, 3, 2, 1),
    "Conv 7x7, stride 2": conv(3, 224, 64, 7, 2, 3),
    "Conv 3x3, each channel": Node(
        "Conv", IMAGE, (normal(64, 1, 3, 3),), window(3, 1, 1) | {"group": 64}
    ),
    "ConvTranspose 2x2, stride 2": Node(
        "ConvTranspose", (1, 32, 28, 28), (normal(32, 16, 2, 2),), window(2, 2)
    ),
    "InstanceNormalization": Node("InstanceNormalization", IMAGE, (normal(64), normal(64))),
    "ReduceMean of planes": reduction("ReduceMean", IMAGE, 2, 3),
    "ReduceSum of all": reduction("ReduceSum", MATRIX, 0, 1),
    "ReduceSum of columns": reduction("ReduceSum", MATRIX, 0),
    "ReduceMax of rows": reduction("ReduceMax", MATRIX, 1),
    "ReduceLogSumExp of rows": reduction("ReduceLogSumExp", MATRIX, 1),
    "Softmax of short rows": Node("Softmax", (512, 10), (), {"axis": 1}),
    "Softmax of columns": Node("Softmax", (64, 1024, 4), (), {"axis": 1}),
    "LogSoftmax": Node("LogSoftmax", MATRIX, (), {"axis": 1}),
    "LayerNormalization, one row": Node(
        "LayerNormalization", (1, 768), (normal(768), normal(768)), {"axis": -1}
    ),
    "MatMul, one row": Node("MatMul", (1, 768), (normal(768, 768),)),
    "MatMul, one column": Node("MatMul", (768, 768), (normal(768, 1),)),
    "MatMul, scalar product": Node("MatMul", (100_000,), (normal(100_000),)),
    "Gemm 64 x 100 x 10": Node("Gemm", (64, 100), (normal(10, 100), normal(10)), {"transB": 1}),
    "Exp": Node("Exp", MATRIX),
    "Tanh": Node("Tanh", MATRIX),
    "Erf": Node("Erf", MATRIX),
    "Sigmoid": Node("Sigmoid", MATRIX),
    "Softplus": Node("Softplus", MATRIX),
    "Sin": Node("Sin", MATRIX),
    "Clip": Node("Clip", MATRIX, (np.array(-1, np.float32), np.array(1, np.float32))),
    "Tile": Node("Tile", (64, 64), (np.array([4, 4]),)),
    "Flatten": Node("Flatten", IMAGE),
}


def run(name: str, node: Node, threads: int) -> Result:
    """Time one operator.

    Raises:
        SystemExit: if onnxruntime is not installed, or its result differs.
    """
    if not installed("onnxruntime"):
        raise SystemExit("onnxruntime is not installed, so there is nothing to compare with")
    x = node.array()
    exe = sw.compile(node.module(), threads=threads)
    peer = onnx_runtime(node.model().SerializeToString(), [x], threads)
    calls: dict[str, Call] = {OURS: lambda: exe(x), "onnxruntime": peer}
    ours, other = np.asarray(exe(x)), np.asarray(peer())
    if not np.allclose(ours, other, rtol=0, atol=TOLERANCE * max(1.0, np.abs(other).max())):
        raise SystemExit(f"{name}: onnxruntime has a different result")
    return Result(name, x.nbytes + ours.nbytes, measure(calls))


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
) -> None:
    """Print the table."""
    show("operator", NODES, run, threads, only)


if __name__ == "__main__":
    typer.run(main)
