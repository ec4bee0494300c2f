"""Sums weighted by a softmax over the entries of each row: one kernel that visits them twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

from .. import harness
from ..harness import close, floats
from .test_edges import PATTERNS, Case, aggregated, edges, near, run, softmax_by_rows


def attended(b: sw.Builder, a: Value, x: Value, s: Value, t: Value) -> Value:
    """Scores are made of both ends of an entry, as in GAT."""
    scores = b.leaky_relu(b.at_entries(a, s, axis=1) + b.at_entries(a, t, axis=0), 0.2)
    return b.aggregate(a, x, scores, kind="softmax")


WIDTHS = [(4, 16), (2, 5), (3, 40), (1, 8), (70, 2), (4, 0), (9,), (64,)]


@pytest.mark.parametrize("widths", harness.cases(WIDTHS, [(2, 5), (3, 40), (4, 0), (9,)]))
def test_sums_by_softmax(widths: tuple[int, ...], all_tests: bool) -> None:
    cases: list[Case] = []
    for a in PATTERNS.values():
        heads = widths[:1]
        x, s = floats(a.shape[1], *widths), 3 * floats(a.shape[1], *heads)
        t = floats(a.shape[0], *heads)
        scores = np.array([t[i] + s[j] for _, i, j in edges(a)]).reshape(-1, *heads)
        scores = np.where(scores < 0, 0.2 * scores, scores)
        shares = softmax_by_rows(a, scores)[0]
        cases.append(([a, x, s, t], aggregated(a, x, "sum", shares)))
    run(attended, cases, all_tests)


def attention(heads: int, width: int, threads: int, target: str = "host") -> sw.Executable:
    b = sw.Builder("main")
    values: list[Any] = [b.input("a", sw.SparseSpec(("n", "m"), "f32"))]
    values += [b.input("x", ("m", heads, width)), b.input("s", ("m", heads))]
    values.append(b.input("t", ("n", heads)))
    b.output(attended(b, *values), name="y")
    return sw.compile(b.module(), threads=threads, target=target)


@pytest.mark.parametrize("threads", harness.cases([1, 2], [2]))
def test_scores_that_are_no_numbers_and_large_ones(threads: int) -> None:
    a = PATTERNS["usual"]
    exe = attention(4, 16, threads)
    x, s, t = floats(9, 4, 16), floats(9, 4) * 80, floats(11, 4)
    s[3, 1], s[4, 2], s[5, 0] = np.nan, np.inf, -np.inf
    module = sw.Builder("main")
    inputs = [module.input(f"x{n}", v.shape) for n, v in enumerate((x, s, t))]
    pattern = module.input("a", sw.SparseSpec(a.shape, "f32", nnz=a.nnz))
    module.output(attended(module, pattern, *inputs), name="y")
    want = module.module().run_reference(x, s, t, a)
    got = exe(a, x, s, t)
    assert np.isnan(want).any()
    assert not np.isnan(want).all()
    close(got, want, 2e-5)


def test_heads_are_one_block() -> None:
    text = attention(4, 16, 1).ir("scheduled")
    assert text.count("loop.kernel") == 1
    assert "vectorize(j, l)" in text
    # The exponentials of all heads of an entry are one vector.
    found = [line for line in text.splitlines() if "math.exp" in line]
    assert len(found) == 1
    assert found[0].endswith("vector<4x1xf32>")


@pytest.mark.parametrize(
    ("heads", "width", "blocks"),
    [
        (8, 16, "split(j, 4, tail=even); vectorize(j1, l)"),
        (5, 24, "split(j, 2, tail=even); vectorize(j1, l); vectorize(j1t, lt)"),
        (2, 40, "vectorize(l)"),  # a head alone takes more than half of the registers
    ],
)
def test_heads_are_several_blocks(heads: int, width: int, blocks: str) -> None:
    """Sixteen registers hold eight accumulators beside what an entry is multiplied by."""
    exe = attention(heads, width, 1, "x86-64-v3")
    text = exe.ir("scheduled")
    assert [step for step in blocks.split("; ") if step not in text] == []
    a = PATTERNS["usual"]
    x, s, t = floats(9, heads, width), 3 * floats(9, heads), floats(11, heads)
    scores = np.array([t[i] + s[j] for _, i, j in edges(a)])
    shares = softmax_by_rows(a, np.where(scores < 0, np.float32(0.2) * scores, scores))[0]
    near(exe(a, x, s, t), aggregated(a, x, "sum", shares))


def test_maxima_of_rows_of_given_scores_are_computed_once() -> None:
    b = sw.Builder("main")
    e, a = b.input("e", ("k", 4)), b.input("a", sw.SparseSpec(("n", "m"), "f32", nnz="k"))
    b.output(b.edge_softmax(a, b.leaky_relu(e, 0.1)), name="y")
    exe = sw.compile(b.module(), threads=1)
    text = exe.ir("kernels")
    # Both reductions over a row are outside of the loop over its entries.
    assert 0 < text.rindex('loop.for "e') < text.index('loop.for "l"')
    matrix = PATTERNS["usual"]
    scores = floats(matrix.nnz, 4)
    want = softmax_by_rows(matrix, np.where(scores < 0, np.float32(0.1) * scores, scores))[0]
    near(exe(scores, matrix), want)
