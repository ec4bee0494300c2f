"""The formulas of `accuracy.py`.

On numbers of extended precision a formula is exact enough to compare f64 with: 64 bits, of which
sums of a thousand terms lose ten. In an element type it is what one would write in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from accuracy_inputs import COLUMN_OF, GRAPH, NODES, ROW_OF
from numpy.lib.stride_tricks import sliding_window_view

from stepwell.dialects.graph.ops.elementwise.activations import SELU_ALPHA, SELU_GAMMA

Array = np.ndarray
EPSILON = 1e-5
EXTENDED = np.dtype(np.longdouble)
_DIGITS = 25


# Functions


def _precisely(name: str, x: Array) -> Array:
    """A function of `mpmath` on an array of extended precision."""
    import mpmath

    functions: dict[str, Callable[[Any], Any]] = {
        "erf": mpmath.erf,
        # Twice the normal distribution: erfc does not cancel where erf is -1.
        "normal": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) if abs(x) < 1e4 else 2 * int(x > 0),
    }

    def one(x: np.longdouble) -> np.longdouble:
        value = mpmath.mpf(functions[name](mpmath.mpf(float(x))))
        if not mpmath.isfinite(value):
            return np.longdouble(float(value))
        mantissa, exponent = mpmath.frexp(value)
        high = float(mantissa)
        return np.ldexp(np.longdouble(high) + np.longdouble(float(mantissa - high)), int(exponent))

    with mpmath.workdps(_DIGITS):
        return np.array([one(number) for number in x.ravel()], EXTENDED).reshape(x.shape)


def erf(x: Array) -> Array:
    if x.dtype == EXTENDED:
        return _precisely("erf", x)
    from scipy import special

    return special.erf(x.astype(_of_scipy(x))).astype(x.dtype)


def _of_scipy(x: Array) -> type:
    return np.float64 if x.dtype == np.float64 else np.float32


def gelu(x: Array) -> Array:
    """x times the normal distribution of x."""
    if x.dtype == EXTENDED:
        return np.where(np.isneginf(x), np.nan, x / 2 * _precisely("normal", x))
    half, root = x.dtype.type(0.5), x.dtype.type(np.sqrt(0.5))
    return half * x * (x.dtype.type(1) + erf(x * root))


def gelu_by_tanh(x: Array) -> Array:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    real = x.dtype.type
    if x.dtype == EXTENDED:
        # (1 + tanh(u)) / 2 == 1 / (1 + exp(-2 u)), which does not cancel
        inner = np.sqrt(2 / np.longdouble(np.pi)) * (x + np.longdouble(0.044715) * x**3)
        return x / (1 + np.exp(-2 * inner))
    inner = real(np.sqrt(2 / np.pi)) * (x + real(0.044715) * x**3)
    return real(0.5) * x * (real(1) + np.tanh(inner))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


def elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, x.dtype.type(0))))


def selu(x: Array) -> Array:
    alpha, gamma = (x.dtype.type(n) for n in (SELU_ALPHA, SELU_GAMMA))
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, x.dtype.type(0))))


def sigmoid(x: Array) -> Array:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


# Rows


def softmax(x: Array) -> Array:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def log_softmax(x: Array) -> Array:
    shifted = x - np.max(x, -1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), -1, keepdims=True))


def mean_of_windows(x: Array) -> Array:
    return np.mean(sliding_window_view(x, (5, 5), (2, 3)), (-2, -1))


def convolution(x: Array, w: Array) -> Array:
    windows = sliding_window_view(x, w.shape[2:], (2, 3))
    flat = np.moveaxis(windows, 1, 3).reshape(*x.shape[:1], *windows.shape[2:4], -1)
    return np.moveaxis(flat @ w.reshape(len(w), -1).T, -1, 1)


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(q k^T / 8) v."""
    return softmax((q @ np.swapaxes(k, -1, -2)) * q.dtype.type(0.125)) @ v


def root(variance: Array) -> Array:
    return np.sqrt(variance + variance.dtype.type(EPSILON))


def standardized(x: Array, axes: tuple[int, ...]) -> Array:
    """x minus its mean, over its deviation, along some axes."""
    distance = x - np.mean(x, axes, keepdims=True)
    variance = np.mean(distance * distance, axes, keepdims=True)
    return distance / root(variance)


def along_channels(vector: Array) -> Array:
    return vector[:, None, None]


def normalized(x: Array, mean: Array, variance: Array) -> Array:
    return (x - along_channels(mean)) / root(along_channels(variance))


def scaled(x: Array, scale: Array, bias: Array) -> Array:
    return x * along_channels(scale) + along_channels(bias)


# Matrices and trees


def determinant(x: Array) -> Array:
    if x.dtype != EXTENDED:
        return np.linalg.det(x)
    x, found = x.copy(), np.ones(len(x), EXTENDED)
    every = np.arange(len(x))
    for k in range(x.shape[1]):
        pivot = k + np.argmax(abs(x[:, k:, k]), 1)
        x[every, k], x[every, pivot] = x[every, pivot], x[every, k].copy()
        found *= np.where(pivot == k, 1, -1) * x[:, k, k]
        x[:, k + 1 :] -= x[:, k + 1 :, k, None] / x[:, k, k, None, None] * x[:, k, None]
    return found


def blocked_convolution(x: Array, w: Array) -> Array:
    """`convolution` of images whose channels come in blocks, the last dimension."""
    n, count, *sizes, block = x.shape
    flat = np.moveaxis(x, -1, 2).reshape(n, count * block, *sizes)
    groups = count * block // w.shape[1]
    parts = zip(np.split(flat, groups, 1), np.split(w, groups), strict=True)
    y = np.concatenate([convolution(*part) for part in parts], axis=1)
    return np.moveaxis(y.reshape(n, -1, block, *y.shape[2:]), 2, -1)


# Quantised tensors


def quantized(x: Array, scale: Array, zero: Array) -> Array:
    """Numbers as integers of 8 bits."""
    with np.errstate(invalid="ignore"):
        q = np.nan_to_num(
            np.clip(np.rint(x / scale) + zero.astype(x.dtype), 0, 255), nan=float(zero)
        )
    return q.astype(np.uint8)


def of_quantized(
    product: Callable[[Array, Array], Array],
) -> Callable[..., Array]:
    """A product of integers of 8 bits with scales, as such integers."""

    def formula(x: Array, xs: Array, xz: Array, w: Array, ws: Array, wz: Array, *y: Array) -> Array:
        scale, zero = y
        total = product(x.astype(np.int64) - xz, w.astype(np.int64) - wz)
        factor = (xs * ws / scale).astype(scale.dtype)
        return quantized(total.astype(scale.dtype) * factor, np.ones_like(scale), zero)

    return formula


# Places and graphs


def added(count: int, places: Array, x: Array) -> Array:
    """The sums of what belongs to each place."""
    found = np.zeros((count, *x.shape[1:]), x.dtype)
    np.add.at(found, places, x)
    return found


def of_neighbours(x: Array) -> Array:
    return added(NODES, ROW_OF, x[COLUMN_OF])


def deviation(x: Array) -> Array:
    count = np.maximum(np.diff(GRAPH.indptr), 1).astype(x.dtype)[:, None]
    distance = x[COLUMN_OF] - (of_neighbours(x) / count)[ROW_OF]
    return np.sqrt(added(NODES, ROW_OF, distance * distance) / count)


def _exponentials(scores: Array, own: Array | None) -> tuple[Array, Array, Array]:
    """exp(score - max) of entries, of the rows themselves, and their sums."""
    top = np.full((NODES, scores.shape[1]), -np.inf, scores.dtype) if own is None else own.copy()
    np.maximum.at(top, ROW_OF, scores)
    e = np.exp(scores - top[ROW_OF])
    alone = np.zeros_like(top) if own is None else np.exp(own - top)
    return e, alone, added(NODES, ROW_OF, e) + alone


def softmax_of_entries(scores: Array) -> Array:
    e, _, total = _exponentials(scores, None)
    return e / total[ROW_OF]


def softmax_of_own(scores: Array, own: Array) -> Array:
    """What the rows themselves have of the softmax of their entries; stored loops are left out."""
    loops = (ROW_OF == COLUMN_OF)[:, None]
    _, alone, total = _exponentials(np.where(loops, -np.inf, scores).astype(scores.dtype), own)
    return alone / total


def by_degrees(a: Any, x: Array) -> Array:
    """D^-1/2 (A + I) D^-1/2 x, where I is added in rows without a diagonal entry."""
    dense = a.toarray()
    dense[np.diag_indices(NODES)] += (np.diagonal(dense) == 0).astype(dense.dtype)
    root = 1 / np.sqrt(dense.sum(1))[:, None]
    return root * (dense @ (root * x))
