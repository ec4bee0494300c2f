"""Constants that are mostly zeros become sparse where that pays, and nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Builder, Value

from ...harness import RNG, as_reference, floats

PASS = "graph-sparsify-constant"


def pruned(*shape: int, density: float = 0.02) -> np.ndarray:
    return np.where(RNG.random(shape) < density, floats(*shape), np.float32(0))


def operators(module: sw.Module) -> list[str]:
    return [op.name for op in module.main.walk() if op.name.startswith("graph.")]


FEATURES: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "as they are": lambda b, x, r: x,
    "dropout": lambda b, x, r: b.dropout(x, 0.5),
    "rows scaled": lambda b, x, r: x * r,
    "rows divided": lambda b, x, r: b.dropout(x / r),
    "columns scaled": lambda b, x, r: x * b.reshape(b.slice(r, [0, 0], [90, 1]), [1, 90]),
    "rows cut": lambda b, x, r: b.slice(x * r, [3, 0], [70, 90]),
}


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("product", ["matmul", "dense", "bias"])
def test_features(
    name: str, product: str, assert_same: Callable[..., sw.Module], all_tests: bool
) -> None:
    b = Builder()
    r = b.input("r", (100, 1))
    x = FEATURES[name](b, b.constant(pruned(100, 90), "x"), r)
    if product == "matmul":
        b.output(b.matmul(x, floats(90, 16)))
    else:
        b.output(b.dense(x, floats(16, 90), floats(16) if product == "bias" else None))
    rows = np.abs(floats(100, 1)) + 1
    after = assert_same(b.module(), PASS, rows)
    assert "graph.spmm" in operators(after)
    assert "x" not in {op.key for op in after.main.walk() if op.name == "graph.constant"}  # type: ignore[attr-defined]
    fused = Compilation.of(Request(b.module(), threads=1)).text("fused")
    assert "tensor<100x90xf32>" not in fused, "the features were made dense"
    if all_tests or product == "bias":
        as_reference(b.module(), rows, rtol=1e-4, threads=1)


@pytest.mark.parametrize("rows", [16, "batch"])
@pytest.mark.parametrize("kind", ["dense", "bias", "matmul"])
def test_weights(
    rows: int | str, kind: str, assert_same: Callable[..., sw.Module], all_tests: bool
) -> None:
    b = Builder()
    x = b.input("x", (rows, 500))
    w = pruned(600, 500)
    if kind == "matmul":
        y = b.matmul(x, np.ascontiguousarray(w.T))
    else:
        y = b.dense(x, w, floats(600) if kind == "bias" else None)
    b.output(b.relu(y))
    inputs = floats(16, 500)
    assert "graph.spmm" in operators(assert_same(b.module(), PASS, inputs))
    if all_tests or (kind, rows) in (("bias", "batch"), ("matmul", 16)):
        as_reference(b.module(), inputs, rtol=1e-4, threads=1)


@pytest.mark.parametrize(
    ("density", "columns", "sparse"),
    [(0.02, 64, True), (0.15, 64, True), (0.3, 64, False), (0.5, 64, False), (0.15, 1, False)],
)
def test_the_density_decides(
    density: float, columns: int, sparse: bool, transformed: Callable
) -> None:
    b = Builder()
    b.output(b.matmul(pruned(256, 256, density=density), b.input("x", (256, columns))))
    after, ctx = transformed(b.module(), PASS)
    assert ("graph.spmm" in operators(after)) == sparse
    if density < 0.5:
        (decision,) = ctx.decisions
        what = "becomes a sparse matrix" if sparse else "stays dense"
        assert decision.what.endswith(what)
        assert decision.kind == ("passed" if sparse else "missed")
        pattern = rf"sparse [\d.]+ us, dense [\d.]+ us, for {columns} columns"
        assert re.fullmatch(pattern, decision.cost)


def test_one_copy_for_all_products(assert_same: Callable[..., sw.Module]) -> None:
    b = Builder()
    a = b.constant(pruned(300, 300), "a")
    y = b.matmul(a, b.relu(b.matmul(a, b.input("x", (300, 8)))))
    b.output(y + b.dense(a, floats(8, 300)))
    after = assert_same(b.module(), PASS, floats(300, 8))
    assert operators(after).count("graph.spmm") == 3
    assert [k for k in after.weights if k.startswith("a")].count("a.sparse") == 1


def test_other_users_keep_the_dense_one(assert_same: Callable[..., sw.Module]) -> None:
    b = Builder()
    a = b.constant(pruned(100, 100), "a")
    b.output(b.matmul(a, b.input("x", (100, 100))) + b.exp(a))
    after = assert_same(b.module(), PASS, floats(100, 100))
    assert {"graph.spmm", "graph.exp"} <= set(operators(after))


def test_types_without_sparse_matrices_stay(assert_same: Callable[..., sw.Module]) -> None:
    b = Builder()
    x = b.input("x", (100, 8), "f16")
    b.output(b.matmul(b.constant(pruned(100, 100).astype(np.float16)), x))
    after = assert_same(b.module(), PASS, floats(100, 8).astype(np.float16))
    assert "graph.spmm" not in operators(after)


def test_a_graph_convolution_with_everything_dense() -> None:
    """A dense adjacency matrix and dense features: the kernels are those of sparse ones."""
    b = Builder()
    a, x = b.constant(pruned(300, 300), "a"), b.constant(pruned(300, 500), "x")
    hidden = b.relu(b.matmul(b.matmul(a, x), b.input("w", (500, 16))) + floats(16))
    b.output(b.matmul(a, b.matmul(hidden, floats(16, 7))))
    exe = as_reference(b.module(), floats(500, 16), rtol=1e-3, threads=1)
    kernels = re.findall(r"func\.func private @(\w+)", exe.ir("fused"))
    assert kernels == ["fused_spmm", "fused_spmm_add_relu_matmul", "fused_spmm_1"]
    assert '"x" has ' in exe.explain()


@settings(max_examples=settings().max_examples * 15 // 100, deadline=None)
@given(data=st.data())
def test_any_size(assert_same: Callable[..., sw.Module], data: st.DataObject) -> None:
    size = st.sampled_from([1, 2, 7, 64, 130])
    m, k, n = data.draw(size), data.draw(size), data.draw(size)
    b = Builder()
    x = b.input("x", (n, k))
    w = pruned(m, k, density=data.draw(st.sampled_from([0.0, 0.01, 0.3])))
    b.output(b.dense(x, w, floats(m)))
    b.output(b.matmul(w, b.transpose(x, [1, 0])))
    assert_same(b.module(), PASS, floats(n, k))
