"""Rows of sparse matrices on a device: a block for each, entries or features along its threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from xdsl.ir import Operation

import stepwell as sw
from stepwell.backends.ptx.counters import Emulation
from stepwell.conversions.loop_to_scf import tiles
from stepwell.dialects.loop.ops import ForOp
from stepwell.frontends import gnn

from ..harness import RNG, cases, floats

DEVICE = "cuda:sm_90,emulated"
TOLERANCE = 1e-5
"""Sums of up to 70 products of numbers of size 1, in another order."""

DEGREES = (0, 1, 31, 0, 32, 33, 5, 70, 0)
"""Rows without entries at both ends, and around the number of threads of a warp."""


def matrix(degrees: tuple[int, ...] = DEGREES) -> sparse.csr_array:
    """A square matrix whose rows have so many entries, some of them at one place."""
    nodes, entries = len(degrees), sum(degrees)
    indptr = np.cumsum([0, *degrees]).astype(np.int32)
    columns = np.sort(RNG.integers(0, nodes, entries)).astype(np.int32)
    return sparse.csr_array((floats(entries), columns, indptr), (nodes, nodes))


def product(features: int) -> sw.Module:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32"))
    b.output(b.spmm(a, b.input("x", ("n", features), "f32")), name="y")
    return b.module()


def launched(exe: sw.Executable) -> Emulation:
    """The launch of blocks for the rows of a matrix."""
    (found,) = [launch for launch in exe.launches if "_block" in launch.kernel]
    return found


def compared(
    module: sw.Module, make: Callable[[tuple[int, ...]], Sequence[Any]], *stages: str
) -> sw.Executable:
    """Compare a program with the reference, at stages as well where rows are of all lengths."""
    exe = sw.compile(module, target=DEVICE)
    for degrees in (DEGREES, (0,), (1,)):
        inputs = make(degrees)
        wanted = module.run_reference(*inputs)
        for stage in stages if degrees is DEGREES else ():
            found = exe.run_at(stage, *inputs)
            np.testing.assert_allclose(found, wanted, TOLERANCE, TOLERANCE, err_msg=stage)
        np.testing.assert_allclose(exe(*inputs), wanted, TOLERANCE, TOLERANCE)
    return exe


@pytest.mark.parametrize("features", cases([7, 33, 64], [7, 33]))
def test_products(features: int) -> None:
    """Few features are a thread each, of several rows in a warp."""

    def inputs(degrees: tuple[int, ...]) -> tuple[Any, np.ndarray]:
        return matrix(degrees), floats(len(degrees), features)

    exe = compared(product(features), inputs, "scheduled", "loops")
    assert any("_block" in launch.kernel for launch in exe.launches) == (features >= 32)


def test_what_a_product_reads() -> None:
    """Columns and values once, and rows of features in whole sectors."""
    exe, a = sw.compile(product(64), target=DEVICE), matrix((32, 64, 0, 96))
    exe(a, floats(4, 64))
    launch = launched(exe)
    assert (launch.blocks, launch.threads) == (4, 64)
    reads = [row for row in launch.lines if row.group == "load global"]
    of_entries = [row for row in reads if row.bytes == 4 * a.nnz]
    assert len(of_entries) == 2
    # A warp reads 128 neighbouring bytes: 4 sectors.
    assert all(row.sectors == row.bytes // 32 for row in of_entries)
    read, ends = (2 + 64) * 4 * a.nnz, 2 * launch.blocks * 2
    assert sum(row.bytes for row in reads) == read + 4 * ends
    assert sum(row.sectors for row in reads) == read // 32 + ends
    assert launch.total("conflicts") == 0
    # The second warp has no entries to read, and chunks end.
    chunks = a.nnz // 32
    assert launch.total("diverged") <= 2 * chunks + launch.blocks
    assert launch.mix["barrier"] == 2 * 2 * chunks


LAYERS = {
    "gcn": gnn.GCNConv(floats(6, 40), floats(40)),
    "sage": gnn.SAGEConv(floats(33, 6), None, floats(33, 6), aggr="max"),
    "gat": gnn.GATConv(floats(64, 6), floats(2, 32), floats(2, 32), floats(64)),
    "gat of few features": gnn.GATConv(floats(6, 6), floats(2, 3), floats(2, 3), floats(6)),
    "gat of two warps": gnn.GATConv(floats(96, 6), floats(2, 48), floats(2, 48), floats(96)),
}


def layer(name: str) -> sw.Module:
    spec = sw.TensorSpec((None, 6), "f32")
    return gnn.Sequential(LAYERS[name]).to_module(gnn.GraphSpec(), features=spec)


def graph(degrees: tuple[int, ...]) -> gnn.Graph:
    targets = np.repeat(np.arange(len(degrees)), degrees)
    sources = RNG.integers(0, len(degrees), len(targets))
    return gnn.Graph.from_edge_index(np.stack([sources, targets]), num_nodes=len(degrees))


@pytest.mark.parametrize("name", cases(list(LAYERS), [n for n in LAYERS if n != "gat"]))
def test_layers(name: str, all_tests: bool) -> None:
    stages = ("loops",) if all_tests or name in ("sage", "gat of few features") else ()
    compared(layer(name), lambda degrees: (graph(degrees), floats(len(degrees), 6)), *stages)


def test_attention_computes_weights_once() -> None:
    """Not in each thread along the features."""
    exe = sw.compile(layer("gat"), target=DEVICE)
    exe(graph((64, 64, 32)), floats(3, 6))
    (launch,) = [done for done in exe.launches if "softmax" in done.kernel]
    assert launch.threads == 32
    divisions = [row for row in launch.lines if row.text.startswith("div.rn.f32")]
    # A division for each entry and head, and those of the node itself.
    assert sum(row.threads for row in divisions) == 2 * (160 + 3 * 32)
    assert launch.total("conflicts") == 0
    assert launch.mix["shuffle"] == 2 * 3 * 2 * 6


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_barrier_is_a_race(monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    """Before a chunk is written, and before it is read."""
    derived = tiles.barriers

    def forgetful(blocks: ForOp) -> set[Operation]:
        found = derived(blocks)
        kept = [op for op in blocks.walk() if op in found]
        return {op for number, op in enumerate(kept) if number != missing}

    monkeypatch.setattr(tiles, "barriers", forgetful)
    exe = sw.compile(product(64), target=DEVICE)
    with pytest.raises(sw.EmulationError, match="race"):
        exe(matrix((70, 3)), floats(2, 64))
