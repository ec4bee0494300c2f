"""Models on several types of nodes and edges against the same layers on one graph of all nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.frontends import gnn

from ..harness import floats, import_level
from .test_gnn_convolutions import ATTR, EDGE, HEADS, IN, LAYERS, OUT, Gated

AUTHORS, PAPERS = 4, 6
WRITES = np.array([[0, 1, 1, 3, 3], [5, 0, 0, 2, 5]])  # a repeated edge, papers without authors
CITES = np.array([[0, 1, 2, 2], [1, 0, 2, 5]])
X = {"author": floats(AUTHORS, IN), "paper": floats(PAPERS, IN)}
SPECS = {kind: sw.TensorSpec((None, x.shape[1])) for kind, x in X.items()}
GAT = gnn.GATConv(floats(OUT, IN), floats(HEADS, 3), floats(HEADS, 3), add_self_loops=False)
BETWEEN: dict[str, gnn.Layer] = {
    "sage": gnn.SAGEConv(floats(3, IN), floats(3), floats(3, IN)),
    "gat": GAT,
    "gin": gnn.GINConv(gnn.Linear(floats(3, IN)), 0.5),
    "gated": Gated(("sum", "max")),
    **{
        name: LAYERS[name][0]
        for name in (
            *("gatv2 (False, True)", "transformer (True, True)", "gine", "edge_conv mean"),
            "graph_conv ('max', 8)",
        )
    },
}


def test_layers_between_two_types_of_nodes() -> None:
    kinds = [("author", name, "paper") for name in BETWEEN]
    convs = dict(zip(kinds, BETWEEN.values(), strict=True))
    model = gnn.HeteroSequential(gnn.HeteroConv(convs, "cat"))
    attr = floats(WRITES.shape[1], EDGE)
    for spec, order, given in (
        (gnn.EdgeListSpec(), slice(None), WRITES),
        (gnn.GraphSpec(), np.argsort(WRITES[1], kind="stable"), matrix()),
    ):
        graphs = dict.fromkeys(kinds, spec)
        module = model.to_module(graphs, SPECS, edge_attr=dict.fromkeys(kinds, ATTR))
        arguments = [*[given] * len(kinds), *X.values(), *[attr[order]] * len(kinds)]
        got = module.run_reference(*arguments)
        first = 0
        for name, layer in BETWEEN.items():
            want = together(layer, attr)
            found = got[:, first : first + want.shape[1]]
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5, err_msg=name)
            first += want.shape[1]
        assert first == got.shape[1]


def matrix() -> Any:
    from scipy.sparse import csr_array

    order = np.argsort(WRITES[1], kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(WRITES[1], minlength=PAPERS))])
    values = np.ones(len(order), np.float32)
    parts = values, WRITES[0][order].astype(np.int32), pointers.astype(np.int32)
    return csr_array(parts, shape=(PAPERS, AUTHORS))


def together(layer: gnn.Layer, attr: np.ndarray) -> np.ndarray:
    """What papers get in one graph of authors and papers."""
    ends = WRITES + np.array([[0], [AUTHORS]])
    module = gnn.Sequential(layer).to_module(
        gnn.EdgeListSpec(), sw.TensorSpec((None, IN)), edge_attr=ATTR
    )
    return module.run_reference(ends, np.concatenate(list(X.values())), attr)[AUTHORS:]


FIRST = gnn.SAGEConv(floats(OUT, IN), floats(OUT), floats(OUT, IN))
SECOND = gnn.GATConv(floats(OUT, IN), floats(1, OUT), floats(1, OUT))
THIRD = gnn.GCNConv(floats(IN, OUT))
WRITTEN = ("author", "writes", "paper")
CITED = ("paper", "cites", "paper")
BY = ("paper", "by", "author")


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "min"])
def test_a_model_of_two_layers(aggr: str) -> None:
    convs = {WRITTEN: FIRST, CITED: SECOND, BY: FIRST}
    last = {WRITTEN: gnn.SAGEConv(floats(3, OUT))}
    gcn, linear = gnn.GCNConv(floats(OUT, 3)), gnn.Linear(floats(2, 3))
    model = gnn.HeteroSequential(
        gnn.HeteroConv(convs, aggr),
        gnn.ReLU(),
        gnn.HeteroConv({**last, CITED: gcn}),
        gnn.PerType({"paper": linear}),
    )
    specs = {kind: gnn.EdgeListSpec() for kind in (WRITTEN, CITED, BY)}
    module = model.to_module(specs, SPECS)
    assert [v.name for v in module.inputs] == [
        *("author__writes__paper__edge_index", "paper__cites__paper__edge_index"),
        *("paper__by__author__edge_index", "author", "paper"),
    ]
    assert [v.name for v in module.outputs] == ["paper"]
    by_author = sage(FIRST, WRITES, X["author"], X["paper"])
    combine = getattr(np, aggr)
    papers = combine([by_author, alone(SECOND, X["paper"])], axis=0)
    authors = sage(FIRST, WRITES[::-1], X["paper"], X["author"])
    papers, authors = np.maximum(papers, 0), np.maximum(authors, 0)
    again = sage(last[WRITTEN], WRITES, authors, papers)
    again = again + alone(gcn, papers)
    want = again @ linear.weight.T
    arguments = WRITES, CITES, WRITES[::-1].copy(), X["author"], X["paper"]
    found = [module.run_reference(*arguments)]
    if aggr == "sum":
        exe = sw.compile(module, threads=2, opt_level=import_level())
        found.append(exe(*arguments))
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def sage(layer: gnn.SAGEConv, ends: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    near = [x[ends[0][ends[1] == i]] for i in range(len(y))]
    arrived = np.stack([n.mean(0) if len(n) else np.zeros(x.shape[1]) for n in near])
    result = arrived @ layer.left.weight.T
    if layer.left.bias is not None:
        result = result + layer.left.bias
    return result if layer.right is None else result + y @ layer.right.weight.T


def alone(layer: gnn.Layer, x: np.ndarray) -> np.ndarray:
    spec = sw.TensorSpec((None, x.shape[1]))
    module = gnn.Sequential(layer).to_module(gnn.EdgeListSpec(), spec)
    return module.run_reference(CITES, np.asarray(x, np.float32))


def test_results_are_chosen_and_graphs_may_be_constants() -> None:
    graph = gnn.Graph.from_edge_index(CITES, PAPERS)
    model = gnn.HeteroSequential(gnn.HeteroConv({WRITTEN: FIRST, CITED: SECOND, BY: FIRST}))
    graphs = {WRITTEN: gnn.EdgeListSpec(), CITED: graph, BY: gnn.EdgeListSpec()}
    specs = {"author": SPECS["author"], "paper": sw.TensorSpec((PAPERS, IN))}
    module = model.to_module(graphs, specs, outputs=["author"])
    got = module.run_reference(WRITES, WRITES[::-1].copy(), X["author"], X["paper"])
    want = sage(FIRST, WRITES[::-1], X["paper"], X["author"])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def model_of(*layers: Any) -> Callable[..., sw.Module]:
    return gnn.HeteroSequential(*layers).to_module


CONV = gnn.HeteroConv({WRITTEN: FIRST})
GRAPHS = {WRITTEN: gnn.EdgeListSpec()}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gnn.HeteroConv({}), "HeteroConv: there is no layer"),
        (lambda: gnn.HeteroConv({"writes": FIRST}), r"not a type of edges, expected \(source"),  # type: ignore[dict-item]
        (lambda: gnn.HeteroConv({WRITTEN: "x"}), "HeteroConv: not a layer, .*got str"),  # type: ignore[dict-item]
        (lambda: gnn.HeteroConv({WRITTEN: FIRST}, "median"), "HeteroConv: unknown aggr"),
        (lambda: gnn.PerType({}), "PerType: there is no layer"),
        (lambda: gnn.PerType({"paper": 3}), "PerType: not a layer, .*got int"),  # type: ignore[dict-item]
        (gnn.HeteroSequential, "HeteroSequential: there is no layer"),
        (lambda: gnn.HeteroSequential(gnn.ReLU), "not a layer, .*got ReLU"),  # type: ignore[arg-type]
        (lambda: model_of(CONV)({}, SPECS), "there is no graph"),
        (lambda: model_of(CONV)({CITED: gnn.GraphSpec()}, SPECS), "graph of edges .* not given"),
        (lambda: model_of(CONV)({WRITTEN: WRITES}, SPECS), "not a graph of edges .*got ndarray"),
        (lambda: model_of(CONV)(GRAPHS, {"paper": SPECS["paper"]}), "features of author not given"),
        (lambda: model_of(CONV)(GRAPHS, SPECS, outputs=["author"]), "features of author not given"),
        (lambda: model_of(CONV)(GRAPHS, SPECS, edge_attr={CITED: ATTR}), "graph of edges .* not"),
        (
            lambda: model_of(CONV)({WRITTEN: gnn.EdgeListSpec(num_nodes=3)}, SPECS),
            "does not have as many nodes as their types, expected author_nodes and paper_nodes",
        ),
        (
            lambda: model_of(CONV)(GRAPHS, {**SPECS, "paper": sw.TensorSpec((None, IN), "f64")}),
            r"features differ in dtype, got \['f32', 'f64'\]",
        ),
        (
            lambda: model_of(gnn.HeteroConv({WRITTEN: THIRD}))(GRAPHS, SPECS),
            "HeteroConv: GCNConv takes nodes of one type",
        ),
        (
            lambda: model_of(gnn.HeteroConv({WRITTEN: SECOND}))(GRAPHS, SPECS),
            "GATConv: nodes of two sets have no self loops, expected add_self_loops=False",
        ),
        (lambda: model_of(FIRST)(GRAPHS, SPECS), "along edges of no type, expected HeteroConv"),
    ],
)
def test_wrong_models_are_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_sizes_of_types_differ_whatever_their_names_are() -> None:
    kinds = [("a b", "to", "a_b"), ("a-b", "to", "a_b")]
    model = gnn.HeteroSequential(gnn.HeteroConv(dict.fromkeys(kinds, FIRST)))
    specs = dict.fromkeys(("a b", "a-b", "a_b"), SPECS["author"])
    module = model.to_module(dict.fromkeys(kinds, gnn.EdgeListSpec()), specs)
    assert len({spec.shape[0] for spec in module.inputs[2:]}) == 3
    assert len({spec.shape[1] for spec in module.inputs[:2]}) == 2
