"""`graph-split-at-halo`: the parts of a graph compute together what one program computes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

import stepwell as sw
from stepwell.core.errors import CompileError, InputError
from stepwell.core.ir.module import Module
from stepwell.core.ir.symbols import find_symbol
from stepwell.core.ir.typed import returned
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph.ops import ExchangeOp
from stepwell.frontends import gnn
from stepwell.passes.graph.halo.cuts import CutCosts, cheapest

from ...harness import RNG, floats

MODELS = {
    "gcn": gnn.Sequential(
        gnn.GCNConv(floats(6, 5), floats(5)), gnn.ReLU(), gnn.GCNConv(floats(5, 3))
    ),
    "gcn without loops": gnn.Sequential(gnn.GCNConv(floats(6, 5), add_self_loops=False)),
    "sage": gnn.Sequential(
        gnn.SAGEConv(floats(5, 6), floats(5), floats(5, 6)),
        gnn.ReLU(),
        gnn.SAGEConv(floats(3, 5), None, floats(3, 5), aggr="max", normalize=True),
    ),
    "sage that projects": gnn.Sequential(
        gnn.SAGEConv(floats(5, 6), None, floats(5, 6), project=(floats(6, 6), floats(6)))
    ),
    "gin": gnn.Sequential(
        gnn.GINConv([gnn.Linear(floats(5, 6)), gnn.ReLU(), gnn.Linear(floats(6, 5))], eps=0.5),
        gnn.GINConv([gnn.Linear(floats(3, 6), floats(3))]),
    ),
    "gat": gnn.Sequential(
        gnn.GATConv(floats(8, 6), floats(2, 4), floats(2, 4), floats(8)),
        gnn.ReLU(),
        gnn.GATConv(floats(3, 8), floats(1, 3), floats(1, 3), concat=False),
    ),
    "gat without loops": gnn.Sequential(
        gnn.GATConv(floats(8, 6), floats(2, 4), floats(2, 4), add_self_loops=False)
    ),
}
DECOMPOSED = "graph-decompose-sparse,graph-cse,graph-dce"


def split(module: Module) -> Module:
    copy = module.clone()
    run_passes(make_context(copy.weights), copy.op, f"{DECOMPOSED},graph-split-at-halo")
    copy.verify()
    return copy


def random_graph(nodes: int, edges: int) -> csr_array:
    """With repeated edges, self loops, nodes without edges, and weights of both signs."""
    sources, targets = RNG.integers(0, nodes, (2, edges))
    targets %= max(nodes - 2, 1)
    return gnn.Graph.from_edge_index(
        np.stack([sources, targets]), nodes, RNG.random(edges) + 0.5
    ).to_csr("f32")


@dataclass
class Part:
    """Rows of a matrix, with columns that are numbered anew: own ones, then the halo."""

    rows: slice
    halo: np.ndarray
    matrix: csr_array

    @staticmethod
    def of(matrix: csr_array, first: int, end: int) -> Part:
        indptr = matrix.indptr[first : end + 1] - matrix.indptr[first]
        entries = slice(matrix.indptr[first], matrix.indptr[end])
        columns = matrix.indices[entries]
        outside = (columns < first) | (columns >= end)
        halo = np.unique(columns[outside])
        number = np.where(outside, end - first + np.searchsorted(halo, columns), columns - first)
        parts = matrix.data[entries], number.astype(np.int32), indptr.astype(np.int32)
        shape = (end - first, end - first + len(halo))
        return Part(slice(first, end), halo, csr_array(parts, shape=shape))


def run(module: Module, matrix: csr_array, x: np.ndarray, bounds: Sequence[int]) -> np.ndarray:
    """Run a split program on parts, each stage by the reference."""
    parts = [Part.of(matrix, *pair) for pair in itertools.pairwise(bounds)]
    graph, features = module.main.args
    values: list[dict[SSAValue, object]] = [
        {graph: part.matrix, features: x[part.rows]} for part in parts
    ]
    for op in module.main.body.block.ops:
        if isinstance(op, ExchangeOp):
            whole = np.concatenate([np.asarray(known[op.x]) for known in values])
            for part, known in zip(parts, values, strict=True):
                known[op.result] = np.concatenate([whole[part.rows], whole[part.halo]])
        elif isinstance(op, func.CallOp):
            callee = find_symbol(op, op.callee)
            assert isinstance(callee, func.FuncOp)
            stage = callee.clone()
            stage.sym_name, stage.sym_visibility = StringAttr("main"), StringAttr("public")
            alone = Module(ModuleOp([stage]), module.weights)
            for known in values:
                results = alone.run_reference(*(known[value] for value in op.operands))
                results = results if isinstance(results, tuple) else (results,)
                known.update(zip(op.results, results, strict=True))
    (result,) = returned(module.main)
    return np.concatenate([np.asarray(known[result]) for known in values])


@pytest.mark.parametrize("name", MODELS)
def test_parts_compute_together_what_one_program_computes(name: str) -> None:
    module = MODELS[name].to_module(gnn.GraphSpec(), sw.TensorSpec((None, 6)))
    after = split(module)
    for nodes, edges, bounds in (
        (17, 60, (0, 5, 6, 11, 17)),
        (17, 60, (0, 9, 9, 17)),
        (1, 0, (0, 1)),
        (2, 3, (0, 1, 2)),
    ):
        matrix, x = random_graph(nodes, edges), floats(nodes, 6)
        expected = module.run_reference(matrix, x)
        # The order of sums is another one.
        np.testing.assert_allclose(run(after, matrix, x, bounds), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(after.run_reference(matrix, x), expected, rtol=1e-5, atol=1e-5)


def test_messages_between_the_nodes_of_an_edge() -> None:
    """A function of both ends of an edge, its stored value, and their mean, spread and maximum."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", 4), "f32")
    e = b.sddmm(a, x, b.tanh(x), "sub")
    e = e * b.reshape(b.entries(a), [-1, 1])
    y = b.reduce_entries(a, b.sigmoid(e), kind="mean")
    y = b.concat([y, b.reduce_entries(a, e, kind="std"), b.aggregate(a, y * x, kind="max")], axis=1)
    b.output(b.softmax(y, axis=1), name="y")
    module = b.module()
    matrix, x = random_graph(13, 50), floats(13, 4)
    found = run(split(module), matrix, x, (0, 4, 8, 13))
    np.testing.assert_allclose(found, module.run_reference(matrix, x), rtol=1e-5, atol=1e-6)


def test_one_process_has_one_part() -> None:
    module = split(MODELS["gcn"].to_module(gnn.GraphSpec(), sw.TensorSpec((None, 6))))
    part = Part.of(random_graph(9, 40), 0, 4)
    with pytest.raises(
        InputError, match=r"graph\.exchange: sizes nodes and columns differ, expected 4"
    ):
        module.run_reference(part.matrix, floats(4, 6))


def test_what_all_parts_share_is_computed_by_each() -> None:
    """A result that no node has a row of, and an argument that is the same for all parts."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", 4), "f32")
    scale = b.exp(b.constant(floats(4), "scale"))
    b.output(b.aggregate(a, x * scale) * scale, name="y")
    module = b.module()
    matrix, x = random_graph(13, 50), floats(13, 4)
    found = run(split(module), matrix, x, (0, 4, 13))
    np.testing.assert_allclose(found, module.run_reference(matrix, x), rtol=1e-5, atol=1e-6)


def test_an_operator_that_numbers_nodes_is_refused() -> None:
    """A table with a row for each node cannot be a constant of all parts."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", 4), "f32")
    table = b.constant(floats(9, 4), "table")
    b.output(b.aggregate(a, x + table), name="y")
    with pytest.raises(CompileError, match=r"graph-split-at-halo: graph\.add: it combines slices"):
        split(b.module())


def test_the_cheapest_values_are_stored() -> None:
    """u, which is stored at 2, gives v and w, at 3 each; both together are cheaper by u."""
    operands = {"u": None, "v": ["u"], "w": ["u"]}
    storing = {"u": 20, "v": 30, "w": 30}
    costs = CutCosts(operands.__getitem__, lambda _: 5, storing.__getitem__)
    assert cheapest(["v", "w"], costs) == (["u"], ["v", "w"])
    dear = CutCosts(operands.__getitem__, lambda _: 50, storing.__getitem__)
    assert cheapest(["v", "w"], dear) == (["v", "w"], [])
    assert cheapest(["v", "u"], dear) == (["v", "u"], [])
    assert cheapest([], costs) == ([], [])
