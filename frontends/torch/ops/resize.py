"""Interpolations of ATen, and elements at places that a grid gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.formulas import FormulaTerm
from ...importing.grids import PADDINGS, Sampling, sampled
from ...importing.resizing import (
    COORDINATES,
    AxisMovement,
    Filter,
    Numbers,
    cubic,
    elements_repeated,
    interpolated,
    linear,
    nearest,
)
from ...importing.shapes import places_of
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_F32 = np.dtype(np.float32)


@converts(
    *(f"aten.upsample_nearest{count}d.vec" for count in (1, 2, 3)),
    *(f"aten.upsample_nearest{count}d.default" for count in (1, 2, 3)),
)
def upsample_nearest(node: Node, x: Value, output_size: Any, *scales: Any) -> Value:
    """The element at floor(place * size / result size)."""
    return _nearest(node, x, _factors(x, scales), lambda place, step: np.floor(place * step))


@converts(
    *(f"aten._upsample_nearest_exact{count}d.vec" for count in (1, 2, 3)),
    *(f"aten._upsample_nearest_exact{count}d.default" for count in (1, 2, 3)),
)
def upsample_nearest_exact(node: Node, x: Value, output_size: Any, *scales: Any) -> Value:
    """The element in which the middle of each one of the result is."""
    return _nearest(
        node, x, _factors(x, scales), lambda place, step: np.floor((place + 0.5) * step)
    )


def _factors(x: Value, scales: Sequence[Any]) -> list[float | None]:
    """By how much each axis grows, where that is given: as one list, or a number for each axis."""
    given = list(scales[0]) if scales and isinstance(scales[0], (list, tuple)) else list(scales)
    return [*given, *[None] * (x.rank - 2 - len(given))]


def _nearest(
    node: Node,
    x: Value,
    factors: Sequence[float | None],
    place_of: Callable[[Numbers, Numbers], Numbers],
) -> Value:
    """One element for each of the result; torch computes its place in f32."""
    for axis, factor in enumerate(factors, 2):
        size, wanted = x.shape[axis], node.dimension(node.results[0].shape[axis])
        if size.is_static and wanted.is_static:
            step = np.float32(size.value / wanted.value if factor is None else 1 / factor)
            at: Numbers = place_of(np.arange(wanted.value, dtype=_F32), step)
        elif factor is not None and factor == int(factor):
            x = elements_repeated(node, x, axis, int(factor))
            continue
        else:
            sizes = (FormulaTerm.of(node, n, _F32) for n in (size, wanted))
            step = np.float32(1 / factor) if factor is not None else np.divide(*sizes)
            place = place_of(FormulaTerm.of(node, places_of(node, wanted), _F32), step)
            at = FormulaTerm.of(node, place.value)
        x = nearest(node, x, axis, at, lambda place: place)
    return x


@converts(
    "aten.upsample_linear1d.vec",
    "aten.upsample_linear1d.default",
    "aten.upsample_bilinear2d.vec",
    "aten.upsample_bilinear2d.default",
    "aten.upsample_trilinear3d.vec",
    "aten.upsample_trilinear3d.default",
)
def upsample_linear(
    node: Node, x: Value, output_size: Any, align_corners: bool, *scales: Any
) -> Value:
    return _weighted(node, x, Filter(linear, 1), align_corners, _factors(x, scales))


@converts("aten.upsample_bicubic2d.vec", "aten.upsample_bicubic2d.default")
def upsample_cubic(
    node: Node, x: Value, output_size: Any, align_corners: bool, *scales: Any
) -> Value:
    return _weighted(node, x, Filter(cubic, 2), align_corners, _factors(x, scales))


@converts("aten._upsample_bilinear2d_aa.vec", "aten._upsample_bilinear2d_aa.default")
def upsample_linear_antialiased(
    node: Node, x: Value, output_size: Any, align_corners: bool, *scales: Any
) -> Value:
    kernel = Filter(linear, 1, antialias=True, exclude_outside=True)
    return _weighted(node, x, kernel, align_corners, _factors(x, scales))


@converts("aten._upsample_bicubic2d_aa.vec", "aten._upsample_bicubic2d_aa.default")
def upsample_cubic_antialiased(
    node: Node, x: Value, output_size: Any, align_corners: bool, *scales: Any
) -> Value:
    weight = functools.partial(cubic, a=-0.5)
    kernel = Filter(weight, 2, antialias=True, exclude_outside=True)
    return _weighted(node, x, kernel, align_corners, _factors(x, scales))


def _weighted(
    node: Node, x: Value, kernel: Filter, align_corners: bool, factors: Sequence[float | None]
) -> Value:
    """A weighted sum of near elements for each of the result, one axis after the other."""
    if align_corners and kernel.antialias:
        raise node.unsupported("align_corners with antialias", "align_corners=False")
    coordinates = COORDINATES["align_corners" if align_corners else "half_pixel"]
    for axis, factor in enumerate(factors, 2):
        size, wanted = x.shape[axis], node.dimension(node.results[0].shape[axis])
        if size == wanted and factor in (None, 1):
            continue
        y, extent = _extent(node, size, wanted, None if align_corners else factor)
        if kernel.antialias and not extent.least:
            raise node.unsupported("antialias with sizes that differ from call to call")
        x = interpolated(node, x, axis, coordinates(y, extent), extent, kernel)
    return x


def _extent(
    node: Node, size: Dim, wanted: Dim, factor: float | None
) -> tuple[Numbers, AxisMovement]:
    """The numbers of the elements of an axis of the result, and the movement along the axis."""
    if size.is_static and wanted.is_static:
        scale = wanted.value / size.value if factor is None else factor
        return np.arange(wanted.value, dtype=np.float64), AxisMovement(
            size.value, wanted.value, scale, scale
        )
    elements, result = (FormulaTerm.of(node, n) for n in (size, wanted))
    scale = result / elements if factor is None else factor
    places = FormulaTerm.of(node, places_of(node, wanted))
    return places, AxisMovement(elements, result, scale, factor or 0.0)


# Grids

_MODES = ("linear", "nearest", "cubic")


@converts("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sample(
    node: Node, x: Value, grid: Value, mode: int, padding: int, align_corners: bool
) -> Value:
    name, outside = _MODES[mode], PADDINGS[padding]
    way = Sampling(name, outside, align_corners, moves_places=name != "cubic")
    return sampled(node, x, grid, way)
