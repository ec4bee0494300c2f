"""Arguments that do not fit a model of torch: one error each, which names the input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.dynamo import stepwell

from .compared import Functions, close_to_torch, compiled, torch

nn = torch.nn
ANY = torch.export.Dim.DYNAMIC


class Layer(nn.Module):
    """Messages as torch-geometric writes them; those of the last rows are read by any index."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 4)

    def forward(self, x: Any, edge_index: Any) -> Any:
        source, target = edge_index
        messages = self.lin(x).index_select(0, source)
        return messages.new_zeros(x.shape[0], 4).index_add(0, target, messages) + self.lin(x)[[-1]]


X, EDGES = torch.randn(5, 8), torch.tensor([[0, 1, 4], [2, 2, 0]])
WRONG_EDGES = [
    ([[0, -1, 4], [2, 2, 0]], "position 1, expected 0 to 4, got -1"),
    ([[0, 1, 5], [2, 2, 0]], "position 2, expected 0 to 4, got 5"),
    ([[0, 1, 4], [-5, 2, 0]], "position 0, expected 0 to 4, got -5"),
    ([[0, 1, 4], [2, 9, 0]], "position 1, expected 0 to 4, got 9"),
]


@pytest.fixture(scope="module")
def exe() -> Any:
    return compiled(Layer(), (X, EDGES), ({0: ANY}, {1: ANY}))


@pytest.mark.parametrize(("edges", "text"), WRONG_EDGES)
def test_edges_out_of_range(exe: Any, edges: Any, text: str, all_tests: bool) -> None:
    calls = [exe]
    if all_tests or (edges, text) in WRONG_EDGES[::3]:
        calls.append(lambda *args: exe.run_at("buffers", *args))
    text = f'^input "edge_index": index out of range at {text}$'
    for call in calls:
        with pytest.raises(InputError, match=text):
            call(X, torch.tensor(edges))


def test_edges_out_of_range_in_torch_compile() -> None:
    torch._dynamo.reset()
    model = Layer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast = torch.compile(model, backend=stepwell, dynamic=True)
        for grad in (False, True):
            with torch.set_grad_enabled(grad):
                torch.testing.assert_close(fast(X, EDGES), model(X, EDGES))
                for edges, text in WRONG_EDGES[::3]:
                    text = f'^input "edge_index": index out of range at {text}$'
                    with pytest.raises(InputError, match=text):
                        fast(X, torch.tensor(edges))


def _sparse(x: Any) -> Any:
    """A tensor in coordinates, some of them twice."""
    places, values = torch.tensor([[0, 0], [1, 1]]), torch.ones(2)
    return torch.sparse_coo_tensor(places, values, x.shape, check_invariants=False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x, e: (x[0], e), '"x": wrong rank, expected 2 .*, got 1'),
        (lambda x, e: (x[:, :7], e), r'"x": wrong shape, expected \[x_0, 8\], got \[5, 7\]'),
        (lambda x, e: (x.double(), e), '"x": wrong dtype, expected float32, got float64'),
        (lambda x, e: (_sparse(x), e), '"x": not an array .*got Tensor'),
        (lambda x, e: (x.to("meta"), e), '"x": not an array .*got Tensor'),
        (lambda x, e: (x, e[0]), '"edge_index": wrong rank, expected 2 .*, got 1'),
        (lambda x, e: (x, e.float()), '"edge_index": wrong dtype, expected int64, got float32'),
        (lambda x, e: (x, e.int()), '"edge_index": wrong dtype, expected int64, got int32'),
        (lambda x, e: (x, e.T), '"edge_index": wrong shape, expected .*, got'),
        (lambda x, e: (x, e.to("meta")), '"edge_index": not an array .*got Tensor'),
        (lambda x, e: (x, None), '"edge_index": not an array'),
    ],
)
def test_arguments_of_another_kind(exe: Any, change: Any, text: str) -> None:
    with pytest.raises(InputError, match=f"^input {text}"):
        exe(*change(X, EDGES))


def test_what_torch_takes_is_taken(exe: Any) -> None:
    """Tensors that are not contiguous, or need gradients; no nodes are wrong, no edges are not."""
    expected = exe(X, EDGES)
    for x, edges in (
        (X.clone().requires_grad_(), EDGES),
        (X.T.contiguous().T, EDGES),
        (X, EDGES.T.contiguous().T),
        (X, torch.stack([EDGES, EDGES], 2)[..., 0]),
    ):
        np.testing.assert_array_equal(exe(x, edges), expected)
    assert exe(X, EDGES[:, :0]).shape == (5, 4)
    with pytest.raises(InputError, match="empty dimension"):
        exe(X[:0], EDGES)


REFUSING = {
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(-1, 8)),
    "gather_elements": lambda x, i: x.gather(1, i[None].expand(5, -1)),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(-1, 8), x[:3]),
    "scatter": lambda x, i: x.scatter(1, i[None].expand(5, -1), 2.0),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None].expand(-1, 8), x[:3], "amax"),
    "index_add": lambda x, i: x.index_add(0, i, x[:3]),
    "index_copy": lambda x, i: x.index_copy(1, i, x[:, :3]),
    "embedding": lambda x, i: nn.functional.embedding(i, x),
}
COUNTING = {
    "index": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "pairs": lambda x, i: x[i, i],
    "index_put": lambda x, i: x.index_put((i,), x[:3], accumulate=True),
}


class Refusing(nn.Module):
    """Each function of an index of its own."""

    def forward(self, x: Any, indices: list[Any]) -> list[Any]:
        return [f(x, i) for f, i in zip(REFUSING.values(), indices, strict=True)]


def test_operators_that_refuse_negative_indices() -> None:
    good, bad = torch.tensor([0, 4, 2]), torch.tensor([0, -1, 2])
    model, indices = Refusing(), [good] * len(REFUSING)
    exe = compiled(model, (X, [i.clone() for i in indices]))
    close_to_torch(exe(X, *indices), model(X, indices))
    for number, function in enumerate(REFUSING.values()):
        with pytest.raises((IndexError, RuntimeError)):
            function(X, bad)
        given = [bad if i == number else good for i in range(len(indices))]
        text = f'^input "indices_{number}": index out of range .* got -1$'
        with pytest.raises(InputError, match=text):
            exe(X, *given)


def test_operators_that_count_negative_indices_from_the_back() -> None:
    index = torch.tensor([0, -1, -5])
    model = Functions(COUNTING)
    exe = compiled(model, (X, index))
    close_to_torch(exe(X, index), model(X, index))
    with pytest.raises(InputError, match="expected -5 to 4, got -6"):
        exe(X, index - 1)


class Table(nn.Module):
    def __init__(self, index: Any) -> None:
        super().__init__()
        self.register_buffer("index", torch.tensor(index))

    def forward(self, x: Any) -> Any:
        return x.index_select(0, self.index)


def test_indices_that_are_constants() -> None:
    assert compiled(Table([4, 0]), (X,))(X).shape == (2, 8)
    text = 'constant "index": index out of range at position 1, expected 0 to 4, got -1'
    with pytest.raises(sw.StepwellError, match=text):
        compiled(Table([0, -1]), (X,), opt_level=3)(X)
