"""Shapes that no tensor can have are refused before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.errors import ImportModelError, explain

LARGEST_TENSOR = 1 << 40  # bytes; more than the memory of any target
LARGEST_RANK = 64  # NumPy's


def check_shape(dims: Sequence[int], itemsize: int, subject: str) -> None:
    """Refuse a shape that no tensor can have.

    Raises:
        ImportModelError: for a negative dimension, a rank above 64 or more than a tebibyte.
    """
    if len(dims) > LARGEST_RANK:
        raise _absurd(subject, "absurd rank", f"at most {LARGEST_RANK}", len(dims))
    if any(d < 0 for d in dims):
        raise _absurd(subject, "negative dimension", None, shown(dims))
    # A dimension of 0 does not excuse an absurd one, because strides overflow.
    if math.prod(max(d, 1) for d in dims) * itemsize > LARGEST_TENSOR:
        raise _absurd(subject, "absurd dimensions", "at most 1 TiB", shown(dims))


def shown(dims: Sequence[int]) -> str:
    """A shape in an error message."""
    return "x".join(str(d) for d in dims[:8]) + ("..." if len(dims) > 8 else "")


def _absurd(subject: str, fact: str, expected: object, got: object) -> ImportModelError:
    return ImportModelError(explain(subject, fact, expected=expected, got=got))
