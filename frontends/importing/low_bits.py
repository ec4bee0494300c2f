"""Conversions to low-bit floats that saturate, and those with a direction of rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...core.dtype_names import is_real
from ...core.dtypes import LOW_BIT_FLOATS
from .dtypes import element_type
from .elementwise import cast, clip
from .nodes import ModelNode
from .values import Value

_F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)
_POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)
_WITH_SPECIAL_VALUES = frozenset(
    map(
        np.dtype,
        (
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2,
            ml_dtypes.float8_e5m2fnuz,
        ),
    )
)
"""Floats to which saturation makes a difference: those of fewer bits always saturate."""


def computable(node: ModelNode, x: Value) -> Value:
    """`x`, as f32 if its elements are low-bit floats."""
    is_stored = x.dtype.name in LOW_BIT_FLOATS.values()
    return cast(node, x, _F32) if is_stored else x


def converted(
    node: ModelNode, x: Value, dtype: np.dtype, *, saturate: bool = True, round_mode: str = "up"
) -> Value:
    """`x` in another type, as ONNX defines a cast.

    `saturate` matters for floats of 8 bits, of which numbers beyond the largest one then become
    the largest one. `round_mode` matters for powers of two.
    """
    if dtype == x.dtype:
        return x
    if dtype == _POWERS:
        return _power_of_two(node, x, saturate, round_mode)
    if saturate and dtype in _WITH_SPECIAL_VALUES:
        largest = float(ml_dtypes.finfo(dtype).max)
        x = x if is_real(x.dtype) else cast(node, x, _F32)
        x = clip(node, x, -largest, largest)
    return cast(node, x, dtype)


# bits of f32 / 2**23 * 2**23 are those of the power of two below a positive number
def _power_of_two(node: ModelNode, x: Value, saturate: bool, round_mode: str) -> Value:
    if round_mode not in ("up", "down", "nearest"):
        raise node.broken("unknown round_mode", "up, down or nearest", round_mode)
    least = 2.0**-127
    x = node.abs(cast(node, x, _F32))
    if saturate:
        x = clip(node, x, least, 2.0**127)
    if round_mode == "nearest":
        return cast(node, x, _POWERS)
    bits = node.bitcast(x, target=element_type(_I32))
    unit = node.scalar(1 << 23, bits)
    bits = node.mul(node.div(bits, unit), unit)
    below = node.bitcast(bits, target=element_type(_F32))
    below = clip(node, below, least, None)
    if round_mode == "up":
        twice = node.mul(below, 2)
        below = node.where(node.less(below, x), twice, below)
    return cast(node, below, _POWERS)
