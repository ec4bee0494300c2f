"""Graph layers of gathers and scatters, which `graph-raise-messages` makes sparse products of."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.algebra.dims import Dim
from stepwell.core.pipelines.staircase import pipeline, pipeline_text, run_passes
from stepwell.core.registry import make_context
from stepwell.frontends.builder import Value

from ..harness import cases, close
from .messages import LAYERS, WIDTH, Messages, model, small

RAISED = {
    "gcn": {"graph.aggregate", "graph.degree"},
    "sage": {"graph.aggregate"},
    "gin": {"graph.aggregate"},
    "gat": {"graph.aggregate"},
    "edge_conv": {"graph.reduce_entries"},
}
GRAPHS = [(7, 23), (1, 0), (1, 3), (5, 0), (40, 200)]


def inputs(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and edges with duplicates and self loops into a part of the nodes."""
    ends = np.random.default_rng(nodes).integers(0, nodes, (2, edges))
    ends[1] = ends[1] * 2 // 3
    return small(nodes, WIDTH), ends


def as_written(module: sw.Module) -> sw.Executable:
    """The program with its scatters."""
    texts = pipeline()
    texts["optimized"] = texts["optimized"].replace("graph-raise-messages,", "")
    return sw.compile(module, threads=1, pipeline=pipeline_text(texts))


@pytest.mark.parametrize("name", cases([*LAYERS], ["gat", "edge_conv"]))
def test_layers_are_raised(name: str) -> None:
    module = model(name)
    exe = sw.compile(module, threads=2)
    found = {op for op in exe.ir("optimized").split() if op.startswith("graph.")}
    assert found >= RAISED[name] | {"graph.sort_edges"}
    assert not any("scatter" in op or "gather" in op for op in found)
    # No buffer has the features of all edges.
    peak = re.search(r"peak of (.*) bytes", exe.explain())
    assert peak is not None
    assert 0 < Dim.parse(peak[1]).coefficient("edges") < 4 * WIDTH
    for graph in GRAPHS:
        x, ends = inputs(*graph)
        want = module.run_reference(x, ends)
        np.testing.assert_allclose(exe(x, ends), want, rtol=2e-5, atol=2e-6)


def test_layers_share_one_matrix(all_tests: bool) -> None:
    module = model("gcn", "sage", "gat")
    ctx, copy = make_context(module.weights), module.clone()
    run_passes(ctx, copy.op, pipeline()["optimized"])
    raised = sw.Module(copy.op, ctx.weights)
    assert raised.text().count("graph.sort_edges") == raised.text().count("graph.assemble") == 1
    assert not re.search("graph.(scatter|gather)", raised.text())
    assert all(op in raised.text() for op in RAISED["gcn"])
    given = inputs(7, 23)
    for run in (raised.run_reference, sw.compile(module)) if all_tests else (raised.run_reference,):
        close(run(*given), module.run_reference(*given), 1e-4, 1e-5)


@pytest.mark.parametrize("end", [0, 1])
def test_an_edge_out_of_range_is_an_error(end: int) -> None:
    exe = compiled()
    x, ends = inputs(7, 23)
    ends[end, 3] = 7
    with pytest.raises(sw.InputError, match=r"index out of range at position 3, .* got 7"):
        exe(x, ends)
    ends[end, 3] = -7
    np.testing.assert_allclose(exe(x, ends), model("sage").run_reference(x, ends), atol=1e-5)


@functools.cache
def compiled() -> sw.Executable:
    return sw.compile(model("sage"), threads=1)


@functools.cache
def scattered() -> tuple[sw.Module, sw.Executable]:
    """Scatters of each kind into something, of messages with values of the edges."""
    b = sw.Builder()
    x, y = b.input("x", ("nodes", 20)), b.input("y", ("nodes", 20))
    ends, e = b.input("ends", (2, "edges"), "i64"), b.input("e", ("edges", 3))
    m = Messages(b, x, ends)
    w = b.tanh(b.dense(e, small(20, 3)))
    for kind in ("add", "max", "min", "mul"):
        sent = b.gather(x, m.sources, axis=0) * w + b.gather(y, m.targets, axis=0)
        b.output(b.scatter_nd(y, sent, [m.targets], kind=kind), kind)
    index = m.expanded(m.targets, sent)
    lowest = m.like(m.targets, (20,), -np.inf)
    replaced = b.scatter_elements(y, index, lowest, axis=0)
    b.output(b.scatter_elements(replaced, index, sent, axis=0, kind="max"), "max of messages")
    least = b.scatter_elements(y, index, sent, axis=0, kind="min")
    b.output(b.scatter_elements(least, index, sent, axis=0, kind="max"), "one after the other")
    module = b.module()
    return module, sw.compile(module, threads=1)


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_scatters_into_something(graph: tuple[int, int]) -> None:
    module, exe = scattered()
    assert exe.ir("optimized").count("graph.scatter") == 0
    nodes, edges = graph
    _, ends = inputs(nodes, edges)
    given = small(nodes, 20), small(nodes, 20), ends, small(edges, 3)
    found, wanted = exe(*given), module.run_reference(*given)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_nan_and_infinity_are_where_they_were() -> None:
    module, exe = scattered()
    x, ends = small(7, 20), inputs(7, 23)[1]
    x[3, 2], x[2, 4], x[1, 5] = np.nan, np.inf, -np.inf
    given = x, small(7, 20), ends, small(23, 3)
    for got, want in zip(exe(*given), module.run_reference(*given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_maximum_has_the_same_bits() -> None:
    def program(b: sw.Builder, x: Value, ends: Value) -> Value:
        m = Messages(b, x, ends)
        return b.scatter_nd(x * 2, b.gather(x, m.sources, axis=0), [m.targets], kind="max")

    b = sw.Builder()
    b.output(program(b, b.input("x", ("n", 20)), b.input("ends", (2, "e"), "i64")))
    exe = sw.compile(b.module(), threads=1, rounding="kept")
    plain = as_written(b.module())
    assert "graph.scatter_nd" not in exe.ir("optimized")
    assert "graph.scatter_nd" in plain.ir("optimized")
    given = small(9, 20), inputs(9, 31)[1]
    np.testing.assert_array_equal(exe(*given), plain(*given))


def test_constant_edges_are_a_constant_matrix() -> None:
    x, ends = inputs(7, 23)
    b = sw.Builder()
    b.output(LAYERS["sage"](b, b.input("x", x.shape), b.constant(ends)))
    exe = sw.compile(b.module())
    assert "graph.sort_edges" not in exe.ir("optimized")
    assert "graph.assemble" not in exe.ir("optimized")
    np.testing.assert_allclose(exe(x), model("sage").run_reference(x, ends), atol=1e-5)


def test_as_many_nodes_as_edges() -> None:
    """What belongs to nodes does not become what belongs to edges."""
    b = sw.Builder()
    x, y = b.input("x", (9, WIDTH)), b.input("y", (9, WIDTH))
    ends = b.input("ends", (2, 9), "i64")
    m = Messages(b, x, ends)
    first = m.scatter(b.gather(x, m.sources, axis=0) * y)
    b.output(m.scatter(first * b.gather(x, m.sources, axis=0)) + m.scatter(m.scatter(first)) + y)
    module = b.module()
    given = small(9, WIDTH), small(9, WIDTH), inputs(9, 9)[1]
    got = sw.compile(module)(*given)
    np.testing.assert_allclose(got, module.run_reference(*given), rtol=1e-5, atol=1e-6)


def test_edges_of_computed_number() -> None:
    """Self loops are taken out, and one is added for each node, as `gcn_norm` does."""
    b = sw.Builder()
    x, ends = b.input("x", (11, WIDTH)), b.input("ends", (2, "edges"), "i64")
    m = Messages(b, x, ends)
    (kept, _) = b.nonzero(b.logical_not(b.equal(m.sources, m.targets)))
    own = b.constant(np.arange(11))
    lists = [b.gather(part, kept, axis=0) for part in (m.sources, m.targets)]
    m.sources, m.targets = (b.concat([part, own], axis=0) for part in lists)
    b.output(m.scatter(b.gather(x, m.sources, axis=0), "mean"))
    module = b.module()
    exe = sw.compile(module)
    assert "graph.scatter" not in exe.ir("optimized")
    for edges in (31, 0):
        given = inputs(11, edges)
        want = module.run_reference(*given)
        np.testing.assert_allclose(exe(*given), want, rtol=1e-5, atol=1e-6)


@functools.cache
def pooled() -> tuple[sw.Module, sw.Executable]:
    """Sums by the softmax of scores within segments, and what is divided by the norm of each."""
    b = sw.Builder()
    x, scores = b.input("x", ("n", 20)), b.input("scores", ("n", 1))
    z, segments = b.input("z", ("g", 20)), b.input("segments", ("n",), "i64")
    m = Messages(b, z, segments=segments)
    weights = m.softmax(scores)
    b.output(m.scatter(weights * x))
    mean = m.scatter(x, "mean")
    apart = x - b.gather(mean, segments, axis=0)
    b.output(apart / b.gather(b.sqrt(m.scatter(apart * apart, "mean") + 1), segments, axis=0))
    module = b.module()
    return module, sw.compile(module, threads=1)


def test_segments_are_walked() -> None:
    module, exe = pooled()
    text = exe.ir("optimized")
    assert text.count("graph.sort_edges") == text.count("graph.aggregate softmax") == 1
    assert "graph.scatter" not in text
    assert "weights" in text, "the weighted sum is a sparse product"
    for segments in ([0, 0, 1, 3, 3], [3, 0, -4, 1, 0], [2], []):
        n = len(segments)
        given = small(n, 20), 9 * small(n, 1), small(4, 20), np.array(segments, np.int64)
        for got, want in zip(exe(*given), module.run_reference(*given), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    with pytest.raises(sw.InputError, match="index out of range at position 0"):
        exe(small(1, 20), small(1, 1), small(4, 20), np.array([4]))
