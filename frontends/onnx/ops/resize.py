"""Resize, and Upsample before it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.formulas import FormulaTerm
from ...importing.resizing import (
    COORDINATES,
    NEAREST,
    AxisMovement,
    Filter,
    Numbers,
    cubic,
    elements_repeated,
    interpolated,
    linear,
    nearest,
)
from ...importing.selection import apart
from ...importing.shapes import reshaped, unsqueezed
from ...importing.values import Value, is_static
from ..dynamic import Element, numbers_below
from ..nodes import Node
from ..registry import converts


@dataclass(frozen=True)
class _ResizedAxis:
    """An axis that is resized.

    Attributes:
        axis: which one.
        size: its new size, None for its own size times the scale.
        scale: the factor; a scalar of f64 where it comes at run time.
        roi: the part that is taken, in fractions of it.
    """

    axis: int
    size: Element | None
    scale: Numbers
    roi: tuple[Numbers, Numbers] = (0.0, 1.0)

    @property
    def is_known(self) -> bool:
        """Whether the scale and the part are numbers."""
        return not any(isinstance(number, FormulaTerm) for number in (self.scale, *self.roi))


@dataclass(frozen=True)
class _Way:
    """How elements of a result are found: by a rounding or a filter, at these coordinates."""

    coordinates: str
    method: str | Filter
    extrapolation: float = 0.0


@converts("Upsample", since=1)
def upsample_rows_and_columns(node: Node) -> Value:
    scales = [node.attr_float(f"{name}_scale") for name in ("height", "width")]
    return _upsampled(node, [1.0, 1.0, *scales])


@converts("Upsample", since=7)
def upsample_attribute(node: Node) -> Value:
    return _upsampled(node, node.attr_floats("scales") or [])


@converts("Upsample", since=9)
def upsample(node: Node) -> Value:
    return _upsampled(node, _factors(node, 1))


@converts("Resize", since=10)
def resize_by_scales(node: Node) -> Value:
    return _upsampled(node, _factors(node, 1))


def _upsampled(node: Node, scales: Sequence[float | FormulaTerm]) -> Value:
    """By factors of all axes, as before opset 11."""
    mode = node.attr_string("mode", "nearest")
    if mode not in ("nearest", "linear", "bilinear"):
        raise node.broken("mode is unknown", "nearest or linear", mode)
    method = "floor" if mode == "nearest" else Filter(linear, 1)
    axes = _scaled(node, range(node.input(0).rank), scales)
    return _resized(node, axes, _Way("asymmetric", method))


@converts("Resize", since=11)
def resize(node: Node) -> Value:
    axes, wanted = _axes(node), [index for index in (2, 3) if _is_given(node, index)]
    if len(wanted) != 1:
        raise node.broken("either scales or sizes must be given", 1, len(wanted))
    policy = node.attr_string("keep_aspect_ratio_policy", "stretch")
    by_scale = wanted == [2]
    found = _scaled(node, axes, _factors(node, 2)) if by_scale else _sized(node, axes, policy)
    coordinates = node.attr_string("coordinate_transformation_mode", "half_pixel")
    if coordinates not in COORDINATES:
        fact = "coordinate_transformation_mode is unknown"
        raise node.broken(fact, ", ".join(COORDINATES), coordinates)
    if coordinates == "tf_crop_and_resize":
        # The operand `roi` names parts of the axes.
        numbers = _factors(node, 1) if _is_given(node, 1) else []
        if len(numbers) != 2 * len(axes):
            raise node.broken("roi does not fit", f"{2 * len(axes)} numbers", len(numbers))
        ends = zip(numbers[: len(axes)], numbers[len(axes) :], strict=True)
        found = [replace(axis, roi=part) for axis, part in zip(found, ends, strict=True)]
    return _resized(
        node, found, _Way(coordinates, _method(node), node.attr_float("extrapolation_value"))
    )


def _axes(node: Node) -> list[int]:
    rank, given = node.input(0).rank, node.attr_ints("axes")
    return list(range(rank)) if given is None else node.axes(given, rank)


def _is_given(node: Node, index: int) -> bool:
    """Whether an operand is given, and not empty."""
    value = node.optional(index)
    return value is not None and value.shape != (0,)


def _factors(node: Node, index: int) -> list[float | FormulaTerm]:
    """The elements of an operand of floats: numbers where known, else scalars of f64."""
    value = node.input(index)
    if value.contents is not None and not value.is_symbolic:
        return [float(number) for number in value.contents.flat]
    if value.rank != 1 or not is_static(value.shape):
        raise node.unsupported(f"operand {index} has an unknown number of elements")
    parts = apart(node, value, 0, [1] * value.shape[0].value)
    return [FormulaTerm.of(node, reshaped(node, part, [])) for part in parts]


def _scaled(
    node: Node, axes: Sequence[int], scales: Sequence[float | FormulaTerm]
) -> list[_ResizedAxis]:
    known = [scale for scale in scales if not isinstance(scale, FormulaTerm)]
    if len(scales) != len(axes) or not all(0 < scale < math.inf for scale in known):
        raise node.broken("scales do not fit", f"{len(axes)} positive numbers", known)
    return [_ResizedAxis(axis, None, scale) for axis, scale in zip(axes, scales, strict=True)]


def _sized(node: Node, axes: Sequence[int], policy: str) -> list[_ResizedAxis]:
    sizes, shape = node.elements(3), node.input(0).shape
    if len(sizes) != len(axes):
        raise node.broken("sizes do not fit", f"{len(axes)} numbers", len(sizes))
    for axis, size in zip(axes, sizes, strict=True):
        count = size.value if isinstance(size, Dim) and size.is_static else 1
        if count < 1 and shape[axis] != 0:
            raise node.broken("a size does not fit", "1 or more", size)
    found = [
        _ResizedAxis(axis, size, _ratio(node, size, shape[axis]))
        for axis, size in zip(axes, sizes, strict=True)
    ]
    if policy == "stretch":
        return found
    if policy not in ("not_larger", "not_smaller"):
        expected = "stretch, not_larger or not_smaller"
        raise node.broken("keep_aspect_ratio_policy is unknown", expected, policy)
    chosen: Callable[[Numbers, Numbers], Numbers]
    chosen = np.minimum if policy == "not_larger" else np.maximum
    scale = functools.reduce(chosen, [axis.scale for axis in found])
    return [_ResizedAxis(axis, _rounded(node, scale, shape[axis]), scale) for axis in axes]


def _ratio(node: Node, size: Element, own: Dim) -> float | FormulaTerm:
    if isinstance(size, Dim) and (size == own or (size.is_static and own.is_static)):
        return 1.0 if size == own else size.value / (own.value or 1)
    return FormulaTerm.of(node, size) / FormulaTerm.of(node, own)


def _rounded(node: Node, scale: float | FormulaTerm, size: Dim) -> Element:
    """A size times a factor, halves rounded up."""
    if not isinstance(scale, FormulaTerm) and size.is_static:
        return Dim.of(math.floor(scale * size.value + 0.5))
    return np.floor(FormulaTerm.of(node, size) * scale + 0.5).as_type(np.int64)


def _method(node: Node) -> str | Filter:
    """A rounding for the nearest element, or a filter."""
    mode = node.attr_string("mode", "nearest")
    rounding = node.attr_string("nearest_mode", "round_prefer_floor")
    a = node.attr_float("cubic_coeff_a", -0.75)
    flags = bool(node.attr_int("antialias")), bool(node.attr_int("exclude_outside"))
    if mode == "nearest":
        if rounding not in NEAREST:
            raise node.broken("nearest_mode is unknown", ", ".join(NEAREST), rounding)
        return rounding
    if mode not in ("linear", "cubic"):
        raise node.broken("mode is unknown", "nearest, linear or cubic", mode)
    if mode == "linear":
        return Filter(linear, 1, *flags)
    return Filter(functools.partial(cubic, a=a), 2, *flags)


def _resized(node: Node, axes: Sequence[_ResizedAxis], way: _Way) -> Value:
    x = node.input(0)
    for axis in axes:
        same = axis.is_known and (axis.scale, *axis.roi) == (1.0, 0.0, 1.0)
        if same and way.coordinates != "tf_half_pixel_for_nn":
            continue
        x = _repeated(node, x, axis, way) or _along(node, x, axis, way)
    return x


def _along(node: Node, x: Value, axis: _ResizedAxis, way: _Way) -> Value:
    """The tensor with one axis resized."""
    y, extent = _positions(node, x, axis)
    at = COORDINATES[way.coordinates](y, extent)
    if not isinstance(way.method, str):
        if way.method.antialias and not extent.least:
            raise node.unsupported("antialias with a scale that comes at run time")
        result = interpolated(node, x, axis.axis, at, extent, way.method)
    else:
        result = nearest(node, x, axis.axis, at, NEAREST[way.method])
    if way.coordinates != "tf_crop_and_resize":
        return result
    beyond = (at < 0) | (at > extent.size - 1)
    mask = beyond.value if isinstance(beyond, FormulaTerm) else node.known(beyond)
    column = unsqueezed(node, mask, list(range(1, x.rank - axis.axis)))
    return node.where(column, way.extrapolation, result)


def _positions(node: Node, x: Value, axis: _ResizedAxis) -> tuple[Numbers, AxisMovement]:
    """The numbers of the elements of an axis of the result, and its extent."""
    own, size, scale = x.shape[axis.axis], axis.size, axis.scale
    if axis.is_known and own.is_static and not isinstance(size, Value):
        count = math.floor(own.value * scale) if size is None else size.value
        if bool(count) != bool(own.value):
            raise node.broken("an empty dimension grows, or one becomes empty", own.value, count)
        y = np.arange(count, dtype=np.float64)
        return y, AxisMovement(own.value, count, scale, scale, *axis.roi)
    elements = FormulaTerm.of(node, own)
    if size is None:
        size = np.floor(elements * scale).as_type(np.int64)
    count = node.value(size, np.dtype(np.int64))
    if isinstance(axis.size, Value) or isinstance(scale, FormulaTerm):
        fits = node.equal(node.less(0, count), node.less(0, own))
        text = "an empty dimension grows, or one becomes empty, expected {0}, got {1}"
        count = node.check(count, fits, [node.number(own), count], text)
    declared = node.declared_sizes(x.rank)[axis.axis]
    y = FormulaTerm.of(node, numbers_below(node, count, declared))
    least = declared / own.value if declared and own.is_static and own.value else 0.0
    least = least if isinstance(scale, FormulaTerm) else scale
    return y, AxisMovement(elements, FormulaTerm.of(node, count), scale, least, *axis.roi)


def _repeated(node: Node, x: Value, axis: _ResizedAxis, way: _Way) -> Value | None:
    """A symbolic axis each element of which is repeated; None for another resizing.

    Positions of these transformations are the same for each element, so a few show those of all.
    """
    uniform = way.coordinates in ("half_pixel", "asymmetric")
    if isinstance(axis.scale, FormulaTerm) or x.shape[axis.axis].is_static or not uniform:
        return None
    times, size = round(axis.scale), 8
    if times != axis.scale or not isinstance(way.method, str):
        return None
    wide = np.arange(times * size, dtype=np.float64)
    at = COORDINATES[way.coordinates](wide, AxisMovement(size, times * size, times, times))
    places = np.clip(NEAREST[way.method](at), 0, size - 1)
    if not (places == wide // times).all():
        return None
    return elements_repeated(node, x, axis.axis, times)
