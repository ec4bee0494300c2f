"""What is linear or elementwise in gathered slices is computed before they are gathered."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import close
from .messages import MANY, Messages, edge_conv, small

WIDTH = 6
GRAPHS = [(7, 23), (1, 0), (1, 3), (5, 0), (40, 200)]


def ends(nodes: int, edges: int, seed: int = 0) -> np.ndarray:
    """Edges between some of the nodes, with repetitions and self loops."""
    return np.random.default_rng(seed).integers(0, nodes, (2, edges)) * 2 // 3


def conv_with_features(b: sw.Builder, x: Value, edge_index: Value, edges: Value) -> list[Value]:
    """Messages with features of edges, of towers, and of two layers for each edge."""
    m = Messages(b, x, edge_index)
    own, other = (b.gather(x, index, axis=0) for index in (m.targets, m.sources))
    parts = [2.0 * own - other, edges, -other, edges * 0.5]
    features = b.dense(b.concat(parts, axis=1), small(8, 2 * WIDTH + 6), small(8))
    pair = b.concat([b.reshape(v, [-1, 2, WIDTH // 2]) for v in (own, other)], axis=2)
    towers = [
        b.matmul(
            b.reshape(b.slice(pair, [0, n, 0], [MANY, n + 1, MANY]), [-1, WIDTH]),
            b.constant(small(WIDTH, 8)),
        )
        for n in range(2)
    ]
    deep = b.dense(b.tanh(b.dense(other, small(9, WIDTH), small(9))), small(8, 9))
    return [m.scatter(v, "max") for v in (features, towers[0] + towers[1], deep)]


def with_features() -> sw.Module:
    b = sw.Builder("main")
    x, edges = b.input("x", ("n", WIDTH), "f32"), b.input("edges", ("e", 3), "f32")
    for found in conv_with_features(b, x, b.input("edge_index", (2, "e"), "i64"), edges):
        b.output(found)
    return b.module()


def test_products_are_those_of_nodes() -> None:
    module = with_features()
    exe = sw.compile(module, threads=1)
    products = [line for line in exe.ir("optimized").splitlines() if "= graph.dense" in line]
    # Features of edges have the only product for each edge.
    assert sum("%edges" in line for line in products) <= 2
    assert "tanh %x" not in exe.ir("optimized")
    for nodes, count in GRAPHS:
        given = small(nodes, WIDTH), small(count, 3), ends(nodes, count)
        close(exe(*given), module.run_reference(*given), 2e-5, 2e-6)


def test_decision_states_both_costs() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 32), "f32")
    b.output(edge_conv(b, x, b.input("edges", (2, "e"), "i64")))
    text = str(sw.compile(b.module()).explain())
    assert "compute graph.dense before slices are gathered, because it is less work if" in text
    assert "4096*n FLOP" in text
    assert "after it 4096*e FLOP" in text


def test_messages_of_a_standard_deviation() -> None:
    """What is small is 0 in torch-geometric, which is a jump: the order of a sum is open anyway."""
    b = sw.Builder("main")
    x, edges = b.input("x", ("n", WIDTH), "f32"), b.input("edges", (2, "e"), "i64")
    m = Messages(b, x, edges)
    pair = [b.gather(x, index, axis=0) for index in (m.targets, m.sources)]
    sent = b.dense(b.concat(pair, axis=1), small(16, 2 * WIDTH), small(16))
    mean = m.scatter(sent, "mean")
    spread = b.sqrt(b.clip(m.scatter(sent * sent, "mean") - mean * mean, minimum=1e-5))
    b.output(b.where(b.less_equal(spread, np.float32(1e-5**0.5)), np.float32(0), spread))
    module = b.module()
    exe = sw.compile(module)
    products = [line for line in exe.ir("optimized").splitlines() if "= graph.dense" in line]
    assert ["dense %x" in line for line in products] == [True, True]
    for nodes, count in GRAPHS:
        given = small(nodes, WIDTH), ends(nodes, count)
        # The variance of one message is 0 but for roundings, whose root is below 1e-3.
        close(exe(*given), module.run_reference(*given), 1e-4, 4e-3)


@pytest.mark.parametrize("rounding", ["kept", "unseen"])
def test_difference_is_exact_where_that_is_asked_for(rounding: str) -> None:
    b = sw.Builder("main")
    x, k = b.input("x", (3, 4), "f32"), b.input("k", (50,), "i64")
    b.output(b.dense(b.gather(x, k, axis=0) - b.gather(x, b.neg(k), axis=0), small(4, 4)))
    module = b.module()
    exe = sw.compile(module, rounding=rounding)
    assert ("before slices are gathered" in str(exe.explain())) == (rounding == "unseen")
    # A row that is near to another one; negative indices count from the back.
    given = np.float32(1000) + small(3, 4), np.arange(50) % 5 - 2
    close(exe(*given), module.run_reference(*given), 1e-5, 1e-2)


def test_tables_of_different_lengths_by_one_vector_of_indices() -> None:
    b = sw.Builder("main")
    k = b.input("k", (50,), "i64")
    short, long, more = (
        b.gather(b.input(name, (rows, 8), "f32"), k, axis=0)
        for name, rows in (("short", 3), ("long", 5), ("more", "rows"))
    )
    b.output(b.exp(short + long * more), "sum")
    both = b.concat([short, long, more], axis=1)
    b.output(b.dense(both, small(8, 24)), "product")
    module = b.module()
    given = np.arange(50) % 3, small(3, 8), small(5, 8), small(4, 8)
    exe = sw.compile(module, threads=1)
    close(exe(*given), module.run_reference(*given))


def test_rows_of_a_large_table_are_gathered_first() -> None:
    b = sw.Builder("main")
    k = b.input("k", (50,), "i64")
    b.output(b.relu(b.dense(b.gather(b.constant(small(70, 8)), k, axis=0), small(8, 8))))
    b.output(b.exp(b.gather(b.input("x", (70, 8), "f32"), k, axis=0)))
    module = b.module()
    exe = sw.compile(module)
    assert "(tensor<50x8xf32>, tensor<8x8xf32>)" in exe.ir("optimized")
    given = np.arange(50) - 7, small(70, 8)
    close(exe(*given), module.run_reference(*given), 1e-5, 1e-6)
