"""Layers beside those of torch-geometric with the same weights, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends import gnn

from ..harness import floats, package
from .test_gnn_layers import GRAPHS, Case

torch: Any = package("torch")
pyg: Any = package("torch_geometric.nn", "torch-geometric")

IN, OUT, EDGE, RELATIONS = 5, 6, 3, 3


def mlp(width: int, out: int) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.ReLU(), torch.nn.Linear(8, out))


def layers(nn: Any) -> list[gnn.Layer]:
    """The layers of a network of torch."""
    first, last = (gnn.Linear.from_state_dict(nn[n].state_dict()) for n in (0, 2))
    return [first, gnn.ReLU(), last]


Pair = tuple[Any, Callable[[Any], gnn.Layer]]


def pair(kind: str, options: dict[str, Any], *given: Any, **ours: Any) -> Pair:
    """A layer and the one of the same name, which is made of its `state_dict`."""
    theirs = getattr(pyg, kind)(*given, **options)
    return theirs, lambda state: getattr(gnn, kind).from_state_dict(state, "", **ours)


def with_network(kind: str, width: int, **options: Any) -> Pair:
    nn = mlp(width, OUT)
    theirs = getattr(pyg, kind)(nn, **options)
    ours = {key: value for key, value in options.items() if key == "aggr"}
    return theirs, lambda s: getattr(gnn, kind).from_state_dict(s, "", layers(nn), **ours)


AGGREGATORS = ["mean", "min", "max", "std", "var", "sum"]
SCALERS = ["identity", "amplification", "attenuation", "linear", "inverse_linear"]


def pna(width: int = IN, **options: Any) -> Pair:
    histogram = torch.tensor([1, 4, 3, 2, 0, 1])
    theirs = pyg.PNAConv(width, OUT, AGGREGATORS, SCALERS, histogram, **options)
    names = {"aggregators": AGGREGATORS, "scalers": SCALERS}
    return theirs, lambda state: gnn.PNAConv.from_state_dict(state, "", **names)


def divided() -> Pair:
    """A network whose towers get parts of the features."""
    options = {"divide_input": True}
    lin = torch.nn.Linear(IN, 8)
    theirs, _ = pna(8, towers=2, edge_dim=EDGE, act="tanh", pre_layers=2, **options)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.conv = lin, theirs

        def forward(self, x: Any, edge_index: Any, edge_attr: Any) -> Any:
            return self.conv(self.lin(x), edge_index, edge_attr)

    def ours(state: Any) -> gnn.Layer:
        first = gnn.Linear.from_state_dict(state, "lin.")
        own = {"aggregators": AGGREGATORS, "scalers": SCALERS, "act": gnn.Tanh(), **options}
        return gnn.Sequential(first, gnn.PNAConv.from_state_dict(state, "conv.", **own))

    return Both(), ours


HEADS = {"heads": 2}
PLAIN: dict[str, Callable[[], Pair]] = {
    "gcn": lambda: pair("GCNConv", {}, IN, OUT),
    "sage": lambda: pair("SAGEConv", {"project": True}, IN, OUT),
    "gat": lambda: pair("GATConv", HEADS, IN, 3),
    "gatv2": lambda: pair("GATv2Conv", HEADS, IN, 3),
    "gatv2, shared": lambda: pair("GATv2Conv", {"share_weights": True}, IN, 3),
    "gatv2, mean": lambda: pair(
        "GATv2Conv",
        {"concat": False, "add_self_loops": False, **HEADS},
        IN,
        3,
        concat=False,
        add_self_loops=False,
    ),
    "transformer": lambda: pair("TransformerConv", HEADS, IN, 3, heads=2),
    "transformer, beta": lambda: pair("TransformerConv", {"beta": True}, IN, OUT),
    "sg": lambda: pair("SGConv", {"K": 2}, IN, OUT, K=2),
    "tag": lambda: pair("TAGConv", {"K": 2}, IN, OUT),
    "cheb": lambda: pair("ChebConv", {"K": 3}, IN, OUT),
    "arma": lambda: pair("ARMAConv", {}, IN, OUT),
    "arma, stacks": lambda: pair("ARMAConv", {"num_stacks": 2, "num_layers": 3}, IN, OUT),
    "arma, shared": lambda: pair(
        "ARMAConv",
        {"num_stacks": 2, "num_layers": 3, "shared_weights": True, "act": torch.nn.Tanh()},
        IN,
        OUT,
        num_layers=3,
        act=gnn.Tanh(),
    ),
    "arma, linear": lambda: pair("ARMAConv", {"act": None, "bias": False}, IN, OUT, act=()),
    "pna": pna,
    "pna, towers": lambda: pna(towers=2, pre_layers=2, post_layers=3),
    "gin": lambda: with_network("GINConv", IN, eps=0.5),
    "gin, trained": lambda: with_network("GINConv", IN, eps=0.5, train_eps=True),
    "edge_conv": lambda: with_network("EdgeConv", 2 * IN),
    "edge_conv, mean": lambda: with_network("EdgeConv", 2 * IN, aggr="mean"),
    "batch_norm": lambda: pair("BatchNorm", {}, IN),
    "layer_norm": lambda: pair("LayerNorm", {}, IN),
    "layer_norm of nodes": lambda: pair("LayerNorm", {"mode": "node"}, IN, mode="node"),
    "graph_norm": lambda: pair("GraphNorm", {}, IN),
    "instance_norm": lambda: pair("InstanceNorm", {"affine": True}, IN),
    "pair_norm": lambda: pair("PairNorm", {}),
}
WITH_FEATURES: dict[str, Callable[[], Pair]] = {
    "gat": lambda: pair("GATConv", {"edge_dim": EDGE, **HEADS}, IN, 3),
    "gatv2": lambda: pair("GATv2Conv", {"edge_dim": EDGE, **HEADS}, IN, 3),
    "transformer": lambda: pair("TransformerConv", {"edge_dim": EDGE, **HEADS}, IN, 3, heads=2),
    "gine": lambda: with_network("GINEConv", IN, edge_dim=EDGE),
    "pna": lambda: pna(edge_dim=EDGE),
    "pna, divided": divided,
}
WEIGHTED: dict[str, Callable[[], Pair]] = {
    "gcn": lambda: pair("GCNConv", {}, IN, OUT),
    "graph_conv": lambda: pair("GraphConv", {}, IN, OUT),
    "graph_conv, max": lambda: pair("GraphConv", {"aggr": "max"}, IN, OUT, aggr="max"),
    "graph_conv, mean": lambda: pair("GraphConv", {"aggr": "mean"}, IN, 3, aggr="mean"),
    "sg": lambda: pair("SGConv", {}, IN, 3),
    "tag": lambda: pair("TAGConv", {}, IN, OUT),
    "cheb": lambda: pair("ChebConv", {"K": 3}, IN, OUT),
    "arma": lambda: pair("ARMAConv", {"num_layers": 2}, IN, OUT),
}
TYPED: dict[str, Callable[[], Pair]] = {
    "rgcn": lambda: pair("RGCNConv", {}, IN, OUT, RELATIONS),
    "rgcn, bases": lambda: pair(
        "RGCNConv", {"num_bases": 2, "aggr": "add"}, IN, OUT, 3, aggr="add"
    ),
}
BATCHED = ("layer_norm", "graph_norm", "instance_norm", "pair_norm")
ACTIVATIONS = (
    *("ReLU", "ELU", "LeakyReLU", "PReLU", "SELU", "CELU", "GELU", "SiLU", "Mish", "ReLU6"),
    *("Hardswish", "Sigmoid", "Tanh", "Softplus"),
)


def compare(layers: Pair, case: Case, given: Any = None, **options: Any) -> None:
    """Compare results with features, types or weights of edges, or graphs of nodes."""
    theirs, make = layers
    with torch.no_grad():
        for value in theirs.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.1)
        tensors = [torch.from_numpy(case.x)]
        is_norm = "norm" in type(theirs).__module__
        tensors += [] if is_norm else [torch.from_numpy(case.edges)]
        tensors += [] if given is None else [torch.from_numpy(given)]
        want = theirs.eval()(*tensors).numpy()
        state = theirs.state_dict()
    weighted = options.pop("weighted", False)
    module = gnn.Sequential(make(state)).to_module(
        gnn.EdgeListSpec(weighted=weighted), sw.TensorSpec((None, IN)), **options
    )
    inputs = [case.edges, case.x]
    if given is not None:
        inputs.insert(1 if weighted else 2, given)
    np.testing.assert_allclose(module.run_reference(*inputs), want, rtol=1e-4, atol=2e-5)


@pytest.fixture(scope="module")
def case() -> Case:
    torch.manual_seed(0)
    return Case.of(GRAPHS)


@pytest.mark.parametrize("name", PLAIN)
def test_layers(name: str, case: Case) -> None:
    compare(PLAIN[name](), case)


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_layers_with_features_of_edges(name: str, case: Case) -> None:
    attr = floats(case.edges.shape[1], EDGE)
    compare(WITH_FEATURES[name](), case, attr, edge_attr=sw.TensorSpec((None, EDGE)))


@pytest.mark.parametrize("name", WEIGHTED)
def test_layers_with_weights_of_edges(name: str, case: Case) -> None:
    compare(WEIGHTED[name](), case, np.abs(floats(case.edges.shape[1])) + 0.1, weighted=True)


@pytest.mark.parametrize("name", TYPED)
def test_layers_with_types_of_edges(name: str, case: Case) -> None:
    kinds = np.random.default_rng(0).integers(0, RELATIONS, case.edges.shape[1])
    compare(TYPED[name](), case, kinds, edge_type=sw.TensorSpec((None,), "i64"))


@pytest.mark.parametrize("name", BATCHED)
def test_norms_of_a_batch(name: str, case: Case) -> None:
    batch = np.sort(np.random.default_rng(0).integers(0, 3, len(case.x)))
    compare(PLAIN[name](), case, batch, batch=gnn.BatchSpec())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, case: Case) -> None:
    theirs = getattr(torch.nn, name)()
    ours = getattr(gnn, name).from_state_dict(theirs.state_dict())
    module = gnn.Sequential(ours).to_module(gnn.EdgeListSpec(), sw.TensorSpec((None, IN)))
    with torch.no_grad():
        want = theirs(torch.from_numpy(8 * case.x)).numpy()
    np.testing.assert_allclose(
        module.run_reference(case.edges, 8 * case.x), want, rtol=1e-5, atol=1e-6
    )


def test_appnp(case: Case) -> None:
    compare((pyg.APPNP(3, 0.2), lambda _: gnn.APPNP(3, 0.2)), case)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arma, stacks", "pna, towers"])
def test_compiled_layers(name: str, case: Case) -> None:
    theirs, make = PLAIN[name]()
    model = gnn.Sequential(make(theirs.state_dict()))
    exe = sw.compile(model.to_module(gnn.EdgeListSpec(), sw.TensorSpec((None, IN))), threads=1)
    with torch.no_grad():
        want = theirs.eval()(torch.from_numpy(case.x), torch.from_numpy(case.edges)).numpy()
    np.testing.assert_allclose(exe(case.edges, case.x), want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("mode", ["cat", "max", "lstm"])
def test_jumping_knowledge(mode: str, case: Case) -> None:
    torch.manual_seed(0)
    sizes = {"channels": OUT, "num_layers": 3} if mode == "lstm" else {}
    jump = pyg.JumpingKnowledge(mode, **sizes)
    linears = [torch.nn.Linear(width, OUT) for width in (IN, OUT, OUT)]
    with torch.no_grad():
        results = [torch.from_numpy(case.x)]
        for linear in linears:
            results.append(linear(results[-1]))
        want = jump(results[1:]).numpy()
    ours = [gnn.Linear.from_state_dict(linear.state_dict()) for linear in linears]
    layer = gnn.JumpingKnowledge.from_state_dict(jump.state_dict(), "", ours, mode=mode)
    module = gnn.Sequential(layer).to_module(gnn.EdgeListSpec(), sw.TensorSpec((None, IN)))
    np.testing.assert_allclose(module.run_reference(case.edges, case.x), want, rtol=1e-4, atol=2e-5)


def test_layers_between_two_types_of_nodes() -> None:
    """Those whose weights differ for sources and targets."""
    torch.manual_seed(0)
    kind, ends = ("author", "writes", "paper"), np.array([[0, 1, 1, 3], [4, 0, 2, 0]])
    x = {"author": torch.randn(4, 7), "paper": torch.randn(5, IN)}
    specs = {name: sw.TensorSpec((None, values.shape[1])) for name, values in x.items()}
    loops = {"add_self_loops": False}
    for name, options, ours in (
        ("SAGEConv", {}, {}),
        ("GraphConv", {}, {}),
        ("GATConv", loops, loops),
        ("GATv2Conv", {**loops, **HEADS}, loops),
        ("TransformerConv", HEADS, HEADS),
    ):
        theirs = getattr(pyg, name)((7, IN), 3, **options).eval()
        with torch.no_grad():
            want = theirs((x["author"], x["paper"]), torch.from_numpy(ends)).numpy()
        layer = getattr(gnn, name).from_state_dict(theirs.state_dict(), "", **ours)
        model = gnn.HeteroSequential(gnn.HeteroConv({kind: layer}))
        module = model.to_module({kind: gnn.EdgeListSpec()}, specs)
        got = module.run_reference(ends, *(values.numpy() for values in x.values()))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5, err_msg=name)
