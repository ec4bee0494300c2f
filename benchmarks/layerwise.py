"""Inference on all nodes of a graph, layer by layer, beside PyG.

    python benchmarks/layerwise.py                                  # 200,000 nodes, 2 million edges
    python benchmarks/layerwise.py --nodes 1_000_000 --edges 10_000_000

The graph is a power-law graph (`rmat.py`); SAGE and GAT have two layers, 64 features and the
weights of PyG's models. `PyG, layer by layer` is `BasicGNN.inference_per_layer` on batches of nodes
with all their neighbours, as `BasicGNN.inference` does it, `PyG, at once` the model on the whole
graph, and `Stepwell, 4 parts` `sw.distribute` with threads. Batches come from a loader of this
file, and their indexing counts: PyG's own `NeighborLoader` needs pyg-lib or torch-sparse, which
pip installs no wheel of. Calls take turns; times are minima, of the clock and of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import torch
import typer
from parts import graph_of, minima
from rich.console import Console
from rich.table import Table
from torch_geometric.nn.models import GAT, GraphSAGE

import stepwell as sw
from stepwell.distributed.engines import LocalEngine
from stepwell.frontends import gnn

WIDTH, HEADS = 64, 4


def models() -> dict[str, torch.nn.Module]:
    """PyG's models, by name."""
    return {
        "SAGE": GraphSAGE(WIDTH, WIDTH, num_layers=2).eval(),
        "GAT": GAT(WIDTH, WIDTH, num_layers=2, heads=HEADS).eval(),
    }


def module(model: Any) -> sw.Module:
    """The same network, with the weights of a model of PyG, for any graph."""

    def layer(state: dict[str, torch.Tensor]) -> gnn.Layer:
        own = {name: tensor.numpy() for name, tensor in state.items()}
        if "lin_l.weight" in own:
            return gnn.SAGEConv(own["lin_l.weight"], own["lin_l.bias"], own["lin_r.weight"])
        return gnn.GATConv(own["lin.weight"], own["att_src"], own["att_dst"], own["bias"])

    first, second = (layer(conv.state_dict()) for conv in model.convs)
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
    """The model on the whole graph."""
    return model(x, edges)


def main(
    nodes: Annotated[int, typer.Option(help="the number of nodes")] = 200_000,
    edges: Annotated[int, typer.Option(help="the number of edges")] = 2_000_000,
    threads: Annotated[int, typer.Option("--threads", "-t", help="those of each")] = 2,
    batch: Annotated[int, typer.Option(help="the nodes of a batch of PyG")] = 16_384,
    repeat: Annotated[int, typer.Option(help="calls of each way after the first")] = 2,
) -> None:
    """Print the table."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    graph, rng = graph_of(nodes, edges), np.random.default_rng(0)
    matrix, x = graph.to_csr(), rng.standard_normal((nodes, WIDTH)).astype(np.float32)
    ends = np.stack([matrix.indices, np.repeat(np.arange(nodes), np.diff(matrix.indptr))])
    given, tensor = torch.from_numpy(ends.astype(np.int64)), torch.from_numpy(x)
    partition = sw.partition(graph, 4)
    table = Table("network", "way", "s", "of the processor", "over Stepwell", "difference")
    with LocalEngine(4) as engine:
        for name, model in models().items():
            exe = sw.compile(module(model), threads=threads)
            parts = sw.distribute(module(model), partition, engine)
            ways: dict[str, Callable[[], Any]] = {
                "Stepwell": lambda exe=exe: exe(matrix, x),
                "Stepwell, 4 parts": lambda parts=parts: parts(x),
                "PyG, layer by layer": lambda model=model: layer_by_layer(
                    model, matrix, tensor, batch
                ),
                "PyG, at once": lambda model=model: at_once(model, given, tensor),
            }
            expected = exe(matrix, x)
            errors = {n: float(np.abs(np.asarray(w()) - expected).max()) for n, w in ways.items()}
            times = minima(ways, repeat)
            for way, (clock, processor) in times.items():
                ratio = f"{clock / times['Stepwell'][0]:.2f}"
                row = f"{clock:.3f}", f"{processor:.3f}", ratio, f"{errors[way]:.0e}"
                table.add_row(name, way, *row)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
