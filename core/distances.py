"""Distances of numbers, in units in the last place."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .dtype_names import is_real

DIFFERENT = float("inf")
DIGITS = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The binary digits of real types."""


def scale(dtype: np.dtype[Any], digits: int) -> float:
    """The number of units of a type in one unit of a type with fewer binary `digits`."""
    own = {"bfloat16": 8, "float16": 11, "float64": 53}.get(dtype.name, 24)
    return 2.0 ** max(0, own - digits)


def distance(got: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """The distance of results, as in `Change` of a pass, and the number of elements that differ.

    Integers are equal or infinitely far apart.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return DIFFERENT, max(got.size, expected.size)
    same = (got == expected) | ((got != got) & (expected != expected))
    if not is_real(got.dtype):
        return (0.0 if same.all() else DIFFERENT), int(np.count_nonzero(~same))
    changed = int(np.count_nonzero(~same))
    if not changed:
        return 0.0, 0
    finite = np.isfinite(got) & np.isfinite(expected)
    if not (finite | same).all():
        return DIFFERENT, changed
    wide = np.float64 if got.dtype.itemsize < 8 else np.longdouble
    a, b = got[finite].astype(wide), expected[finite].astype(wide)
    largest = np.asarray(max(np.max(np.abs(a)), np.max(np.abs(b)))).astype(got.dtype)
    unit = np.spacing(largest) if got.dtype.kind == "f" else largest * 2.0**-7
    return float(np.max(np.abs(a - b)) / wide(unit)), changed


def elements_apart(got: np.ndarray, expected: np.ndarray, limit: float) -> np.ndarray:
    """The elements that are further apart than a limit, by the measure of `distance`."""
    if not is_real(got.dtype):
        return (got != expected) & ~((got != got) & (expected != expected))
    wide = np.float64 if got.dtype.itemsize < 8 else np.longdouble
    a, b = got.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        far, (ulp, _) = np.abs(a - b), distance(got, expected)
    largest = np.max(far, initial=0, where=np.isfinite(far))
    # The largest difference is `ulp` units.
    near = far <= (limit / ulp * largest if 0 < ulp < DIFFERENT else 0)
    return ~(near | (got == expected) | (np.isnan(a) & np.isnan(b)))


def worst(got: np.ndarray, expected: np.ndarray) -> tuple[int, ...] | None:
    """The index of the element that is furthest off."""
    if got.shape != expected.shape or not got.size:
        return None
    wide = np.float64
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(wide) - expected.astype(wide))
    off = np.where(np.isnan(off) & (got != expected), np.inf, np.nan_to_num(off, posinf=np.inf))
    off = np.where(np.isnan(got) & np.isnan(expected), 0, off)
    return cast("tuple[int, ...]", tuple(map(int, np.unravel_index(np.argmax(off), off.shape))))
