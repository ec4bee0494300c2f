"""Random numbers, beside published ones, the reference, and their distribution."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.graph.ops.sources.threefry import first_word_of

from ..harness import RNG
from .test_operators import LEVELS, check_all


@pytest.mark.parametrize(
    ("key", "counter", "word"),
    [
        (0, 0, 0x9D1C5EC6),
        (-1, -1, 0xFD36D048),
        (0x03707344_13198A2E, 0x85A308D3_243F6A88 - (1 << 64), 0xBA3E4725),
    ],
)
def test_known_answers(key: int, counter: int, word: int) -> None:
    """The answers that Random123, the authors' library, is tested with."""
    assert first_word_of(np.array([key]), np.array([counter])) == [word]


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
def test_compiled(symbolic: bool, all_tests: bool) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (0, 3), (5, 37), (2, 3, 19)]
    seeds = [RNG.integers(-(1 << 63), (1 << 63) - 1, shape) for shape in shapes]
    levels = LEVELS if all_tests else [0] if symbolic else [3]
    programs = [(lambda b, x: b.random_uniform(x), [x]) for x in seeds]
    check_all(programs, symbolic=symbolic, levels=levels)


def test_one_seed() -> None:
    """Numbers of one seed are uniform, and others than those of the next seed."""
    b = sw.Builder("main")
    x, seed = b.input("x", ("n", 50), "i64"), b.input("seed", (), "i64")
    b.output(b.random_uniform(x + seed), name="y")
    exe = sw.compile(b.module(), threads=2)
    zeros = np.zeros((4000, 50), np.int64)
    y, other = (exe(zeros, np.array(seed)) for seed in (7, 8))
    assert 0 <= y.min() < 1e-4
    assert 1 - 1e-4 < y.max() < 1
    assert len(np.unique(y)) > 0.98 * y.size
    # Standard deviations of the mean and of a correlation are below 0.0025.
    assert abs(y.mean() - 0.5) < 0.005
    neighbours = [(y[:, 1:], y[:, :-1]), (y[1:], y[:-1]), (y, other)]
    for one, two in neighbours:
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.02
    counts = np.histogram(y, 16, (0, 1))[0] / y.size
    assert np.abs(counts - 1 / 16).max() < 0.005
    np.testing.assert_array_equal(exe(zeros[:3], np.array(7)), y[:3])
