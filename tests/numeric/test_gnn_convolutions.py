"""Convolutions with attention, features and types of edges against formulas by hand.

All layers are parts of one model, so that one program for each form of the graph has them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.frontends import gnn
from stepwell.frontends.builder import Builder, Value
from stepwell.frontends.gnn.context import Context

from ..harness import floats
from .test_gnn_layers import GRAPHS, Case

IN, OUT, EDGE, RELATIONS = 5, 6, 3, 3
HEADS, CHANNELS = 2, 3


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(0, initial=-np.inf))
    return e / e.sum(0)


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.2 * x)


class Edges:
    """A graph with features and types of edges, node by node."""

    def __init__(self, case: Case) -> None:
        self.ends, self.x = case.edges, case.x
        count = self.ends.shape[1]
        rng = np.random.default_rng(7)
        self.attr = floats(count, EDGE)
        self.type = rng.integers(0, RELATIONS, count)
        self.weight = rng.random(count).astype(np.float32) + 0.5

    def into(self, node: int, loops: bool = False) -> list[tuple[int, np.ndarray]]:
        """The source and the features of each edge into a node; with one self loop, its mean."""
        found = [(int(u), e) for u, v, e in zip(*self.ends, self.attr, strict=True) if v == node]
        if not loops:
            return found
        found = [(u, e) for u, e in found if u != node]
        mean = np.mean([e for _, e in found], axis=0) if found else np.zeros(EDGE)
        return [*found, (node, mean)]

    def rows(self, row: Callable[[int], np.ndarray]) -> np.ndarray:
        return np.stack([row(node) for node in range(len(self.x))])

    def matrix(self, loops: bool, keep: bool = True, normalize: bool = True) -> np.ndarray:
        """The symmetrically normalised adjacency; without its self loops unless they are kept."""
        n = len(self.x)
        a = np.zeros((n, n))
        np.add.at(a, (self.ends[1], self.ends[0]), self.weight)
        if not keep:
            np.fill_diagonal(a, 0)
        if loops:
            own = np.ones(n)
            for u, v, w in zip(*self.ends, self.weight, strict=True):
                if u == v:
                    own[u] = w
            np.fill_diagonal(a, own)
        if not normalize:
            return a
        degree = a.sum(1)
        scale = np.where(degree > 0, degree, 1) ** -0.5 * (degree > 0)
        return scale[:, None] * a * scale


Expected = Callable[[Edges], np.ndarray]


def gat_with_edges() -> tuple[gnn.Layer, Expected]:
    w, src, dst = floats(OUT, IN), floats(HEADS, CHANNELS), floats(HEADS, CHANNELS)
    we, att = floats(OUT, EDGE), floats(HEADS, CHANNELS)

    def expected(g: Edges) -> np.ndarray:
        h, split = (g.x @ w.T).reshape(-1, HEADS, CHANNELS), (HEADS, CHANNELS)

        def row(i: int) -> np.ndarray:
            near = g.into(i, loops=True)
            scores = [
                (h[j] * src).sum(1) + (h[i] * dst).sum(1) + ((we @ e).reshape(split) * att).sum(1)
                for j, e in near
            ]
            p = softmax(leaky(np.array(scores)))
            return np.einsum("jh,jhc->hc", p, h[[j for j, _ in near]]).reshape(-1)

        return g.rows(row)

    layer = gnn.GATConv(w, src, dst, weight_edge=we, att_edge=att)
    return layer, expected


def gatv2(loops: bool, edges: bool, concat: bool = True) -> tuple[gnn.Layer, Expected]:
    wl, wr = floats(OUT, IN), floats(OUT, IN)
    bl, br, att = floats(OUT), floats(OUT), floats(1, HEADS, CHANNELS)
    we, bias = floats(OUT, EDGE), floats(OUT if concat else CHANNELS)

    def expected(g: Edges) -> np.ndarray:
        split = (HEADS, CHANNELS)
        left, right = ((g.x @ w.T + b).reshape(-1, *split) for w, b in ((wl, bl), (wr, br)))

        def row(i: int) -> np.ndarray:
            near = g.into(i, loops)
            if not near:
                return np.zeros(split)
            made = [left[j] + right[i] + edges * (we @ e).reshape(split) for j, e in near]
            p = softmax((leaky(np.array(made)) * att).sum(2))
            return np.einsum("jh,jhc->hc", p, left[[j for j, _ in near]])

        y = g.rows(row)
        return (y.reshape(len(y), -1) if concat else y.mean(1)) + bias

    layer = gnn.GATv2Conv(
        wl,
        wr,
        att,
        bl,
        br,
        bias,
        weight_edge=we if edges else None,
        add_self_loops=loops,
        concat=concat,
    )
    return layer, expected


def transformer(edges: bool, beta: bool, concat: bool = True) -> tuple[gnn.Layer, Expected]:
    q, k, v = ((floats(OUT, IN), floats(OUT)) for _ in range(3))
    out = OUT if concat else CHANNELS
    skip, wb = (floats(out, IN), floats(out)), floats(1, 3 * out)
    we = floats(OUT, EDGE)

    def expected(g: Edges) -> np.ndarray:
        split = (HEADS, CHANNELS)
        query, key, value = ((g.x @ w.T + b).reshape(-1, *split) for w, b in (q, k, v))

        def row(i: int) -> np.ndarray:
            near = g.into(i)
            if not near:
                return np.zeros(split)
            e = np.array([edges * (we @ e).reshape(split) for _, e in near])
            j = [j for j, _ in near]
            p = softmax((query[i] * (key[j] + e)).sum(2) / math.sqrt(CHANNELS))
            return np.einsum("jh,jhc->hc", p, value[j] + e)

        y = g.rows(row)
        y = y.reshape(len(y), -1) if concat else y.mean(1)
        s = g.x @ skip[0].T + skip[1]
        if not beta:
            return y + s
        gate = 1 / (1 + np.exp(-np.concatenate([y, s, y - s], 1) @ wb.T))
        return gate * s + (1 - gate) * y

    layer = gnn.TransformerConv(
        q,
        k,
        v,
        skip,
        heads=HEADS,
        weight_edge=we if edges else None,
        weight_beta=wb if beta else None,
        concat=concat,
    )
    return layer, expected


def graph_conv(aggr: str, out: int) -> tuple[gnn.Layer, Expected]:
    rel, root, bias = floats(out, IN), floats(out, IN), floats(out)

    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            into = g.ends[1] == i
            sent = g.weight[into, None] * g.x[g.ends[0][into]]
            return getattr(np, aggr)(sent, axis=0) if len(sent) else np.zeros(IN)

        return g.rows(row) @ rel.T + bias + g.x @ root.T

    return gnn.GraphConv(rel, bias, root, aggr=aggr), expected


def gine() -> tuple[gnn.Layer, Expected]:
    w, v, we, be = floats(8, IN), floats(OUT, 8), floats(IN, EDGE), floats(IN)

    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            sent = [np.maximum(g.x[j] + we @ e + be, 0) for j, e in g.into(i)]
            return np.sum(sent, axis=0) + 1.25 * g.x[i]

        return np.maximum(g.rows(row) @ w.T, 0) @ v.T

    nn = gnn.Sequential(gnn.Linear(w), gnn.ReLU(), gnn.Linear(v))
    return gnn.GINEConv(nn, 0.25, (we, be)), expected


def edge_conv(aggr: str) -> tuple[gnn.Layer, Expected]:
    w, b = floats(OUT, 2 * IN), floats(OUT)

    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            pairs = [np.concatenate([g.x[i], g.x[j] - g.x[i]]) for j, _ in g.into(i)]
            sent = [np.maximum(w @ pair + b, 0) for pair in pairs]
            return getattr(np, aggr)(sent, axis=0) if sent else np.zeros(OUT)

        return g.rows(row)

    return gnn.EdgeConv([gnn.Linear(w, b), gnn.ReLU()], aggr), expected


def rgcn(aggr: str, bases: bool = False) -> tuple[gnn.Layer, Expected]:
    comp = floats(RELATIONS, 2) if bases else None
    weight = floats(RELATIONS if comp is None else 2, IN, OUT)
    dense = weight if comp is None else np.einsum("rb,bio->rio", comp, weight)
    root, bias = floats(IN, OUT), floats(OUT)

    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            total = np.zeros(OUT)
            for r in range(RELATIONS):
                near = g.ends[0][(g.ends[1] == i) & (g.type == r)]
                if len(near):
                    total = total + getattr(np, aggr)(g.x[near], axis=0) @ dense[r]
            return total

        return g.rows(row) + g.x @ root + bias

    return gnn.RGCNConv(weight, root, bias, comp, aggr=aggr), expected


def sg(loops: bool, out: int) -> tuple[gnn.Layer, Expected]:
    w, b = floats(out, IN), floats(out)

    def expected(g: Edges) -> np.ndarray:
        return np.linalg.matrix_power(g.matrix(loops), 2) @ g.x @ w.T + b

    return gnn.SGConv(w, b, K=2, add_self_loops=loops), expected


def appnp() -> tuple[gnn.Layer, Expected]:
    def expected(g: Edges) -> np.ndarray:
        y = g.x
        for _ in range(3):
            y = 0.8 * g.matrix(True) @ y + 0.2 * g.x
        return y

    return gnn.APPNP(3, 0.2), expected


def tag() -> tuple[gnn.Layer, Expected]:
    weights, b = [floats(OUT, IN) for _ in range(3)], floats(OUT)

    def expected(g: Edges) -> np.ndarray:
        powers = [np.linalg.matrix_power(g.matrix(False), k) for k in range(3)]
        return sum((p @ g.x @ w.T for p, w in zip(powers, weights, strict=True)), b)

    return gnn.TAGConv(weights, b), expected


def cheb() -> tuple[gnn.Layer, Expected]:
    weights, b = [floats(OUT, IN) for _ in range(4)], floats(OUT)

    def expected(g: Edges) -> np.ndarray:
        a = g.matrix(False, keep=False, normalize=False)
        degree = a.sum(0)
        scale = np.where(degree > 0, degree, 1) ** -0.5 * (degree > 0)
        p = -scale[:, None] * a * scale
        terms = [g.x, p @ g.x]
        for _ in range(2):
            terms.append(2 * p @ terms[-1] - terms[-2])
        return sum((t @ w.T for t, w in zip(terms, weights, strict=True)), b)

    return gnn.ChebConv(weights, b), expected


GATE = floats(IN, EDGE)


class Gated(gnn.MessagePassing):
    """A message of all that there is, and an update."""

    def __init__(self, aggr: Any) -> None:
        super().__init__(aggr)
        self.weight = GATE

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Value:
        return b.sigmoid(b.dense(edge_attr, self.weight)) * x_j - x_i * 0.5

    def update(self, b: Builder, arrived: Value, x: Value) -> Value:
        return b.tanh(arrived) + b.concat([x] * len(self.aggr), axis=1)


def gated(*aggr: str) -> tuple[gnn.Layer, Expected]:
    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            sent = [g.x[j] / (1 + np.exp(-GATE @ e)) - g.x[i] * 0.5 for j, e in g.into(i)]
            if not sent:
                return np.concatenate([np.full(IN, float(a == "prod")) for a in aggr])
            return np.concatenate([getattr(np, a)(sent, axis=0) for a in aggr])

        return np.tanh(g.rows(row)) + np.concatenate([g.x] * len(aggr), 1)

    return Gated(aggr), expected


class Weighted(gnn.MessagePassing):
    """A message of the weights and the types of edges, without features."""

    def message(  # type: ignore[override]
        self, b: Builder, x_i: Value, x_j: Value, edge_type: Value, edge_weight: Value | None
    ) -> Value:
        columns = b.reshape(b.cast(edge_type, "f32"), [-1, 1])
        return (
            x_j * columns
            if edge_weight is None
            else x_j * b.reshape(edge_weight, [-1, 1]) + columns
        )


def weighted() -> tuple[gnn.Layer, Expected]:
    def expected(g: Edges) -> np.ndarray:
        sums = np.zeros(g.x.shape)
        np.add.at(sums, g.ends[1], g.x[g.ends[0]] * g.weight[:, None] + g.type[:, None])
        return sums

    return Weighted(), expected


class Attended(gnn.MessagePassing):
    """Messages with scores of their own, of two heads, or their own scores."""

    def __init__(self, heads: bool) -> None:
        super().__init__("softmax")
        self.heads = heads

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Any:
        if not self.heads:
            return x_j
        score = b.reduce(x_i * x_j, "sum", [1])
        return b.reshape(b.concat([x_j, x_i], axis=1), [-1, 1, 2 * IN]), b.reshape(score, [-1, 1])

    def update(self, b: Builder, arrived: Value, x: Value) -> Value:
        return b.reshape(arrived, [-1, 2 * IN]) if self.heads else arrived


def attention_by_hand(heads: bool) -> tuple[gnn.Layer, Expected]:
    def expected(g: Edges) -> np.ndarray:
        def row(i: int) -> np.ndarray:
            near = [j for j, _ in g.into(i)]
            sent = g.x[near]
            if not heads:
                return (softmax(sent) * sent).sum(0) if near else np.zeros(IN)
            sent = np.concatenate([sent, np.repeat(g.x[i : i + 1], len(near), 0)], 1)
            if not near:
                return np.zeros(2 * IN)
            return softmax(g.x[near] @ g.x[i])[:, None].T @ sent

        return g.rows(lambda i: np.ravel(row(i)))

    return Attended(heads), expected


LAYERS: dict[str, tuple[gnn.Layer, Expected]] = {
    "gat with edges": gat_with_edges(),
    **{f"gatv2 {a}": gatv2(*a) for a in ((True, False), (False, True), (True, True, False))},
    **{
        f"transformer {a}": transformer(*a)
        for a in ((False, False), (True, True), (True, False, False))
    },
    **{
        f"graph_conv {a}": graph_conv(*a) for a in (("sum", 3), ("mean", 3), ("max", 8), ("sum", 8))
    },
    "gine": gine(),
    **{f"edge_conv {a}": edge_conv(a) for a in ("max", "sum", "mean")},
    "rgcn": rgcn("mean"),
    "rgcn, bases": rgcn("max", True),
    "sg": sg(True, 3),
    "sg, wide": sg(False, 8),
    "appnp": appnp(),
    "tag": tag(),
    "cheb": cheb(),
    "gated": gated("sum", "mean", "max", "min", "prod", "std"),
    "weighted": weighted(),
    "attention by hand": attention_by_hand(True),
    "attention of features": attention_by_hand(False),
}


QUICK = (
    *("gat with edges", "transformer (True, True)", "rgcn", "cheb"),
    *("graph_conv ('max', 8)", "gated", "weighted"),
)
"""Layers that are compiled in ways of their own."""


class Beside(gnn.Layer):
    """The results of layers beside one another."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    @property
    def parts(self) -> tuple[gnn.Layer, ...]:
        return tuple(LAYERS[name][0] for name in self.names)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        made = [p.emit(context, x, f"{name}.{n}") for n, p in enumerate(self.parts)]
        return context.builder.concat(made, axis=1)

    def compare(self, found: np.ndarray, g: Edges) -> None:
        first = 0
        for name in self.names:
            want = LAYERS[name][1](g)
            got = found[:, first : first + want.shape[1]]
            first += want.shape[1]
            # Sums of a few terms in f32, in another order.
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5, err_msg=name)
        assert first == found.shape[1]


ATTR, TYPE = sw.TensorSpec((None, EDGE)), sw.TensorSpec((None,), "i64")


def runs(module: sw.Module, threads: int | None) -> list[Callable[..., Any]]:
    """The reference, and what is compiled."""
    compiled = [] if threads is None else [sw.compile(module, threads=threads)]
    return [module.run_reference, *compiled]


CASES = [
    pytest.param(LAYERS, None, id="references"),
    pytest.param(QUICK, 2, id="some"),
    pytest.param(LAYERS, 1, id="all", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("names", "threads"), CASES)
def test_layers_on_an_edge_list(names: Iterable[str], threads: int | None) -> None:
    layer, spec = Beside(names), gnn.EdgeListSpec(weighted=True)
    module = gnn.Sequential(layer).to_module(
        spec, sw.TensorSpec((None, IN)), edge_attr=ATTR, edge_type=TYPE
    )
    for run in runs(module, threads):
        for graphs in (GRAPHS, ["several"], ["no_edges"], ["one_node"], ["one_loop"]):
            g = Edges(Case.of(graphs))
            layer.compare(run(g.ends, g.weight, g.x, g.attr, g.type), g)


@pytest.mark.parametrize(("names", "threads"), [CASES[0], CASES[2]])
def test_layers_on_a_matrix(names: Iterable[str], threads: int | None) -> None:
    layer, spec = Beside(names), sw.TensorSpec((None, IN))
    module = gnn.Sequential(layer).to_module(gnn.GraphSpec(), spec, edge_attr=ATTR, edge_type=TYPE)
    for run in runs(module, threads):
        for graphs in (GRAPHS, ["no_edges"]):
            g = Edges(Case.of(graphs))
            graph = gnn.Graph.from_edge_index(g.ends, len(g.x), g.weight)
            order = graph.edge_order
            layer.compare(run(graph, g.x, g.attr[order], g.type[order]), g)


@pytest.mark.parametrize(("names", "threads"), [CASES[0], CASES[2]])
def test_layers_on_a_constant_graph(names: Iterable[str], threads: int | None) -> None:
    g, layer = Edges(Case.of(GRAPHS)), Beside(names)
    graph, model = gnn.Graph.from_edge_index(g.ends, len(g.x), g.weight), gnn.Sequential(layer)
    module = model.to_module(graph, g.x, edge_attr=g.attr, edge_type=g.type)
    layer.compare(module.run_reference(), g)
    module = model.to_module(graph, sw.TensorSpec(g.x.shape), edge_attr=ATTR, edge_type=TYPE)
    for run in runs(module, threads):
        layer.compare(run(g.x, g.attr, g.type), g)


def test_blocks_of_a_relation_are_a_diagonal() -> None:
    g, blocks = Edges(Case.of(GRAPHS)), floats(RELATIONS, 2, 3, 2)
    g.x = floats(len(g.x), 6)
    whole = np.zeros((RELATIONS, 6, 4), np.float32)
    whole[:, :3, :2], whole[:, 3:, 2:] = blocks[:, 0], blocks[:, 1]
    results = [
        gnn.Sequential(gnn.RGCNConv(weight))
        .to_module(gnn.EdgeListSpec(), sw.TensorSpec((None, 6)), edge_type=TYPE)
        .run_reference(g.ends, g.x, g.type)
        for weight in (blocks, whole)
    ]
    np.testing.assert_array_equal(*results)


def test_a_message_names_what_it_gets_of_edges() -> None:
    g = Edges(Case.of(["several"]))

    def sums(layer: gnn.Layer, graph: gnn.Graph | gnn.EdgeListSpec) -> np.ndarray:
        module = gnn.Sequential(layer).to_module(graph, SPEC, edge_type=TYPE)
        return module.run_reference(*(() if graph is ones else (g.ends,)), g.x, g.type)

    class Named(gnn.MessagePassing):
        def message(self, b: Builder, x_i: Value, x_j: Value, features: Value | None) -> Value:
            assert features is None
            return x_j

    class Few(gnn.MessagePassing):
        def message(self, b: Builder, x_i: Value, x_j: Value) -> Value:  # type: ignore[override]
            return x_j

    ones = gnn.Graph.from_edge_index(g.ends, len(g.x))
    expected = np.zeros(g.x.shape)
    np.add.at(expected, g.ends[1], g.x[g.ends[0]])
    typed = np.zeros(g.x.shape)
    np.add.at(typed, g.ends[1], g.x[g.ends[0]] * g.type[:, None])
    for graph in (ones, EDGES):
        for layer in (Named(), Few(), gnn.MessagePassing()):
            np.testing.assert_allclose(sums(layer, graph), expected, rtol=1e-5, atol=1e-6)
        # Where all weights are 1 there are none.
        np.testing.assert_allclose(sums(Weighted(), graph), typed, rtol=1e-5, atol=1e-6)


LINEAR = gnn.Linear(floats(OUT, IN))
EDGES = gnn.EdgeListSpec()
SPEC = sw.TensorSpec((None, IN))


def build(layer: gnn.Layer, graph: Any = EDGES, **options: Any) -> sw.Module:
    return gnn.Sequential(layer).to_module(graph, SPEC, **options)


class Wrong(gnn.MessagePassing):
    """Messages that are none."""

    def __init__(self, made: Any, aggr: str = "sum") -> None:
        super().__init__(aggr)
        self.made = made

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Any:
        return self.made(b, x_i, x_j)


class Short(gnn.MessagePassing):
    def message(self, x_j: Value) -> Value:  # type: ignore[override]
        return x_j


def pna_of(pre: Any = (LINEAR,), post: Any = (LINEAR,), **options: Any) -> gnn.Layer:
    names: dict[str, Any] = {"aggregators": ["sum"], "scalers": ["identity"], **options}
    return gnn.PNAConv(pre, post, (floats(2, OUT), None), avg_deg=(2.0, 1.0), **names)


GATV2 = LAYERS["gatv2 (False, True)"][0]
GRAPH = gnn.Graph.from_edge_index([[0], [1]], 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: build(Short()), r"Short: message has the wrong parameters, expected b, x_i, x_j"),
        (lambda: build(Wrong(lambda *_: 3)), "Wrong: message returns no value .*got int"),
        (lambda: build(Wrong(lambda b, i, j: (i, j))), "message returns no value .*got tuple"),
        (
            lambda: build(Wrong(lambda b, i, j: (i, j, j), "softmax")),
            "expected messages, scores, got 3",
        ),
        (
            lambda: build(Wrong(lambda b, i, j: (b.reduce(i, "sum", [1]), j), "softmax")),
            "scores have more dimensions than messages",
        ),
        (lambda: Wrong(None, "median"), "Wrong: unknown aggr, expected mean, .*got 'median'"),
        (lambda: gnn.MessagePassing([]), "MessagePassing: there is no aggr"),
        (lambda: gnn.MessagePassing(["sum", "softmax"]), "softmax does not go with another"),
        (lambda: build(GATV2), r'layer "gatv2conv_0" needs features of edges, expected edge_attr'),
        (
            lambda: build(GATV2, edge_attr=sw.TensorSpec((None, 2))),
            "does not fit the features of edges, expected 2 inputs, got 3",
        ),
        (lambda: build(LAYERS["rgcn"][0]), "needs types of edges, expected edge_type="),
        (lambda: build(LINEAR, edge_attr=ATTR.shape), "edge_attr has the wrong shape"),
        (
            lambda: build(LINEAR, edge_attr=TYPE),
            r"edge_attr has the wrong shape, expected \('edges'",
        ),
        (lambda: build(LINEAR, edge_type=sw.TensorSpec((None,))), "edge_type has the wrong dtype"),
        (lambda: build(LINEAR, edge_attr=floats(1, 3)), "is a constant, but the graph is not"),
        (
            lambda: build(LINEAR, GRAPH, edge_attr=floats(2, 3)),
            r"edge_attr has the wrong shape, expected \(1, None\), got \(2, 3\)",
        ),
        (
            lambda: build(LINEAR, edge_attr=sw.TensorSpec((None, None))),
            "the width of edge_attr is not known",
        ),
        (lambda: gnn.GATv2Conv(floats(6, 5), None, floats(6)), r"expected \(1, heads, out\)"),
        (
            lambda: gnn.GATv2Conv(floats(5, 5), None, floats(2, 3)),
            r"weight_l has the wrong shape, expected \(6, any\), got \(5, 5\)",
        ),
        (
            lambda: gnn.GATConv(floats(6, 5), floats(2, 3), floats(2, 3), att_edge=floats(2, 3)),
            "weight_edge and att_edge belong together",
        ),
        (
            lambda: gnn.TransformerConv(*[(floats(6, 5), None)] * 3, heads=4),
            "heads do not divide the queries",
        ),
        (
            lambda: gnn.TransformerConv(*[(floats(6, 5), None)] * 3, weight_beta=floats(1, 18)),
            "weight_beta requires skip",
        ),
        (lambda: gnn.RGCNConv(floats(3, 5)), "expected .relations, in, out"),
        (lambda: gnn.RGCNConv(floats(0, 5, 2)), "there is no relation"),
        (lambda: gnn.SGConv(floats(3, 5), K=0), "K is wrong, expected an integer of 1 or more"),
        (lambda: gnn.APPNP(3, 1.5), "alpha is not a probability, expected 0 to 1, got 1.5"),
        (lambda: gnn.TAGConv([]), "TAGConv: there is no weight"),
        (
            lambda: gnn.ARMAConv(floats(2, 5, 3), floats(3, 2, 5, 3)),
            "ARMAConv: weight is missing, expected those of 2 steps, got none",
        ),
        (
            lambda: gnn.ARMAConv(floats(2, 5, 3), floats(3, 2, 5, 3), num_layers=2),
            "root_weight does not have weights of each step, expected 2 or 1, got 3",
        ),
        (lambda: gnn.ARMAConv(floats(2, 5, 3), floats(1, 1, 5, 3)), r"expected \(any, 2, 5, 3\)"),
        (lambda: pna_of([LINEAR], []), "pre and post do not have the layers of each tower"),
        (lambda: pna_of(scalers=["cubic"]), "unknown scaler, expected identity, .*got 'cubic'"),
        (lambda: pna_of(aggregators=["median"]), "unknown aggregator, expected sum, .*'median'"),
        (lambda: pna_of(aggregators="sum"), "aggregators is no list of names, got 'sum'"),
        (
            lambda: build(pna_of([LINEAR] * 2, [LINEAR] * 2, divide_input=True)),
            'towers of layer "pnaconv_0" do not divide the features, expected a multiple of 2',
        ),
        (lambda: gnn.GINEConv(LINEAR, eps="one"), "eps is not a number"),  # type: ignore[arg-type]
    ],
)
def test_wrong_layers_are_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_types_and_ends_of_relations_are_checked() -> None:
    module = build(LAYERS["rgcn"][0], edge_type=TYPE)
    x, ends = floats(2, IN), np.array([[0, 1], [1, 0]])
    for kinds, edges, fault in (
        ([0, 3], ends, "expected 0 to 2, got 3"),
        ([-1, 0], ends, "expected 0 to 2, got -1"),
        ([0, 0], ends + 1, 'node "edge_index": index out of range .*got 2'),
    ):
        with pytest.raises(InputError, match=fault):
            module.run_reference(edges, x, np.array(kinds))
