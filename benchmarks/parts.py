"""Programs on the parts of a graph: threads, processes and Dask beside one process.

    python benchmarks/run.py parts               # 100,000 nodes, a million edges
    python benchmarks/run.py parts --nodes 10_000_000 --edges 100_000_000 --way processes --apart

The graph is a power-law graph (`rmat.py`), networks have two layers and 64 features
(`large_graphs.py`). All ways take the same cores and their calls take turns; times are minima, in
seconds. `exchanged` is what a call counts, `predicted` what the report says; `error` is relative
to 1 + |result|. With `--apart` each way is measured alone, and frees its memory before the next
one, where memory does not hold them all.

In the second table the parts of a GCN grow in number at a constant size. Nothing runs there: times
are those of `report.Machine`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from harness import Row, Table
from large_graphs import NETWORKS, WIDTH, module
from rmat import graph_of

import stepwell as sw
from stepwell.distributed.dask_engine import DaskEngine
from stepwell.distributed.engines import Engine, LocalEngine

ALONE = "one process"
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


def minima(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """The shortest times of each way, of the clock and of the processor; calls take turns."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            begin, used = time.perf_counter(), time.process_time()
            way()
            times[name].append((time.perf_counter() - begin, time.process_time() - used))
    # The first call loads programs and parts.
    return {n: (min(a for a, _ in own[1:]), min(b for _, b in own[1:])) for n, own in times.items()}


@cache
def divided(nodes: int, edges: int, parts: int) -> tuple[sw.Partition, Any]:
    graph = graph_of(nodes, edges)
    return sw.partition(graph, parts), graph.to_csr()


def rows(
    name: str,
    network: str,
    *,
    nodes: int = 100_000,
    edges: int = 1_000_000,
    parts: int = 4,
    threads: int = 2,
    rounds: int = 3,
    way: str = "",
    apart: bool = False,
) -> Iterator[Row]:
    """Time a network in one process, and in the ways with a text in their names."""
    partition, matrix = divided(nodes, edges, parts)
    x = np.random.default_rng(0).standard_normal((nodes, WIDTH), np.float32)
    with ExitStack() as stack:
        found = stack.enter_context(engines(parts, way))
        exe = sw.compile(module(network), threads=threads)
        programs = {way: sw.distribute(module(network), partition, e) for way, e in found.items()}
        expected = in_a_file(exe(matrix, x), stack)
        errors: dict[str, float] = {}
        ways: dict[str, Callable[[], Any]] = {ALONE: partial(exe, matrix, x)}
        ways |= {way: partial(program, x) for way, program in programs.items()}
        times: dict[str, tuple[float, float]] = {}
        if apart:
            times = minima({ALONE: ways.pop(ALONE)}, rounds)
            del exe
        for way, program in programs.items():
            errors[way] = difference(program(x), expected)
            if apart:
                times |= minima({way: ways.pop(way)}, rounds)
                program.close()
        times |= minima(ways, rounds)
        base, _ = times.pop(ALONE)
        yield {"way": ALONE, "s": f"{base:.3f}"}
        for way, (seconds, _) in times.items():
            yield {
                "way": way,
                "s": f"{seconds:.3f}",
                "beside one process": f"{seconds / base:.2f}",
                "exchanged MB": f"{sum(programs[way].traffic.exchanged) / 1e6:.1f}",
                "predicted": f"{sum(programs[way].report().exchanged) / 1e6:.1f}",
                "error": f"{errors[way]:.1e}",
            }


@cache
def report(nodes: int, edges: int, parts: int) -> Any:
    partition = sw.partition(graph_of(nodes * parts, edges * parts), parts)
    with LocalEngine(1) as engine:
        # Halos are charged to the network, on which a cluster has them.
        engine.shares = False
        return sw.distribute(module("GCN"), partition, engine, opt_level=0).report()


def scaled(name: str, parts: int, *, nodes: int = 1000, edges: int = 10_000) -> Row:
    found = report(nodes, edges, parts)
    return {
        "nodes": f"{nodes * parts:,}",
        "halo of a part": f"{sum(cost.halo for cost in found.costs[1]) / parts:,.0f}",
        "exchanged MB": f"{sum(found.exchanged) / 1e6:,.1f}",
        "balance": f"{min(found.balance):.2f}",
        "s": f"{found.seconds:.4f}",
        "efficiency": f"{report(nodes, edges, 1).seconds / found.seconds:.2f}",
    }


SCALED = {f"{parts:,} by the model": parts for parts in (1, 10, 100, 1000)}
TABLES = [
    Table("network", {name: name for name in NETWORKS}, rows, threads=(2,)),
    Table("parts", SCALED, scaled),
]
