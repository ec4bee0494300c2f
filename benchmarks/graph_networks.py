"""Graph networks of torch-geometric, beside torch-geometric itself and Inductor.

Models are built by torch-geometric and read by `sw.from_torch` for any graph; edges are an input
of each call. `with CSR` is the same model with the adjacency as a CSR tensor of torch, made before,
where its layers take one; in rows that say so, our program takes that, too. Inductor is
`torch.compile`, which needs a C++ compiler.

The bounds are those of the multiply-adds of dense products at the rate of this machine's
registers, and of reading random rows, one for each edge and layer, out of a table of the
nodes' features; both are measured at the beginning. A ratio is a peer's time over ours, medians
of interleaved rounds; it is red where it is less than 8 to torch-geometric or 3 to the best peer,
unless we take at most 1.25 times the larger bound. `memory` is what a call of ours allocates for
intermediate results, without those that it returns.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from cases import load, power_law_ends, words
from harness import Case, LeftOutError, Row, Table, limits, timed
from peers import Call, torch_call
from torch_geometric.nn import GCN, RGCNConv, models
from torch_geometric.utils import to_torch_csr_tensor

import stepwell as sw
from stepwell.core.algebra.dims import Dim
from stepwell.core.errors import ImportModelError
from stepwell.runtime.limits import MachineLimits
from stepwell.tools.timing import duration

PYG, CSR, INDUCTOR = "torch-geometric", "with CSR", "inductor"
GOALS = {PYG: 8.0, "best": 3.0}
NEAR = 1.25
"""No ratio is marked as missed where the time is below this multiple of the larger bound."""
HEADS = 4
ANY = torch.export.Dim.DYNAMIC
ROUNDS, FEW_ROUNDS, LARGE = 9, 3, 100_000
"""Rounds, those of a graph of more nodes than that."""


@dataclass(frozen=True)
class Graph:
    """A graph without self loops and repeated edges, and the widths of a network on it."""

    nodes: int
    edges: np.ndarray
    widths: tuple[int, ...]

    def features(self) -> np.ndarray:
        """What the nodes have."""
        rng = np.random.default_rng(1)
        return rng.standard_normal((self.nodes, self.widths[0]), np.float32)


def _distinct(edges: np.ndarray, nodes: int) -> np.ndarray:
    """The edges in random order, without self loops and repetitions, contiguous as in data sets."""
    edges = edges[:, edges[0] != edges[1]]
    _, first = np.unique(edges[0] * nodes + edges[1], return_index=True)
    return np.ascontiguousarray(edges[:, np.sort(first)])


@cache
def uniform() -> Graph:
    """The graph of TorchBench's basic_gnn: 200,000 random edges, 64 features, three layers."""
    nodes = 10_000
    edges = np.random.default_rng(0).integers(0, nodes, (2, 200_000))
    return Graph(nodes, _distinct(edges, nodes), (64, 64, 64, 64))


@cache
def citations() -> Graph:
    """A random graph of the size of ogbn-arxiv, its degrees by a power law, both directions."""
    nodes = 169_343
    ends = power_law_ends(nodes, 1_166_243, np.random.default_rng(0))
    both = np.concatenate([ends, ends[::-1]], axis=1)
    return Graph(nodes, _distinct(both, nodes), (128, 256, 40))


@dataclass(frozen=True)
class Work:
    """What a network has to do at least: dense products (m, k, n), gathers (rows, width, count)."""

    products: Sequence[tuple[int, int, int]]
    gathers: Sequence[tuple[int, int, int]]

    def bounds(self, limits: MachineLimits) -> tuple[float, float]:
        """The seconds that the products and the gathers take at least."""
        flops = sum(2.0 * m * k * n for m, k, n in self.products)
        moved = (
            4.0 * width * count / limits.gather(rows, 4 * width) / 1e9
            for rows, width, count in self.gathers
        )
        return flops / limits.gflops / 1e9, sum(moved)


@dataclass(frozen=True)
class Network:
    """A network in evaluation mode, and its arguments as tensors.

    Attributes:
        args: its arguments.
        sizes: which sizes of the arguments differ from call to call, as for `torch.export`.
        csr: the arguments with the adjacency as a CSR tensor; None where layers do not take it.
        work: what it has to do at least.
        from_csr: whether our program takes those, in place of the edge list.
    """

    model: Any
    args: tuple[Any, ...]
    sizes: tuple[Any, ...]
    csr: tuple[Any, ...] | None
    work: Work
    from_csr: bool = False

    @property
    def given(self) -> tuple[Any, ...]:
        """What our program takes, as tensors."""
        return self.csr if self.from_csr and self.csr is not None else self.args


def basic(kind: str, make: Callable[[], Graph], from_csr: bool = False) -> Network:
    """One of the models of `torch_geometric.nn.models` on a graph."""
    graph = make()
    width, hidden, *_ = graph.widths
    layers, last = len(graph.widths) - 1, graph.widths[-1]
    torch.manual_seed(0)
    options = {"heads": HEADS} if kind == "GAT" else {}
    # A last layer of the same width is like the others.
    out = None if last == hidden else last
    model = getattr(models, kind)(width, hidden, layers, out, **options).eval()
    x, edges = torch.from_numpy(graph.features()), torch.from_numpy(graph.edges)
    csr = (x, _adjacency(graph)) if kind in ("GCN", "GraphSAGE", "GIN") else None
    sizes = ({0: ANY}, {0: ANY, 1: ANY} if from_csr else {1: ANY})
    return Network(model, (x, edges), sizes, csr, _work(kind, graph), from_csr)


def _work(kind: str, graph: Graph) -> Work:
    products, gathers = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
    nodes, edges = graph.nodes, graph.edges.shape[1]
    for i, o in pairwise(graph.widths):
        # The heads of a last layer of another width have all of it, and are averaged.
        made = HEADS * o if kind == "GAT" and o != graph.widths[1] else o
        sent = min(i, made) if kind in ("GCN", "GraphSAGE", "GIN") else made
        products += {
            "GCN": [(nodes, i, o)],
            "GraphSAGE": [(nodes, i, o)] * 2,
            "GIN": [(nodes, i, o), (nodes, o, o)],
            "GAT": [(nodes, i, made)],
            # w (x_i, x_j - x_i) = (w_1 - w_2) x_i + w_2 x_j
            "EdgeCNN": [(nodes, i, 2 * o), (edges, o, o)],
        }[kind]
        gathers.append((nodes, sent, edges))
    return Work(products, gathers)


def cora() -> Network:
    """A GCN 1433-16-7 on Cora, whose features are a constant of the model, mostly zeros."""
    data = load("cora.npz")
    counts = np.diff(data["x_indptr"])
    x = words(data).toarray()
    nodes, edges = len(x), data["edge_index"].astype(np.int64)
    graph = Graph(nodes, _distinct(np.concatenate([edges, edges[::-1]], axis=1), nodes), ())
    torch.manual_seed(0)

    class Constant(torch.nn.Module):
        def __init__(self, features: Any) -> None:
            super().__init__()
            self.gcn = GCN(x.shape[1], 16, 2, 7)
            self.register_buffer("features", features)

        def forward(self, edges: Any) -> Any:
            return self.gcn(self.features, edges)

    model = Constant(torch.from_numpy(x)).eval()
    count = graph.edges.shape[1]
    gathers = [(x.shape[1], 16, int(counts.sum())), (nodes, 16, count), (nodes, 7, count)]
    args = (torch.from_numpy(graph.edges),)
    csr = (_adjacency(graph),)
    return Network(model, args, ({1: ANY},), csr, Work([(nodes, 16, 7)], gathers))


def relations() -> Network:
    """One RGCN layer of 64 features with 20 relations, on the graph of TorchBench."""
    graph, count, width = uniform(), 20, 64
    torch.manual_seed(0)
    model = RGCNConv(width, width, count).eval()
    x, edges = torch.from_numpy(graph.features()), torch.from_numpy(graph.edges)
    kinds = torch.randint(0, count, (edges.shape[1],))
    sizes = ({0: ANY}, {1: ANY}, {0: ANY})
    # A relation's product is on the nodes that it reaches.
    reached = len(np.unique(kinds.numpy() * graph.nodes + graph.edges[1]))
    products = [(graph.nodes, width, width), (reached, width, width)]
    work = Work(products, [(graph.nodes, width, len(kinds))])
    return Network(model, (x, edges, kinds), sizes, None, work)


def _adjacency(graph: Graph) -> Any:
    """The adjacency as layers take it: rows are targets."""
    edges = torch.from_numpy(graph.edges[::-1].copy())
    return to_torch_csr_tensor(edges, size=(graph.nodes, graph.nodes))


KINDS = ("GCN", "GraphSAGE", "GIN", "GAT", "EdgeCNN")
OF_CSR = ("GraphSAGE", "GIN")
"""Those that multiply by an adjacency as it is given."""
NETWORKS: dict[str, Callable[[], Network]] = {
    **{f"{kind} 10,000 nodes": partial(basic, kind, uniform) for kind in KINDS},
    **{f"{kind} 10,000 nodes, of CSR": partial(basic, kind, uniform, True) for kind in OF_CSR},
    "GCN Cora": cora,
    "RGCN, 20 relations": relations,
    **{f"{kind} 169,343 nodes": partial(basic, kind, citations) for kind in KINDS},
    **{f"{kind} 169,343 nodes, of CSR": partial(basic, kind, citations, True) for kind in OF_CSR},
}


def run(name: str, make: Callable[[], Network], *, threads: int = 1, rounds: int = 0) -> Row:
    network = make()
    try:
        module = sw.from_torch(network.model, network.given, dynamic_shapes=network.sizes)
    except ImportModelError as error:
        raise LeftOutError(str(error).splitlines()[0]) from error
    arrays = [x if x.is_sparse_csr else x.numpy() for x in network.given]
    others = partial(peers, network)
    case = Case(arrays, module=module, others=others, tolerance=1e-4)
    rounds = rounds or (FEW_ROUNDS if len(network.args[0]) > LARGE else ROUNDS)
    result = timed(name, case, threads, rounds)
    bounds, ours = network.work.bounds(limits(threads)), result.seconds()
    near = ours <= NEAR * max(bounds)
    first = result.over(PYG) if PYG in result.times else math.nan
    facts = {
        f"products at {limits(threads).gflops:.0f} GFLOP/s": duration(bounds[0]),
        "gathers": duration(bounds[1]),
        "of bound": f"{max(bounds) / ours:.0%}",
        "memory": f"{memory(result.exe, module, arrays) / 1e6:.1f} MB",
        "over the first": f"{first:.1f}" if near or first >= GOALS[PYG] else f"[red]{first:.1f}[/]",
    }
    return result.row(facts, None if near else GOALS["best"])


def memory(exe: sw.Executable, module: sw.Module, arrays: Sequence[Any]) -> int:
    """The bytes of the intermediate results of a call, as `exe.explain()` states them."""
    found = re.search(r"\[peak of (.*) bytes\]", exe.explain())
    sizes: dict[str, Dim] = {}
    for spec, array in zip(module.inputs, arrays, strict=True):
        named = zip(spec.shape, array.shape, strict=True)
        sizes |= {dim: Dim.of(size) for dim, size in named if isinstance(dim, str)}
        if isinstance(spec.nnz, str):
            sizes[spec.nnz] = Dim.of(len(array.values()))
    return 0 if found is None else Dim.parse(found[1]).substitute(sizes).value


def peers(network: Network, threads: int) -> dict[str, Call | str]:
    """The network in torch-geometric, and by Inductor."""
    model, args, csr = network.model, network.args, network.csr
    found: dict[str, Call | str] = {PYG: torch_call(lambda: model(*args), (), threads)}
    if csr is not None:
        found[CSR] = torch_call(lambda: model(*csr), (), threads)
    # The C++ compiler that Inductor finds.
    names = [os.environ.get("CXX"), "g++", "clang++"]
    if any(name and shutil.which(name) for name in names):
        found[INDUCTOR] = inductor(network, threads)
    else:
        found[INDUCTOR] = "needs a C++ compiler"
    return found


def inductor(network: Network, threads: int) -> Call:
    """The model by `torch.compile`, without graph breaks where torch can do that."""
    torch.compiler.reset()
    flags: Any = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    compiled = torch.compile(network.model)
    call = torch_call(lambda: compiled(*network.args), (), threads)
    with torch._dynamo.config.patch(flags):
        call()
    return call


TABLES = [Table("network", NETWORKS, run)]
