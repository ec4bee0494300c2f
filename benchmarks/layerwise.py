"""Inference on all nodes of a graph, layer by layer, beside PyG.

The graph is a power-law graph (`rmat.py`); SAGE and GAT have two layers, 64 features and the
weights of PyG's models. `PyG, layer by layer` is `BasicGNN.inference_per_layer` on batches of nodes
with all their neighbours, as `BasicGNN.inference` does it, `PyG, at once` the model on the whole
graph, and `Stepwell, 4 parts` `sw.distribute` with threads. Batches come from a loader of this
file, and their indexing counts: PyG's own `NeighborLoader` needs pyg-lib or torch-sparse, which
pip installs no wheel of. Calls take turns; times are minima, of the clock and of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from harness import Row, Table
from parts import divided, minima
from torch_geometric.nn.models import GAT, GraphSAGE

import stepwell as sw
from stepwell.distributed.engines import LocalEngine
from stepwell.frontends import gnn

WIDTH, HEADS = 64, 4


def module(model: Any) -> sw.Module:
    """The same network, with the weights of a model of PyG, for any graph."""
    first, second = (
        getattr(gnn, type(conv).__name__).from_state_dict(conv.state_dict()) for conv in model.convs
    )
    spec = gnn.GraphSpec(indptr_dtype="i64")
    return gnn.Sequential(first, gnn.ReLU(), second).to_module(spec, sw.TensorSpec((None, WIDTH)))


def batches(matrix: Any, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
    """For `size` nodes at a time those and their neighbours, the edges among them, and how many
    nodes there are."""
    indptr, indices = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices).long()
    place = torch.empty(len(indptr) - 1, dtype=torch.long)
    for first in range(0, len(indptr) - 1, size):
        own = torch.arange(first, min(first + size, len(indptr) - 1))
        degrees = indptr[own + 1] - indptr[own]
        found = indices[indptr[own[0]] : indptr[own[-1] + 1]]
        around = torch.unique(found)
        nodes = torch.cat([own, around[(around < own[0]) | (around > own[-1])]])
        place[nodes] = torch.arange(len(nodes))
        targets = torch.repeat_interleave(torch.arange(len(own)), degrees)
        yield nodes, torch.stack([place[found], targets]), len(own)


@torch.no_grad()
def layer_by_layer(model: Any, matrix: Any, x: torch.Tensor, size: int) -> torch.Tensor:
    """What `BasicGNN.inference` does."""
    for number in range(model.num_layers):
        x = torch.cat(
            [
                model.inference_per_layer(number, x[nodes], edges, count)
                for nodes, edges, count in batches(matrix, size)
            ]
        )
    return x


@torch.no_grad()
def at_once(model: Any, edges: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return model(x, edges)


def rows(
    name: str,
    make: Callable[[], Any],
    *,
    nodes: int = 200_000,
    edges: int = 2_000_000,
    threads: int = 2,
    batch: int = 16_384,
    rounds: int = 2,
) -> Iterator[Row]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = make().eval()
    partition, matrix = divided(nodes, edges, 4)
    x = np.random.default_rng(0).standard_normal((nodes, WIDTH)).astype(np.float32)
    ends = np.stack([matrix.indices, np.repeat(np.arange(nodes), np.diff(matrix.indptr))])
    given, tensor = torch.from_numpy(ends.astype(np.int64)), torch.from_numpy(x)
    with LocalEngine(4) as engine:
        exe = sw.compile(module(model), threads=threads)
        ways: dict[str, Callable[[], Any]] = {
            "Stepwell": partial(exe, matrix, x),
            "Stepwell, 4 parts": partial(sw.distribute(module(model), partition, engine), x),
            "PyG, layer by layer": partial(layer_by_layer, model, matrix, tensor, batch),
            "PyG, at once": partial(at_once, model, given, tensor),
        }
        expected = exe(matrix, x)
        errors = {n: float(np.abs(np.asarray(w()) - expected).max()) for n, w in ways.items()}
        times = minima(ways, rounds)
    for way, (clock, processor) in times.items():
        yield {
            "way": way,
            "s": f"{clock:.3f}",
            "of the processor": f"{processor:.3f}",
            "over Stepwell": f"{clock / times['Stepwell'][0]:.2f}",
            "difference": f"{errors[way]:.0e}",
        }


MODELS: dict[str, Callable[[], Any]] = {
    "SAGE": partial(GraphSAGE, WIDTH, WIDTH, num_layers=2),
    "GAT": partial(GAT, WIDTH, WIDTH, num_layers=2, heads=HEADS),
}
TABLES = [Table("network", MODELS, rows, threads=(2,))]
