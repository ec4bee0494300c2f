"""Resizing: elements along an axis as weighted sums of others, as in ONNX's Resize.

Interpolation is separable, so a tensor is resized one axis after the other. Formulas work on arrays
where sizes and scales are known, and on terms where they come at run time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from ...core.algebra.dims import Dim
from ...core.dtype_names import is_real
from .formulas import FormulaTerm
from .nodes import ModelNode
from .selection import taken
from .shapes import product_along, repeated, reshaped, unsqueezed
from .values import Value

Numbers: TypeAlias = Any
"""An array of f64, or a `FormulaTerm`."""

_MOST_GATHERS = 8
"""The most elements that a result is a sum of gathers of; of more it is a matrix product."""


@dataclass(frozen=True)
class AxisMovement:
    """The movement along an axis.

    Attributes:
        size: elements of the operand.
        result: elements of the result.
        scale: by which positions are divided; it need not be ``result / size``.
        least: a lower bound of the scale, which is the scale where that is known; 0 for none.
        start, end: the part of the operand for `tf_crop_and_resize`, in fractions of it.
    """

    size: Numbers
    result: Numbers
    scale: Numbers
    least: float
    start: Numbers = 0.0
    end: Numbers = 1.0


Coordinates = Callable[[Numbers, AxisMovement], Numbers]
"""Positions of the result -> positions in the operand."""


def _half_pixel(y: Numbers, e: AxisMovement) -> Numbers:
    return (y + 0.5) / e.scale - 0.5


def _symmetric(y: Numbers, e: AxisMovement) -> Numbers:
    exact = e.scale * e.size
    return (1 - e.result / exact) * e.size / 2 + (y + 0.5) / e.scale - 0.5


def _steps(e: AxisMovement) -> Numbers:
    """The distance of the ends of a result, 1 for a single element."""
    return np.where(e.result == 1, 1.0, e.result - 1)


def _crop_and_resize(y: Numbers, e: AxisMovement) -> Numbers:
    part, first = (e.end - e.start) * (e.size - 1), e.start * (e.size - 1)
    return np.where(e.result == 1, part / 2, y * part / _steps(e)) + first


COORDINATES: dict[str, Coordinates] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda y, e: np.where(e.result == 1, 0.0, _half_pixel(y, e)),
    "align_corners": lambda y, e: y * (e.size - 1) / _steps(e),
    "asymmetric": lambda y, e: y / e.scale,
    "tf_half_pixel_for_nn": lambda y, e: (y + 0.5) / e.scale,
    "tf_crop_and_resize": _crop_and_resize,
}
"""The coordinate transformations of ONNX, by name."""

NEAREST: dict[str, Callable[[Numbers], Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""The roundings of ONNX, by name."""


def linear(distance: Numbers) -> Numbers:
    """The weight of an element at a distance, for linear interpolation."""
    return np.maximum(1 - np.abs(distance), 0)


def cubic(distance: Numbers, a: float = -0.75) -> Numbers:
    """The weight of an element at a distance, for cubic interpolation (Keys, 1981)."""
    x = np.abs(distance)
    inner = (x * (a + 2) - (a + 3)) * x * x + 1
    outer = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))


@dataclass(frozen=True)
class Filter:
    """The elements that a result is a weighted sum of.

    Attributes:
        weight: the weight of an element by its distance.
        reach: the largest distance of an element that counts.
        antialias: whether it is stretched where elements come closer.
        exclude_outside: whether elements outside count as 0 instead of as those at the border.
    """

    weight: Callable[[Numbers], Numbers]
    reach: int
    antialias: bool = False
    exclude_outside: bool = False

    def samples(self, x: Numbers, extent: AxisMovement) -> list[tuple[Numbers, Numbers]]:
        """The place of an element and its weight for each position, for all that count.

        Weights of a position add up to 1. Places may be outside.
        """
        scale, least = (extent.scale, extent.least) if self.antialias else (1.0, 1.0)
        scale, low = np.minimum(scale, 1.0), np.floor(x)
        before = math.ceil(self.reach / min(least, 1.0)) - 1
        places = [low + offset for offset in range(-before, before + 2)]
        weights = [self.weight((place - x) * scale) for place in places]
        if self.exclude_outside:
            beyond = [(place < 0) | (place >= extent.size) for place in places]
            weights = [np.where(b, 0.0, w) for b, w in zip(beyond, weights, strict=True)]
        if self.antialias or self.exclude_outside:
            total = sum(weights)
            weights = [weight / total for weight in weights]
        return list(zip(places, weights, strict=True))


def nearest(
    node: ModelNode, x: Value, axis: int, at: Numbers, rounding: Callable[[Numbers], Numbers]
) -> Value:
    """`x` with the nearest element for each position along an axis."""
    return _taken(node, x, axis, rounding(at))


def interpolated(
    node: ModelNode, x: Value, axis: int, at: Numbers, extent: AxisMovement, kernel: Filter
) -> Value:
    """`x` with a weighted sum of near elements for each position along an axis."""
    if not is_real(x.dtype):
        raise node.unsupported(f"interpolation of {x.dtype.name}")
    samples = kernel.samples(at, extent)
    if not isinstance(at, FormulaTerm):
        samples = [(places, weights) for places, weights in samples if weights.any()]
        if len(samples) > _MOST_GATHERS:
            return _product(node, x, axis, samples)
    later = list(range(1, x.rank - axis))
    terms: list[Value] = []
    for places, weights in samples:
        term, factor = _taken(node, x, axis, places), _weights(node, weights, x.dtype)
        column = unsqueezed(node, factor, later)
        terms.append(node.mul(term, column))
    return functools.reduce(node.add, terms)


def _weights(node: ModelNode, weights: Numbers, dtype: np.dtype) -> Value:
    if isinstance(weights, FormulaTerm):
        return weights.as_type(dtype.type)
    return node.known(weights.astype(dtype))


def _taken(node: ModelNode, x: Value, axis: int, places: Numbers) -> Value:
    """The elements at places along an axis, those at its border for places outside."""
    size = x.shape[axis]
    if isinstance(places, FormulaTerm):
        last: Numbers = FormulaTerm.of(node, size) - 1
        inside: FormulaTerm = np.maximum(np.minimum(cast(Numbers, places), last), 0.0)
        return node.gather(x, inside.as_type(np.int64), axis=axis)
    return _taken_at(node, x, axis, np.clip(places, 0, size.value - 1).astype(np.int64))


def _taken_at(node: ModelNode, x: Value, axis: int, places: np.ndarray) -> Value:
    """The elements at known places along an axis: a repetition, a slice or a gather."""
    size, count = x.shape[axis].value, len(places)
    if size and count % size == 0 and (places == np.arange(count) // (count // size)).all():
        return elements_repeated(node, x, axis, count // size)
    return taken(node, x, axis, places)


def elements_repeated(node: ModelNode, x: Value, axis: int, times: int) -> Value:
    """`x` with each element along an axis several times."""
    if times == 1:
        return x
    apart = unsqueezed(node, x, [axis + 1])
    counts = [Dim.of(times if i == axis + 1 else 1) for i in range(apart.rank)]
    shape = [*x.shape[:axis], x.shape[axis] * Dim.of(times), *x.shape[axis + 1 :]]
    return reshaped(node, repeated(node, apart, counts), shape)


def _product(
    node: ModelNode, x: Value, axis: int, samples: list[tuple[np.ndarray, np.ndarray]]
) -> Value:
    """A matrix product along an axis, with the weights of all its elements in a matrix."""
    size = x.shape[axis].value
    matrix = np.zeros((size, len(samples[0][0])))
    for places, weights in samples:
        rows = np.clip(places, 0, size - 1).astype(np.int64)
        np.add.at(matrix, (rows, np.arange(len(rows))), weights)
    return product_along(node, x, axis, node.known(matrix.astype(x.dtype)))
