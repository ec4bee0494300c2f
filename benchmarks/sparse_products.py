"""Times products of a sparse matrix and a dense one beside SciPy and PyTorch.

    python benchmarks/sparse_products.py                   # everything
    python benchmarks/sparse_products.py --widths 1,2 -t 1 # some of it

The matrix is that of a graph: one whose nodes have about the same degree, one whose degrees follow
a power law, and the same with the nodes of the highest degrees last, which is the worst case for
threads with equal numbers of rows. It is an input with indices of 32 or 64 bits; our time includes
checking them. All programs run in one process, their rounds interleaved. A ratio is the best peer's
minimum over ours.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated

import numpy as np
import typer
from harness import Result, collect, table, timed
from peers import OURS, Call, in_torch
from rich.console import Console
from rich.table import Table
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
ROUNDS, ROUND_SECONDS = 5, 0.003


@dataclass(frozen=True)
class Product:
    """A x, for the matrix A of a random graph; all of `GRAPHS` have about as many entries."""

    graph: str
    width: int
    dtype: str = "float32"
    index: str = "int32"

    def __str__(self) -> str:
        return f"{self.width} columns, {self.dtype}, {self.index}, {self.graph}"

    @property
    def nodes(self) -> int:
        """The number of rows."""
        return min(NODES, MOST_ELEMENTS // self.width)

    def module(self) -> sw.Module:
        """The program, which does not depend on the graph."""
        b, short = sw.Builder("main"), self.dtype.replace("float", "f")
        a = b.input("a", sw.SparseSpec((self.nodes, self.nodes), short))
        b.output(b.spmm(a, b.input("x", (self.nodes, self.width), short)))
        return sw.from_mlir(str(b.module()).replace("Width = 32", f"Width = {self.index[3:]}"))

    def arrays(self) -> tuple[csr_array, np.ndarray]:
        """Both matrices."""
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


def run(name: str, product: Product, threads: int) -> Result:
    """Time one product.

    Raises:
        SystemExit: if no peer has the same result.
    """
    a, x = product.arrays()
    exe = compiled(replace(product, graph="any"), threads)
    calls: dict[str, Call] = {OURS: lambda: exe(a, x), "scipy": lambda: a @ x}
    calls |= in_torch(lambda a, x: a @ x, [a, x], threads)
    measured = partial(measure, rounds=ROUNDS, seconds=ROUND_SECONDS)
    result = timed(name, calls, threads, measured=measured)
    return replace(result, facts={"threads": str(threads)}, by="minimum")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(
    widths: Annotated[str, typer.Option(help="columns of the dense matrix")] = "",
    threads: Annotated[str, typer.Option("-t", help="numbers of threads")] = "1,2",
) -> None:
    """Time the products, and print a table, and one of their ratios."""
    products = {
        str(product): product
        for width in (_numbers(widths) if widths else WIDTHS)
        for dtype, index in KINDS
        for product in (Product(graph, width, dtype, index) for graph in GRAPHS)
    }
    console = Console(width=160)
    results = collect("product", products, run, _numbers(threads), "", console)
    console.print(table("product", results))
    summary = Table("threads", "graph", "ratio, geometric mean", "least")
    for count in _numbers(threads):
        for graph in GRAPHS:
            found = [
                r.ratio for r in results if r.threads == count and products[r.case].graph == graph
            ]
            mean = statistics.geometric_mean(found)
            summary.add_row(str(count), graph, f"{mean:.2f}", f"{min(found):.2f}")
    console.print(summary)


if __name__ == "__main__":
    typer.run(main)
