"""Windows that move over tensors: pools, and transposed convolutions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.algebra.dims import Dim, product
from ...core.dtype_names import is_real
from ...dialects.graph.ops.moves.pad_same import same_padding
from .elementwise import cast, is_nan
from .nodes import ModelNode
from .selection import cut_by, padded, sliced, taken, whole
from .shapes import broadcast, places_of, reshaped, transposed, unsqueezed
from .values import Value


@dataclass(frozen=True)
class Axis:
    """The movement of a window along one dimension, and its padding.

    Of a symbolic size, the padding may be that for ceil(size / stride) windows: then `more_after`
    says whether the larger half is after the elements, and `low` and `high` count besides.
    """

    size: Dim
    window: int
    stride: int
    dilation: int
    low: int
    high: int
    more_after: bool | None = None

    @property
    def is_padded(self) -> bool:
        """Whether elements are added."""
        return (self.low, self.high) != (0, 0) or self.more_after is not None

    @property
    def extent(self) -> int:
        """The number of elements that a window spans."""
        return self.dilation * (self.window - 1) + 1

    @property
    def before(self) -> Dim:
        """The number of elements that are added before the others."""
        if self.more_after is None:
            return Dim.of(self.low)
        total = same_padding(self.size, self.extent, self.stride)
        return total.floordiv(2) if self.more_after else total.ceildiv(2)

    @property
    def positions(self) -> Dim:
        """The number of windows."""
        if self.more_after is not None:
            return self.size.ceildiv(self.stride)
        return (self.size + self.low + self.high - self.extent).floordiv(self.stride) + 1

    @property
    def rest(self) -> Dim:
        """The number of elements after the last window."""
        covered = (self.positions - 1) * self.stride + self.extent
        return self.size + self.low + self.high - covered

    def rounded_up(self) -> Axis:
        """The axis with enough padding for a last partial window, if that begins in the input."""
        if self.more_after is not None:
            return self
        if not self.size.is_static:
            # So much padding never makes room for a window that begins after the input.
            more = min(max(0, self.extent - self.high - 1), self.stride - 1)
            return replace(self, high=self.high + more)
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
        starts = np.arange(self.positions.value) * self.stride - self.low
        places = starts[:, None] + np.arange(self.window) * self.dilation
        return ((places >= low) & (places < high)).sum(axis=1)


def padded_axes(node: ModelNode, x: Value, axes: Sequence[Axis], value: float) -> Value:
    """`x` with padded trailing dimensions."""
    leading = [0] * (x.rank - len(axes))
    low, high = leading + [axis.low for axis in axes], leading + [axis.high for axis in axes]
    x = padded(node, x, low, high, value)
    halves = {axis.more_after for axis in axes} - {None}
    if not halves:
        return x
    steps = [(1, 1) if axis.more_after is None else (axis.extent, axis.stride) for axis in axes]
    extents, strides = zip(*steps, strict=True)
    return node.pad_same(
        x, extents=extents, strides=strides, more_after=halves == {True}, value=value
    )


def convolved(
    node: ModelNode, x: Value, w: Value, bias: Value | None, axes: Sequence[Axis], groups: int
) -> Value:
    """A convolution of the padded operand."""
    return node.conv(
        padded_axes(node, x, axes, 0),
        w,
        bias,
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
        groups=groups,
    )


def pooled(node: ModelNode, x: Value, axes: Sequence[Axis], kind: str) -> Value:
    """The reduction of each window, with neutral padding."""
    neutral: float = 0
    if kind == "max":
        neutral = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    return node.pool(
        padded_axes(node, x, axes, neutral),
        kind=kind,
        window=[axis.window for axis in axes],
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
    )


def counts_along(
    node: ModelNode, axis: Axis, low: int, high: int, dtype: np.dtype
) -> np.ndarray | Value:
    """The number of elements of each window in [-low, size + high), a vector of `dtype` where the
    size is symbolic; a single number where it is the same for all windows."""
    if axis.size.is_static:
        return axis.counts(-low, axis.size.value + high)
    if (low, high) == (axis.low, axis.high) and axis.more_after is None:
        return np.array([axis.window])
    ones = broadcast(node, node.known(np.array(1, dtype)), [axis.size])
    counted = padded(node, ones, [low], [high], 1)
    return pooled(node, counted, [replace(axis, low=axis.low - low, high=axis.high - high)], "sum")


def mean_pooled(
    node: ModelNode, x: Value, axes: Sequence[Axis], counts: Sequence[np.ndarray | Value]
) -> Value:
    """The sum of each window divided by a count, which is a product of one for each axis."""
    window = math.prod(axis.window for axis in axes)
    known = [count for count in counts if isinstance(count, np.ndarray)]
    same = len(known) == len(counts) and functools.reduce(np.multiply.outer, known) == window
    if np.all(same):
        return pooled(node, x, axes, "mean")
    return node.div(pooled(node, x, axes, "sum"), divisor_of(node, counts, x.dtype))


def divisor_of(node: ModelNode, counts: Sequence[np.ndarray | Value], dtype: np.dtype) -> Value:
    """The product of counts along each axis, as a tensor that broadcasts to the windows."""
    known = [count for count in counts if isinstance(count, np.ndarray)]
    if len(known) == len(counts):
        return node.known(functools.reduce(np.multiply.outer, known).astype(dtype))
    factors: list[Value] = []
    for number, count in enumerate(counts):
        one = count if isinstance(count, Value) else node.known(count.astype(dtype))
        factors.append(unsqueezed(node, one, list(range(1, len(counts) - number))))
    return functools.reduce(node.mul, factors)


Places = np.ndarray | Sequence[Value]
"""Of each window of an axis the places of its elements: [window, element], or for each element a
vector with its places in all windows."""


def places_along(node: ModelNode, axis: Axis) -> Places:
    """For each window, the places of its elements.

    A place outside of the operand is another one of the same window.
    """
    if not axis.size.is_static:
        return _computed_places(node, axis)
    size = axis.size.value
    starts = np.arange(axis.positions.value)[:, None] * axis.stride - axis.low
    first = np.maximum(-(starts // axis.dilation), 0)
    if (starts + first * axis.dilation >= size).any():
        raise node.unsupported("a window of padding alone")
    last = np.minimum((size - 1 - starts) // axis.dilation, axis.window - 1)
    return starts + np.clip(np.arange(axis.window)[None], first, last) * axis.dilation


def _computed_places(node: ModelNode, axis: Axis) -> list[Value]:
    """The places of the elements of windows along an axis of a symbolic size."""
    every = places_of(node, axis.size + axis.low + axis.high)
    windows = cut_by(node, every, 0, Dim.of(0), Dim.of(1), axis.positions)
    start = node.sub(node.mul(windows, axis.stride), node.number(axis.before))
    # Numbers of elements inside: none of these quotients is of negative numbers.
    missing = node.add(node.max(node.sub(0, start), 0), axis.dilation - 1)
    first = node.div(missing, axis.dilation)
    last = node.div(node.sub(node.number(axis.size - 1), start), axis.dilation)
    # In a window of padding alone the first place is behind the elements: an index out of range.
    inside = (node.max(node.min(number, last), first) for number in range(axis.window))
    return [node.add(start, node.mul(number, axis.dilation)) for number in inside]


def placed_maxima(node: ModelNode, x: Value, windows: Sequence[Places]) -> tuple[Value, Value]:
    """The maximum of each window on the trailing dimensions, and its place in the image.

    Of several places it is the first one, but the last one of NaNs, as in torch.

    Args:
        windows: for each axis, the places of the elements of its windows, in order; repeated ones
            count once.
    """
    first, place = x.rank - len(windows), None
    image = x.shape[first:]
    for number in reversed(range(len(windows))):
        step = product(image[number + 1 :])
        x, place = _maxima_along(node, x, place, first + number, windows[number], step)
    assert place is not None
    return x, cast(node, place, np.dtype(np.int64))


def _maxima_along(
    node: ModelNode, x: Value, place: Value | None, axis: int, windows: Places, step: Dim
) -> tuple[Value, Value]:
    """The maxima of windows along an axis, and their places: `step` for each element of it."""

    def chosen(value: Value, places: np.ndarray | Value) -> Value:
        if isinstance(places, Value):
            return node.gather(value, places, axis=axis)
        return taken(node, value, axis, places)

    def at(places: np.ndarray | Value) -> tuple[Value, Value]:
        """An element of each window, and its place."""
        if isinstance(places, np.ndarray) and step.is_static:
            own = node.known((places * step.value).astype(np.int64))
        else:
            known = places if isinstance(places, Value) else node.known(places.astype(np.int64))
            own = node.mul(known, node.number(step))
        own = unsqueezed(node, own, list(range(1, x.rank - axis)))
        if place is not None:
            own = node.add(chosen(place, places), own)
        return chosen(x, places), own

    elements = list(windows.T) if isinstance(windows, np.ndarray) else windows
    best, where = at(elements[0])
    for places in elements[1:]:
        value, own = at(places)
        larger = node.less(best, value)
        if is_real(x.dtype):
            larger = node.logical_or(larger, is_nan(node, value))
        best = node.where(larger, value, best)
        where = node.where(larger, own, where)
    # Where windows have one element, places are those of one line.
    return best, broadcast(node, where, best.shape)


def unpooled(node: ModelNode, y: Value, axes: Sequence[Axis]) -> Value:
    """For each element of an image, the sum over the windows that it belongs to."""
    sizes = y.shape[y.rank - len(axes) :]
    rests = rests_of(node, axes)
    moved = [replace(axis, size=size) for axis, size in zip(axes, sizes, strict=True)]
    return node.pool(
        _spread(node, y, moved, rests),
        kind="sum",
        window=[axis.window for axis in axes],
        dilations=[axis.dilation for axis in axes],
    )


def rests_of(node: ModelNode, axes: Sequence[Axis]) -> list[int]:
    """The number of elements after the last window of each axis."""
    for axis in axes:
        if not axis.rest.is_static:
            fact = f"the gradient of windows that go by {axis.stride} over symbolic dimension"
            raise node.unsupported(f"{fact} {axis.size}")
    return [axis.rest.value for axis in axes]


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
    # Filters that are shorter than a stride would be zeros for most phases.
    fits = all(a.stride == 1 or (a.dilation == 1 and a.stride <= a.window) for a in axes)
    if fits and any(a.stride > 1 for a in axes):
        return _by_phases(node, x, w, bias, axes, spread, groups)
    # y == conv(x with stride - 1 zeros between its elements, padded; w mirrored, by filter)
    return node.conv(
        _spread(node, x, axes, spread),
        _mirrored(node, w, groups),
        bias,
        dilations=[axis.dilation for axis in axes],
        groups=groups,
    )


def _by_phases(
    node: ModelNode,
    x: Value,
    w: Value,
    bias: Value | None,
    axes: Sequence[Axis],
    spread: Sequence[int],
    groups: int,
) -> Value:
    """The same by sub-pixels: without zeros between elements, whose products take most of the time.

    Element m * stride + r of a result, before its padding is removed, is the sum over t of
    x[m - t] * w[r + t * stride]: a convolution with a filter for each phase r.
    """
    strides = [axis.stride for axis in axes]
    taps = [-(-axis.window // axis.stride) for axis in axes]
    low, high, cut, rest = list[int](), list[int](), list[int](), list[int]()
    for axis, count, more in zip(axes, taps, spread, strict=True):
        first, inside = divmod(axis.low, axis.stride)
        # The end of the result, after the position of the last element of x.
        end = axis.extent - axis.high + more
        after = -(-end // axis.stride) - 1
        low.append((count - 1) * axis.dilation - first)
        high.append(after)
        cut.append(inside)
        rest.append((after + 1) * axis.stride - end)
    number = math.prod(strides)
    y = node.conv(
        padded(node, x, [0, 0, *low], [0, 0, *high]),
        _phases(node, w, taps, strides, groups),
        None if bias is None else _each_times(node, bias, number),
        dilations=[axis.dilation for axis in axes],
        groups=groups,
    )
    sizes, channels = y.shape[2:], w.shape[1] * groups
    apart = reshaped(node, y, [x.shape[0], channels, *map(Dim.of, strides), *sizes])
    inner = range(2, 2 + len(axes))
    order = [0, 1, *(axis for phase in inner for axis in (phase + len(axes), phase))]
    joined = reshaped(
        node,
        transposed(node, apart, order),
        [x.shape[0], channels, *(n * s for n, s in zip(sizes, strides, strict=True))],
    )
    return padded(node, joined, [0, 0, *(-n for n in cut)], [0, 0, *(-n for n in rest)])


def _phases(
    node: ModelNode, w: Value, taps: Sequence[int], strides: Sequence[int], groups: int
) -> Value:
    """Filters [C, M/groups, *window] as [M * phases, C/groups, *taps], mirrored."""
    pairs = list(zip(taps, strides, strict=True))
    more = [t * s - dim.value for (t, s), dim in zip(pairs, w.shape[2:], strict=True)]
    w = padded(node, w, [0] * w.rank, [0, 0, *more])
    apart = reshaped(node, w, [*w.shape[:2], *(Dim.of(n) for pair in pairs for n in pair)])
    front = [0, 1, *range(3, apart.rank, 2)]
    moved = transposed(node, apart, [*front, *range(2, apart.rank, 2)])
    filters = w.shape[1] * math.prod(strides)
    return _mirrored(node, reshaped(node, moved, [w.shape[0], filters, *map(Dim.of, taps)]), groups)


def _each_times(node: ModelNode, x: Value, times: int) -> Value:
    """A vector with each of its elements several times."""
    wide = broadcast(node, unsqueezed(node, x, [1]), [x.shape[0], Dim.of(times)])
    return reshaped(node, wide, [x.shape[0] * times])


def _spread(node: ModelNode, x: Value, axes: Sequence[Axis], spread: Sequence[int]) -> Value:
    """`x` with stride - 1 zeros between its elements, and padding for whole windows."""
    low = [0] * (x.rank - len(axes))
    high = list(low)
    for axis, more in zip(axes, spread, strict=True):
        low.append(axis.extent - 1 - axis.low)
        # `_apart` has already added stride - 1 zeros after the last element.
        high.append(axis.extent - axis.stride - axis.high + more)
    return padded(node, _apart(node, x, axes), low, high)


def _apart(node: ModelNode, x: Value, axes: Sequence[Axis]) -> Value:
    """`x` with stride - 1 zeros after each element."""
    if all(axis.stride == 1 for axis in axes):
        return x
    leading = x.shape[: x.rank - len(axes)]
    lone, high = list(leading), [0] * len(leading)
    for axis in axes:
        lone.append(axis.size)
        high.append(0)
        if axis.stride > 1:
            lone.append(Dim.of(1))
            high.append(axis.stride - 1)
    wide = padded(node, reshaped(node, x, lone), [0] * len(high), high)
    return reshaped(node, wide, [*leading, *(axis.size * axis.stride for axis in axes)])


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
