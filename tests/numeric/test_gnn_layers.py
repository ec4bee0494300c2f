"""Layers with neighbours and readout against formulas by hand, and against torch-geometric."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.boundary.specs import SparseSpec, TensorSpec
from stepwell.core.errors import InputError
from stepwell.frontends import gnn

from ..harness import cases, close, floats, package

GRAPHS = {
    # An isolated node, a node with a self loop, and nodes without arriving edges.
    "usual": ([[0, 1, 2, 2, 4, 5, 3, 0], [1, 0, 0, 3, 4, 0, 1, 5]], 7),
    # Edges and self loops that are given twice and three times.
    "several": ([[0, 1, 0, 0, 3, 1, 3, 3, 2, 1, 2], [1, 0, 1, 1, 3, 3, 3, 3, 2, 0, 3]], 4),
    "no_edges": (np.zeros((2, 0), np.int64), 3),
    "one_node": (np.zeros((2, 0), np.int64), 1),
    "one_loop": ([[0], [0]], 1),
}


@dataclass
class Case:
    """A graph with features; `parts` are the ranges of nodes of the graphs that it consists of.

    Args:
        edges: sources and targets.
        x: the features of the nodes.
        levels: those of programs of a constant graph that are compiled; without any, programs of
            graphs that are arguments are not compiled either.
    """

    edges: np.ndarray
    x: np.ndarray
    parts: Sequence[tuple[int, int]] = ()
    levels: Sequence[int] = (3,)

    @staticmethod
    def of(names: Iterable[str], levels: Sequence[int] = (3,)) -> Case:
        """Graphs side by side, which no edge connects."""
        edges, parts, first = [np.zeros((2, 0), np.int64)], list[tuple[int, int]](), 0
        for part, count in (GRAPHS[name] for name in names):
            edges.append(np.asarray(part, np.int64) + first)
            parts.append((first, first + count))
            first += count
        return Case(np.concatenate(edges, axis=1), floats(first, 5), parts, levels)

    def graphs(self) -> Iterable[tuple[slice, np.ndarray]]:
        """The graph as a whole and its parts: their nodes, and their edges."""
        yield slice(len(self.x)), self.edges
        for first, last in self.parts if len(self.parts) > 1 else ():
            inside = (self.edges[0] >= first) & (self.edges[0] < last)
            yield slice(first, last), self.edges[:, inside] - first


# A graph that is an argument takes no compilation of its own: it runs in every case. One that is a
# constant takes two.
CASES = [
    pytest.param(GRAPHS, id="together"),
    pytest.param(["no_edges"], id="no_edges"),
    *(
        pytest.param([name], id=name, marks=pytest.mark.slow)
        for name in GRAPHS
        if name != "no_edges"
    ),
]


def neighbours(edges: np.ndarray, node: int) -> list[int]:
    return [int(u) for u, v in edges.T if v == node]


EXECUTABLES: dict[object, sw.Executable] = {}


def compiled(module: sw.Module, level: int) -> sw.Executable:
    """A layer whose graph is an argument is one program for all graphs."""
    arrays = [module.weights[name] for name in module.weights]
    if not module.inputs or not all(isinstance(array, np.ndarray) for array in arrays):
        return sw.compile(module, threads=1, opt_level=level)
    key = str(module), level, *(np.asarray(array).tobytes() for array in arrays)
    if key not in EXECUTABLES:
        EXECUTABLES[key] = sw.compile(module, threads=1, opt_level=level)
    return EXECUTABLES[key]


def as_constant_and_argument(
    model: gnn.Sequential, case: Case, expected: np.ndarray, levels: Sequence[int] = (0, 3)
) -> None:
    """Compare with the graph as constant, and with it and its parts as arguments."""
    graph, spec = gnn.Graph.from_edge_index(case.edges, len(case.x)), TensorSpec((None, 5))
    compare(
        model.to_module(graph, case.x), [((), expected)], [n for n in case.levels if n in levels]
    )
    calls = [
        ((gnn.Graph.from_edge_index(edges, len(case.x[nodes])), case.x[nodes]), expected[nodes])
        for nodes, edges in case.graphs()
    ]
    compare(model.to_module(gnn.GraphSpec(), spec), calls, levels if case.levels else ())


def compare(
    module: sw.Module, calls: Sequence[tuple[Sequence[Any], np.ndarray]], levels: Sequence[int]
) -> None:
    """Compare the reference and what is compiled with the results of calls."""
    runs = [module.run_reference, *(compiled(module, level) for level in levels)]
    for inputs, expected in calls:
        for run in runs:
            # Sums of a few terms in f32, in another order.
            close(run(*inputs), np.asarray(expected, np.float32), 1e-4, 1e-5)


@pytest.fixture
def levels(all_tests: bool) -> tuple[int, ...]:
    """Layers that are compiled at both levels with other options are not in quick tests."""
    return (0, 3) if all_tests else (3,)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, all_tests: bool) -> Case:
    return Case.of(request.param, (0, 3) if all_tests else (3,) if request.param is GRAPHS else ())


def attention(
    edges: np.ndarray, x: np.ndarray, w: np.ndarray, src: np.ndarray, dst: np.ndarray, loops: bool
) -> np.ndarray:
    """GATConv's heads, node by node and head by head."""
    heads, channels = src.shape
    h = (x @ w.T).reshape(len(x), heads, channels)
    y = np.zeros(h.shape)
    for i in range(len(x)):
        near = neighbours(edges, i)
        if loops:
            near = [j for j in near if j != i] + [i]
        for k in range(heads):
            scores = np.array([h[j, k] @ src[k] + h[i, k] @ dst[k] for j in near])
            scores = np.where(scores > 0, scores, 0.2 * scores)
            e = np.exp(scores - scores.max(initial=-np.inf))
            for j, share in zip(near, e / e.sum(), strict=True):
                y[i, k] += share * h[j, k]
    return y


@pytest.mark.parametrize(
    "form", cases([*itertools.product([True, False], repeat=2)], [(True, True), (False, False)])
)
def test_gat(case: Case, form: tuple[bool, bool], levels: tuple[int, ...]) -> None:
    (concat, loops), edges, x = form, case.edges, case.x
    w, src, dst = floats(6, 5), floats(2, 3), floats(2, 3)
    bias = floats(6 if concat else 3)
    layer = gnn.GATConv(w, src[None], dst[None], bias, concat=concat, add_self_loops=loops)
    heads = attention(edges, x, w, src, dst, loops)
    expected = heads.reshape(len(x), 6) if concat else heads.mean(1)
    levels = (0, 3) if concat else levels
    as_constant_and_argument(gnn.Sequential(layer), case, expected + bias, levels)


def test_gat_takes_sparse_features() -> None:
    edges = np.asarray(GRAPHS["usual"][0])
    x = np.maximum(floats(7, 5), 0)
    w, src, dst = floats(3, 5), floats(1, 3), floats(1, 3)
    model = gnn.Sequential(gnn.GATConv(w, src, dst))
    expected = attention(edges, x, w, src, dst, True).reshape(7, 3)
    module = model.to_module(gnn.GraphSpec(), SparseSpec((None, 5)))
    result = sw.compile(module, threads=1)(gnn.Graph.from_edge_index(edges, 7), sp.csr_array(x))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_an_edge_of_weight_zero_is_an_edge() -> None:
    edges, x = np.array([[0, 1], [1, 1]]), floats(2, 3)
    graph = gnn.Graph.from_edge_index(edges, 2, [0.0, -1.0])
    w, src, dst = floats(3, 3), floats(1, 3), floats(1, 3)
    expected = attention(edges, x, w, src, dst, True).reshape(2, 3)
    module = gnn.Sequential(gnn.GATConv(w, src, dst)).to_module(graph, x)
    np.testing.assert_allclose(module.run_reference(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "kind",
    cases(
        [*((aggr, out) for aggr in ("mean", "sum", "max", "min") for out in (2, 8)), ("add", 2)],
        [("mean", 2), ("sum", 8), ("max", 2)],
    ),
    ids=str,
)
def test_sage(case: Case, kind: tuple[str, int], levels: tuple[int, ...]) -> None:
    (aggr, out), edges, x = kind, case.edges, case.x
    left, right, bias = floats(out, 5), floats(out, 5), floats(out)
    near = [x[neighbours(edges, i)] for i in range(len(x))]
    combine = getattr(np, "sum" if aggr == "add" else aggr)
    arrived = np.stack([combine(n, axis=0) if len(n) else np.zeros(5) for n in near])
    expected = arrived @ left.T + bias + x @ right.T
    model = gnn.Sequential(gnn.SAGEConv(left, bias, right, aggr=aggr))
    levels = (0, 3) if kind == ("mean", 2) else levels
    as_constant_and_argument(model, case, expected, levels)


def test_sage_projects_and_normalizes(case: Case, levels: tuple[int, ...]) -> None:
    edges, x = case.edges, case.x
    left, right, bias = floats(4, 5), floats(4, 5), floats(4)
    w, b = floats(5, 5), floats(5)
    sent = np.maximum(x @ w.T + b, 0)
    near = [sent[neighbours(edges, i)] for i in range(len(x))]
    arrived = np.stack([n.mean(0) if len(n) else np.zeros(5) for n in near])
    y = arrived @ left.T + bias + x @ right.T
    expected = y / np.linalg.norm(y, axis=1, keepdims=True)
    layer = gnn.SAGEConv(left, bias, right, normalize=True, project=(w, b))
    as_constant_and_argument(gnn.Sequential(layer), case, expected, levels)


def test_rows_of_zeros_stay_when_they_are_normalized(levels: tuple[int, ...]) -> None:
    model = gnn.Sequential(gnn.SAGEConv(floats(4, 5), normalize=True))
    case = Case(np.zeros((2, 0), np.int64), floats(3, 5))
    as_constant_and_argument(model, case, np.zeros((3, 4)), levels)


def test_gin(case: Case, levels: tuple[int, ...]) -> None:
    edges, x = case.edges, case.x
    w, v, b = floats(8, 5), floats(3, 8), floats(8)
    arrived = np.stack([x[neighbours(edges, i)].sum(0) for i in range(len(x))])
    expected = np.maximum((1.25 * x + arrived) @ w.T + b, 0) @ v.T
    layer = gnn.GINConv([gnn.Linear(w, b), gnn.ReLU(), gnn.Linear(v)], eps=0.25)
    as_constant_and_argument(gnn.Sequential(layer), case, expected, levels)


@pytest.mark.parametrize("kind", cases(["add", "mean", "max"], ["mean", "max"]))
def test_pools(kind: str, levels: tuple[int, ...]) -> None:
    edges, x = np.asarray(GRAPHS["usual"][0]), floats(7, 5)
    layer = {"add": gnn.GlobalAddPool, "mean": gnn.GlobalMeanPool, "max": gnn.GlobalMaxPool}[kind]
    combine = getattr(np, "sum" if kind == "add" else kind)
    as_constant_and_argument(
        gnn.Sequential(layer()), Case(edges, x), combine(x, axis=0, keepdims=True), levels
    )
    batch = np.array([0, 2, 0, 2, 2, 0, 4])
    rows = [x[batch == g] for g in range(6)]
    expected = np.stack([combine(r, axis=0) if len(r) else np.zeros(5) for r in rows])
    model = gnn.Sequential(layer(batch, size=6))
    as_constant_and_argument(model, Case(edges, x), expected, (0, 3) if kind == "max" else levels)


def test_a_classifier_of_graphs(levels: tuple[int, ...]) -> None:
    edges, x = np.asarray(GRAPHS["usual"][0]), floats(7, 5)
    w, v, b = floats(8, 5), floats(3, 8), floats(3)
    model = gnn.Sequential(
        gnn.GINConv(gnn.Linear(w)), gnn.ReLU(), gnn.GlobalMeanPool(), gnn.Linear(v, b)
    )
    arrived = np.stack([x[neighbours(edges, i)].sum(0) for i in range(7)])
    hidden = np.maximum((x + arrived) @ w.T, 0)
    as_constant_and_argument(model, Case(edges, x), hidden.mean(0, keepdims=True) @ v.T + b, levels)


ONES = np.ones((4, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gnn.GATConv(ONES, np.ones((1, 3)), np.ones((1, 3))), "does not fit 1 heads of 3"),
        (lambda: gnn.GATConv(ONES, np.ones((1, 4)), np.ones((4, 1))), "differ in shape"),
        (lambda: gnn.GATConv(ONES, np.ones(4), np.ones(4)), r"expected \(1, heads, out\)"),
        (lambda: gnn.SAGEConv(ONES, aggr="median"), "unknown aggr, expected mean, sum"),
        (lambda: gnn.SAGEConv(ONES, weight_r=ONES.T), "weight_l and weight_r differ in outputs"),
        (lambda: gnn.GINConv([gnn.ReLU]), "nn must hold layers only"),  # type: ignore[list-item]
        (lambda: gnn.GlobalAddPool(np.ones(3)), "batch is not a vector of integers"),
        (lambda: gnn.GlobalAddPool(np.array([0, -1])), "batch is out of range"),
        (lambda: gnn.GlobalAddPool(np.array([0, 5]), 2), "expected 0 to 1, got 5"),
        (
            lambda: gnn.Sequential(gnn.GlobalAddPool(np.zeros(2, int))).to_module(
                gnn.Graph.from_edge_index([[0], [1]], 3), np.ones((3, 3), np.float32)
            ),
            "batch does not have one index per node, expected 3, got 2",
        ),
        (
            lambda: gnn.Sequential(gnn.GINConv(gnn.Linear(ONES))).to_module(
                gnn.Graph.from_edge_index([[0], [1]], 3), sp.csr_array((3, 3), dtype=np.float32)
            ),
            "gets sparse features",
        ),
    ],
)
def test_bad_layers_are_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


PAIR = (ONES, np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gnn.SAGEConv(ONES, ONES),
            r"SAGEConv: the bias has the wrong shape, expected \(4,",
        ),
        (lambda: gnn.SAGEConv(ONES[0]), "SAGEConv: the weight_l is not a matrix"),
        (lambda: gnn.SAGEConv(ONES, project=ONES), "SAGEConv: project is not a weight and a bias"),
        (lambda: gnn.GraphConv(ONES, ONES), "GraphConv: the bias has the wrong shape"),
        (lambda: gnn.SGConv(ONES, ONES), "SGConv: the bias has the wrong shape"),
        (lambda: gnn.TAGConv(ONES), "TAGConv: weights are no list of matrices"),
        (
            lambda: gnn.GATv2Conv(ONES, ONES, ONES[:, :1], bias_l=ONES),
            "GATv2Conv: the bias_l has the wrong shape",
        ),
        (
            lambda: gnn.TransformerConv(PAIR, (ONES, ONES[0]), PAIR),
            "TransformerConv: the bias of key has the wrong shape",
        ),
        (lambda: gnn.TransformerConv(ONES, PAIR, PAIR), "TransformerConv: query is not a weight"),
        (lambda: gnn.GINEConv(gnn.ReLU(), edge=ONES), "GINEConv: edge is not a weight and a bias"),
        (
            lambda: gnn.Sequential(gnn.TransformerConv(PAIR, PAIR, PAIR)).to_module(
                gnn.Graph.from_edge_index([[0], [1]], 3), np.ones((3, 5), np.float32)
            ),
            'TransformerConv: the weight of layer "transformerconv_0.lin_query" does not fit',
        ),
    ],
)
def test_errors_name_the_layer_of_the_caller(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call()


NO_LAYERS = ("BatchSpec", "EdgeListSpec", "Graph", "GraphSpec", "Layer")


@pytest.mark.parametrize("name", sorted(set(gnn.__all__) - set(NO_LAYERS)))
def test_any_argument_is_an_error_of_the_layer(name: str) -> None:
    """Or of Python, for their number."""
    ragged = (ONES, ONES[0])
    values = [ONES, ONES[0], None, "sum", 5, [ONES], ragged, [gnn.ReLU()], {}, gnn.Linear]
    found = set[str]()
    for args in (*((value,) for value in values), *itertools.permutations(values, 2)):
        try:
            getattr(gnn, name)(*args)
        except (InputError, TypeError) as error:
            found.add(str(error))
    assert all(re.match(rf"{name}(: |\.__init__\(\) )", text) for text in found), found


class TestTorchGeometric:
    """The same layers of torch-geometric, where it is installed."""

    @pytest.fixture
    def torch(self) -> Any:
        package("torch_geometric", "torch-geometric")
        return package("torch")

    def compare(self, torch: Any, theirs: Any, ours: gnn.Layer, case: Case) -> None:
        with torch.no_grad():
            x, edges = torch.from_numpy(case.x), torch.from_numpy(case.edges)
            expected = theirs.eval()(x, edges).numpy()
        # What is compiled is compared with the formulas above.
        levels = (0, 3) if 0 in case.levels else ()
        as_constant_and_argument(gnn.Sequential(ours), case, expected, levels)

    @pytest.mark.parametrize("loops", [True, False])
    def test_gcn(self, torch: Any, loops: bool, case: Case) -> None:
        from torch_geometric.nn import GCNConv  # type: ignore[import-not-found]

        theirs = GCNConv(5, 3, add_self_loops=loops)
        weight, bias = theirs.lin.weight.detach().numpy(), theirs.bias.detach().numpy()
        ours = gnn.GCNConv(np.ascontiguousarray(weight.T), bias, add_self_loops=loops)
        self.compare(torch, theirs, ours, case)

    def test_weighted_gcn(self, torch: Any) -> None:
        """Of several self loops the last one counts, of other edges each."""
        from torch_geometric.nn import GCNConv  # type: ignore[import-not-found]

        edges, count = np.asarray(GRAPHS["several"][0]), GRAPHS["several"][1]
        x, w = floats(count, 5), np.abs(floats(edges.shape[1])) + 0.1
        theirs = GCNConv(5, 3)
        with torch.no_grad():
            parts = (torch.from_numpy(part) for part in (x, edges, w))
            expected = theirs.eval()(*parts).numpy()
        weight, bias = theirs.lin.weight.detach().numpy(), theirs.bias.detach().numpy()
        model = gnn.Sequential(gnn.GCNConv(np.ascontiguousarray(weight.T), bias))
        graph = gnn.Graph.from_edge_index(edges, count, w)
        for module, inputs in (
            (model.to_module(graph, x), ()),
            (model.to_module(gnn.GraphSpec(), TensorSpec((None, 5))), (graph, x)),
        ):
            result = sw.compile(module, threads=1)(*inputs)
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("kind", ["add", "mean", "max"])
    def test_pools(self, torch: Any, kind: str) -> None:
        from torch_geometric.nn import (  # type: ignore[import-not-found]
            global_add_pool,
            global_max_pool,
            global_mean_pool,
        )

        theirs = {"add": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}[kind]
        ours = {"add": gnn.GlobalAddPool, "mean": gnn.GlobalMeanPool, "max": gnn.GlobalMaxPool}
        x = floats(7, 5)
        expected = theirs(torch.from_numpy(x), None).numpy()
        one = Case(np.asarray(GRAPHS["usual"][0]), x)
        as_constant_and_argument(gnn.Sequential(ours[kind]()), one, expected, levels=())

    @pytest.mark.parametrize("concat", [True, False])
    def test_gat(self, torch: Any, concat: bool, case: Case) -> None:
        from torch_geometric.nn import GATConv  # type: ignore[import-not-found]

        theirs: Any = GATConv(5, 3, heads=2, concat=concat)
        weight, src, dst, bias = (
            p.detach().numpy()
            for p in (theirs.lin.weight, theirs.att_src, theirs.att_dst, theirs.bias)
        )
        self.compare(torch, theirs, gnn.GATConv(weight, src, dst, bias, concat=concat), case)

    @pytest.mark.parametrize("aggr", ["mean", "sum", "max", "min"])
    def test_sage(self, torch: Any, aggr: str, case: Case) -> None:
        from torch_geometric.nn import SAGEConv  # type: ignore[import-not-found]

        theirs = SAGEConv(5, 4, aggr=aggr, normalize=True, project=True)
        left, bias, right, w, b = (
            p.detach().numpy()
            for p in (
                theirs.lin_l.weight,
                theirs.lin_l.bias,
                theirs.lin_r.weight,
                theirs.lin.weight,
                theirs.lin.bias,
            )
        )
        ours = gnn.SAGEConv(left, bias, right, aggr=aggr, normalize=True, project=(w, b))
        self.compare(torch, theirs, ours, case)

    def test_gin(self, torch: Any, case: Case) -> None:
        from torch_geometric.nn import GINConv  # type: ignore[import-not-found]

        linear = torch.nn.Linear(5, 4)
        weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
        ours = gnn.GINConv(gnn.Linear(weight, bias), eps=0.5)
        self.compare(torch, GINConv(linear, eps=0.5), ours, case)
