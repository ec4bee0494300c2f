"""Gradients of graph networks that `torch.compile` takes with this backend, beside torch itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array

from stepwell.core.errors import InputError
from stepwell.dynamo import stepwell
from stepwell.frontends.torch.ops.random import random_uniform

from ...harness import package
from .compared import TOLERANCE, torch

nn = torch.nn
FLAGS = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
EDGES = torch.tensor([[0, 1, 2, 3, 3, 3, 5, 2, 2, 6], [1, 2, 0, 3, 3, 4, 1, 2, 0, 6]])


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch._dynamo.config.patch(**FLAGS):
        warnings.simplefilter("ignore")
        yield


def layers() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyg = package("torch_geometric.nn", "torch-geometric")
    return {
        "GCN": pyg.GCNConv(4, 3),
        "SAGE": pyg.SAGEConv(4, 3),
        "GIN": pyg.GINConv(nn.Linear(4, 3)),
        "GAT": pyg.GATConv(4, 3, heads=2),
        "EdgeConv": pyg.EdgeConv(nn.Sequential(nn.Linear(8, 3), nn.Tanh()), aggr="mean"),
    }


class Stack(nn.Module):
    """All layers, on the graph that is a buffer, or on one that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers())
        self.register_buffer("edges", EDGES.clone())

    def forward(self, x: Any, edges: Any = None) -> Any:
        edges = self.edges if edges is None else edges
        return torch.cat([layer(x, edges) for layer in self.layers.values()], 1).square().sum()


def gradients(function: Any, model: Any, *args: Any) -> Any:
    inputs = [args[0], *model.parameters()]
    return torch.autograd.grad(function(*args), inputs)


def gradients_agree(fast: Any, model: Any, *args: Any) -> None:
    got, wanted = gradients(fast, model, *args), gradients(model, model, *args)
    torch.testing.assert_close(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.slow
def test_graphs_that_are_given() -> None:
    model = Stack()
    fast = torch.compile(model, backend=stepwell, dynamic=True)
    gradients_agree(fast, model, torch.randn(7, 4, requires_grad=True), EDGES)
    with torch.compiler.set_stance("fail_on_recompile"):
        for n, e in ((9, 30), (20, 5)):
            x = torch.randn(n, 4, requires_grad=True)
            gradients_agree(fast, model, x, torch.randint(0, n, (2, e)))


@pytest.mark.slow
def test_graphs_that_are_buffers(caplog: pytest.LogCaptureFixture) -> None:
    """Edges are folded into the programs of results and gradients, until they change."""
    model = Stack()
    fast = torch.compile(model, backend=stepwell)
    x = torch.randn(7, 4, requires_grad=True)
    gradients_agree(fast, model, x)
    with torch.no_grad():
        model.layers["SAGE"].lin_l.weight.mul_(2)
    gradients_agree(fast, model, x)
    model.edges.copy_(EDGES.flip(0))
    gradients_agree(fast, model, x)
    assert not [r for r in caplog.records if r.name == "stepwell.torch"]


def test_sizes_that_are_known() -> None:
    """A part of a graph whose results are sizes alone, which follow from a buffer."""

    class Noise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", EDGES.clone())

        def forward(self) -> Any:
            return torch.randn(self.edges[0].nonzero().shape[0])

    assert torch.compile(Noise(), backend=stepwell)().shape == (9,)


@pytest.mark.parametrize(
    "name",
    ["GAT", *(pytest.param(n, marks=pytest.mark.slow) for n in ("GCN", "SAGE", "GIN", "EdgeConv"))],
)
def test_gradcheck(name: str) -> None:
    layer = layers()[name].double()
    fast = torch.compile(layer, backend=stepwell)
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    gradcheck(lambda x: fast(x, EDGES), x)


def gradcheck(function: Any, *inputs: Any) -> None:
    with torch._functorch.config.patch(donated_buffer=False):  # gradients are taken twice
        assert torch.autograd.gradcheck(function, inputs, fast_mode=True)


class Features(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        from stepwell.nn import SparseLinear, SparseMatrix

        self.x = SparseMatrix.of(random_array((40, 30), density=0.2, rng=0, dtype=np.float32))
        self.x.values = nn.Parameter(self.x._buffers.pop("values"))
        self.lin = SparseLinear(30, 5, dropout=dropout)

    def forward(self, scale: Any) -> Any:
        return self.lin(self.x) * scale


def test_sparse_linear() -> None:
    """The products and their gradients, of the weights and of the entries."""
    model, scale = Features(), torch.randn(5, requires_grad=True)
    dense = torch.zeros(40, 30)
    dense[model.x.rows, model.x.columns] = model.x.values.detach()
    torch.testing.assert_close(model.lin(model.x), dense @ model.lin.weight.T)
    fast = torch.compile(model, backend=stepwell)
    torch.testing.assert_close(fast(scale), model(scale))
    gradients_agree(lambda s: fast(s).square().sum(), _Squares(model), scale)


def test_gradcheck_of_sparse_features() -> None:
    model = Features().double()
    fast = torch.compile(model, backend=stepwell)

    def function(scale: Any, *parameters: Any) -> Any:
        names = [name for name, _ in model.named_parameters()]
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(fast, given, (scale,))

    scale = torch.randn(5, dtype=torch.float64, requires_grad=True)
    gradcheck(function, scale, *model.parameters())


class _Squares(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, scale: Any) -> Any:
        return self.model(scale).square().sum()


def test_sparse_matrices_of_others() -> None:
    from stepwell.nn import SparseMatrix

    dense = torch.tensor([[0.0, 2, 0], [1, 0, 3]])
    x = torch.randn(3, 4)
    for matrix in (dense.to_sparse(), dense.to_sparse_csr()):
        found = SparseMatrix.of(matrix)
        torch.testing.assert_close(found(x), dense @ x)
        assert (found.size(1), found.dtype) == (3, torch.float32)
    twice = torch.tensor([1, 1])
    assert SparseMatrix(twice, twice, None, (2, 3))(x)[1].equal(x[1] * 2)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"rows": torch.tensor([0, 2])},
            "an element of rows is out of range, expected 0 to 1, got 2",
        ),
        ({"columns": torch.tensor([0, -1])}, "an element of columns is out of range, .* got -1"),
        ({"rows": torch.zeros(2)}, "rows has the wrong dtype, expected .*int64, got .*float32"),
        ({"columns": torch.tensor([0])}, r"columns has the wrong shape, expected \[2\], got \[1\]"),
        ({"values": torch.ones(2, 1)}, r"values has the wrong shape, expected \[2\]"),
        ({"rows": [0, 1]}, "rows is no tensor, expected a tensor, got list"),
        ({"values": torch.tensor([1, 1])}, "values are no floats, expected floats, got .*int64"),
    ],
)
def test_wrong_parts(change: dict[str, Any], text: str) -> None:
    from stepwell.nn import SparseMatrix

    parts = {"rows": torch.tensor([0, 1]), "columns": torch.tensor([2, 0]), "values": None}
    with pytest.raises(InputError, match=f"^SparseMatrix: {text}"):
        SparseMatrix(**parts | change, shape=(2, 3))


def test_wrong_matrix() -> None:
    from stepwell.nn import SparseLinear, SparseMatrix

    for wrong in (torch.zeros(2, 2), 3):
        with pytest.raises(
            InputError, match="SparseMatrix: wrong matrix, expected a sparse tensor"
        ):
            SparseMatrix.of(wrong)
    with pytest.raises(InputError, match="SparseLinear: wrong features, expected a SparseMatrix"):
        SparseLinear(2, 3)(torch.zeros(2, 2))


def test_dropout(caplog: pytest.LogCaptureFixture, all_tests: bool) -> None:
    """A result and its gradient drop the same elements, others in each call."""

    def function(x: Any, p: float) -> Any:
        return nn.functional.dropout(x, p)

    x = torch.ones(100, 100, requires_grad=True)
    for p in (0.2, 1.0, 0.0) if all_tests else (0.2,):
        fast = torch.compile(function, backend=stepwell)
        first, second = fast(x, p), fast(x, p)
        (gradient,) = torch.autograd.grad(first.sum(), x)
        torch.testing.assert_close(gradient, first.detach())
        assert abs((first == 0).float().mean() - p) < 0.02
        assert first.max() == (0 if p == 1 else 1 / (1 - p))
        assert (p == 0.2) != first.equal(second)
    kept = torch.compile(lambda x: nn.functional.dropout(x, 0.5), backend=stepwell)
    for _ in range(2):
        torch.manual_seed(3)
        drawn = kept(x).detach()
    torch.manual_seed(3)
    seed = torch.randint(-(1 << 63), (1 << 63) - 1, ())
    # Where the operator stays with torch, it gives the same numbers.
    assert drawn.equal(torch.where(random_uniform()(seed, (100, 100)) >= 0.5, 2.0, 0.0))
    assert not [r for r in caplog.records if r.name == "stepwell.torch"]
    infinite = torch.full((3,), torch.inf)
    assert torch.compile(function, backend=stepwell)(infinite.requires_grad_(), 1.0).eq(0).all()
