"""Chains of products in another order compute the same, and are the least work of all orders."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.dialects.sparse_tensor import is_sparse
from stepwell.frontends import gnn
from stepwell.frontends.builder import Builder, Value

from ...harness import floats


def csr(rows: int, columns: int, density: float = 0.3, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    random = sp.random_array((rows, columns), density=density, rng=rng)
    return sp.csr_array(random.astype(np.float32))


def products(module: sw.Module) -> list[str]:
    kinds = (graph.SpmmOp, graph.AggregateOp, graph.DenseOp, graph.MatmulOp)
    return [op.name.split(".")[1] for op in module.main.walk() if isinstance(op, kinds)]


def work(module: sw.Module) -> int:
    shapes = SymbolicShapes(module.main)
    counts = [op.flops(shapes) for op in module.main.walk() if isinstance(op, GraphOp)]
    return sum(count.value for count in counts if count is not None)


@pytest.mark.parametrize("sizes", [(2, 8), (8, 2), (3, 3)])
@pytest.mark.parametrize("sparse_last", [True, False])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind", ["spmm", "sum", "mean", "weighted"])
def test_of_a_sparse_and_a_dense_product(
    sizes: tuple[int, int], sparse_last: bool, dense: bool, kind: str, assert_same: Callable
) -> None:
    width, columns = sizes
    b = Builder()
    a, x = b.constant(csr(6, 6)), b.input("x", (6, width))
    weight = floats(columns, width) if dense else floats(width, columns)
    product = b.dense if dense else b.matmul

    def times(y: Value) -> Value:
        if kind == "spmm":
            return b.spmm(a, y)
        if kind == "weighted":
            return b.aggregate(a, y, b.constant(floats(11)))
        return b.aggregate(a, y, kind=kind)

    b.output(times(product(x, weight)) if sparse_last else product(times(x), weight))
    module = b.module()
    after = assert_same(module, "graph-order-contractions", floats(6, width))
    if width == columns:
        assert products(after) == products(module)
    else:
        assert (products(after)[-1] in ("spmm", "aggregate")) == (columns < width)


@pytest.mark.parametrize("rows", [1, 4])
def test_of_weights_in_both_layouts(rows: int, assert_same: Callable[..., sw.Module]) -> None:
    b = Builder()
    y = b.input("x", (rows, 9))
    y = b.dense(b.matmul(b.dense(y, floats(7, 9)), floats(7, 8)), floats(5, 8), floats(5))
    y = b.matmul(b.dense(y, floats(30, 5)), floats(30, 1))
    b.output(y)
    module = b.module()
    assert work(assert_same(module, "graph-order-contractions", floats(rows, 9))) <= work(module)


@st.composite
def chains(draw: st.DrawFn) -> tuple[sw.Module, list[Any]]:
    """A chain of up to six factors from a random tree, sparse and stacked ones among them."""
    sizes = st.sampled_from([0, 1, 2, 5, 9])
    b, inputs = Builder(), list[Any]()
    dims = [draw(sizes) for _ in range(draw(st.integers(3, 6)))]
    stacked = draw(st.booleans())

    def build(first: int, last: int, dense: bool) -> Value:
        shape = dims[first], dims[last]
        if last == first + 1:
            if not dense and draw(st.booleans()):
                inputs.append(csr(*shape, seed=len(inputs)))
                return b.input(f"a{len(inputs)}", sw.SparseSpec(shape, nnz=inputs[-1].nnz))
            whole = (3, *shape) if stacked and first == 0 and dense else shape
            inputs.append(floats(*whole))
            return b.input(f"x{len(inputs)}", whole)
        middle = draw(st.integers(first + 1, last - 1))
        right = build(middle, last, True)
        left = build(first, middle, stacked or middle > first + 1)
        if is_sparse(left.ssa.type):
            return b.spmm(left, right)
        if draw(st.booleans()) and len(right.shape) == 2:
            return b.dense(left, b.transpose(right, [1, 0]))
        return b.matmul(left, right)

    b.output(build(0, len(dims) - 1, True))
    return b.module(), inputs


@settings(deadline=None)
@given(case=chains())
def test_of_any_chain(assert_same: Callable, case: tuple[sw.Module, list[Any]]) -> None:
    module, inputs = case
    after = assert_same(module, "graph-order-contractions", *inputs)
    assert work(after) <= work(module)
    assert str(assert_same(after, "graph-order-contractions", *inputs)) == str(after)


def test_the_least_work_of_all(transformed: Callable) -> None:
    """The example of Cormen et al.: six matrices, 15,125 multiplications."""
    dims = [30, 35, 15, 5, 10, 20, 25]
    b = Builder()
    y = b.input("x", (30, 35))
    for rows, columns in itertools.pairwise(dims[1:]):
        y = b.matmul(y, floats(rows, columns))
    b.output(y)
    after, ctx = transformed(b.module(), "graph-order-contractions")
    assert work(after) == 2 * 15_125
    # The chosen order, the model's, and that from the right.
    told = [decision.cost.split(",")[0] for decision in ctx.decisions]
    assert told == ["30.2 kFLOP", "81 kFLOP", "95 kFLOP"]


def test_the_table_of_costs_has_names_and_every_order(transformed: Callable) -> None:
    graph_ = gnn.Graph.from_scipy(csr(50, 50, 0.1))
    layer = gnn.GCNConv(floats(4, 16), floats(16))
    module = gnn.Sequential(layer).to_module(graph_, sw.TensorSpec((50, 4)))
    _, ctx = transformed(module, "graph-fold-constant,graph-order-contractions")
    told = [d for d in ctx.decisions if d.pass_name == "graph-order-contractions"]
    chosen, other = told
    assert (chosen.kind, other.kind) == ("passed", "analysis")
    entries = ctx.weights["adjacency.normalize"].nnz
    weight = "gcnconv_0.weight"
    assert chosen.subject == other.subject == 'node "gcnconv_0"'
    first = f"(adjacency.normalize features) {weight}"
    assert chosen.what == f"order {first} instead of adjacency.normalize (features {weight})"
    assert chosen.why == "it is the least work"
    assert chosen.cost.startswith(f"{(2 * entries * 4 + 2 * 50 * 4 * 16) / 1000:.3g} kFLOP, ")
    assert other.what == f"not the order adjacency.normalize (features {weight})"
    assert other.cost.startswith(f"{(2 * entries * 16 + 2 * 50 * 4 * 16) / 1000:.3g} kFLOP, ")
    exe = sw.compile(module, threads=1)
    assert f"order {first} instead of" in exe.explain()


def test_sizes_that_are_not_known_are_assumed_and_it_says_so(transformed: Callable) -> None:
    b = Builder()
    a = b.input("a", sw.SparseSpec(("m", "n"), nnz="e"))
    b.output(b.spmm(a, b.matmul(b.input("x", ("n", 2)), floats(2, 8))))
    _, ctx = transformed(b.module(), "graph-order-contractions")
    assert ctx.decisions[0].what == "order (a x) matmul_b instead of a (x matmul_b)"
    expected = "it is the least work if sizes are 1024 and rows have 8 entries"
    assert ctx.decisions[0].why == expected
    assert ctx.decisions[0].cost == "4*e+32*m FLOP, 8*e+52*m+8*n+64 B"
    # Without entries every order is as little work, and the model's own stays.
    _, ctx = transformed(b.module(), "graph-order-contractions{assumed-size=0}")
    assert ctx.decisions[0].what == "order a (x matmul_b)"


def test_a_product_that_is_used_twice_is_computed_once(assert_same: Callable) -> None:
    b = Builder()
    a, x = b.constant(csr(6, 6)), b.input("x", (6, 2))
    shared = b.matmul(x, floats(2, 8))
    b.output(b.spmm(a, shared) + shared)
    after = assert_same(b.module(), "graph-order-contractions", floats(6, 2))
    assert products(after) == ["matmul", "spmm"]


def test_chains_that_feed_each_other(assert_same: Callable[..., sw.Module]) -> None:
    """The result of a chain that changes is a factor of two others that change."""
    b = Builder()
    a = b.constant(csr(6, 6))
    h = b.matmul(b.spmm(a, b.input("x", (6, 9))), floats(9, 2))
    b.output(b.spmm(a, b.matmul(h, floats(2, 7))))
    b.output(b.spmm(a, b.matmul(h, floats(2, 8))))
    after = assert_same(b.module(), "graph-order-contractions", floats(6, 9))
    assert products(after) == ["matmul", "spmm", "spmm", "matmul", "spmm", "matmul"]
