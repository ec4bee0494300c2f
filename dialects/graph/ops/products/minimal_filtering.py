"""Minimal filtering algorithms: m sums of r products each by m + r - 1 multiplications.

A filter g slides over a signal d: y[i] = sum over k of d[i + k] * g[k]. Polynomials of the lengths
m and r are multiplied by evaluating them at m + r - 1 points, multiplying the values, and
interpolating (Toom and Cook); transposed, that gives y = A (G g * B d) (Winograd, 1980; for images
Lavin and Gray, 2016, with the algorithm nested in itself).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .....core.bounded_cache import bounded_cache

POINTS = (0, 1, -1, Fraction(1, 2), -2)
"""Where polynomials are evaluated, besides infinity: the points with the smallest errors that a
search has found (Barabasz, Anderson, Soodhalter and Gregg, Error Analysis and Improving the
Accuracy of Winograd Convolution, 2020)."""
MOST = len(POINTS) + 1
"""The most multiplications of an algorithm, m + r - 1."""


@dataclass(frozen=True)
class MinimalFiltering:
    """The matrices of an algorithm, with n = m + r - 1.

    Attributes:
        signal: B, n x n: transforms a part of a signal. Its elements are integers.
        filter: G, n x r: transforms a filter.
        result: A, m x n: transforms the products.
    """

    signal: np.ndarray
    filter: np.ndarray
    result: np.ndarray


@bounded_cache
def minimal_filtering(m: int, r: int) -> MinimalFiltering:
    """The algorithm for m results of a filter of length r, with m + r - 1 <= `MOST`."""
    points = [Fraction(point) for point in POINTS[: m + r - 2]]
    signal, filter = list[Sequence[Fraction]](), list[Sequence[Fraction]]()
    for point in points:
        others = [other for other in points if other != point]
        factors, scale = _whole([*_with_roots(others), Fraction(0)])
        signal.append(factors)
        divisor = math.prod((point - other for other in others), start=scale)
        filter.append([point**k / divisor for k in range(r)])
    # The point at infinity, where the value of a polynomial is its leading coefficient.
    factors, scale = _whole(_with_roots(points))
    signal.append(factors)
    filter.append([*[Fraction(0)] * (r - 1), 1 / scale])
    result = [[*(point**k for point in points), Fraction(k == m - 1)] for k in range(m)]
    return MinimalFiltering(*(np.array(rows, np.float64) for rows in (signal, filter, result)))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the polynomial with these roots, that of the highest power last."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [a - root * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
    return found


def _whole(numbers: Sequence[Fraction]) -> tuple[list[Fraction], Fraction]:
    """The smallest multiples that are integers, and the factor."""
    scale = Fraction(math.lcm(*(number.denominator for number in numbers)))
    return [number * scale for number in numbers], scale
