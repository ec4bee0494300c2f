"""Products of a sparse matrix and a dense one beside SciPy and PyTorch, and making such matrices.

The matrix is that of a graph: one whose nodes have about the same degree, one whose degrees follow
a power law, and the same with the nodes of the highest degrees last, which is the worst case for
threads with equal numbers of rows. It is an input with indices of 32 or 64 bits; our time includes
checking them. Ratios are of minima.

The second table has products with a mostly empty constant, stored dense and stored sparse; the
costs in `passes/graph/sparsify_constant.py` are fitted to it.

The third has `gnn.Graph.from_edge_index` of a million edges beside SciPy's conversion of a COO
matrix, in time of the processor. SciPy's matrix sums edges that are given twice; `from_edge_index`
checks the indices, keeps such edges, and says where each one came from.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from harness import RATIO, Case, Make, Row, Table, processor_times, run
from models import built
from rich.text import Text
from scipy.sparse import coo_array, csr_array

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.tools.timing import measure

WIDTHS = (1, 2, 3, 7, 16, 33, 64, 128, 256, 1024)
NODES, DEGREE = 30_000, 10
MOST_ELEMENTS = 1 << 21
"""Those of the dense matrix: wider ones have fewer rows, and the graph fewer nodes."""
KINDS = (("float32", "int32"), ("float64", "int32"), ("float32", "int64"))
"""Types of numbers and of indices."""
GRAPHS = ("even", "skewed", "heavy last")


def product(graph: str, width: int, dtype: str = "float32", index: str = "int32") -> Case:
    """A x, for the matrix A of a random graph; all of `GRAPHS` have about as many entries."""
    rng, nodes = np.random.default_rng(0), min(NODES, MOST_ELEMENTS // width)
    weights = np.ones(nodes) if graph == "even" else (np.arange(nodes) + 10.0) ** -0.9
    degrees = rng.poisson(weights / weights.sum() * nodes * DEGREE)
    degrees = np.sort(degrees) if graph == "heavy last" else rng.permutation(degrees)
    rows = np.repeat(np.arange(nodes), degrees)
    values = rng.standard_normal(len(rows)).astype(dtype)
    columns = rng.integers(0, nodes, len(rows))
    a = csr_array((values, (rows, columns)), shape=(nodes, nodes))
    a.indptr, a.indices = a.indptr.astype(index), a.indices.astype(index)
    x = np.random.default_rng(1).standard_normal((nodes, width)).astype(dtype)
    # The program does not depend on the graph.
    short = dtype.replace("float", "f")
    specs = sw.SparseSpec((nodes, nodes), short), sw.TensorSpec((nodes, width), short)
    text = str(built(lambda b, a, x: b.spmm(a, x), *specs))
    module = sw.from_mlir(text.replace("Width = 32", f"Width = {index[3:]}"))
    return Case(
        [a, x],
        module=module,
        torch=lambda t, a, x: a @ x,
        others=lambda threads: {"scipy": lambda: a @ x},
        flops=0,
    )


def summary(rows: Sequence[Row]) -> str:
    found: dict[str, list[float]] = {}
    for row in rows:
        graph = row["product"].rpartition(", ")[2]
        which = f"{graph}, threads: {row.get('threads', 'as given')}"
        found.setdefault(which, []).append(float(Text.from_markup(row[RATIO]).plain))
    means = {which: statistics.geometric_mean(ratios) for which, ratios in found.items()}
    return "\n".join(
        f"{which}: geometric mean {mean:.2f}, least {min(found[which]):.2f}"
        for which, mean in means.items()
    )


PRODUCTS: dict[str, Make] = {
    f"{width} columns, {dtype}, {index}, {graph}": partial(product, graph, width, dtype, index)
    for width in WIDTHS
    for dtype, index in KINDS
    for graph in GRAPHS
}


SIZE = 1024
DENSITIES = (0.02, 0.1)


def times_constant(b: Any, x: Any, matrix: Any, side: str) -> Any:
    """matrix times x, or x times the transposed matrix."""
    if not isinstance(matrix, csr_array):
        return b.matmul(b.constant(matrix), x) if side == "left" else b.dense(x, b.constant(matrix))
    if side == "left":
        return b.spmm(b.constant(matrix), x)
    return b.transpose(b.spmm(b.constant(matrix), b.transpose(x, [1, 0])), [1, 0])


def both_forms(name: str, case: tuple[str, int], *, rounds: int = 5) -> Iterator[Row]:
    side, columns = case
    rng = np.random.default_rng(0)
    full = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    shape = (SIZE, columns) if side == "left" else (columns, SIZE)
    x = rng.standard_normal(shape).astype(np.float32)
    for density in DENSITIES:
        matrix = csr_array(np.where(rng.random(full.shape) < density, full, 0))
        calls = {}
        for form in (full, matrix):
            module = built(partial(times_constant, matrix=form, side=side), x)
            calls[type(form).__name__] = partial(sw.compile(module, threads=1), x)
        dense, sparse = (timing.minimum for timing in measure(calls, rounds=rounds).values())
        yield {
            "density": str(density),
            "dense GFLOP/s": f"{2e-9 * full.size * columns / dense:.1f}",
            "sparse GFLOP/s": f"{2e-9 * matrix.nnz * columns / sparse:.1f}",
            "as fast at a density of": f"{density * dense / sparse:.3f}",
        }


CONSTANTS = {
    f"constant on the {side}, {columns} columns": (side, columns)
    for side in ("left", "right")
    for columns in (1, 4, 8, 16, 64, 256)
}


EDGES = 1_000_000
NODES_OF_LISTS = {f"list of edges, {nodes:,} nodes": nodes for nodes in (10**4, 10**5, 10**6)}


def from_edges(name: str, nodes: int, *, rounds: int = 9) -> Row:
    """Make a matrix of random edges with weights, in two ways."""
    random = np.random.default_rng(0)
    ends, weights = random.integers(0, nodes, (2, EDGES)), random.random(EDGES, np.float32)
    where, shape = (ends[1], ends[0]), (nodes, nodes)
    calls = {
        "ours": lambda: gnn.Graph.from_edge_index(ends, nodes, weights),
        "scipy": lambda: coo_array((weights, where), shape).tocsr(),
    }
    ours, scipys = (time.minimum for time in processor_times(calls, rounds).values())
    return {
        "from_edge_index": f"{ours * 1e3:.1f} ms",
        "coo.tocsr": f"{scipys * 1e3:.1f} ms",
        "ratio": f"{scipys / ours:.2f}",
    }


TABLES = [
    Table(
        *("product", PRODUCTS, partial(run, rounds=5, seconds=0.003, by="minimum")),
        threads=(1, 2),
        summary=summary,
    ),
    Table("product", CONSTANTS, both_forms),
    Table("nodes", NODES_OF_LISTS, from_edges),
]
