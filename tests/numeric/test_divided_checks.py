"""Long arrays of indices and offsets are checked in parts: errors are those of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import stepwell as sw
from stepwell.conversions.to_llvm.searches import FEWEST_PARTS, MOST_PARTS, PART_BITS
from stepwell.core.boundary.indices import explained_index, explained_offset

LEAST = PART_BITS // 64
"""How many 64-bit indices a part has at least."""
SIZES = (
    0,
    1,
    (FEWEST_PARTS - 1) * LEAST,
    (FEWEST_PARTS - 1) * LEAST + 1,
    FEWEST_PARTS * LEAST - 1,
    MOST_PARTS * LEAST + 37,
)
X = np.arange(7, dtype=np.float32)


def wrong_places(size: int, part: int) -> list[list[int]]:
    """Places that are wrong together: at both ends, at those of parts, and in two parts."""
    ends = [0, 1, part - 1, part, part + 1, 2 * part - 1, size - part, size - 1]
    alone = [[place] for place in dict.fromkeys(ends) if 0 <= place < size]
    return [*alone, [size - 1, size // 2, size // 2 + 1], [size // 2, 1]] if size > 2 else alone


def error_of(exe: sw.Executable, inputs: Sequence[np.ndarray]) -> str:
    with pytest.raises(sw.InputError) as caught:
        exe(*inputs)
    return str(caught.value)


def test_indices() -> None:
    b = sw.Builder("main")
    given = b.input("x", (7,), "f32"), b.input("i", ("n",), "i64")
    b.output(b.gather(*given), name="y")
    exe = sw.compile(b.module(), threads=2)
    for size in SIZES:
        indices = np.random.default_rng(size).integers(-7, 7, size)
        np.testing.assert_array_equal(exe(X, indices), X[indices])
        for places in wrong_places(size, max(LEAST, -(-size // MOST_PARTS))):
            wrong = indices.copy()
            wrong[places] = 7 + np.arange(len(places))
            first = min(places)
            assert explained_index(first, wrong[first], 7) in error_of(exe, [X, wrong])


def test_offsets() -> None:
    b = sw.Builder("main")
    given = b.input("x", (7,), "f32"), b.input("o", ("n",), "i32")
    b.output(b.segment_reduce(*given), name="y")
    exe = sw.compile(b.module(), threads=2)
    for size in (LEAST, 2 * FEWEST_PARTS * LEAST, 2 * MOST_PARTS * LEAST + 38):
        offsets = np.full(size, 3, np.int32)
        np.testing.assert_array_equal(exe(X, offsets), np.zeros(size - 1, np.float32))
        for places in wrong_places(size - 1, max(2 * LEAST, -(-(size - 1) // MOST_PARTS))):
            wrong = offsets.copy()
            wrong[places] = 4
            first = min(p for p in places if wrong[p + 1] < 4)
            assert explained_offset(first, 4, 7) in error_of(exe, [X, wrong])
