"""What graph networks compile to: their kernels in order, and the buffers between them.

Normalisation of a bound graph leaves nothing; that of a run-time graph is computed once, whatever
the number of layers. A hidden layer is written out once at most.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.frontends.builder import Builder, Value

from ..harness import RNG, cases, floats

NODES = 50
MATRIX = sp.csr_array(sp.random_array((NODES, NODES), density=0.1, rng=RNG))
GRAPH = gnn.Graph.from_scipy(MATRIX.astype(np.float32))
ATTENTION = "fused_add_leaky_relu_at_entries_at_entries_add_leaky_relu_edge_softmax"
BOUND_ATTENTION = "fused_at_entries_at_entries_add_leaky_relu_aggregate"
NORM = "fused_degree_reshape_missing_self_loops_reshape"


def small(*shape: int) -> np.ndarray:
    return floats(*shape) / np.float32(4)


def gcn(*widths: int) -> gnn.Sequential:
    layers: list[gnn.Layer] = []
    for width, out in itertools.pairwise(widths):
        layers += [gnn.ReLU()] if layers else []
        layers.append(gnn.GCNConv(small(width, out), small(out)))
    return gnn.Sequential(*layers)


def residual(bound: bool) -> sw.Module:
    """Two layers, the first beside its input, and rows of the result scaled at the end."""
    b = Builder()
    a = b.constant(GRAPH.adjacency) if bound else b.input("a", sw.SparseSpec((NODES, NODES)))
    x, r = b.input("x", (NODES, 16)), b.input("r", (NODES, 1))
    a = b.normalize(a)
    h = b.relu(b.spmm(a, b.matmul(x, small(16, 16))) + small(16)) + x
    b.output((b.spmm(a, b.matmul(h, small(16, 7))) + small(7)) * r)
    return b.module()


SAGE = gnn.Sequential(
    gnn.SAGEConv(small(8, 16), small(8), small(8, 16)),
    gnn.ReLU(),
    gnn.SAGEConv(small(4, 8), small(4), small(4, 8)),
)
GIN = gnn.Sequential(
    gnn.GINConv([gnn.Linear(small(16, 16), small(16)), gnn.ReLU(), gnn.Linear(small(8, 16))])
)
ONE_HEAD, GAT = (
    gnn.Sequential(gnn.GATConv(small(16, 16), *[small(1, heads, 16 // heads)] * 2, small(16)))
    for heads in (1, 2)
)
X, R = small(NODES, 16), small(NODES, 1)
SPEC = sw.TensorSpec((NODES, 16))


class Attended(gnn.MessagePassing):
    """Messages weighted by the softmax of a score of both ends."""

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Any:
        return x_j, b.reduce(b.leaky_relu(x_i + x_j) * small(16), "sum", [1])


class Gated(gnn.MessagePassing):
    """Messages times a gate, which is a product with features of the edge."""

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Value:
        return b.sigmoid(b.dense(edge_attr, small(16, 8))) * x_j


CASES: dict[str, tuple[Callable[[], sw.Module], tuple[Any, ...], list[str], int]] = {
    "two layers, bound": (
        lambda: gcn(16, 8, 4).to_module(GRAPH, SPEC),
        (X,),
        ["fused_matmul", "fused_spmm_add_relu_matmul", "fused_spmm_add"],
        2,
    ),
    "two layers": (
        lambda: gcn(16, 8, 4).to_module(gnn.GraphSpec(), SPEC),
        (GRAPH, X),
        [
            NORM,
            "fused_matmul_mul",
            "fused_spmm_mul_add_mul_add_relu_matmul_mul",
            "fused_spmm_mul_add_mul_add",
        ],
        4,
    ),
    "three layers": (
        lambda: gcn(16, 8, 8, 4).to_module(gnn.GraphSpec(), SPEC),
        (GRAPH, X),
        [
            NORM,
            "fused_matmul_mul",
            "fused_spmm_mul_add_mul_add_relu_matmul_mul",
            "fused_spmm_mul_add_mul_add_relu_matmul_mul_1",
            "fused_spmm_mul_add_mul_add",
        ],
        5,
    ),
    "residual and row scale, bound": (
        lambda: residual(True),
        (X, R),
        ["fused_matmul", "fused_spmm_add_relu_add_matmul", "fused_spmm_add_mul"],
        2,
    ),
    "sample and aggregate": (
        lambda: SAGE.to_module(GRAPH, SPEC),
        (X,),
        [
            *["fused_dense"] * 2,
            "fused_aggregate_add_add_relu",
            *["fused_dense_1"] * 2,
            "fused_aggregate_add_add",
        ],
        5,
    ),
    "attention, bound": (
        lambda: GAT.to_module(GRAPH, SPEC),
        (X,),
        [
            "fused_dense",
            *["fused_mul_reduce"] * 2,
            BOUND_ATTENTION,
            "fused_reshape_add",
        ],
        4,
    ),
    "attention": (
        lambda: GAT.to_module(gnn.GraphSpec(), SPEC),
        (GRAPH, X),
        [
            "fused_dense",
            *["fused_mul_reduce"] * 2,
            f"{ATTENTION}_own_softmax_and_4_more",
            "fused_reshape_add",
        ],
        4,
    ),
    "messages by hand, attended": (
        lambda: gnn.Sequential(Attended("softmax")).to_module(gnn.GraphSpec(), SPEC),
        (GRAPH, X),
        ["fused_at_entries_at_entries_add_leaky_relu_mul_reduce", "fused_aggregate"],
        1,
    ),
    "messages by hand, gated": (
        lambda: gnn.Sequential(Gated("sum")).to_module(
            gnn.GraphSpec(), SPEC, edge_attr=sw.TensorSpec((None, 8))
        ),
        (GRAPH, X, small(GRAPH.num_edges, 8)),
        ["fused_dense_sigmoid_aggregate"],
        0,
    ),
    "isomorphism": (
        lambda: GIN.to_module(GRAPH, SPEC),
        (X,),
        ["fused_aggregate_add", "fused_dense_relu", "fused_dense"],
        2,
    ),
}


@pytest.mark.parametrize("name", cases([*CASES], [n for n in CASES if n != "three layers"]))
def test_kernels_and_buffers(name: str) -> None:
    build, inputs, kernels, buffers = CASES[name]
    module = build()
    exe = sw.compile(module, threads=1)
    # Sums of products in f32, in another order.
    expected = module.run_reference(*inputs)
    np.testing.assert_allclose(exe(*inputs), expected, rtol=1e-4, atol=1e-4)
    fused = exe.ir("fused")
    assert re.findall(r"call @(\w+)", fused) == kernels
    assert "graph.normalize" not in fused
    made = re.findall(r"arena of \d+ slots? for (\d+) buffers?", exe.explain())
    assert [int(count) for count in made] == [buffers] * (buffers > 0)


def test_a_run_time_graph_with_residual_is_normalized_once() -> None:
    module = residual(False)
    exe = sw.compile(module, threads=1)
    inputs = GRAPH, X, R
    expected = module.run_reference(*inputs)
    np.testing.assert_allclose(exe(*inputs), expected, rtol=1e-4, atol=1e-4)
    fused = exe.ir("fused")
    kernels = re.findall(r"call @(\w+)", fused)
    assert len(kernels) == 4
    assert kernels[0] == NORM
    assert fused.count("graph.degree") == fused.count("graph.missing_self_loops") == 1
    (kernel,) = (k for k in exe.ir("kernels").split("loop.kernel ") if k.startswith(f"@{NORM}"))
    assert kernel.count("loop.for ") == 1 + 3
    # The place of the last self loop, the weight of the others, the sum.
    assert kernel.count("reduction") == 3


@pytest.mark.parametrize(
    ("layer", "graph", "name", "loops"),
    [
        # Rows, the maximum of a row, then the sums; a head's features are one more loop.
        (ONE_HEAD, GRAPH, BOUND_ATTENTION, 5),
        # The shares of edges, and that of the own loop, are reductions of their own.
        (GAT, gnn.GraphSpec(), ATTENTION, 6),
    ],
)
def test_an_attention_is_one_loop_over_rows(
    layer: gnn.Sequential, graph: gnn.Graph | gnn.GraphSpec, name: str, loops: int
) -> None:
    text = Compilation.of(Request(layer.to_module(graph, SPEC), threads=1)).text("kernels")
    (kernel,) = (k for k in text.split("loop.kernel ") if name in k[:99])
    assert kernel.count("loop.for ") == loops
    assert kernel.count("reduction") == loops - 3
