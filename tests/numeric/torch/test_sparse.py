"""Sparse tensors of torch as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import ImportModelError, InputError

from ...harness import package
from .compared import close_to_torch, torch

nn, Dim = torch.nn, torch.export.Dim
# torch says that sparse tensors are in beta state.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
DENSE = torch.tensor([[0, 2.0, 0, 0], [1, 0, 0, 4], [0, 0, 0, 0]])
X = torch.randn(4, 2)


class Model(nn.Module):
    """Products by all the names that they have, one of them in a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 3)

    def forward(self, x: Any, graph: dict[str, Any]) -> Any:
        a = graph["a"]
        assert a.layout == torch.sparse_csr
        h = self.lin(x) + a.shape[1]
        return a @ h, torch.sparse.mm(a, x), torch.mm(a, x), a.matmul(x[:, 0]), a.size(0) * x


class Reduced(nn.Module):
    def forward(self, a: Any, x: Any) -> Any:
        return torch.sparse.mm(a, x, "mean"), torch.sparse.mm(a, x, "amax")


@pytest.fixture(scope="module")
def exe() -> Any:
    shapes = {"x": {0: Dim("columns")}, "graph": {"a": {0: Dim("rows"), 1: Dim("columns")}}}
    args = (X, {"a": DENSE.to_sparse_csr()})
    module = sw.from_torch(Model().eval(), args, dynamic_shapes=shapes)
    assert str(module.inputs[1]) == "graph_a: rowsxcolumnsxf32, csr, nnz=graph_a_entries"
    return sw.compile(module), module


def test_formats(exe: Any) -> None:
    model, x = Model(), torch.randn(3, 2)
    wide = torch.tensor([[0, 2.0, 3.0]])
    for dense, given in ((DENSE, X), (wide, x), (wide * 0, x)):
        csr = dense.to_sparse_csr()
        for a in (csr, dense.to_sparse_coo().coalesce(), csr.requires_grad_()):
            results = [run(given, a) for run in (exe[0], exe[1].run_reference)]
            for got in results:
                np.testing.assert_allclose(got[1], dense @ given, rtol=1e-6, atol=1e-6)
                assert got[4].shape == given.shape
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    exe[0].update(state)
    close_to_torch(exe[0](X, DENSE.to_sparse_csr()), model(X, {"a": DENSE.to_sparse_csr()}))


def places(rows: list[int], columns: list[int], coalesced: bool = True) -> Any:
    indices, values = torch.tensor([rows, columns]), torch.ones(len(rows))
    made = torch.sparse_coo_tensor(indices, values, (3, 4), check_invariants=False)
    return made._coalesced_(True) if coalesced else made


BAD = {
    "coordinates are not coalesced, expected a tensor in": lambda: places([0, 0], [1, 1], False),
    "coordinates are not coalesced": lambda: places([1, 0], [1, 1]),
    "row index out of range, expected 0 to 2, got 3": lambda: places([0, 3], [1, 1]),
    "row index out of range, expected 0 to 2, got -1": lambda: places([-1, 2], [1, 1]),
    "column index out of range.* got 4": lambda: places([0, 1], [1, 4]),
    "column index out of range.* got -1": lambda: places([0, 1], [-1, 2]),
    "a sparse matrix is needed, expected scipy.sparse CSR, got ndarray": lambda: DENSE,
    "a sparse matrix is needed, expected a tensor .* got layout sparse_csc": DENSE.to_sparse_csc,
    "wrong dtype, expected float32, got float64": lambda: DENSE.double().to_sparse_csr(),
    "wrong rank, expected 2 .*, got 3": lambda: DENSE[None].to_sparse_coo().coalesce(),
    r"not an array \(.*got Tensor": lambda: DENSE.to_sparse_csr().to("meta"),
    '"columns" differs from that of "x", expected 4, got 3': DENSE[:, :3].to_sparse_csr,
}


def test_matrices_that_do_not_fit(exe: Any) -> None:
    for text, make in BAD.items():
        with pytest.raises(InputError, match=f'^input "graph_a": .*{text}'):
            exe[0](X, make())


def test_a_sparse_tensor_for_a_dense_input(exe: Any) -> None:
    with pytest.raises(InputError, match=r'input "x": not an array \(.*got Tensor'):
        exe[0](X.to_sparse_coo(), DENSE.to_sparse_csr())


def test_reductions() -> None:
    a = DENSE.to_sparse_csr()
    found = sw.from_torch(Reduced().eval(), (a, X)).run_reference(a, X)
    close_to_torch(found, Reduced()(a, X))


def test_what_is_no_product_is_refused() -> None:
    class Sum(nn.Module):
        def forward(self, a: Any, x: Any) -> Any:
            return torch.relu(a) @ x

    text = "relu of a sparse argument, expected a product with a matrix"
    with pytest.raises(ImportModelError, match=text):
        sw.from_torch(Sum().eval(), (DENSE.to_sparse_csr(), X))


def test_layers_of_torch_geometric() -> None:
    """An adjacency matrix in CSR, and an `EdgeIndex`, which is an edge list."""
    pyg = package("torch_geometric", "torch-geometric")
    from torch_geometric.nn import SAGEConv

    layer, x = SAGEConv(8, 4).eval(), torch.randn(4, 8)
    edges = pyg.EdgeIndex([[0, 1, 3], [1, 2, 0]], sparse_size=(4, 4), sort_order="row")
    matrix = edges.as_tensor()
    matrix = torch.sparse_coo_tensor(matrix, torch.ones(3), (4, 4)).to_sparse_csr()
    nodes = {0: Dim("n")}
    for graph, sizes in ((matrix, {0: Dim("n"), 1: Dim("n")}), (edges, {1: Dim("e")})):
        module = sw.from_torch(layer, (x, graph), dynamic_shapes=(nodes, sizes))
        given = graph if graph is matrix else edges.as_tensor()
        close_to_torch(module.run_reference(x, graph), layer(x, given))
