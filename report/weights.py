"""The elements of weights in few numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from .document import ReportedWeight

_PIECE = 1 << 20
"""How many elements are converted at a time: weights may be larger than memory."""


def weight_of(name: str, type: str, array: np.ndarray | csr_array) -> ReportedWeight:
    """A weight, and the statistics of its elements that are finite.

    Args:
        name: its name.
        type: its type as text.
        array: its elements; a sparse matrix has zeros where nothing is stored.
    """
    size = math.prod(array.shape)
    values = array.data if isinstance(array, csr_array) else array
    elsewhere = size - values.size
    # The elements that are not stored are as many zeros.
    count, zeros, total = elsewhere, elsewhere, 0.0
    least, most = (0.0, 0.0) if elsewhere else (math.inf, -math.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        for piece in _finite(values):
            count, zeros = count + piece.size, zeros + int((piece == 0).sum())
            total += float(piece.sum())
            least, most = min(least, float(piece.min())), max(most, float(piece.max()))
        mean = total / count if count else math.inf
        squares = sum(float(((piece - mean) ** 2).sum()) for piece in _finite(values))
        squares += elsewhere * mean * mean
    deviation = math.sqrt(squares / count) if count else math.inf
    return ReportedWeight(
        name,
        type,
        bytes=values.nbytes,
        not_finite=size - count,
        least=_if_finite(least),
        most=_if_finite(most),
        mean=_if_finite(mean),
        deviation=_if_finite(deviation),
        zeros=zeros / size if size else None,
    )


def _if_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _finite(values: np.ndarray) -> Iterator[np.ndarray]:
    """The finite elements, piece by piece, in double precision."""
    flat = values.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE].astype(np.float64)
        finite = piece[np.isfinite(piece)]
        if finite.size:
            yield finite
