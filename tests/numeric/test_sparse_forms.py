"""Sparse matrices stay sparse through scaling, slicing, dropout and normalisation."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.dialects.sparse_tensor import is_sparse
from stepwell.frontends.builder import Builder, Value

from ..harness import cases, close, floats


@functools.cache
def scales(*shape: int) -> np.ndarray:
    """The same numbers wherever a form is applied."""
    return floats(*shape)


def csr(rows: int, columns: int, density: float = 0.4, seed: int = 0) -> sp.csr_array:
    """A matrix with negative values and, if it has some rows, an empty one."""
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=density, rng=rng).toarray() - 0.0
    matrix[rows // 2 :: 5] = 0
    matrix[matrix != 0] -= 0.4
    return sp.csr_array(matrix.astype(np.float32))


FORMS: dict[str, Callable[[Builder, Value, int, int], Value]] = {
    "number": lambda b, a, m, k: a * 2.5,
    "divided": lambda b, a, m, k: a / 3,
    "from the left": lambda b, a, m, k: 0.5 * a,
    "rows": lambda b, a, m, k: a * scales(m, 1),
    "columns": lambda b, a, m, k: a * scales(k),
    "columns of one row": lambda b, a, m, k: a * scales(1, k),
    "standardized": lambda b, a, m, k: a / np.abs(scales(k) + 3),
    "relu": lambda b, a, m, k: b.relu(a),
    "tanh": lambda b, a, m, k: b.tanh(a),
    "clipped": lambda b, a, m, k: b.clip(a, -0.5, 0.5),
    "dropout": lambda b, a, m, k: b.dropout(a, 0.5),
    "negative": lambda b, a, m, k: -a,
    "row sums": lambda b, a, m, k: a / (b.reduce(b.abs(a), "sum", [1], True) + 1),
    "sliced": lambda b, a, m, k: b.slice(a, [m // 3, 0], [m - m // 4, k]),
    "all": lambda b, a, m, k: b.slice(b.relu(b.dropout(a, 0.1) * scales(m, 1)) / 2, [0, 0], [m, k]),
    "sliced then scaled": lambda b, a, m, k: b.slice(a, [1, 0], [m, k]) * scales(m - 1, 1),
    "sliced then relu": lambda b, a, m, k: b.relu(b.slice(a, [1, 0], [m, k])),
}


def both_ways(module: sw.Module, expected: Any, *inputs: Any, level: int = 3) -> sw.Executable:
    """Compare the reference and compiled code with NumPy."""
    # Sums of a few terms in f32, in another order.
    close(module.run_reference(*inputs), expected, 1e-4, atol=1e-5)
    exe = sw.compile(module, threads=1, opt_level=level)
    close(exe(*inputs), expected, 1e-4, atol=1e-5)
    return exe


WAYS = list(itertools.product([(7, 5), (1, 1)], [(True, 3), (False, 3), (False, 0)]))


@pytest.mark.parametrize("way", cases(WAYS, [*WAYS[:3], ((1, 1), (False, 3))]), ids=str)
def test_forms(way: tuple[tuple[int, int], tuple[bool, int]]) -> None:
    """Each of a matrix of its own, in one module."""
    (m, k), (constant, level) = way
    dense, b, matrices = Builder(), Builder(), list[sp.csr_array]()
    for seed, form in enumerate(FORMS.values()):
        matrix, w = csr(m, k, seed=seed), floats(k, 3)
        a = b.constant(matrix) if constant else b.input(f"a{seed}", sw.SparseSpec((m, k)))
        made = form(b, a, m, k)
        assert is_sparse(made.ssa.type)
        b.output(b.matmul(made, w))
        dense.output(dense.matmul(form(dense, dense.constant(matrix.toarray()), m, k), w))
        matrices.append(matrix)
    inputs = () if constant else matrices
    exe = both_ways(b.module(), dense.module().run_reference(), *inputs, level=level)
    if level == 3:
        kernels = re.findall(r"func\.call @(\w+)", exe.ir("fused"))
        # Those of row sums are three, or four of a single row.
        assert len(kernels) == len(FORMS) + (3 if m == 1 else 2), kernels


def test_sums_of_rows_are_computed_once() -> None:
    """x / sum(x) of a run-time matrix: one loop for the sums, and the product that uses them."""
    matrix, w = abs(csr(9, 6)), floats(6, 3)
    b = Builder()
    a = b.input("a", sw.SparseSpec(("m", 6)))
    b.output(b.normalize(a, kind="row", self_loops=False) @ b.constant(w))
    sums = matrix.sum(1)
    expected = (matrix.toarray() / np.where(sums == 0, 1, sums)[:, None]) @ w
    exe = both_ways(b.module(), expected, matrix)
    kernels = re.findall(r"func\.func private @(\w+)", exe.ir("fused"))
    assert kernels == ["fused_degree_reshape", "fused_spmm_mul"]


NORMALIZED = list(itertools.product(["symmetric", "row"], [True, False]))


@pytest.mark.parametrize("way", cases(NORMALIZED, [("symmetric", True), ("row", False)]), ids=str)
def test_a_graph_with_computed_weights_is_normalized(way: tuple[str, bool]) -> None:
    """Weights from the features of the ends of each edge, then a graph convolution."""
    kind, self_loops = way
    matrix, x, w = abs(csr(8, 8)), floats(8, 3), floats(8, 4)
    b = Builder()
    a = b.input("a", sw.SparseSpec(("n", "n")))
    scores = b.sddmm(a, b.constant(w), b.constant(w), "dot")
    weighted = b.with_entries(a, b.sigmoid(scores))
    b.output(b.normalize(weighted, kind, self_loops) @ b.constant(x))
    rows = np.repeat(np.arange(8), np.diff(matrix.indptr))
    values = 1 / (1 + np.exp(-(w[rows] * w[matrix.indices]).sum(1)))
    dense = sp.csr_array((values, matrix.indices, matrix.indptr), (8, 8)).toarray()
    if self_loops:
        np.fill_diagonal(dense, np.where(dense.diagonal() == 0, 1, dense.diagonal()))
    degree = dense.sum(1)
    power = -0.5 if kind == "symmetric" else -1.0
    scale = np.where(degree == 0, 0, np.where(degree == 0, 1, degree) ** power)
    dense = scale[:, None] * dense * (scale if kind == "symmetric" else 1)
    both_ways(b.module(), dense @ x, matrix)


@pytest.mark.parametrize("level", [0, 3])
def test_the_root_of_a_negative_sum_is_nan(level: int) -> None:
    matrix = sp.csr_array(np.array([[-np.inf, 1], [0, -4]], np.float32))
    b = Builder()
    b.output(b.degree(b.input("a", sw.SparseSpec((2, 2))), power=-0.5))
    both_ways(b.module(), np.full(2, np.nan, np.float32), matrix, level=level)


def test_what_would_be_dense_is_one_error() -> None:
    b = Builder()
    a = b.input("a", sw.SparseSpec((3, 4)))
    bias, x = floats(4), b.input("x", (3, 4))
    for call in (
        lambda: a + bias,
        lambda: b.exp(a),
        lambda: b.clip(a, 1.0, 2.0),
        lambda: b.rsqrt(a),
        lambda: b.cast(a, "f16"),
        lambda: a - 1,
        lambda: b.softmax(a),
        lambda: a * x,
        lambda: 1 / a,
        lambda: b.slice(a, [0, 1], [3, 2]),
        lambda: b.transpose(a, [1, 0]),
        lambda: b.reduce(a, "max", [1]),
    ):
        with pytest.raises(
            InputError, match=r"expected a dense tensor .*; graph.to_dense makes one"
        ):
            call()


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (0, 3)])
@pytest.mark.parametrize("level", [0, 3])
def test_dense_by_request(sizes: tuple[int, int], level: int) -> None:
    matrix, bias = csr(*sizes), floats(sizes[1])
    b = Builder()
    a = b.input("a", sw.SparseSpec(sizes))
    b.output(b.to_dense(b.slice(b.relu(a), [sizes[0] // 2, 0], [sizes[0], sizes[1]])) + bias)
    expected = np.maximum(matrix.toarray(), 0)[sizes[0] // 2 :] + bias
    both_ways(b.module(), expected, matrix, level=level)


def test_a_slice_computes_its_rows_only() -> None:
    b = Builder()
    a, x = b.input("a", sw.SparseSpec((9, 4))), b.input("x", (4, 3))
    product = b.spmm(a, x)
    b.output(b.relu(b.slice(product, [2, 0], [6, 3])))
    matrix, dense = csr(9, 4), floats(4, 3)
    exe = both_ways(b.module(), np.maximum((matrix @ dense)[2:6], 0), matrix, dense)
    assert "tensor<9x3xf32>" not in exe.ir("kernels")


def test_a_product_of_which_two_parts_are_used_is_computed_once() -> None:
    b = Builder()
    a, x = b.input("a", sw.SparseSpec((8, 4))), b.input("x", (4, 3))
    product = b.relu(b.spmm(a, x))
    b.output(b.slice(product, [0, 0], [4, 3]) + b.slice(product, [4, 0], [8, 3]))
    matrix, dense = csr(8, 4), floats(4, 3)
    whole = np.maximum(matrix @ dense, 0)
    exe = both_ways(b.module(), whole[:4] + whole[4:], matrix, dense)
    kernels = re.findall(r"func\.func private @(\w+)", exe.ir("fused"))
    assert kernels[0] == "fused_spmm_relu"
    assert len(kernels) == 2


@settings(max_examples=settings().max_examples * 20 // 100, deadline=None)
@given(st.data())
def test_any_forms_one_after_another(data: st.DataObject) -> None:
    m, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    names = data.draw(
        st.lists(st.sampled_from([n for n in FORMS if "sliced" not in n]), max_size=4)
    )
    matrix, w = csr(m, k, seed=data.draw(st.integers(0, 9))), floats(k, 2)
    b, dense = Builder(), Builder()
    a, x = b.input("a", sw.SparseSpec((m, k))), dense.constant(matrix.toarray())
    for name in names:
        if name != "all" or m > 3:
            a, x = FORMS[name](b, a, *a.shape), FORMS[name](dense, x, *x.shape)
    b.output(a @ b.constant(w))
    dense.output(x @ dense.constant(w))
    both_ways(b.module(), dense.module().run_reference(), matrix)


WIDTHS = list(itertools.product([7, 15, 40], [1, 2]))


@pytest.mark.parametrize("way", cases(WIDTHS, [(15, 2)]), ids=str)
def test_rows_that_are_gathered_are_aligned(way: tuple[int, int]) -> None:
    """Rows of an intermediate tensor that are longer in memory change nothing, at any stage."""
    width, threads = way
    x, w, a = floats(23, 50), floats(50, width), csr(23, 23)
    b = sw.Builder("main")
    hidden = b.matmul(b.input("x", (23, 50)), w)
    b.output(b.relu(b.spmm(b.input("a", sw.SparseSpec((23, 23), "f32")), hidden)))
    exe = sw.compile(b.module(), threads=threads)
    expected = np.maximum(a @ (x @ w), 0)
    longer = {7: 8, 15: 16}.get(width, width)
    assert f"memref<23x{longer}xf32>" in exe.ir("scheduled")
    for stage in ("scheduled", "loops", "llvm"):
        close(exe.run_at(stage, x, a), expected, 1e-4, what=stage)
    close(exe(x, a), expected, 1e-4)
