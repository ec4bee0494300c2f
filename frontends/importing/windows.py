"""Windows that move over tensors: pools, and transposed convolutions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from .nodes import ModelNode
from .selection import padded, sliced, whole
from .shapes import reshaped, transposed
from .values import Value


@dataclass(frozen=True)
class Axis:
    """The movement of a window along one dimension, and its padding."""

    size: Dim
    window: int
    stride: int
    dilation: int
    low: int
    high: int

    @property
    def extent(self) -> int:
        """The number of elements that a window spans."""
        return self.dilation * (self.window - 1) + 1

    @property
    def positions(self) -> int:
        """The number of windows, for a static size."""
        return (self.size.value + self.low + self.high - self.extent) // self.stride + 1

    def rounded_up(self) -> Axis:
        """The axis with enough padding for a last partial window, if that begins in the input."""
        room = self.size.value + self.low + self.high - self.extent
        missing = -room % self.stride
        starts = (room + missing) // self.stride * self.stride
        if room < 0 or starts >= self.size.value + self.low:
            return self
        return Axis(
            self.size, self.window, self.stride, self.dilation, self.low, self.high + missing
        )

    def counts(self, low: int, high: int) -> np.ndarray:
        """The number of elements of each window in [low, high)."""
        starts = np.arange(self.positions) * self.stride - self.low
        places = starts[:, None] + np.arange(self.window) * self.dilation
        return ((places >= low) & (places < high)).sum(axis=1)


def padded_axes(node: ModelNode, x: Value, axes: Sequence[Axis], value: float) -> Value:
    """`x` with padded trailing dimensions."""
    leading = [0] * (x.rank - len(axes))
    low, high = leading + [axis.low for axis in axes], leading + [axis.high for axis in axes]
    return padded(node, x, low, high, value)


def pooled(node: ModelNode, x: Value, axes: Sequence[Axis], kind: str) -> Value:
    """The reduction of each window, with neutral padding."""
    neutral: float = 0
    if kind == "max":
        neutral = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    return node.emit(
        graph.PoolOp,
        padded_axes(node, x, axes, neutral),
        kind=kind,
        window=[axis.window for axis in axes],
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
    )


def mean_pooled(
    node: ModelNode, x: Value, axes: Sequence[Axis], counts: Sequence[np.ndarray]
) -> Value:
    """The sum of each window divided by a count, which is a product of one for each axis."""
    window = math.prod(axis.window for axis in axes)
    divisors = functools.reduce(np.multiply.outer, counts)
    if (divisors == window).all():
        return pooled(node, x, axes, "mean")
    total = pooled(node, x, axes, "sum")
    return node.emit(graph.DivOp, total, node.known(divisors.astype(x.dtype)))


def transposed_conv(
    node: ModelNode,
    x: Value,
    w: Value,
    bias: Value | None,
    axes: Sequence[Axis],
    spread: Sequence[int],
    groups: int,
) -> Value:
    """A convolution transposed, with `spread` more elements at the end of each axis.

    The filters are [C, M/groups, *window]; the padding of an axis is removed from the result.
    """
    # y == conv(x with stride - 1 zeros between its elements, padded; w mirrored, by filter)
    low, high = [0, 0], [0, 0]
    for axis, more in zip(axes, spread, strict=True):
        low.append(axis.extent - 1 - axis.low)
        # `_apart` has already added stride - 1 zeros after the last element.
        high.append(axis.extent - axis.stride - axis.high + more)
    return node.emit(
        graph.ConvOp,
        padded(node, _apart(node, x, axes), low, high),
        _mirrored(node, w, groups),
        bias,
        dilations=[axis.dilation for axis in axes],
        groups=groups,
    )


def _apart(node: ModelNode, x: Value, axes: Sequence[Axis]) -> Value:
    """`x` with stride - 1 zeros after each element."""
    if all(axis.stride == 1 for axis in axes):
        return x
    pairs = [dim for axis in axes for dim in (axis.size, Dim.of(1))]
    lone = reshaped(node, x, [*x.shape[:2], *pairs])
    high = [0, 0, *(n for axis in axes for n in (0, axis.stride - 1))]
    wide = padded(node, lone, [0] * len(high), high)
    return reshaped(node, wide, [*x.shape[:2], *(axis.size * axis.stride for axis in axes)])


def _mirrored(node: ModelNode, w: Value, groups: int) -> Value:
    """Filters [C, M/groups, *window], mirrored and as [M, C/groups, *window]."""
    channels = w.shape[0].exact_div(groups) if groups > 0 else None
    if channels is None:
        raise node.broken("groups do not divide the channels", "a divisor", groups)
    parts = whole(w)
    parts[2:] = [(dim.value - 1, -1, -1) for dim in w.shape[2:]]
    flipped = sliced(node, w, parts)
    grouped = reshaped(node, flipped, [Dim.of(groups), channels, *w.shape[1:]])
    swapped = transposed(node, grouped, [0, 2, 1, *range(3, w.rank + 1)])
    return reshaped(node, swapped, [w.shape[1] * groups, channels, *w.shape[2:]])
