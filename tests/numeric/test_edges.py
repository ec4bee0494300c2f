"""Operators on edges against formulas that go through a graph edge by edge, then compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from .. import harness
from ..harness import close, floats, results

Build = Callable[..., Value]
Case = tuple[Sequence[Any], np.ndarray]
"""The inputs of a program, and the result that is expected."""


def pattern(rows: int, columns: int, density: float = 0.4) -> sp.csr_array:
    """A matrix whose first third of rows is empty; stored values are of both signs."""
    dense = floats(rows, columns)
    dense[np.random.default_rng(5).random((rows, columns)) > density] = 0
    dense[: rows // 3] = 0
    return with_narrow_indices(sp.csr_array(dense))


def with_narrow_indices(a: sp.csr_array) -> sp.csr_array:
    a.indptr, a.indices = a.indptr.astype(np.int32), a.indices.astype(np.int32)
    return a


PATTERNS: dict[str, sp.csr_array] = {
    "usual": pattern(11, 9),
    "no_entries": with_narrow_indices(sp.csr_array((5, 4), dtype=np.float32)),
    "one_entry": with_narrow_indices(sp.csr_array(np.ones((1, 1), np.float32))),
    "one_row": pattern(1, 7, 0.8),
    "long_row": with_narrow_indices(sp.csr_array(np.ones((2, 70), np.float32))),
}


def edges(a: sp.csr_array) -> list[tuple[int, int, int]]:
    """Position, row and column of every stored entry."""
    rows = [i for i in range(a.shape[0]) for _ in range(a.indptr[i], a.indptr[i + 1])]
    return [(p, i, int(j)) for p, (i, j) in enumerate(zip(rows, a.indices, strict=True))]


@functools.cache
def compiled(text: str, level: int) -> sw.Executable:
    """A program of symbolic sizes is one for all patterns."""
    return sw.compile(sw.from_mlir(text), threads=1, opt_level=level)


def add(b: sw.Builder, program: Build, inputs: Sequence[Any], symbolic: bool, first: int) -> None:
    """Add a program with inputs, numbered from `first`, and a result of its own."""
    values: list[Value] = []
    for number, array in enumerate(inputs, first):
        shape = tuple(f"n{number}_{i}" if symbolic else n for i, n in enumerate(array.shape))
        if isinstance(array, np.ndarray):
            # Widths of dimensions that have to agree with others keep their numbers.
            values.append(b.input(f"x{number}", (*shape[:1], *array.shape[1:]), "f32"))
        else:
            entries = None if symbolic else array.nnz
            values.append(b.input(f"x{number}", sw.SparseSpec(shape, "f32", nnz=entries)))
    b.output(program(b, *values), name=f"y{first}")


def run(program: Build, cases: Sequence[Case], all_tests: bool) -> None:
    """Compare the reference and the compiled program with what is expected.

    A program of symbolic sizes is one for all cases; those of static sizes are in one module, with
    kernels of their own. Both are compiled at both levels; where slow tests are left out, one is at
    each, and there are two of static sizes.
    """
    b, arrays, known = sw.Builder("main"), list[Any](), cases if all_tests else cases[:2]
    for inputs, expected in cases:
        symbolic = sw.Builder("main")
        add(symbolic, program, inputs, True, 0)
        module = symbolic.module()
        for result in (
            module.run_reference(*inputs),
            *(compiled(str(module), level)(*inputs) for level in ((0, 3) if all_tests else (3,))),
        ):
            near(result, expected)
    for inputs, _ in known:
        add(b, program, inputs, False, len(arrays))
        arrays += inputs
    module = b.module()
    exes = [sw.compile(module, threads=1, opt_level=n) for n in ((0, 3) if all_tests else (0,))]
    for found in (exe(*arrays) for exe in (module.run_reference, *exes)):
        for result, (_, expected) in zip(results(found), known, strict=True):
            near(result, expected)


def near(result: np.ndarray, expected: np.ndarray) -> None:
    """The tolerance is some units in the last place of sums of up to 70 terms, and of exp."""
    close(result, expected.astype(np.float32), 2e-5)


def softmax_by_rows(
    a: sp.csr_array, scores: np.ndarray, own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The softmax of the scores of each row; entries, then own scores in place of self loops."""
    shares = np.zeros(scores.shape)
    rest = np.zeros((a.shape[0], *scores.shape[1:]))
    for i in range(a.shape[0]):
        part = scores[a.indptr[i] : a.indptr[i + 1]].astype(float)
        if own is not None:
            part[a.indices[a.indptr[i] : a.indptr[i + 1]] == i] = -np.inf
            part = np.concatenate([part, own[i : i + 1]])
        e = np.exp(part - part.max(0)) if len(part) else part
        e = e / e.sum(0)
        shares[a.indptr[i] : a.indptr[i + 1]] = e[: len(e) if own is None else -1]
        if own is not None:
            rest[i] = e[-1]
    return shares, rest


def aggregated(
    a: sp.csr_array, x: np.ndarray, kind: str, weights: np.ndarray | None = None
) -> np.ndarray:
    result = np.full((a.shape[0], *x.shape[1:]), 1.0 if kind == "prod" else 0.0)
    for i in range(a.shape[0]):
        arriving = []
        for p in range(a.indptr[i], a.indptr[i + 1]):
            message = x[a.indices[p]].astype(float)
            if weights is not None:
                weight = weights[p]
                trailing = [1] * (message.ndim - weight.ndim)
                message = message * weight.reshape(*weight.shape, *trailing)
            arriving.append(message)
        if arriving:
            result[i] = getattr(np, kind)(arriving, axis=0)
    return result


def test_entries(all_tests: bool) -> None:
    cases = [([a], 2 * a.data) for a in PATTERNS.values()]
    run(lambda b, a: b.entries(a) * 2.0, cases, all_tests)


@pytest.mark.parametrize(
    ("kind", "middle"),
    [
        *(("dot", ()), ("sub", (2,))),
        *(pytest.param(k, (2,), marks=pytest.mark.slow) for k in ("dot", "add", "mul")),
        *(pytest.param(k, (), marks=pytest.mark.slow) for k in ("add", "sub", "mul")),
    ],
)
def test_sddmm(kind: str, middle: tuple[int, ...], all_tests: bool) -> None:
    formulas = {
        "dot": lambda u, v: (u * v).sum(-1),
        "add": lambda u, v: u + v,
        "sub": lambda u, v: u - v,
        "mul": lambda u, v: u * v,
    }
    width = middle if kind == "dot" else (*middle, 5)
    cases: list[Case] = []
    for a in PATTERNS.values():
        x, y = floats(a.shape[0], *middle, 5), floats(a.shape[1], *middle, 5)
        expected = np.zeros((a.nnz, *width))
        for p, i, j in edges(a):
            expected[p] = formulas[kind](x[i].astype(float), y[j])
        cases.append(([a, x, y], expected))
    run(lambda b, a, x, y: b.sddmm(a, x, y, kind), cases, all_tests)
    if kind != "dot" and not all_tests:
        return
    positive = [(inputs, np.maximum(expected, 0)) for inputs, expected in cases]
    run(lambda b, a, x, y: b.relu(b.sddmm(a, x, y, kind)), positive, all_tests)


@pytest.mark.parametrize("heads", harness.cases([(), (3,), (40,)], [(40,)]))
def test_softmax_over_entries(heads: tuple[int, ...], all_tests: bool) -> None:
    pairs = ((a, 5 * floats(a.nnz, *heads)) for a in PATTERNS.values())
    cases = [([a, scores], softmax_by_rows(a, scores)[0]) for a, scores in pairs]
    run(lambda b, a, e: b.edge_softmax(a, e), cases, all_tests)


@pytest.mark.parametrize(
    "name", harness.cases(list(PATTERNS), ["no_entries", "one_entry", "long_row"])
)
def test_softmax_over_entries_of_one_head_before_what_broadcasts(name: str) -> None:
    a = PATTERNS[name]
    scores, scales = 5 * floats(a.nnz, 1), floats(1, 3)
    b = sw.Builder("main")
    pattern = b.input("a", sw.SparseSpec(a.shape, "f32", nnz="edges"))
    shares = b.edge_softmax(pattern, b.input("e", ("edges", 1)))
    b.output(b.mul(shares, b.constant(scales)), name="y")
    expected = softmax_by_rows(a, scores)[0] * scales
    got = sw.compile(b.module(), threads=1)(a, scores)
    near(got, expected)


def squared(a: sp.csr_array) -> sp.csr_array:
    """The entries in a square matrix, with empty rows or columns at its end."""
    a = a.copy()
    a.resize(max(a.shape), max(a.shape))
    return with_narrow_indices(a)


@pytest.mark.parametrize("heads", harness.cases([(), (3,), (40,)], [(3,)]))
def test_softmax_beside_self_loops(heads: tuple[int, ...], all_tests: bool) -> None:
    shares: list[Case] = []
    rest: list[Case] = []
    for a in map(squared, PATTERNS.values()):
        scores, own = 5 * floats(a.nnz, *heads), 5 * floats(a.shape[0], *heads)
        inputs, expected = [a, scores, own], softmax_by_rows(a, scores, own)
        shares.append((inputs, expected[0]))
        rest.append((inputs, expected[1]))
    run(lambda b, a, e, s: b.edge_softmax(a, e, s), shares, all_tests)
    run(lambda b, a, e, s: b.own_softmax(a, e, s), rest, all_tests)


def test_softmax_of_large_scores(all_tests: bool) -> None:
    a = PATTERNS["usual"]
    scores = 1e4 * floats(a.nnz)
    expected = softmax_by_rows(a, scores)[0]
    run(lambda b, a, e: b.edge_softmax(a, e), [([a, scores], expected)], all_tests)


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        *(("sum", (2, 5)), ("max", (40,)), ("mean", (1,))),
        *(pytest.param("sum", width, marks=pytest.mark.slow) for width in ((1,), (40,))),
        *(pytest.param("max", width, marks=pytest.mark.slow) for width in ((1,), (2, 5))),
        *(pytest.param("mean", width, marks=pytest.mark.slow) for width in ((40,), (2, 5))),
        *(pytest.param("min", width, marks=pytest.mark.slow) for width in ((1,), (40,), (2, 5))),
    ],
)
def test_aggregate(kind: str, width: tuple[int, ...], all_tests: bool) -> None:
    plain: list[Case] = []
    weighted: list[Case] = []
    for a in PATTERNS.values():
        x, weights = floats(a.shape[1], *width), floats(a.nnz, *width[:-1])
        plain.append(([a, x], aggregated(a, x, kind)))
        weighted.append(([a, x, weights], aggregated(a, x, kind, weights)))
    run(lambda b, a, x: b.aggregate(a, x, kind=kind), plain, all_tests)
    if all_tests or kind != "mean":
        run(lambda b, a, x, e: b.aggregate(a, x, e, kind), weighted, all_tests)


@pytest.mark.parametrize(
    ("kind", "width", "depth"),
    [
        *(("sum", 40, 5), ("max", 70, 200), ("std", 16, 5)),
        pytest.param("min", 3, 5, marks=pytest.mark.slow),
        pytest.param("max", 40, 5, marks=pytest.mark.slow),
        pytest.param("mean", 16, 5, marks=pytest.mark.slow),
    ],
)
def test_products_of_messages(kind: str, width: int, depth: int) -> None:
    w, bias = floats(width, depth) / depth, floats(width)
    b = sw.Builder()
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32", nnz="edges"))
    x, y = b.input("x", ("m", depth)), b.input("y", ("n", depth))
    ends = b.relu(b.at_entries(a, x, axis=1) - b.at_entries(a, y, axis=0))
    b.output(b.reduce_entries(a, b.dense(ends, w) + bias, kind))
    exe = sw.compile(b.module(), threads=2)
    for matrix in PATTERNS.values():
        (n, m), entries = matrix.shape, np.arange(matrix.nnz)
        own, other = floats(m, depth), floats(n, depth)
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        messages = np.maximum(own[matrix.indices] - other[rows], 0) @ w.T + bias
        positions = sp.csr_array((np.ones(matrix.nnz), entries, matrix.indptr), (n, matrix.nnz))
        near(exe(matrix, own, other), aggregated(positions, messages, kind))
    # Nothing of the edges is written to memory, where the product is computed once for each.
    alone = width >= 16 and kind != "std"
    text = exe.ir("scheduled")
    assert (text.count("loop.kernel") == 1) == alone
    assert ("stage_terms(" in text) == alone


@pytest.mark.parametrize("kind", harness.cases(["prod", "var", "std"], ["prod", "var"]))
def test_aggregate_of_other_kinds(kind: str, all_tests: bool) -> None:
    def program(b: sw.Builder, a: Value, x: Value, e: Value, m: Value) -> Value:
        parts = [b.aggregate(a, x, e, kind), b.reduce_entries(a, m, kind)]
        return b.concat([*parts, b.aggregate(a, x, kind=kind)], axis=1)

    cases: list[Case] = []
    for a in PATTERNS.values():
        x, weights = 1 + 0.1 * floats(a.shape[1], 3), 1 + 0.1 * floats(a.nnz)
        messages = x[a.indices] * weights[:, None]
        weighted = aggregated(a, x, kind, weights)
        expected = np.concatenate([weighted, weighted, aggregated(a, x, kind)], axis=1)
        cases.append(([a, x, weights, messages], expected))
    run(program, cases, all_tests)


@pytest.mark.parametrize("kind", harness.cases(["sum", "mean", "max", "min"], ["mean"]))
def test_messages_of_both_ends(kind: str, all_tests: bool) -> None:
    def program(b: sw.Builder, a: Value, x: Value, y: Value, e: Value) -> Value:
        ends = b.at_entries(a, x, axis=1) - b.at_entries(a, y, axis=0)
        return b.reduce_entries(a, b.relu(ends) * e, kind)

    cases: list[Case] = []
    for a in PATTERNS.values():
        x, y, e = floats(a.shape[1], 5), floats(a.shape[0], 5), floats(a.nnz, 5)
        rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
        messages = np.maximum(x[a.indices] - y[rows], 0) * e
        positions = sp.csr_array((np.ones(a.nnz), np.arange(a.nnz), a.indptr), (a.shape[0], a.nnz))
        cases.append(([a, x, y, e], aggregated(positions, messages, kind)))
    run(program, cases, all_tests)
    b = sw.Builder()
    matrix = b.input("a", sw.SparseSpec((11, 9), "f32", nnz="edges"))
    given = [b.input("x", (9, 5)), b.input("y", (11, 5))]
    b.output(program(b, matrix, *given, b.input("e", ("edges", 5))))
    # Nothing of the edges is written to memory.
    text = Compilation.of(Request(b.module())).text("kernels")
    assert text.count("loop.kernel") == 1


def test_sum_by_stored_values_is_the_sparse_product(all_tests: bool) -> None:
    a, x = PATTERNS["usual"], floats(9, 5)
    run(lambda b, a, x: b.aggregate(a, x, b.entries(a)), [([a, x], a.toarray() @ x)], all_tests)


@pytest.mark.parametrize(
    ("heads", "width"),
    [
        *((2, 5), (1, 300)),
        *(pytest.param(2, width, marks=pytest.mark.slow) for width in (64, 200)),
        *(pytest.param(1, width, marks=pytest.mark.slow) for width in (5, 64, 100)),
    ],
)
def test_attention_by_sums(heads: int, width: int, all_tests: bool) -> None:
    def program(b: sw.Builder, a: Value, x: Value, s: Value, t: Value) -> Value:
        scores = b.leaky_relu(b.sddmm(a, t, s, "add"), 0.2)
        return b.aggregate(a, x, b.edge_softmax(a, scores))

    cases: list[Case] = []
    for a in PATTERNS.values():
        x = floats(a.shape[1], heads, width)
        s, t = floats(a.shape[1], heads), floats(a.shape[0], heads)
        scores = np.array([t[i] + s[j] for _, i, j in edges(a)]).reshape(-1, heads)
        scores = np.where(scores < 0, 0.2 * scores, scores)
        shares = softmax_by_rows(a, scores)[0]
        cases.append(([a, x, s, t], aggregated(a, x, "sum", shares)))
    run(program, cases, all_tests)


@pytest.mark.parametrize("size", harness.cases([1, 2, 4, 16, 50], [50]))
def test_attention_by_products(size: int, all_tests: bool) -> None:
    def program(b: sw.Builder, a: Value, x: Value, k: Value, q: Value) -> Value:
        return b.aggregate(a, x, b.edge_softmax(a, b.sddmm(a, q, k) * 0.3))

    cases: list[Case] = []
    for a in PATTERNS.values():
        x, k, q = floats(a.shape[1], 9), floats(a.shape[1], size), floats(a.shape[0], size)
        scores = np.array([0.3 * float(q[i] @ k[j]) for _, i, j in edges(a)], np.float64)
        cases.append(([a, x, k, q], aggregated(a, x, "sum", softmax_by_rows(a, scores)[0])))
    run(program, cases, all_tests)


def kernels(program: Build, *inputs: Any) -> list[str]:
    b = sw.Builder("main")
    values = [
        b.input(f"x{n}", sw.SparseSpec(i, "f32") if isinstance(i, tuple) else i)
        for n, i in enumerate(inputs)
    ]
    b.output(program(b, *values), name="y")
    text = Compilation.of(Request(b.module(), threads=1)).text("kernels")
    return [line for line in text.splitlines() if "loop.kernel @" in line]


@pytest.mark.parametrize(("heads", "count"), [(1, 1), (4, 2)])
def test_an_attention_row_of_one_head_is_one_kernel(heads: int, count: int) -> None:
    def program(b: sw.Builder, a: Value, x: Value, s: Value, t: Value) -> Value:
        return b.aggregate(a, x, b.edge_softmax(a, b.leaky_relu(b.sddmm(a, t, s, "add"))))

    sizes = ["n", heads, 8], ["n", heads], ["n", heads]
    assert len(kernels(program, ("n", "n"), *sizes)) == count


def test_shares_that_are_also_a_result_are_written_once() -> None:
    b = sw.Builder("main")
    a, x, e = (
        b.input("a", sw.SparseSpec(("n", "n"), "f32", nnz="edges")),
        b.input("x", ("n", 4)),
        b.input("e", ("edges",)),
    )
    shares = b.edge_softmax(a, e)
    b.output(shares, name="p")
    b.output(b.aggregate(a, x, shares), name="y")
    exe = sw.compile(b.module(), threads=1)
    square = pattern(9, 9)
    scores, features = floats(square.nnz), floats(9, 4)
    got = exe(square, features, scores)
    expected = softmax_by_rows(square, scores)[0]
    near(got[0], expected)
    near(got[1], aggregated(square, features, "sum", expected))


def test_two_patterns_in_one_chain_are_two_kernels() -> None:
    def program(b: sw.Builder, a: Value, c: Value, x: Value, s: Value) -> Value:
        return b.aggregate(c, x, b.sddmm(a, s, s, "add"))

    assert len(kernels(program, ("n", "n"), ("n", "n"), ["n", 4], ["n"])) == 2


def test_values_of_another_number_of_entries_are_refused() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((4, 4), "f32", nnz="edges"))
    b.output(b.edge_softmax(a, b.input("e", ("k",))), name="p")
    exe = sw.compile(b.module(), threads=1)
    with pytest.raises(sw.InputError, match="must agree"):
        exe(pattern(4, 4), floats(99))


def test_the_work_of_a_kernel_is_told_in_its_sizes() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", nnz="edges"))
    x = b.input("x", ("n", 8))
    b.output(b.relu(b.aggregate(a, x, b.sddmm(a, x, x))) @ np.ones((8, 3), np.float32), name="y")
    told = sw.compile(b.module(), threads=1).explain()
    # 2 x 8 for a score, 2 x 8 for what it weighs, 8 to clip a row; 2 x 8 x 3 for the product.
    flops = [line.rpartition("[")[2] for line in told.splitlines() if line.endswith("FLOP]")]
    assert sorted(flops) == ["16*edges FLOP]", "16*edges+8*n FLOP]", "48*n FLOP]"]


def test_values_of_another_type_than_the_pattern() -> None:
    """The values of a matrix do not matter where values of its entries take their place."""
    a, b = pattern(9, 9), sw.Builder("main")
    arrays = [floats(*shape).astype(np.float16) for shape in ((a.nnz,), (a.nnz, 2), (9, 2))]
    given = b.input("a", sw.SparseSpec(a.shape, "f32", nnz=a.nnz))
    e, scores, x = (b.input(f"x{n}", array.shape, "f16") for n, array in enumerate(arrays))
    matrix = b.with_entries(given, e)
    for value in (
        *(b.spmm(matrix, x), b.aggregate(matrix, x, kind="mean"), b.sddmm(matrix, x, x)),
        *(b.edge_softmax(matrix, scores, x), b.own_softmax(matrix, scores, x)),
        *(b.degree(matrix), b.entries(matrix), b.at_entries(matrix, x, 1), b.to_dense(matrix)),
    ):
        b.output(value)
    module = b.module()
    found = sw.compile(module, threads=1)(a, *arrays)
    assert {array.dtype for array in found} == {np.dtype(np.float16)}
    close(found, module.run_reference(a, *arrays), 2e-3)
