"""Programs that only move data, beside the same moves in NumPy, PyTorch and onnxruntime.

    python benchmarks/moves.py                    # everything, on one thread
    python benchmarks/moves.py --only transpose   # some cases

Single precision; bytes are those that have to be read and written, and the limit is a read of as
many. A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from harness import command, run
from operators import Built
from peers import Call, in_onnxruntime, one_node


@dataclass(frozen=True)
class Move(Built):
    """A move in each library; `onnx` is its operator and arguments."""

    tolerance: ClassVar[float] = 0.0
    numpy: Callable[..., np.ndarray] = field(kw_only=True)
    onnx: tuple[str, tuple[np.ndarray, ...], dict[str, Any]] = field(kw_only=True)

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        """The peers that are installed."""
        found = {"numpy": lambda: self.numpy(*arrays), **super().peers(arrays, threads)}
        kind, constants, attributes = self.onnx
        return found | in_onnxruntime(
            one_node(kind, arrays, constants, attributes), arrays, threads
        )

    def moved(self, arrays: Sequence[np.ndarray], result: np.ndarray) -> int:
        """The bytes that have to be read and written."""
        return result.nbytes + min(result.nbytes, sum(array.nbytes for array in arrays))


def transpose(shape: tuple[int, ...], order: Sequence[int]) -> Move:
    """The axes in another order."""
    return Move(
        (shape,),
        lambda b, x: b.transpose(x, list(order)),
        numpy=lambda x: np.ascontiguousarray(x.transpose(order)),
        torch=lambda x: x.permute(*order).contiguous(),
        onnx=("Transpose", (), {"perm": list(order)}),
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
        numpy=lambda x: x.take(indices, axis=axis),
        torch=in_torch,
        onnx=("Gather", (indices,), {"axis": axis}),
    )


def concat(shapes: tuple[tuple[int, ...], ...], axis: int) -> Move:
    """Two arrays, one after the other."""

    def in_torch(*arrays: Any) -> Any:
        import torch

        return torch.cat(arrays, axis)

    return Move(
        shapes,
        lambda b, *x: b.concat(list(x), axis),
        numpy=lambda *x: np.concatenate(x, axis),
        torch=in_torch,
        onnx=("Concat", (), {"axis": axis}),
    )


def cut(shape: tuple[int, int], starts: Sequence[int], steps: Sequence[int]) -> Move:
    """A strided part of a matrix."""
    parts = tuple(slice(a, None, s) for a, s in zip(starts, steps, strict=True))
    numbers = [np.array(v) for v in (starts, shape, (0, 1), steps)]
    return Move(
        (shape,),
        lambda b, x: b.slice(x, list(starts), list(shape), list(steps)),
        numpy=lambda x: np.ascontiguousarray(x[parts]),
        torch=lambda x: x[parts].contiguous(),
        onnx=("Slice", tuple(numbers), {}),
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
        numpy=lambda x: np.pad(x, pairs),
        torch=in_torch,
        onnx=("Pad", (np.array([*before, *before]),), {}),
    )


def stretch(shape: tuple[int, ...], wide: tuple[int, ...]) -> Move:
    """Copies along axes of size 1."""
    return Move(
        (shape,),
        lambda b, x: b.broadcast_to(x, list(wide)),
        numpy=lambda x: np.ascontiguousarray(np.broadcast_to(x, wide)),
        torch=lambda x: x.expand(*wide).contiguous(),
        onnx=("Expand", (np.array(wide),), {}),
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


if __name__ == "__main__":
    command("move", MOVES, run)
