"""Hyperbolic functions, inverses of functions and others, in ulps of the exact value."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw

from ..harness import cases

FUNCTIONS = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
EXPANDED = {"acos": 1.15, "asin": 1.17, "atan": 1.20}
EXPANDED |= {"expm1": 2.02, "log1p": 1.82, "tan": 0.8, "tanh": 3.33}
"""Errors in f32 of what is not computed in f64."""
LIBRARY = {"tan"}
"""Functions that the C library computes in f64."""


def limit(name: str, kind: str) -> float:
    """The largest error that is allowed."""
    if kind == "f64":
        return 2.5 if name in LIBRARY else 1.0
    return EXPANDED.get(name, 0.51) if kind == "f32" else 0.51


WIDE = {"f16": np.float64, "f32": np.float64, "f64": np.longdouble}


def values(dtype: np.dtype) -> np.ndarray:
    """Numbers of all sizes, those near the ends of domains, and special ones."""
    limits, random = np.finfo(dtype), np.random.default_rng(0)
    exponents = np.linspace(np.log(float(limits.tiny)), np.log(float(limits.max)) * 0.99, 997)
    near = [np.nextafter(dtype.type(1), dtype.type(n)) for n in (0, 2)]
    parts = [
        np.exp(exponents.astype(np.longdouble)),
        random.uniform(0, 4, 1001),
        random.uniform(0.9, 1.1, 499),
        [0.0, 1.0, *near, 0.5, 2.0, float(limits.max), np.inf, np.nan, 60.0, 88.9, 89.3, 709.9],
    ]
    found = np.concatenate(parts).astype(dtype)
    return np.concatenate([found, -found])


@pytest.mark.parametrize("kind", cases([*WIDE], ["f32", "f64"]))
def test_errors_in_ulps(kind: str) -> None:
    dtype = np.dtype(f"float{kind[1:]}")
    b = sw.Builder("main")
    x = b.input("x", ("n",), kind)
    for name in FUNCTIONS:
        b.output(getattr(b, name)(x), name=name)
    exe = sw.compile(b.module(), threads=1)
    with np.errstate(all="ignore"):
        given = values(dtype)
        for (name, function), got in zip(FUNCTIONS.items(), exe(given), strict=True):
            exact = function(given.astype(WIDE[kind]))
            wanted = exact.astype(dtype)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted), err_msg=name)
            np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted), err_msg=name)
            fine = np.isfinite(wanted)
            error = np.abs(got[fine].astype(WIDE[kind]) - exact[fine]) / np.spacing(
                np.abs(wanted[fine])
            ).astype(WIDE[kind])
            worst = int(np.argmax(error))
            assert error[worst] <= limit(name, kind), (name, given[fine][worst], error[worst])
            zero = given == 0
            if name not in ("acos", "cosh", "acosh"):
                np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(given[zero]))
