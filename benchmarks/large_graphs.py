"""Graphs larger than memory: partitioning, and networks out of core beside one call in memory.

    python benchmarks/large_graphs.py /tmp/large                      # 2 million nodes, 800 MiB
    python benchmarks/large_graphs.py /tmp/large --nodes 10_000_000 --edges 100_000_000 -m 4GiB

The graph is a power-law graph (`rmat.py`), partitioned from a file into `--parts`. Networks have
two layers and 64 features. Each run is a process of its own; the one out of core, and the
partitioning, are in a control group whose memory, page cache included, is limited. Where the user
may not make one (`memory_limit.py`), that is an error; `--unlimited` runs without. `memory` is the
largest resident set. Times are of the clock and, as machines are shared, of the processor. The
folder needs about 1.5 kB for each node.

`--alone` is for graphs that no memory holds: the GCN out of core, whose results are compared at
some nodes with f64. The edge list is removed once it is partitioned.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import rmat
import sampled_rows
import typer
from memory_limit import limited
from rich.console import Console
from rich.table import Table

import stepwell as sw
from stepwell.frontends import gnn

WIDTH = 64


def network(name: str) -> gnn.Sequential:
    """Two layers of 64 features."""
    rng = np.random.default_rng(1)

    def floats(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / 8).astype(np.float32)

    def layer() -> gnn.Layer:
        if name == "GCN":
            return gnn.GCNConv(floats(WIDTH, WIDTH), floats(WIDTH))
        if name == "SAGE":
            return gnn.SAGEConv(floats(WIDTH, WIDTH), floats(WIDTH), floats(WIDTH, WIDTH))
        heads = floats(1, 4, WIDTH // 4), floats(1, 4, WIDTH // 4)
        return gnn.GATConv(floats(WIDTH, WIDTH), *heads, floats(WIDTH))

    return gnn.Sequential(layer(), gnn.ReLU(), layer())


def module(name: str) -> sw.Module:
    """The network for any graph."""
    spec = gnn.GraphSpec(indptr_dtype="i64")
    return network(name).to_module(spec, sw.TensorSpec((None, WIDTH)))


def partitioned(folder: Path, nodes: int, parts: int) -> None:
    """Partition the edge list."""
    sw.partition(folder / "edges.npy", parts, out=folder / "parts", num_nodes=nodes)


def in_memory(folder: Path, name: str, threads: int) -> Callable[[], None]:
    """One call on everything, which has been read before."""
    part = sw.partition(folder / "edges.npy", 1, num_nodes=_nodes(folder))[0]
    exe, x = sw.compile(module(name), threads=threads), np.load(folder / "x.npy")
    y = np.empty_like(x)
    matrix = part.to_csr()

    def run() -> None:
        exe(matrix, x, out=y)
        np.save(folder / f"{name}.npy", y[:: max(1, len(y) // 10_000)])

    return run


def out_of_core(folder: Path, name: str, threads: int, tiles: str) -> Callable[[], None]:
    """The same out of core."""
    exe = sw.out_of_core(module(name), sw.Partition.load(folder / "parts"), tiles, threads=threads)
    return lambda: exe(folder / "x.npy", out=folder / "y.npy")


def _nodes(folder: Path) -> int:
    return int(np.load(folder / "x.npy", mmap_mode="r").shape[0])


def child(arguments: dict[str, Any]) -> dict[str, float]:
    """Measure one run in this process."""
    folder, kind = Path(arguments.pop("folder")), arguments.pop("kind")
    makers: dict[str, Callable[..., Any]] = {"in memory": in_memory, "out of core": out_of_core}
    run = makers[kind](folder, **arguments) if kind in makers else None
    begun, used = time.perf_counter(), time.process_time()
    if run is None:
        partitioned(folder, **arguments)
    else:
        run()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used, "rss": most}


def measured(folder: Path, kind: str, memory: str | None = None, **arguments: Any) -> Any:
    """Times and memory of one run in a process of its own."""
    text = json.dumps({"folder": str(folder), "kind": kind, **arguments})
    for file in folder.glob("**/*.npy"):
        _forget(file)
    with limited(memory) as limit:
        done = subprocess.run(
            [sys.executable, __file__, "--child", text],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            preexec_fn=limit,
        )
    return json.loads(done.stdout.splitlines()[-1])


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


def main(
    folder: Annotated[Path, typer.Argument(help="for the graph, features and results")] = Path("."),
    nodes: Annotated[int, typer.Option(help="the number of nodes")] = 2_000_000,
    edges: Annotated[int, typer.Option(help="the number of edges")] = 20_000_000,
    parts: Annotated[int, typer.Option(help="the number of parts")] = 4,
    memory: Annotated[str, typer.Option("--memory", "-m", help="the limit")] = "800MiB",
    unlimited: Annotated[bool, typer.Option("--unlimited", help="without a limit")] = False,
    tiles: Annotated[str, typer.Option(help="what a tile may take")] = "400MiB",
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 2,
    only: Annotated[str, typer.Option(help="only this network")] = "",
    alone: Annotated[bool, typer.Option("--alone", help="of a graph that no memory holds")] = False,
    child_: Annotated[str, typer.Option("--child", hidden=True)] = "",
) -> None:
    """Print the table."""
    if child_:
        print(json.dumps(child(json.loads(child_))))
        return
    limit = None if unlimited else memory
    with limited(limit):
        # Where there is no limit, that is known at once.
        folder.mkdir(parents=True, exist_ok=True)
    rmat.write(folder / "edges.npy", nodes, edges)
    features(folder, nodes)
    view = Table("run", "time", "of the processor", "memory", "over memory", "difference")
    view.title = f"Memory: {limit or 'not limited'}"
    found = measured(folder, "partition", limit, nodes=nodes, parts=parts)
    view.add_row(f"{edges:,} edges, {parts} parts", *_shown(found))
    if alone:
        (folder / "edges.npy").unlink()
        own = {"name": "GCN", "threads": threads, "tiles": tiles}
        view.add_row("GCN, out of core", *_shown(measured(folder, "out of core", limit, **own)))
        count, worst = at_some_nodes(folder)
        view.add_row(f"at {count:,} nodes", "", "", "", "", f"{worst:.0e}")
    for name in () if alone else ("GCN", "SAGE", "GAT"):
        if only in name:
            whole = measured(folder, "in memory", name=name, threads=threads)
            own = {"name": name, "threads": threads, "tiles": tiles}
            found = measured(folder, "out of core", limit, **own)
            view.add_row(f"{name}, in memory", *_shown(whole))
            ratio = f"{found['wall'] / whole['wall']:.2f}"
            view.add_row(
                f"{name}, out of core", *_shown(found), ratio, f"{difference(folder, name):.0e}"
            )
    Console().print(view)


def _shown(found: dict[str, float]) -> tuple[str, str, str]:
    return f"{found['wall']:.1f} s", f"{found['cpu']:.1f} s", f"{found['rss'] / 2**20:.0f} MiB"


if __name__ == "__main__":
    typer.run(main)
