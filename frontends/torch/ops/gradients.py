"""Gradients of convolutions and pools of ATen; torch decomposes those of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.selection import by_rows, sliced, whole
from ...importing.shapes import broadcast, product_along, reshaped, transposed
from ...importing.values import Value
from ...importing.windows import Axis, divisor_of, padded_axes, rests_of, transposed_conv, unpooled
from ..nodes import Node
from ..registry import converts
from .window import averaging, axes_of, means_of_parts, spatial


@converts("aten.convolution_backward.default")
def convolution_backward(
    node: Node,
    gradient: Value,
    x: Value,
    w: Value,
    bias_sizes: Sequence[Any] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    is_transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> list[Value | None]:
    """The gradients of x, of the filters and of the bias, as far as they are wanted."""
    window = [node.integer(size, "a filter") for size in w.shape[2:]]
    # A transposed convolution is the gradient of one from its results to its operand.
    image, result = (gradient, x) if is_transposed else (x, gradient)
    axes = axes_of(node, image, window, stride, padding, dilation)
    of_x = of_w = of_bias = None
    if wanted[0] and is_transposed:
        of_x = node.conv(
            padded_axes(node, gradient, axes, 0),
            w,
            strides=[axis.stride for axis in axes],
            dilations=[axis.dilation for axis in axes],
            groups=groups,
        )
    elif wanted[0]:
        # Transposed, it is as large as the image, whose last elements no window may have.
        sizes = zip(axes, gradient.shape[2:], strict=True)
        moved = [replace(axis, size=size) for axis, size in sizes]
        of_x = transposed_conv(node, gradient, w, None, moved, rests_of(node, axes), groups)
    if wanted[1]:
        of_w = _of_filters(node, image, result, axes, groups)
    if wanted[2]:
        over = [0, *range(2, gradient.rank)]
        of_bias = node.reduce(gradient, kind="sum", axes=over, keepdims=False)
    return [of_x, of_w, of_bias]


def _of_filters(node: Node, x: Value, gradient: Value, axes: Sequence[Axis], groups: int) -> Value:
    """The gradient of the filters, [M, C/groups, *window]."""
    # sum over n, p of x[n, c, p * stride + k * dilation] * dy[n, m, p]: a convolution whose images
    # are the channels, and whose channels are the images; strides and dilations change places.
    images, channels = x.shape[:2]
    own = channels.exact_div(groups)
    if own is None:
        raise node.broken("groups do not divide the channels", "a divisor", groups)
    wide = padded_axes(node, x, axes, 0)
    apart = reshaped(node, wide, [images, Dim.of(groups), own, *wide.shape[2:]])
    moved = transposed(node, apart, [2, 1, 0, *range(3, apart.rank)])
    moved = reshaped(node, moved, [own, images * groups, *wide.shape[2:]])
    order = [1, 0, *range(2, gradient.rank)]
    found = node.conv(
        moved,
        transposed(node, gradient, order),
        strides=[axis.dilation for axis in axes],
        dilations=[axis.stride for axis in axes],
        groups=groups,
    )
    parts = whole(found)
    parts[2:] = [(0, axis.window, 1) for axis in axes]
    return transposed(node, sliced(node, found, parts), order)


@converts(
    "aten.max_pool2d_with_indices_backward.default",
    "aten.max_pool3d_with_indices_backward.default",
)
def max_pool_backward(node: Node, gradient: Value, x: Value, *settings: Any) -> Value:
    return _to_places(node, gradient, x, settings[-1])


@converts("aten.adaptive_max_pool2d_backward.default", "aten.adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(node: Node, gradient: Value, x: Value, places: Value) -> Value:
    return _to_places(node, gradient, x, places)


def _to_places(node: Node, gradient: Value, x: Value, places: Value) -> Value:
    """Zeros with each gradient added at its place in the image."""
    first = x.rank - spatial(node)
    parts = [
        reshaped(node, part, [*x.shape[:first], product(part.shape[first:])])
        for part in (gradient, places)
    ]
    zero = node.known(np.zeros((), gradient.dtype))
    zeros = broadcast(node, zero, [*x.shape[:first], product(x.shape[first:])])
    found = node.scatter_elements(zeros, parts[1], parts[0], axis=first, kind="add")
    return reshaped(node, found, x.shape)


@converts("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    node: Node,
    gradient: Value,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    axes, counts = averaging(
        node, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    divisor = divisor_of(node, counts, gradient.dtype)
    return unpooled(node, node.div(gradient, divisor), axes)


@converts(
    "aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default"
)
def adaptive_avg_pool_backward(node: Node, gradient: Value, x: Value) -> Value:
    count = spatial(node)
    first = x.rank - count
    if all(size == 1 for size in gradient.shape[first:]):
        elements = node.operand(product(x.shape[first:]), gradient.dtype)
        return broadcast(node, node.div(gradient, elements), x.shape)
    for axis in range(first, x.rank):
        sizes = [node.integer(y.shape[axis], "a size of an adaptive pool") for y in (x, gradient)]
        gradient = _spread(node, gradient, axis, *sizes)
    return gradient


def _spread(node: Node, gradient: Value, axis: int, size: int, parts: int) -> Value:
    """The gradient of the means of the parts of an axis."""
    if size == parts:
        return gradient
    weights = node.known(means_of_parts(size, parts).T.astype(gradient.dtype))
    return product_along(node, gradient, axis, weights)


@converts(
    "aten.replication_pad1d_backward.default",
    "aten.replication_pad2d_backward.default",
    "aten.replication_pad3d_backward.default",
)
def replication_pad_backward(node: Node, gradient: Value, x: Value, pad: Sequence[Any]) -> Value:
    """The sums of what has been copied from each element."""
    for number in range(len(pad) // 2):
        axis = x.rank - 1 - number
        low, high = (node.integer(size, "padding") for size in pad[2 * number : 2 * number + 2])
        size = node.integer(x.shape[axis], "a size of an image")
        places = np.clip(np.arange(-low, size + high), 0, size - 1)
        shape = [*gradient.shape[:axis], Dim.of(size), *gradient.shape[axis + 1 :]]
        zeros = broadcast(node, node.known(np.zeros((), gradient.dtype)), shape)
        gradient = by_rows(node, zeros, axis, node.known(places), gradient, "add")
    return gradient
