"""Times products of a sparse matrix and a dense one beside SciPy and PyTorch.

    python benchmarks/sparse_products.py                   # everything
    python benchmarks/sparse_products.py --widths 1,2 -t 1 # some of it

The matrix is that of a graph: one whose nodes have about the same degree, one whose degrees follow
a power law, and the same with the nodes of the highest degrees last, which is the worst case for
threads with equal numbers of rows. It is an input with indices of 32 or 64 bits; our time includes
checking them. All programs run in one process, their rounds interleaved.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import typer
from peers import OURS, Call, installed, library_threads, torch_call
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.tools.timing import Timing, duration, measure

WIDTHS = (1, 2, 3, 7, 16, 33, 64, 128, 256, 1024)
NODES, DEGREE = 30_000, 10
MOST_ELEMENTS = 1 << 21
"""Widths of the dense matrix: wider ones have fewer rows, and the graph fewer nodes."""
KINDS = (("float32", "int32"), ("float64", "int32"), ("float32", "int64"))
"""Types of numbers and of indices."""
GRAPHS = ("even", "skewed", "heavy last")
ROUNDS, ROUND_SECONDS = 5, 0.003


def graph(kind: str, nodes: int, dtype: str, index: str) -> csr_array:
    """The matrix of a random graph; all of `GRAPHS` have about as many entries."""
    rng = np.random.default_rng(0)
    weights = np.ones(nodes) if kind == "even" else (np.arange(nodes) + 10.0) ** -0.9
    degrees = rng.poisson(weights / weights.sum() * nodes * DEGREE)
    degrees = np.sort(degrees) if kind == "heavy last" else rng.permutation(degrees)
    rows = np.repeat(np.arange(nodes), degrees)
    values = rng.standard_normal(len(rows)).astype(dtype)
    columns = rng.integers(0, nodes, len(rows))
    matrix = csr_array((values, (rows, columns)), shape=(nodes, nodes))
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    return matrix


def program(nodes: int, width: int, dtype: str, index: str) -> sw.Module:
    """A x, with indices of the type `index`."""
    b, short = sw.Builder("main"), dtype.replace("float", "f")
    a = b.input("a", sw.SparseSpec((nodes, nodes), short))
    b.output(b.spmm(a, b.input("x", (nodes, width), short)))
    return sw.from_mlir(str(b.module()).replace("Width = 32", f"Width = {index[3:]}"))


def case(exe: sw.Executable, a: csr_array, width: int, threads: int) -> dict[str, Timing]:
    """Time one product.

    Raises:
        SystemExit: if the result of a peer differs.
    """
    x = np.random.default_rng(1).standard_normal((a.shape[0], width)).astype(a.dtype)
    calls: dict[str, Call] = {OURS: lambda: exe(a, x), "scipy": lambda: a @ x}
    if installed("torch"):
        calls["torch"] = torch_call(lambda a, x: a @ x, [a, x], threads)
    expected = a @ x
    for name, call in calls.items():
        error = np.abs(np.asarray(call()) - expected).max() / np.abs(expected).max()
        if not error < 1e-5:
            raise SystemExit(f"{name} differs by {error:.2g}")
    with library_threads(threads):
        return measure(calls, rounds=ROUNDS, seconds=ROUND_SECONDS)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(
    widths: Annotated[str, typer.Option(help="columns of the dense matrix")] = "",
    threads: Annotated[str, typer.Option("-t", help="numbers of threads")] = "1,2",
) -> None:
    """Time the products, and print a table."""
    ratios: dict[tuple[int, str], list[float]] = defaultdict(list)
    print("times of a call: the median (the minimum); ratio: the best peer's minimum over ours")
    for width in _numbers(widths) if widths else WIDTHS:
        nodes = min(NODES, MOST_ELEMENTS // width)
        for dtype, index in KINDS:
            module = program(nodes, width, dtype, index)
            exes = {count: sw.compile(module, threads=count) for count in _numbers(threads)}
            for kind in GRAPHS:
                a = graph(kind, nodes, dtype, index)
                for count, exe in exes.items():
                    times = case(exe, a, width, count)
                    ratios[count, kind].append(_ratio(times))
                    print(_line((width, dtype, index, kind, count), times), flush=True)
    print("\nthreads  graph       ratio: geometric mean, least")
    for (count, kind), found in sorted(ratios.items()):
        mean = math.exp(statistics.fmean(map(math.log, found)))
        print(f"{count:7}  {kind:10} {mean:6.2f} {min(found):6.2f}")


def _ratio(times: Mapping[str, Timing]) -> float:
    return min(t.minimum for name, t in times.items() if name != OURS) / times[OURS].minimum


def _line(what: Sequence[object], times: Mapping[str, Timing]) -> str:
    width, dtype, index, kind, threads = what
    texts = [f"{n} {duration(t.median)} ({duration(t.minimum)})" for n, t in times.items()]
    head = f"{width:4} {dtype} {index} {kind:10} {threads} threads"
    return f"{head}  {'  '.join(f'{text:32}' for text in texts)} {_ratio(times):6.2f}"


if __name__ == "__main__":
    typer.run(main)
