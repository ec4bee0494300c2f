"""Times products of a sparse matrix and a dense one beside SciPy and PyTorch.

The matrix is that of a graph: one whose nodes have about the same degree, one whose degrees follow
a power law, and the same with the nodes of the highest degrees last, which is the worst case for
threads with equal numbers of rows. It is an input with indices of 32 or 64 bits; our time includes
checking them. All programs run in one process, their rounds interleaved. A ratio is the best peer's
minimum over ours.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from harness import RATIO, Case, Row, Table, timed
from models import built
from peers import OURS, Call, in_torch
from rich.text import Text
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.tools.timing import measure

WIDTHS = (1, 2, 3, 7, 16, 33, 64, 128, 256, 1024)
NODES, DEGREE = 30_000, 10
MOST_ELEMENTS = 1 << 21
"""Those of the dense matrix: wider ones have fewer rows, and the graph fewer nodes."""
KINDS = (("float32", "int32"), ("float64", "int32"), ("float32", "int64"))
"""Types of numbers and of indices."""
GRAPHS = ("even", "skewed", "heavy last")
ROUND_SECONDS = 0.003


@dataclass(frozen=True)
class Product(Case):
    """A x, for the matrix A of a random graph; all of `GRAPHS` have about as many entries."""

    graph: str
    width: int
    dtype: str = "float32"
    index: str = "int32"

    @property
    def nodes(self) -> int:
        """The number of rows."""
        return min(NODES, MOST_ELEMENTS // self.width)

    def module(self) -> sw.Module:
        """The program, which does not depend on the graph."""
        short = self.dtype.replace("float", "f")
        a = sw.SparseSpec((self.nodes, self.nodes), short)
        x = sw.TensorSpec((self.nodes, self.width), short)
        text = str(built(lambda b, a, x: b.spmm(a, x), a, x))
        return sw.from_mlir(text.replace("Width = 32", f"Width = {self.index[3:]}"))

    def arrays(self) -> tuple[csr_array, np.ndarray]:
        rng, nodes = np.random.default_rng(0), self.nodes
        even = self.graph == "even"
        weights = np.ones(nodes) if even else (np.arange(nodes) + 10.0) ** -0.9
        degrees = rng.poisson(weights / weights.sum() * nodes * DEGREE)
        degrees = np.sort(degrees) if self.graph == "heavy last" else rng.permutation(degrees)
        rows = np.repeat(np.arange(nodes), degrees)
        values = rng.standard_normal(len(rows)).astype(self.dtype)
        columns = rng.integers(0, nodes, len(rows))
        a = csr_array((values, (rows, columns)), shape=(nodes, nodes))
        a.indptr, a.indices = a.indptr.astype(self.index), a.indices.astype(self.index)
        x = np.random.default_rng(1).standard_normal((nodes, self.width)).astype(self.dtype)
        return a, x


@cache
def compiled(product: Product, threads: int) -> sw.Executable:
    """The program of a product."""
    return sw.compile(product.module(), threads=threads)


def run(name: str, product: Product, *, threads: int = 1, rounds: int = 5) -> Row:
    """Time one product.

    Raises:
        SystemExit: if no peer has the same result.
    """
    a, x = product.arrays()
    exe = compiled(replace(product, graph="any"), threads)
    calls: dict[str, Call] = {OURS: lambda: exe(a, x), "scipy": lambda: a @ x}
    calls |= in_torch(lambda t, a, x: a @ x, [a, x], threads)
    measured = partial(measure, rounds=rounds, seconds=ROUND_SECONDS)
    return timed(name, calls, threads, measured=measured, by="minimum").row()


def summary(rows: Sequence[Row]) -> str:
    """The ratios of each graph."""
    found: dict[str, list[float]] = {}
    for row in rows:
        which = f"{PRODUCTS[row['product']].graph}, threads: {row.get('threads', 'as given')}"
        found.setdefault(which, []).append(float(Text.from_markup(row[RATIO]).plain))
    means = {which: statistics.geometric_mean(ratios) for which, ratios in found.items()}
    return "\n".join(
        f"{which}: geometric mean {mean:.2f}, least {min(found[which]):.2f}"
        for which, mean in means.items()
    )


PRODUCTS = {
    f"{width} columns, {dtype}, {index}, {graph}": Product(graph, width, dtype, index)
    for width in WIDTHS
    for dtype, index in KINDS
    for graph in GRAPHS
}
TABLES = [Table("product", PRODUCTS, run, threads=(1, 2), summary=summary)]
