"""Graphs larger than memory: partitioning, and networks out of core beside one call in memory.

    python benchmarks/run.py large_graphs --folder /tmp/large   # 2 million nodes, 800 MiB

The graph is a power-law graph (`rmat.py`), networks have two layers and 64 features. Each run is a
process of its own; the one out of core, and the partitioning, are in a control group whose memory,
page cache included, is limited. Where the user may not make one, that is an error; `--unlimited`
runs without. `memory` is the largest resident set. The folder needs about 1.5 kB for each node.

`--alone` is for graphs that no memory holds: the GCN out of core, whose results are compared at
some nodes with f64. The edge list is removed once it is partitioned.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import rmat
import sampled_rows
from harness import Row, Table
from memory_limit import limited
from models import Weights
from turns import in_a_process

import stepwell as sw
from stepwell.frontends import gnn

WIDTH = 64
NETWORKS = ("GCN", "SAGE", "GAT")


def network(name: str) -> gnn.Sequential:
    """Two layers of 64 features."""
    w, shape = Weights(), (WIDTH, WIDTH)
    layers: dict[str, Callable[[], gnn.Layer]] = {
        "GCN": lambda: gnn.GCNConv(w.scaled(*shape), w.scaled(WIDTH)),
        "SAGE": lambda: gnn.SAGEConv(w.scaled(*shape), w.scaled(WIDTH), w.scaled(*shape)),
        "GAT": lambda: gnn.GATConv(
            w.scaled(*shape), w.scaled(1, 4, 16), w.scaled(1, 4, 16), w.scaled(WIDTH)
        ),
    }
    return gnn.Sequential(layers[name](), gnn.ReLU(), layers[name]())


def module(name: str) -> sw.Module:
    """The network for any graph."""
    spec = gnn.GraphSpec(indptr_dtype="i64")
    return network(name).to_module(spec, sw.TensorSpec((None, WIDTH)))


def partitioned(folder: Path, nodes: int, parts: int) -> Callable[[], object]:
    """Partitions the edge list."""
    options = {"out": folder / "parts", "num_nodes": nodes}
    return lambda: sw.partition(folder / "edges.npy", parts, **options)


def in_memory(folder: Path, name: str, threads: int) -> Callable[[], None]:
    """One call on everything, which has been read before."""
    x = np.load(folder / "x.npy")
    part = sw.partition(folder / "edges.npy", 1, num_nodes=len(x))[0]
    exe, y, matrix = sw.compile(module(name), threads=threads), np.empty_like(x), part.to_csr()

    def run() -> None:
        exe(matrix, x, out=y)
        np.save(folder / f"{name}.npy", y[:: max(1, len(y) // 10_000)])

    return run


def out_of_core(folder: Path, name: str, threads: int, tiles: str) -> Callable[[], object]:
    """The same out of core."""
    exe = sw.out_of_core(module(name), sw.Partition.load(folder / "parts"), tiles, threads=threads)
    return lambda: exe(folder / "x.npy", out=folder / "y.npy")


RUNS: dict[str, Callable[..., Callable[[], object]]] = {
    run.__name__: run for run in (partitioned, in_memory, out_of_core)
}


def child(folder: str, kind: str, arguments: str) -> None:
    """Print the time, that of the processor, and the largest resident set of one run."""
    run = RUNS[kind](Path(folder), **json.loads(arguments))
    begun, used = time.perf_counter(), time.process_time()
    run()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(time.perf_counter() - begun, time.process_time() - used, most)


def measured(folder: Path, kind: str, memory: str | None = None, **arguments: Any) -> list[float]:
    """The same of a run in a process of its own, which may be limited."""
    for file in folder.glob("**/*.npy"):
        _forget(file)
    code = "import sys; from large_graphs import child; child(*sys.argv[1:])"
    with limited(memory) as limit:
        return in_a_process(code, str(folder), kind, json.dumps(arguments), before=limit)


def _forget(file: Path) -> None:
    """Write a file to the disk, and drop its pages: they count for who has read them first."""
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def difference(folder: Path, name: str) -> float:
    """The largest difference of the results, relative to the largest of them."""
    every, some = np.load(folder / "y.npy", mmap_mode="r"), np.load(folder / f"{name}.npy")
    found = every[:: max(1, len(every) // 10_000)]
    return float(np.max(np.abs(found - some)) / np.max(np.abs(some)))


def at_some_nodes(folder: Path, seconds: float = 120) -> tuple[int, float]:
    """How many results of the GCN were compared with f64, and the largest relative difference."""
    convolutions = [layer for layer in network("GCN").layers if isinstance(layer, gnn.GCNConv)]
    x, y = (np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    parts = sw.Partition.load(folder / "parts")
    return sampled_rows.difference(parts, x, y, convolutions, seconds)


def features(folder: Path, nodes: int) -> None:
    """Write features, a block at a time."""
    rng, shape = np.random.default_rng(0), (nodes, WIDTH)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, shape)
    for first in range(0, nodes, 1 << 16):
        x[first : first + (1 << 16)] = rng.standard_normal(x[first : first + (1 << 16)].shape)


@cache
def prepared(folder: Path, nodes: int, edges: int, parts: int, limit: str | None) -> list[float]:
    """Write the graph and the features; the measurements of its partitioning."""
    with limited(limit):
        # Where there is no limit, that is known at once.
        folder.mkdir(parents=True, exist_ok=True)
    rmat.write(folder / "edges.npy", nodes, edges)
    features(folder, nodes)
    return measured(folder, "partitioned", limit, nodes=nodes, parts=parts)


def rows(
    name: str,
    network: str,
    *,
    folder: str = "large",
    nodes: int = 2_000_000,
    edges: int = 20_000_000,
    parts: int = 4,
    memory: str = "800MiB",
    unlimited: bool = False,
    tiles: str = "400MiB",
    threads: int = 2,
    alone: bool = False,
) -> Iterator[Row]:
    place, limit = Path(folder).resolve(), None if unlimited else memory
    found = prepared(place, nodes, edges, parts, limit)
    if not network:
        yield {"run": f"{edges:,} edges, {parts} parts"} | _shown(found)
        return
    own = {"name": network, "threads": threads}
    if alone:
        (place / "edges.npy").unlink(missing_ok=True)
        if network == "GCN":
            yield {"run": "GCN, out of core"} | _shown(
                measured(place, "out_of_core", limit, **own, tiles=tiles)
            )
            count, worst = at_some_nodes(place)
            yield {"run": f"at {count:,} nodes", "difference": f"{worst:.0e}"}
        return
    whole = measured(place, "in_memory", **own)
    yield {"run": f"{network}, in memory"} | _shown(whole)
    found = measured(place, "out_of_core", limit, **own, tiles=tiles)
    yield (
        {"run": f"{network}, out of core"}
        | _shown(found)
        | {
            "over memory": f"{found[0] / whole[0]:.2f}",
            "difference": f"{difference(place, network):.0e}",
        }
    )


def _shown(found: Sequence[float]) -> Row:
    wall, processor, most = found
    times = {"time": f"{wall:.1f} s", "of the processor": f"{processor:.1f} s"}
    return times | {"memory": f"{most / 2**20:.0f} MiB"}


CASES = {"partitioning": "", **{name: name for name in NETWORKS}}
TABLES = [Table("run", CASES, rows, threads=(2,))]
