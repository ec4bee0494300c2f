"""Programs on the parts of a graph: threads, processes and Dask beside one process.

    python benchmarks/parts.py                                  # 100,000 nodes, a million edges
    python benchmarks/parts.py --nodes 10_000_000 --edges 100_000_000 --only processes --apart
    python benchmarks/parts.py --nodes 4000 --edges 40_000 --simulate 1000      # by the model

The graph is a power-law graph (`rmat.py`), networks have two layers and 64 features
(`large_graphs.py`). All ways take the same cores and their calls take turns; times are minima, in
seconds. `exchanged` is what a call counts, `predicted` what the report says; `error` is relative
to 1 + |result|. With `--apart` each way is measured alone, and frees its memory before the next
one, where memory does not hold them all. With `--simulate` nothing runs: parts grow in number at a
constant size, and times are those of `report.Machine`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from large_graphs import WIDTH, module
from rich.console import Console
from rich.table import Table
from rmat import rmat

import stepwell as sw
from stepwell.distributed.dask_engine import DaskEngine
from stepwell.distributed.engines import Engine, LocalEngine
from stepwell.frontends import gnn

NETWORKS = ("GCN", "SAGE", "GAT")


def graph_of(nodes: int, edges: int) -> gnn.Graph:
    """A power-law graph."""
    pieces = list(rmat(nodes, edges))
    ends = np.stack([np.concatenate([piece[n] for piece in pieces]) for n in range(2)])
    return gnn.Graph.from_edge_index(ends, nodes)


WAYS = ("threads", "processes", "Dask, maps", "Dask, sockets")


@contextmanager
def engines(workers: int, only: str) -> Iterator[dict[str, Engine]]:
    """The ways to run parts, each with so many workers of one thread."""
    names = [name for name in WAYS if only in name]
    with ExitStack() as stack:
        made: dict[str, Callable[[], Engine]] = {
            "threads": lambda: stack.enter_context(LocalEngine(workers)),
            "processes": lambda: stack.enter_context(LocalEngine(workers, processes=True)),
        }
        if any(name.startswith("Dask") for name in names):
            dask = importlib.import_module("distributed")
            # With a limit of memory, Dask charges each worker for the pages that all share.
            options = {"dashboard_address": ":0", "protocol": "tcp", "memory_limit": 0}
            cluster = dask.LocalCluster(n_workers=workers, threads_per_worker=1, **options)
            client = stack.enter_context(dask.Client(stack.enter_context(cluster)))
            made["Dask, maps"] = lambda: DaskEngine(client)
            made["Dask, sockets"] = lambda: DaskEngine(client, share=False)
        yield {name: made[name]() for name in names}


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """What `np.allclose` compares with `rtol` and `atol` if they are equal."""
    step, most = 1 << 16, 0.0
    for first in range(0, len(found), step):
        rows = slice(first, first + step)
        error = np.abs(found[rows] - expected[rows]) / (1 + np.abs(expected[rows]))
        most = max(most, float(error.max()))
    return most


def in_a_file(array: np.ndarray, stack: ExitStack) -> np.ndarray:
    """The array as a map of a temporary file, which takes no memory while others need it."""
    path = Path(stack.enter_context(TemporaryDirectory()), "array.npy")
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def minima(ways: dict[str, Callable[[], Any]], repeat: int) -> dict[str, tuple[float, float]]:
    """The shortest times of each way, of the clock and of the processor; calls take turns."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(repeat + 1):
        for name, way in ways.items():
            begin, used = time.perf_counter(), time.process_time()
            way()
            times[name].append((time.perf_counter() - begin, time.process_time() - used))
    # The first call loads programs and parts.
    return {n: (min(a for a, _ in own[1:]), min(b for _, b in own[1:])) for n, own in times.items()}


def measure(
    nodes: int,
    edges: int,
    parts: int,
    threads: int,
    repeat: int,
    only: str,
    network: str,
    apart: bool,
) -> Table:
    """The times of all ways, or of the selected ones."""
    graph, rng = graph_of(nodes, edges), np.random.default_rng(0)
    x = rng.standard_normal((nodes, WIDTH), np.float32)
    partition, matrix = sw.partition(graph, parts), graph.to_csr()
    del graph
    table = Table("network", "way", "s", "beside one process", "exchanged MB", "predicted", "error")
    with ExitStack() as stack:
        found = stack.enter_context(engines(parts, only))
        for name in (name for name in NETWORKS if network in name):
            exe = sw.compile(module(name), threads=threads)
            programs = {way: sw.distribute(module(name), partition, e) for way, e in found.items()}
            expected = in_a_file(exe(matrix, x), stack)
            errors: dict[str, float] = {}
            ways: dict[str, Callable[[], Any]] = {"one process": lambda e=exe: e(matrix, x)}
            ways |= {way: lambda p=p: p(x) for way, p in programs.items()}
            times = minima({"one process": ways.pop("one process")}, repeat) if apart else {}
            if apart:
                del exe
            for way, program in programs.items():
                errors[way] = difference(program(x), expected)
                if apart:
                    times |= minima({way: ways.pop(way)}, repeat)
                    program.close()
            times |= minima(ways, repeat)
            base, _ = times.pop("one process")
            table.add_row(name, "one process", f"{base:.3f}")
            for way, (seconds, _) in times.items():
                counted = (programs[way].traffic, programs[way].report())
                moved = [f"{sum(one.exchanged) / 1e6:.1f}" for one in counted]
                ratio = f"{seconds / base:.2f}"
                table.add_row(name, way, f"{seconds:.3f}", ratio, *moved, f"{errors[way]:.1e}")
    return table


def simulate(nodes: int, edges: int, most: int) -> Table:
    """Weak scaling: as many nodes and edges for each part, from 1 part to `most`."""
    table = Table("parts", "nodes", "halo of a part", "exchanged MB", "balance", "s", "efficiency")
    first, parts = 0.0, 1
    while parts <= most:
        partition = sw.partition(graph_of(nodes * parts, edges * parts), parts)
        with LocalEngine(1) as engine:
            # Halos are charged to the network, on which a cluster has them.
            engine.shares = False
            report = sw.distribute(module("GCN"), partition, engine, opt_level=0).report()
        halo = sum(cost.halo for cost in report.costs[1]) / parts
        first = first or report.seconds
        moved, balance = sum(report.exchanged) / 1e6, min(report.balance)
        sizes = str(parts), str(nodes * parts), f"{halo:.0f}", f"{moved:.1f}", f"{balance:.2f}"
        table.add_row(*sizes, f"{report.seconds:.4f}", f"{first / report.seconds:.2f}")
        parts = min(parts * 10, most) if parts < most else most + 1
    return table


def main(
    nodes: Annotated[int, typer.Option(help="the number of nodes")] = 100_000,
    edges: Annotated[int, typer.Option(help="the number of edges")] = 1_000_000,
    parts: Annotated[int, typer.Option(help="the number of parts, and of workers")] = 4,
    threads: Annotated[int, typer.Option(help="those of the one process")] = 2,
    repeat: Annotated[int, typer.Option(help="calls of each way after the first")] = 3,
    only: Annotated[str, typer.Option(help="the ways whose names have this in them")] = "",
    network: Annotated[str, typer.Option(help="only this network")] = "",
    apart: Annotated[bool, typer.Option("--apart", help="one way after the other")] = False,
    most: Annotated[int, typer.Option("--simulate", help="the most parts of a simulation")] = 0,
) -> None:
    """Measure, or simulate."""
    if most:
        Console().print(simulate(nodes // parts, edges // parts, most))
    else:
        Console().print(measure(nodes, edges, parts, threads, repeat, only, network, apart))


if __name__ == "__main__":
    typer.run(main)
