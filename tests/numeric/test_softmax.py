"""Softmax is precise wherever the maximum of a row is, and has the results of NumPy at the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from ..harness import RNG

Array = np.ndarray[Any, np.dtype[Any]]


def softmax(x: Array) -> Array:
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


def compiled(x: Array, target: str = "host") -> Array:
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", x.shape, str(x.dtype).replace("loat", "")), axis=1), name="y")
    return sw.compile(b.module(), threads=1, target=target)(x)


@pytest.mark.parametrize(("dtype", "reach"), [(np.float32, 60), (np.float64, 500)])
def test_differences_are_not_rounded(dtype: type[np.floating[Any]], reach: int) -> None:
    """From the maximum they would be, by 64 ulp of results around exp(-64)."""
    least = np.log(float(np.finfo(dtype).tiny)) + 5
    x = RNG.uniform(least + 1, 1, (31, 37)) + np.linspace(0, reach - 1, 31)[:, None]
    x[:, 0] = np.linspace(1, reach, 31)
    x = x.astype(dtype)
    exact = softmax(x.astype(np.longdouble))
    assert np.max(abs(compiled(x) - exact) / np.spacing(exact.astype(dtype))) < 5


def test_weights_of_entries_are_precise() -> None:
    x = np.linspace(-29, 35, 41)
    rows = sp.csr_array((x, np.arange(41), np.array([0, 41])), shape=(1, 41))
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((1, 41), "f64", nnz=41))
    b.output(b.edge_softmax(a, b.input("x", (41,), "f64")), name="y")
    y, exact = sw.compile(b.module(), threads=1)(rows, x), softmax(x.astype(np.longdouble))
    assert np.max(abs(y - exact) / np.spacing(exact.astype(np.float64))) < 5


@pytest.mark.parametrize("target", ["x86-64-v3", "host"])
def test_differences_are_not_above_64(target: str) -> None:
    """The origin of a large maximum, 60 below it, is rounded."""
    near_powers = np.outer(2.0 ** np.arange(120), 1 + 2.0**-24 * np.array([-1, 0, 2, 4, 6, 10]))
    top = np.concatenate([near_powers.ravel(), RNG.uniform(0, 1e5, 500)]).astype(np.float32)
    x = top[:, None] - np.array([0.0, 1.0, 45.0, 160.0, np.inf], np.float32)
    np.testing.assert_allclose(compiled(x, target), softmax(x), rtol=40 * 2.0**-23)


def rows(b: sw.Builder) -> Value:
    return b.log_softmax(b.softmax(b.input("x", (4, 64), "f32"), axis=1), axis=0)


def edges(b: sw.Builder) -> Value:
    a = b.input("a", sw.SparseSpec((9, 9), "f32", nnz=30))
    return b.edge_softmax(a, b.input("x", (30, 8), "f32"), own=b.input("own", (9, 8), "f32"))


def attention(b: sw.Builder) -> Value:
    return b.attention(*(b.input(name, (2, 64, 16), "f32") for name in "qkv"))


@pytest.mark.parametrize("make", [rows, edges, attention])
def test_exponentials_without_an_upper_bound(make: Callable[[sw.Builder], Value]) -> None:
    b = sw.Builder("main")
    b.output(make(b), name="y")
    text = Compilation.of(Request(b.module(), target="x86-64-v3")).text("llvm")
    assert "llvm.intr.maximum" in text
    assert "llvm.intr.minimum" not in text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends(dtype: type[np.floating[Any]]) -> None:
    """Maxima from which 60 or 500 cannot be taken exactly, negative ones, -inf, inf and NaN."""
    maxima = [0.0, 60.0, 61.0, 500.0, 501.0, 1e4, -1e-30, -61.0, -501.0, -1e10]
    maxima += [2.0**power for power in (23, 24, 29, 30, 31, 52, 53, 58, 59, 60, 61, 62, 100)]
    maxima += [float(np.finfo(dtype).max), -float(np.finfo(dtype).max)]
    top = np.array(maxima, dtype)[:, None]
    below = np.array([0.0, 1.0, 30.0, 1e3, np.inf], dtype)
    x = top - below
    np.testing.assert_allclose(compiled(x), softmax(x), rtol=40 * np.finfo(dtype).eps)
    ends = np.array([[np.inf, 0], [-np.inf, -np.inf], [np.nan, 0], [np.inf, -np.inf]], dtype)
    assert np.isnan(compiled(ends)).all()
