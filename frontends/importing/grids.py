"""Elements at places that a grid gives, interpolated, as in ONNX's GridSample and torch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.algebra.dims import Dim
from .formulas import FormulaTerm
from .nodes import ModelNode
from .resizing import Numbers, cubic, linear
from .selection import apart
from .shapes import broadcast, places_of, squeezed, transposed, unsqueezed
from .values import Value, is_static

PADDINGS = ("zeros", "border", "reflection")
"""What is outside of an image."""

FILTERS: dict[str, tuple[range, Callable[[Numbers], Numbers]]] = {
    "linear": (range(2), linear),
    "cubic": (range(-1, 3), cubic),
}
"""The elements near a place, as distances from the last one before it, and their weights."""


@dataclass(frozen=True)
class Sampling:
    """How elements are found.

    Attributes:
        mode: ``nearest``, or one of `FILTERS`.
        padding: one of `PADDINGS`.
        align_corners: whether -1 and 1 are the middles of the outermost elements, instead of their
            outer edges.
        moves_places: whether places outside of the image are moved into it, as padding says, before
            elements near them are taken, which are moved in any case.
    """

    mode: str
    padding: str
    align_corners: bool
    moves_places: bool = True


@dataclass(frozen=True)
class _Axis:
    """An axis of the image: its size as a number, and the padding of places outside of it."""

    size: Numbers
    padding: str
    align_corners: bool

    def place(self, g: Numbers) -> Numbers:
        """A place from one in [-1, 1]; NaN means -1, as in torch."""
        g = np.where(g == g, g, -1.0)
        if self.align_corners:
            return (g + 1) / 2 * (self.size - 1)
        return ((g + 1) * self.size - 1) / 2

    @property
    def _low(self) -> float:
        """Where the image begins, at the middle of its first element or before it."""
        return 0.0 if self.align_corners else -0.5

    def inside(self, x: Numbers) -> Numbers:
        """A place for one that may be outside of the image, as padding has it; itself for zeros."""
        if self.padding == "border":
            is_outside = (x < self._low) | (x > self.size - 1 - self._low)
            return np.where(is_outside, self.clamped(x), x)
        return self._reflected(x) if self.padding == "reflection" else x

    def clamped(self, x: Numbers) -> Numbers:
        # What is not a number is nowhere: it is in the first place, with a weight that is none.
        return np.maximum(np.minimum(np.where(x > 0, x, 0.0), self.size - 1), 0)

    def _reflected(self, x: Numbers) -> Numbers:
        low, width = self._low, self.size - 1 - 2 * self._low
        far = np.abs(x - low)
        # Of an image of one element there is nothing to reflect: its width is 0.
        times = np.floor(far / np.maximum(width, 1e-9))
        rest = far - times * width
        is_even = times == np.floor(times / 2) * 2
        found = np.where(is_even, rest + low, width - rest + low)
        # An infinite place, from which no number of reflections leads back, is the first one.
        return np.where(found == found, found, 0.0)

    def is_inside(self, x: Numbers) -> Numbers:
        return (x >= 0) & (x < self.size)


def sampled(node: ModelNode, x: Value, grid: Value, way: Sampling) -> Value:
    """Elements of images (n, c, *sizes) at places (n, *result, count): (n, c, *result).

    A place is one number in [-1, 1] for each axis of the image, that of the last axis first.
    """
    count = x.rank - 2
    if count < 1 or grid.rank != x.rank or grid.shape[-1] != Dim.of(count):
        shapes = [[str(dim) for dim in value.shape] for value in (x, grid)]
        raise node.broken("the grid does not fit the image", f"{count} numbers each", shapes)
    if x.dtype.kind != "f" or not is_static(grid.shape[-1:]):
        raise node.unsupported(f"not supported for {x.dtype.name}")
    sizes = (FormulaTerm.of(node, dim, x.dtype) for dim in x.shape[2:])
    axes = [_Axis(size, way.padding, way.align_corners) for size in sizes]
    parts = reversed(apart(node, grid, grid.rank - 1, [1] * count))
    numbers = [
        FormulaTerm.of(node, squeezed(node, part, [grid.rank - 1]), x.dtype) for part in parts
    ]
    places = [axis.place(g) for axis, g in zip(axes, numbers, strict=True)]
    image = transposed(node, x, [0, *range(2, x.rank), 1])
    found = _interpolated(node, image, axes, places, way)
    return transposed(node, found, [0, found.rank - 1, *range(1, found.rank - 1)])


def interpolated(
    node: ModelNode, image: Value, sizes: Sequence[Dim], places: Sequence[FormulaTerm]
) -> Value:
    """Elements of images (n, *sizes, c) at places (n, *result) of their axes, linearly between
    neighbours, of which those outside are 0: (n, *result, c).
    """
    way = Sampling("linear", "zeros", True)
    axes = [_Axis(FormulaTerm.of(node, dim, image.dtype), way.padding, True) for dim in sizes]
    return _interpolated(node, image, axes, places, way)


def _interpolated(
    node: ModelNode, image: Value, axes: Sequence[_Axis], places: Sequence[Numbers], way: Sampling
) -> Value:
    """The sums of near elements of each channel, by their weights."""
    if way.mode == "nearest":
        near = [axis.inside(np.rint(x)) for axis, x in zip(axes, places, strict=True)]
        taps = [[(_truncated(x), None)] for x in near]
    else:
        offsets, weight = FILTERS[way.mode]
        moved = (axis.inside(x) for axis, x in zip(axes, places, strict=True))
        inner = list(moved if way.moves_places else places)
        taps = [
            [(axis.inside(low + offset), weight(offset - (x - low))) for offset in offsets]
            for axis, x, low in zip(axes, inner, map(np.floor, inner), strict=True)
        ]
        taps = [[(_truncated(x), factor) for x, factor in own] for own in taps]
    terms: list[Value] = []
    for corner in itertools.product(*taps):
        at = [x for x, _ in corner]
        weights: list[Numbers] = [w for _, w in corner if w is not None]
        if axes[0].padding == "zeros":
            is_inside = (axis.is_inside(x) for axis, x in zip(axes, at, strict=True))
            inside = functools.reduce(lambda a, b: a & b, is_inside)
            weights.append(np.where(inside, 1.0, 0.0))
        clamped = [axis.clamped(x) for axis, x in zip(axes, at, strict=True)]
        terms.append(_weighted(node, _taken(node, image, clamped), weights))
    return functools.reduce(node.add, terms)


def _truncated(x: Numbers) -> Numbers:
    """A place without its fraction, which only a reflected one has."""
    return np.where(x < 0, np.ceil(x), np.floor(x))


def _weighted(node: ModelNode, elements: Value, weights: Sequence[Numbers]) -> Value:
    if not weights:
        return elements
    factor: FormulaTerm = functools.reduce(lambda a, b: a * b, weights)
    column = unsqueezed(node, factor.as_type(elements.dtype.type), [elements.rank - 1])
    return node.mul(elements, column)


def _taken(node: ModelNode, image: Value, places: Sequence[FormulaTerm]) -> Value:
    """The channels at places of each image: (n, *sizes, c), (n, *result) -> (n, *result, c)."""
    indices = [place.as_type(np.int64) for place in places]
    later = list(range(1, indices[0].rank))
    own = unsqueezed(node, places_of(node, image.shape[0]), later)
    return node.gather_nd(image, [broadcast(node, own, indices[0].shape), *indices])
