"""Arguments in dictionaries and sequences: `exe(x_dict, edge_index_dict)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.boundary.nested_arguments import flattened
from stepwell.core.boundary.specs import ValueSpec
from stepwell.frontends import gnn

from ..harness import floats, package

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


X = {"author": floats(2, 3), "paper": floats(4, 3)}
EDGES = {WRITES: np.array([[0, 1, 1], [0, 0, 2]]), CITES: np.array([[0, 1], [1, 2]])}
ATTRS = {CITES: floats(2, 1)}
FLAT = (EDGES[WRITES], EDGES[CITES], X["author"], X["paper"], ATTRS[CITES])


def _module() -> sw.Module:
    layers = {
        WRITES: gnn.SAGEConv(floats(2, 3), weight_r=floats(2, 3)),
        CITES: gnn.GINEConv(gnn.Linear(floats(2, 3)), edge=(floats(3, 1), floats(3))),
    }
    return gnn.HeteroSequential(gnn.HeteroConv(layers)).to_module(
        {WRITES: gnn.EdgeListSpec(), CITES: gnn.EdgeListSpec()},
        {kind: sw.TensorSpec((None, 3)) for kind in X},
        edge_attr={CITES: sw.TensorSpec((None, 1))},
    )


@pytest.fixture(scope="module")
def exe() -> sw.Executable:
    return sw.compile(_module(), threads=1, opt_level=0)


CALLS: dict[str, Callable[[Any], Any]] = {
    "in the order of torch-geometric": lambda f: f(X, EDGES, ATTRS),
    "in the order of the inputs": lambda f: f(EDGES, X, ATTRS),
    "by name": lambda f: f(edge_index_dict=EDGES, edge_attr_dict=ATTRS, x_dict=X),
    "by position and by name": lambda f: f(X, EDGES, edge_attr_dict=ATTRS),
    "in one dictionary": lambda f: f(
        {"x_dict": X, "edge_index_dict": EDGES, "edge_attr_dict": ATTRS}
    ),
    "in another order of keys": lambda f: f(dict(reversed(X.items())), EDGES, ATTRS),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_takes_dictionaries(exe: sw.Executable, call: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(call(exe), exe(*FLAT))


def test_all_ways_to_run_take_them(exe: sw.Executable, tmp_path: Path) -> None:
    expected = exe(*FLAT)
    exe.save(tmp_path / "m.stepwell")
    again = sw.load(tmp_path / "m.stepwell")
    assert again.inputs == exe.inputs
    np.testing.assert_array_equal(again(X, EDGES, ATTRS), expected)
    np.testing.assert_array_equal(exe.call_named(X, EDGES, ATTRS)["paper"], expected)
    assert exe.sizes_of(X, EDGES, ATTRS) == exe.sizes_of(*FLAT)
    out = np.empty_like(expected)
    assert exe(X, EDGES, ATTRS, out=out) is out
    np.testing.assert_array_equal(out, expected)
    lowered = sw.from_mlir(exe.ir("buffers"), weights=exe.weights("buffers"))
    assert [spec.path for spec in lowered.inputs] == [spec.path for spec in exe.inputs]
    np.testing.assert_allclose(_module().run_reference(X, EDGES, ATTRS).shape, expected.shape)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f: f(X, {}, edge_attr_dict=ATTRS),
            r"\"edge_index_dict\" lacks \('author', 'writes', 'paper'\), got nothing",
        ),
        (lambda f: f(X, EDGES), 'argument "edge_attr_dict" is missing, got "x_dict", "'),
        (
            lambda f: f({**X, "venue": X["paper"]}, EDGES, ATTRS),
            '"x_dict" has an unknown part, expected "author", "paper", got "venue"',
        ),
        (lambda f: f({"paper": X["paper"]}, EDGES, ATTRS), '"x_dict" lacks "author", got "paper"'),
        (lambda f: f(X, EDGES, ATTRS, X), "wrong number of arguments, expected at most 3"),
        (lambda f: f(X, EDGES, ATTRS, name=3), 'unknown argument, expected .*, got "name"'),
        (lambda f: f(X, EDGES, ATTRS, x_dict=X), '"x_dict" is given by position and by name'),
        (
            lambda f: f(X, edge_attr_dict=ATTRS, edge_index_dict=3),
            "not a dictionary or a sequence, expected parts .*, got int",
        ),
        (lambda f: f(*FLAT[:3]), "wrong number of inputs, expected 5"),
        (lambda f: f({**X, WRITES: EDGES[WRITES]}), '"edge_index_dict" has an unknown part'),
        (lambda f: f({"author": X["author"]}), "is missing, got author"),
    ],
)
def test_what_does_not_fit(exe: sw.Executable, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(sw.InputError, match=message):
        call(exe)


def _spec(name: str, *path: Any) -> ValueSpec:
    return ValueSpec(name, (2,), "f32", path=path)


def test_sequences_and_what_is_deeper() -> None:
    specs = [
        _spec("xs_0", "xs", 0),
        _spec("xs_1", "xs", 1),
        _spec("y"),
        _spec("state_h_0", "state", "h", 0),
        _spec("state_c", "state", "c"),
    ]
    a, b, c, d, e = (np.zeros(2) for _ in range(5))
    for given in (
        flattened(specs, ([a, b], c, {"h": (d,), "c": e})),
        flattened(specs, ((a, b), c), {"state": {"c": e, "h": [d]}}),
        flattened(specs, ({"h": [d], "c": e}, [a, b], c)),
    ):
        assert given is not None
        assert all(one is other for one, other in zip(given, (a, b, c, d, e), strict=True))
    assert flattened(specs, (a, b, c, d, e)) is None
    assert flattened(specs[2:3], ([a],)) is None
    with pytest.raises(sw.InputError, match='argument "xs" lacks 1, got 0'):
        flattened(specs, ([a], c, {"h": [d], "c": e}))
    with pytest.raises(sw.InputError, match='argument "h" has an unknown part, expected 0, got 1'):
        flattened(specs, ([a, b], c, {"h": [d, d], "c": e}))


def test_a_model_of_torch_is_called_as_it_is() -> None:
    torch = package("torch")

    class Model(torch.nn.Module):
        def forward(self, x_dict, pair, edge_index_dict):  # type: ignore[no-untyped-def]
            source, target = edge_index_dict[CITES]
            x = x_dict["paper"] * pair[0] + pair[1]
            return x.index_add(0, target, x[source])

    x = {kind: torch.from_numpy(array) for kind, array in X.items()}
    pair, edges = (torch.ones(3), torch.zeros(3)), {CITES: torch.from_numpy(EDGES[CITES])}
    model = Model().eval()
    module = sw.from_torch(model, (x, pair), {"edge_index_dict": edges})
    assert [spec.path for spec in module.inputs] == [
        ("x_dict", "author"),
        ("x_dict", "paper"),
        ("pair", 0),
        ("pair", 1),
        ("edge_index_dict", CITES),
    ]
    exe, expected = sw.compile(module, threads=1, opt_level=0), model(x, pair, edges).numpy()
    np.testing.assert_allclose(exe(x, pair, edges), expected, rtol=1e-6)
    np.testing.assert_allclose(exe(x, pair, edge_index_dict=edges), expected, rtol=1e-6)
    np.testing.assert_allclose(exe(X, [pair[0], pair[1]], edges), expected, rtol=1e-6)
