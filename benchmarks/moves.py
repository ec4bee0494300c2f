"""Programs that only move data, beside the same moves in NumPy, PyTorch and onnxruntime.

    python benchmarks/moves.py                    # everything, on one thread
    python benchmarks/moves.py --only transpose   # some cases

Single precision; bytes are those that have to be read and written, and the limit is a read of as
many. A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from peers import (
    OURS,
    Call,
    Compared,
    installed,
    library_threads,
    missing,
    one_node,
    onnx_runtime,
    torch_call,
)
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import stepwell as sw
from stepwell.runtime.limits import Limits, known_limits
from stepwell.tools.timing import Timing, duration, measure

Case = TypeVar("Case")


@dataclass(frozen=True)
class Move:
    """A move in each library; `build` adds it to a module, `onnx` is its operator and arguments."""

    shapes: tuple[tuple[int, ...], ...]
    build: Callable[..., Any]
    numpy: Callable[..., np.ndarray]
    torch: Callable[..., Any]
    onnx: tuple[str, tuple[np.ndarray, ...], dict[str, Any]]

    def arrays(self) -> list[np.ndarray]:
        """The inputs."""
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, np.float32) for shape in self.shapes]

    def module(self) -> sw.Module:
        """The program."""
        b = sw.Builder("main")
        inputs = [b.input(f"x{n}", shape, "f32") for n, shape in enumerate(self.shapes)]
        b.output(self.build(b, *inputs), name="y")
        return b.module()

    def model(self) -> bytes:
        """The model for onnxruntime."""
        kind, constants, attributes = self.onnx
        return one_node(kind, self.arrays(), constants, attributes).SerializeToString()


def transpose(shape: tuple[int, ...], order: Sequence[int]) -> Move:
    """The axes in another order."""
    return Move(
        (shape,),
        lambda b, x: b.transpose(x, list(order)),
        lambda x: np.ascontiguousarray(x.transpose(order)),
        lambda x: x.permute(*order).contiguous(),
        ("Transpose", (), {"perm": list(order)}),
    )


def gather(shape: tuple[int, ...], count: int, axis: int) -> Move:
    """Rows, or elements of the last axis, by constant indices."""
    indices = np.random.default_rng(1).integers(0, shape[axis], count)

    def in_torch(x: Any) -> Any:
        import torch

        return torch.index_select(x, axis, torch.from_numpy(indices))

    return Move(
        (shape,),
        lambda b, x: b.gather(x, b.constant(indices), axis=axis),
        lambda x: x.take(indices, axis=axis),
        in_torch,
        ("Gather", (indices,), {"axis": axis}),
    )


def concat(shapes: tuple[tuple[int, ...], ...], axis: int) -> Move:
    """Two arrays, one after the other."""

    def in_torch(*arrays: Any) -> Any:
        import torch

        return torch.cat(arrays, axis)

    return Move(
        shapes,
        lambda b, *x: b.concat(list(x), axis),
        lambda *x: np.concatenate(x, axis),
        in_torch,
        ("Concat", (), {"axis": axis}),
    )


def cut(shape: tuple[int, int], starts: Sequence[int], steps: Sequence[int]) -> Move:
    """A strided part of a matrix."""
    parts = tuple(slice(a, None, s) for a, s in zip(starts, steps, strict=True))
    numbers = [np.array(v) for v in (starts, shape, (0, 1), steps)]
    return Move(
        (shape,),
        lambda b, x: b.slice(x, list(starts), list(shape), list(steps)),
        lambda x: np.ascontiguousarray(x[parts]),
        lambda x: x[parts].contiguous(),
        ("Slice", tuple(numbers), {}),
    )


def pad(shape: tuple[int, ...], width: int) -> Move:
    """Zeros padded around the last two axes."""
    before = [0] * (len(shape) - 2) + [width] * 2
    pairs = [(n, n) for n in before]

    def in_torch(x: Any) -> Any:
        from torch.nn.functional import pad as torch_pad

        return torch_pad(x, [width] * 4)

    return Move(
        (shape,),
        lambda b, x: b.pad(x, before, before),
        lambda x: np.pad(x, pairs),
        in_torch,
        ("Pad", (np.array([*before, *before]),), {}),
    )


def stretch(shape: tuple[int, ...], wide: tuple[int, ...]) -> Move:
    """Copies along axes of size 1."""
    return Move(
        (shape,),
        lambda b, x: b.broadcast_to(x, list(wide)),
        lambda x: np.ascontiguousarray(np.broadcast_to(x, wide)),
        lambda x: x.expand(*wide).contiguous(),
        ("Expand", (np.array(wide),), {}),
    )


MOVES: dict[str, Move] = {
    "transpose 512 x 512": transpose((512, 512), (1, 0)),
    "transpose 2048 x 2048": transpose((2048, 2048), (1, 0)),
    "transpose 10000 x 64": transpose((10000, 64), (1, 0)),
    "transpose 64 x 10000": transpose((64, 10000), (1, 0)),
    "transpose 501 x 397": transpose((501, 397), (1, 0)),
    "NCHW to NHWC, 4 x 64 x 56 x 56": transpose((4, 64, 56, 56), (0, 2, 3, 1)),
    "NHWC to NCHW, 4 x 56 x 56 x 64": transpose((4, 56, 56, 64), (0, 3, 1, 2)),
    "NCHW to NHWC, 1 x 3 x 224 x 224": transpose((1, 3, 224, 224), (0, 2, 3, 1)),
    "NHWC to NCHW, 1 x 224 x 224 x 3": transpose((1, 224, 224, 3), (0, 3, 1, 2)),
    "heads apart, 8 x 128 x 12 x 64": transpose((8, 128, 12, 64), (0, 2, 1, 3)),
    "keys, 8 x 128 x 12 x 64": transpose((8, 128, 12, 64), (0, 2, 3, 1)),
    "gather 4096 rows of 30000 x 256": gather((30000, 256), 4096, 0),
    "gather 100 of the last of 4096 x 256": gather((4096, 256), 100, 1),
    "concat rows, 1000 and 500 x 256": concat(((1000, 256), (500, 256)), 0),
    "concat columns, 1000 x 256 and 100": concat(((1000, 256), (1000, 100)), 1),
    "slice of rows 2048 x 512": cut((2048, 512), (0, 0), (2, 1)),
    "slice of columns 2048 x 512": cut((2048, 512), (0, 17), (1, 1)),
    "every second column 2048 x 512": cut((2048, 512), (0, 0), (1, 2)),
    "pad 64 x 56 x 56": pad((64, 56, 56), 1),
    "stretch rows 1 x 512": stretch((1, 512), (1024, 512)),
    "stretch columns 1024 x 1": stretch((1024, 1), (1024, 512)),
}


@dataclass(frozen=True)
class Result(Compared):
    """The times of each library, in seconds, the bytes moved, and peers with a wrong result."""

    case: str
    moved: int
    times: dict[str, Timing]
    wrong: frozenset[str] = frozenset()


def run(name: str, move: Move, threads: int) -> Result:
    """Time one move.

    Raises:
        SystemExit: if the result of a peer differs.
    """
    arrays = move.arrays()
    exe = sw.compile(move.module(), threads=threads)
    calls: dict[str, Call] = {
        OURS: lambda: exe(*arrays),
        "numpy": lambda: move.numpy(*arrays),
    }
    if installed("torch"):
        calls["torch"] = torch_call(move.torch, arrays, threads)
    if installed("onnxruntime"):
        calls["onnxruntime"] = onnx_runtime(move.model(), arrays, threads)
    expected = calls[OURS]()
    for peer, call in calls.items():
        if not np.array_equal(np.asarray(call()), expected):
            raise SystemExit(f"{name}: {peer} has a different result")
    with library_threads(threads):
        times = measure(calls)
    return Result(
        name, expected.nbytes + min(expected.nbytes, sum(a.nbytes for a in arrays)), times
    )


def table(kind: str, results: Sequence[Result], limits: Limits) -> Table:
    """The results as a table to read; `kind` is the title of the cases."""
    peers = list(dict.fromkeys(p for r in results for p in (*r.times, *r.wrong) if p != OURS))
    view = Table(kind, OURS, "GB/s", "of limit", *peers, "ratio to best")
    for r in results:
        cells = [_cell(r, peer) for peer in peers]
        ratio = f"{r.ratio:.2f}" if r.ratio * 1.3 >= 1 else f"[red]{r.ratio:.2f}[/]"
        ours = r.times[OURS]
        rate = f"{r.moved / ours.median / 1e9:.0f}"
        _, least = limits.seconds(0, r.moved, r.moved)
        view.add_row(r.case, str(ours), rate, f"{least / ours.median:.0%}", *cells, ratio)
    return view


def _cell(result: Result, peer: str) -> str:
    """A peer's time, or why it has none."""
    if peer in result.times:
        return duration(result.times[peer].median)
    return "wrong result" if peer in result.wrong else ""


def show(
    kind: str,
    cases: Mapping[str, Case],
    run: Callable[[str, Case, int], Any],
    threads: int,
    only: str,
    view: Callable[[str, Sequence[Any], Limits], Table] = table,
) -> None:
    """Run the cases with a text in their names, and print the table that `view` makes."""
    console = Console(width=140)
    chosen = {name: case for name, case in cases.items() if only in name}
    if not chosen:
        raise typer.BadParameter(f'no {kind} has "{only}" in its name: {", ".join(cases)}')
    if missing():
        console.print(f"not installed, left out: {', '.join(missing())}")
    results: list[Any] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(chosen))
        for name, case in chosen.items():
            progress.update(task, description=name)
            results.append(run(name, case, threads))
            progress.advance(task)
    console.print(view(kind, results, known_limits(threads)))


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only the moves with this text in their names")] = "",
) -> None:
    """Print the table."""
    show("move", MOVES, run, threads, only)


if __name__ == "__main__":
    typer.run(main)
