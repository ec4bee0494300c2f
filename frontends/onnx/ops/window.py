"""Operators with windows: padding, convolutions, pooling.

ONNX pads inside these operators, the dialect before them: explicit padding, named padding
(`auto_pad`) and that implied by `ceil_mode` become a `graph.pad`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....core.algebra.dims import Dim, product
from ....dialects.graph.ops.moves.pad_same import same_padding
from ...importing.elementwise import modulo
from ...importing.selection import padded
from ...importing.shapes import places_of, reshaped, unsqueezed
from ...importing.values import Value, is_static
from ...importing.windows import (
    Axis,
    convolved,
    counts_along,
    mean_pooled,
    placed_maxima,
    places_along,
    pooled,
    transposed_conv,
)
from ..axes import padding_by
from ..dynamic import Element, static_sizes
from ..extents import padded_by
from ..nodes import Node
from ..registry import converts


def window_axes(node: Node, x: Value, window: Sequence[int]) -> list[Axis]:
    """The attributes common to all operators with windows, by dimension."""
    count = x.rank - 2
    if count < 1:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    strides = _positive(node, "strides", node.attr_ints("strides") or [1] * count, count)
    dilations = _positive(node, "dilations", node.attr_ints("dilations") or [1] * count, count)
    window = _positive(node, "kernel_shape", window, count)
    moves = list(zip(x.shape[2:], window, strides, dilations, strict=True))
    return _padded(node, [Axis(*move, 0, 0) for move in moves])


def _positive(node: Node, what: str, numbers: Sequence[int], count: int) -> Sequence[int]:
    if len(numbers) != count or any(n < 1 for n in numbers):
        raise node.broken(f"{what} do not fit", f"{count} positive numbers", list(numbers))
    return numbers


def _padded(node: Node, axes: Sequence[Axis]) -> list[Axis]:
    """The axes with their padding."""
    mode, count = node.attr_string("auto_pad", "NOTSET"), len(axes)
    given = node.attr_ints("pads") or [0] * (2 * count)
    if mode == "NOTSET":
        if len(given) != 2 * count or any(n < 0 for n in given):
            raise node.broken("pads do not fit", f"{2 * count} numbers of 0 or more", given)
        ends = zip(given[:count], given[count:], strict=True)
        return [replace(a, low=low, high=high) for a, (low, high) in zip(axes, ends, strict=True)]
    if mode == "VALID":
        return list(axes)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.broken("auto_pad is unknown", "NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
    return [_padded_same(axis, mode == "SAME_UPPER") for axis in axes]


def _padded_same(axis: Axis, more_after: bool) -> Axis:
    """The axis with the padding for ceil(size / stride) windows."""
    missing = same_padding(axis.size, axis.extent, axis.stride)
    if not missing.is_static:
        return replace(axis, more_after=more_after)
    low, high = _halved(missing.value, more_after)
    return replace(axis, low=low, high=high)


def _halved(total: int, more_at_the_end: bool) -> tuple[int, int]:
    small, large = total // 2, total - total // 2
    return (small, large) if more_at_the_end else (large, small)


@converts("Pad", since=2)
def pad_attributes(node: Node) -> Value:
    return padded_by_attributes(node, "pads")


def padded_by_attributes(node: Node, name: str) -> Value:
    """A tensor with the padding that the attribute of this name gives."""
    pads = list(map(Dim.of, node.attr_ints(name) or []))
    return _pad(node, pads, node.attr_float("value"), None)


@converts("Pad", since=11)
def pad(node: Node) -> Value:
    pads, axes = node.elements(1), None if node.optional(3) is None else node.elements(3)
    known = None if axes is None else static_sizes(axes)
    if axes is None or known is not None:
        return _pad(node, pads, _fill(node), known)
    if len(pads) != 2 * len(axes):
        raise node.broken("pads do not fit", f"{2 * len(axes)} numbers", f"{len(pads)}")
    low, high = padding_by(node, node.input(0).rank, axes, pads)
    return _pad(node, [*low, *high], _fill(node), None)


def _fill(node: Node) -> float | Value:
    """The constant for the padding of a tensor."""
    value = node.optional(2)
    if value is None:
        return 0
    if product(value.shape) != 1:
        raise node.broken("the constant is not a scalar", 1, product(value.shape))
    if value.contents is None or value.is_symbolic:
        return reshaped(node, value, [])
    return value.contents.reshape(()).item()


def _pad(
    node: Node, pads: Sequence[Element], value: float | Value, axes: Sequence[int] | None
) -> Value:
    x = node.input(0)
    mode = node.attr_string("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise node.broken("mode is unknown", "constant, edge, reflect or wrap", mode)
    named = list(range(x.rank)) if axes is None else node.axes(axes, x.rank)
    if len(pads) != 2 * len(named):
        raise node.broken("pads do not fit", f"{2 * len(named)} numbers", f"{len(pads)}")
    ends: list[list[Element]] = [[Dim.of(0)] * x.rank for _ in range(2)]
    for i, axis in enumerate(named):
        ends[0][axis], ends[1][axis] = pads[i], pads[len(named) + i]
    low, high = (static_sizes(own) for own in ends)
    if low is None or high is None or isinstance(value, Value):
        return padded_by(node, ends[0], ends[1], value, mode)
    return padded(node, x, low, high, value, mode)


# Convolutions


def filter_window(node: Node, x: Value, w: Value) -> list[int]:
    """The size of a filter, which `kernel_shape` may repeat."""
    if w.rank != x.rank:
        raise node.broken("filters do not fit the operand", f"rank {x.rank}", f"rank {w.rank}")
    sizes = [dim.value if dim.is_static else 0 for dim in w.shape[2:]]
    if 0 in sizes:
        raise node.unsupported("filters of a symbolic size")
    given = node.attr_ints("kernel_shape")
    if given is not None and given != sizes:
        raise node.broken("kernel_shape differs from the filters", sizes, given)
    return sizes


@converts("Conv", since=1)
def conv(node: Node) -> Value:
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    axes = window_axes(node, x, filter_window(node, x, w))
    return convolved(node, x, w, bias, axes, node.attr_int("group", 1))


@converts("ConvTranspose", since=1)
def conv_transpose(node: Node) -> Value:
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    window = filter_window(node, x, w)
    spread = node.attr_ints("output_padding") or [0] * len(window)
    wanted = node.attr_ints("output_shape")
    mode = node.attr_string("auto_pad", "NOTSET")
    axes = window_axes(node, x, window)
    if len(spread) != len(axes) or (wanted is not None and len(wanted) != len(axes)):
        raise node.broken("output_padding or output_shape does not fit", f"{len(axes)} numbers")
    sizes = None if wanted is None else list(map(Dim.of, wanted))
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        sizes = [axis.size * axis.stride for axis in axes]
    if sizes is not None:
        for i, axis in enumerate(axes):
            left = (axis.size - 1) * axis.stride + spread[i] + axis.extent - sizes[i]
            if not left.is_static:
                fact = f"output_shape for symbolic dimension {axis.size}"
                raise node.unsupported(fact, "auto_pad or pads")
            before, after = _halved(left.value, mode == "SAME_UPPER")
            axes[i] = replace(axis, low=before, high=after, more_after=None)
    return transposed_conv(node, x, w, bias, axes, spread, node.attr_int("group", 1))


# Pooling


def _pool_axes(node: Node, x: Value) -> list[Axis]:
    window = node.attr_ints("kernel_shape")
    if window is None:
        raise node.broken('attribute "kernel_shape" is missing')
    axes = window_axes(node, x, window)
    if not node.attr_int("ceil_mode"):
        return axes
    return [axis.rounded_up() for axis in axes]


@converts("MaxPool", since=1)
def max_pool(node: Node) -> list[Value | None]:
    x, by_columns = node.input(0), bool(node.attr_int("storage_order"))
    if not node.wants(1):
        return [largest(node, x), None]
    axes = _pool_axes(node, x)
    found, places = placed_maxima(node, x, [places_along(node, axis) for axis in axes])
    return [found, _in_whole_tensor(node, places, x, by_columns)]


def largest(node: Node, x: Value) -> Value:
    """The maximum of each window."""
    return pooled(node, x, _pool_axes(node, x), "max")


def _in_whole_tensor(node: Node, places: Value, x: Value, by_columns: bool) -> Value:
    """Places in images as places in all images, which may be stored column by column."""
    (batch, channels), image, step = x.shape[:2], x.shape[2:], Dim.of(1)
    if by_columns:
        parts: list[Value] = []
        for axis, extent in enumerate(image):
            along = node.div(places, node.number(product(image[axis + 1 :])))
            parts.append(node.mul(modulo(node, along, node.number(extent)), node.number(step)))
            step = step * extent
        places = functools.reduce(node.add, parts)
    if is_static(x.shape):
        known = np.arange((batch * channels).value) * product(image).value
        shape = batch.value, channels.value, *[1] * len(image)
        return node.add(places, node.known(known.reshape(shape)))
    rows = node.mul(unsqueezed(node, places_of(node, batch), [1]), node.number(channels))
    first = node.mul(node.add(rows, places_of(node, channels)), node.number(product(image)))
    return node.add(places, unsqueezed(node, first, list(range(2, x.rank))))


@converts("AveragePool", since=1)
def average_pool(node: Node) -> Value:
    return averaged(node, node.input(0))


def averaged(node: Node, x: Value) -> Value:
    """The mean of all elements of each window, or of those that are not padding."""
    axes, everything = _pool_axes(node, x), bool(node.attr_int("count_include_pad"))
    return mean_pooled(node, x, axes, _counts(node, x, axes, everything))


def _counts(
    node: Node, x: Value, axes: Sequence[Axis], everything: bool
) -> list[np.ndarray | Value]:
    """The number of elements that count in each window, by axis; padding counts if requested."""
    given = node.attr_ints("pads") or [0] * (2 * len(axes))
    ends = given[len(axes) :] if node.attr_string("auto_pad", "NOTSET") == "NOTSET" else None
    result: list[np.ndarray | Value] = []
    for i, axis in enumerate(axes):
        if everything and axis.more_after is not None:
            result.append(np.array([axis.window]))
            continue
        # Padding for ceil_mode never counts.
        high = axis.high if ends is None else ends[i]
        low, high = (axis.low, high) if everything else (0, 0)
        result.append(counts_along(node, axis, low, high, x.dtype))
    return result


@converts("LpPool", since=1)
def lp_pool(node: Node) -> Value:
    x = node.input(0)
    axes = _pool_axes(node, x)
    return _norm(node, x, lambda powers: pooled(node, powers, axes, "sum"))


@converts("GlobalLpPool", since=1)
def global_lp_pool(node: Node) -> Value:
    x = node.input(0)
    axes = list(range(2, x.rank))
    return _norm(node, x, lambda p: node.reduce(p, kind="sum", axes=axes, keepdims=True))


@converts("LpNormalization", since=1)
def lp_normalization(node: Node) -> Value:
    # x / |x|, and 0 where the norm is 0: the smallest number as epsilon only avoids 0 / 0
    x = node.input(0)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    if node.attr_int("p", 2) == 2:
        epsilon = float(np.finfo(np.promote_types(x.dtype, np.float32)).tiny)
        return node.l2_normalize(x, axes=[axis], epsilon=epsilon)
    norm = _norm(node, x, lambda p: node.reduce(p, kind="sum", axes=[axis], keepdims=True))
    nothing = node.equal(norm, 0)
    divisor = node.where(nothing, 1, norm)
    return node.div(x, divisor)


def _norm(node: Node, x: Value, total: Callable[[Value], Value]) -> Value:
    """The root of a sum of powers: (|a|^p + |b|^p + ...)^(1/p), by default with p = 2."""
    # `p` is an integer in all versions but the first ones of the poolings.
    is_integer = node.opset > 1 or node.operator == "LpNormalization"
    p = node.attr_int("p", 2) if is_integer else node.attr_float("p", 2.0)
    if not p >= 1:
        raise node.broken("p out of range", "p >= 1", p)
    if p == 1:
        return total(node.abs(x))
    if p == 2:
        return node.sqrt(total(node.mul(x, x)))
    powers = node.pow(node.abs(x), p)
    return node.pow(total(powers), 1 / p)


@converts("LRN", since=1)
def local_response_normalization(node: Node) -> Value:
    # y == x / (bias + alpha / size * sum(x^2 over size channels)) ^ beta
    x, size = node.input(0), node.attr_int("size")
    if x.rank < 2 or size < 1:
        raise node.broken("operand or size does not fit", "rank >= 2, size >= 1", size)
    alpha, beta = node.attr_float("alpha", 1e-4), node.attr_float("beta", 0.75)
    if not x.shape[1].is_static:
        raise node.unsupported(f"a window over symbolic dimension {x.shape[1]}")
    ones = [Axis(dim, 1, 1, 1, 0, 0) for dim in x.shape[2:]]
    channels = Axis(x.shape[1], size, 1, 1, (size - 1) // 2, size // 2)
    total = pooled(node, node.mul(x, x), [channels, *ones], "sum")
    scaled = node.mul(total, alpha / size)
    base = node.add(scaled, node.attr_float("bias", 1.0))
    return node.div(x, node.pow(base, beta))
