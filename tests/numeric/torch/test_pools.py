"""Models whose sizes follow from values: pools without a number of graphs, and relations."""

from __future__ import annotations

import sys
import threading
import types
import warnings
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import ImportModelError, InputError
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.torch.replacements import exportable_parts

from ...harness import package
from .compared import as_torch, close_to_torch, compiled, imported, normal, torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = package("torch_geometric.nn", "torch-geometric")

densely = sys.modules["torch_geometric"].utils.to_dense_batch
"""A function of torch-geometric that a user's module has imported, by another name."""

ANY = torch.export.Dim.DYNAMIC
GRAPHS = ({0: ANY}, {1: ANY}, {0: ANY}, {0: ANY})


def batch(nodes: int, edges: int, sizes: list[int]) -> list[Any]:
    """Features, edges, the relation of each edge, and the graph of each node."""
    number = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    ends = torch.randint(0, nodes, (2, edges))
    return [torch.randn(nodes, 8), ends, torch.randint(0, 3, (edges,)), number]


class Classifier(torch.nn.Module):
    """Relations, then pools whose number of graphs follows from the batch vector."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.RGCNConv(8, 8, 3, aggr="mean")
        self.bases = pyg.RGCNConv(8, 4, 3, num_bases=2, aggr="max", root_weight=False)

    def forward(self, x: Any, edges: Any, kinds: Any, number: Any) -> Any:
        x = self.conv(x, edges, kinds).relu()
        pooled = pyg.global_mean_pool(x, number), pyg.global_max_pool(x, number)
        return torch.cat(pooled, 1), self.bases(x, edges, kinds)


def test_relations_and_pools(all_tests: bool) -> None:
    torch.manual_seed(0)
    forward, model = pyg.RGCNConv.forward, Classifier()
    first, *others = batch(7, 12, [3, 2, 2]), batch(1, 0, [1]), batch(9, 40, [0, 4, 0, 5])
    module = imported(model, first, GRAPHS)
    run = sw.compile(module, threads=1) if all_tests else module.run_reference
    for given in (first, *others):
        close_to_torch(run(*given), model(*given))
    assert pyg.RGCNConv.forward is forward, "parts are replaced during an export only"
    text = Compilation.of(Request(module, threads=1)).text("optimized")
    assert text.count("graph.sort_edges") <= 2, "all relations of a layer are one matrix"
    args = batch(3, 2, [3])
    args[2][0] = 3
    with pytest.raises(InputError, match="index"):
        run(*args)


@pytest.mark.slow
def test_dense_batches_and_sorted_pools() -> None:
    class Pools(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.top = pyg.TopKPooling(8, 0.5)
            self.attention = pyg.GPSConv(8, pyg.GINConv(torch.nn.Linear(8, 8)), heads=2)
            self.sorted = pyg.SortAggregation(3)

        def forward(self, x: Any, edges: Any, kinds: Any, number: Any) -> Any:
            x = self.attention(x, edges, batch=number)
            top, ends, _, graph, _, _ = self.top(x, edges, batch=number)
            return self.sorted(x, number), top, ends, graph

    torch.manual_seed(0)
    others = [batch(9, 40, [4, 1, 4]), batch(1, 0, [1])]
    as_torch(Pools().eval(), batch(7, 12, [3, 2, 2]), GRAPHS, others)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["median", pyg.QuantileAggregation(0.3), ["mean", "median"]])
def test_quantiles_of_neighbours(how: Any) -> None:
    """Of a convolution, whose number of nodes `bincount` would make a number.

    The first and the last node have edges: torch-geometric fails otherwise.
    """
    model = pyg.SAGEConv(3, 2, aggr=how).eval()
    given = []
    for nodes, isolated in ((5, 3), (7, 2)):
        source, target = torch.arange(nodes), torch.arange(nodes).roll(1)
        edges = torch.stack([source, target])[:, target != isolated]
        given.append((normal(nodes, 3), torch.cat([edges, edges[:, :3].flip(0)], 1)))
    as_torch(model, given[0], ({0: ANY}, {1: ANY}), given[1:], compiles=False)


def test_quantiles_of_graphs(all_tests: bool) -> None:
    """Medians and quantiles, also of a graph without nodes."""

    class Quantiles(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.median = pyg.MedianAggregation(fill_value=0.5)
            self.several = pyg.QuantileAggregation([0.25, 0.7])
            self.nearest = pyg.QuantileAggregation(0.6, interpolation="nearest")

        def forward(self, x: Any, number: Any) -> Any:
            return self.median(x, number), self.several(x, number), self.nearest(x, number)

    torch.manual_seed(0)
    args, *others = [batch(sum(sizes), 0, sizes) for sizes in ([3, 2, 2], [4, 0, 1, 4], [1])]
    given = [[x, number] for x, _, _, number in (args, *others)]
    shapes = ({0: ANY}, {0: ANY})
    as_torch(Quantiles().eval(), given[0], shapes, given[1:], compiles=all_tests)


def pooled_by(pool: Any, **sizes: int) -> Any:
    """A model of features and the graph of each node."""

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool = pool

        def forward(self, x: Any, number: Any) -> Any:
            return self.pool(x, number, **sizes)

    return Pooled().eval()


class Normalised(torch.nn.Module):
    """A pool, then norms: torch branches on whether there are results."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.InstanceNorm1d(2))
        self.mean = pyg.MeanAggregation()
        self.norms[0].running_mean.uniform_(-1, 1)

    def forward(self, x: Any, number: Any) -> Any:
        batch_norm, instance_norm = self.norms
        pools = pyg.global_mean_pool(x, number), self.mean(x, number)
        own = x.new_zeros(int(number.max()) + 1, 8).index_add(0, number, x)
        return batch_norm(own), [instance_norm(pool.unflatten(1, (2, 4))) for pool in pools]


POOLS = {
    "norms": Normalised,
    "mlp": lambda: pyg.MLPAggregation(8, 5, 4, hidden_channels=6, num_layers=2),
    "deep sets": lambda: pyg.DeepSetsAggregation(pyg.MLP([8, 6, 6]), pyg.MLP([6, 6, 4])),
    "multiset transformer": lambda: pyg.GraphMultisetTransformer(8, 3),
}


SLOW = pytest.param("multiset transformer", marks=pytest.mark.slow)


@pytest.mark.parametrize("pool", [*[name for name in POOLS if name not in SLOW.values], SLOW])
def test_aggregations_of_graphs(pool: str, all_tests: bool) -> None:
    torch.manual_seed(0)
    given = []
    for sizes in ([3, 2, 2], [4, 1, 4, 2], [1]):
        x, _, _, number = batch(sum(sizes), 0, sizes)
        given.append([x, number])
    model = pooled_by(POOLS[pool]())
    as_torch(model, given[0], ({0: ANY}, {0: ANY}), given[1:], compiles=all_tests)


def test_aggregations_with_given_sizes() -> None:
    torch.manual_seed(0)
    model = pooled_by(pyg.LCMAggregation(8, 4), dim_size=3, max_num_elements=3)
    given = []
    for sizes in ([3, 2, 2], [1, 3, 1]):
        x, _, _, number = batch(sum(sizes), 0, sizes)
        given.append([x, number])
    as_torch(model, given[0], ({0: ANY}, {0: ANY}), given[1:], compiles=False)


@pytest.mark.parametrize(
    ("pool", "sizes", "message"),
    [
        (
            lambda: pyg.LCMAggregation(8, 4),
            {"dim_size": 3},
            r'module "pool", test_pools.py.*; call LCMAggregation with dim_size=..., max_num_ele',
        ),
        (
            lambda: pyg.SimpleConv(pyg.LCMAggregation(8, 4)),
            {},
            r'module "pool.aggr_module", test_pools.py:\d+: return self.pool.*; call LCMAggrega',
        ),
        (
            lambda: pyg.EquilibriumAggregation(8, 4, [5], 1),
            {"dim_size": 3},
            r'a tensor is computed where .* \(module "pool.optimizer"\); write the gradient',
        ),
    ],
)
def test_aggregations_that_torch_cannot_export(
    pool: Any, sizes: dict[str, int], message: str
) -> None:
    layer, (x, ends, _, number) = pool(), batch(7, 12, [3, 2, 2])
    is_conv = isinstance(layer, pyg.MessagePassing)
    given = ends[:, ends[1].argsort()] if is_conv else number
    with pytest.raises(ImportModelError, match=message):
        imported(pooled_by(layer, **sizes), [x, given], ({0: ANY}, {int(is_conv): ANY}))


def test_a_function_that_a_module_has_imported(all_tests: bool) -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: Any, number: Any) -> Any:
            rows, filled = densely(x, number)
            return rows.sum(1), filled.sum(1)

    def args(sizes: list[int]) -> list[Any]:
        x, _, _, number = batch(sum(sizes), 0, sizes)
        return [x, number]

    original = densely
    others = [args([4, 1, 4]), args([2, 5])]
    as_torch(Rows().eval(), args([3, 2, 2]), ({0: ANY}, {0: ANY}), others, compiles=all_tests)
    assert densely is original


class Lazy(types.ModuleType):
    """A module whose attributes all fail to load."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_parts_are_replaced_for_an_export_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, "absent", None)  # type: ignore[arg-type]
    monkeypatch.setattr(sys.modules["torch_geometric"].backend, "use_segment_matmul", False)
    forward, layer = pyg.RGCNConv.forward, pyg.RGCNConv(8, 4, 3).eval()
    typed, types_of_rows = pyg.HeteroLinear(8, 4, 3), torch.tensor([2, 0, 1])
    x, ends, kinds, number = batch(7, 12, [3, 2, 2])

    def results() -> list[Any]:
        calls = [layer(x, ends, kinds), typed(x[:3], types_of_rows), *densely(x, number)]
        with pytest.raises(ValueError, match="sorted"):
            pyg.MedianAggregation().assert_sorted_index(number.flip(0))
        # For the replacements, relations outside [0, 3) and a batch of one graph are errors.
        return [*calls, layer(x, ends, kinds + 3), *densely(x, number * 0)]

    expected = results()
    with exportable_parts():
        assert pyg.RGCNConv.forward is not forward
        torch.testing.assert_close(results(), expected, rtol=0, atol=0)
    assert pyg.RGCNConv.forward is forward


def test_two_exports_at_once_restore_the_parts() -> None:
    forward, one, other = pyg.RGCNConv.forward, threading.Event(), threading.Event()

    def first() -> None:
        with exportable_parts():
            one.set()
            other.wait(0.1)

    def second() -> None:
        one.wait(30)
        with exportable_parts():
            other.set()
            threads[0].join(30)

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert pyg.RGCNConv.forward is forward


def test_other_versions_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that is missing, and one that inherits its method."""

    class Inherits(pyg.RGCNConv):
        pass

    with monkeypatch.context() as patch:
        patch.delattr(pyg, "HeteroLinear")
        patch.setattr(pyg, "RGCNConv", Inherits)
        patch.delattr(sys.modules["torch_geometric"].utils, "scatter")
        with exportable_parts():
            assert "forward" in vars(Inherits)
        assert "forward" not in vars(Inherits)


def test_a_branch_on_values_is_refused() -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1 if x.sum() > 0 else x

    text = r"a branch depends on elements of tensors \(test_pools\.py:.*; torch\.where chooses"
    with pytest.raises(ImportModelError, match=text):
        compiled(Branch(), [torch.zeros(3)])


def test_parts_of_symbolic_sizes_are_written() -> None:
    class Parts(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            first, rest, middle = x.clone(), x.new_empty(x.shape[0] + 1, 2), x.clone()
            first[:1] = 0
            rest.narrow(0, 0, 1).zero_()
            rest[1:] = x
            middle[1:3] = 5
            return first, rest, middle

    exe = as_torch(Parts(), [torch.randn(5, 2)], ({0: ANY},), [[torch.randn(3, 2)]])
    with pytest.raises(InputError):
        exe(np.zeros((1, 2), np.float32))
