"""Convolutions and pools of ATen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.parts import mean_of_parts
from ...importing.shapes import product_along, reshaped
from ...importing.values import Value
from ...importing.windows import Axis, convolved, counts_along, mean_pooled, pooled, transposed_conv
from ..nodes import Node
from ..registry import converts


@converts("aten.convolution.default")
def convolution(
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    window = [node.integer(size, "a filter") for size in w.shape[2:]]
    lone = x.rank == w.rank - 1  # without a dimension of the batch
    if lone:
        x = reshaped(node, x, [Dim.of(1), *x.shape])
    axes = axes_of(node, x, window, stride, padding, dilation)
    if transposed:
        spread = each(output_padding, len(axes))
        y = transposed_conv(node, x, w, bias, axes, spread, groups)
    else:
        y = convolved(node, x, w, bias, axes, groups)
    return reshaped(node, y, y.shape[1:]) if lone else y


def each(numbers: Sequence[int], count: int) -> list[int]:
    """A number for each axis: one stands for all."""
    return list(numbers) if len(numbers) == count else [numbers[0]] * count


def axes_of(
    node: Node,
    x: Value,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[Axis]:
    count = len(window)
    moves = zip(
        x.shape[x.rank - count :],
        window,
        each(stride, count),
        each(dilation, count),
        each(padding, count),
        strict=True,
    )
    return [Axis(size, n, step, gap, pad, pad) for size, n, step, gap, pad in moves]


# Pools


@converts("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")
def max_pool(node: Node, x: Value, *settings: Any) -> Value:
    return pooled(node, x, max_pool_axes(node, x, *settings), "max")


def max_pool_axes(
    node: Node,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> list[Axis]:
    """The movement of the windows of a pool."""
    window = each(kernel_size, spatial(node))
    axes = axes_of(node, x, window, stride or window, padding, dilation)
    return [axis.rounded_up() for axis in axes] if ceil_mode else axes


def spatial(node: Node) -> int:
    """The number of dimensions of the windows, which is in the name of the operator."""
    return next(n for n in (1, 2, 3) if f"{n}d" in node.subject)


@converts("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    node: Node,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    settings = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return mean_pooled(node, x, *averaging(node, x, *settings))


def averaging(
    node: Node,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[list[Axis], list[np.ndarray | Value]]:
    """The windows of an average pool, and for each axis the factors of their divisors."""
    window = each(kernel_size, spatial(node))
    axes = axes_of(node, x, window, stride or window, padding, (1,))
    ends = [axis.high for axis in axes]
    if ceil_mode:
        axes = [axis.rounded_up() for axis in axes]
    if divisor_override is not None:
        return axes, [np.array([n]) for n in (divisor_override, *[1] * (len(axes) - 1))]
    # Padding for ceil_mode never counts.
    counted = [
        (axis.low, end) if count_include_pad else (0, 0)
        for axis, end in zip(axes, ends, strict=True)
    ]
    return axes, [
        counts_along(node, axis, *ends, x.dtype) for axis, ends in zip(axes, counted, strict=True)
    ]


@converts(
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
    "aten.adaptive_avg_pool1d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(node: Node, x: Value, output_size: Sequence[Any]) -> Value:
    count = spatial(node)
    sizes = [node.integer(size, "a result") for size in each(output_size, count)]
    first = x.rank - count
    if all(size == 1 for size in sizes):
        axes = list(range(first, x.rank))
        return node.reduce(x, kind="mean", axes=axes, keepdims=True)
    for offset, size in enumerate(sizes):
        x = _divided(node, x, first + offset, size)
    return x


def _divided(node: Node, x: Value, axis: int, parts: int) -> Value:
    """The means of so many parts of an axis, which overlap where they do not divide its size."""
    if not x.shape[axis].is_static:
        return mean_of_parts(node, x, axis, parts)
    size = x.shape[axis].value
    if size == parts:
        return x
    if size % parts == 0:
        shape = [*x.shape[:axis], Dim.of(parts), Dim.of(size // parts), *x.shape[axis + 1 :]]
        apart = reshaped(node, x, shape)
        return node.reduce(apart, kind="mean", axes=[axis + 1], keepdims=False)
    weights = means_of_parts(size, parts).astype(x.dtype)
    return product_along(node, x, axis, node.known(weights))


def means_of_parts(size: int, parts: int) -> np.ndarray:
    """The matrix that takes an axis to the means of its parts: [size, parts]."""
    weights = np.zeros((size, parts))
    for part in range(parts):
        start, end = part * size // parts, math.ceil((part + 1) * size / parts)
        weights[start:end, part] = 1 / (end - start)
    return weights
