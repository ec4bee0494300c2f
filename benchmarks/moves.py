"""Programs that only move data, beside the same moves in NumPy, PyTorch and onnxruntime.

Single precision; bytes are those that have to be read and written, and the limit is a read of as
many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from harness import Make, Table, run
from onnx_writer import Node
from operators import operator

move: Callable[..., Make] = partial(operator, reads_all=False, tolerance=0.0)


def transpose(shape: tuple[int, ...], *order: int) -> Make:
    """The axes in another order."""
    return move(
        (shape,),
        Node("Transpose", {"perm": order}),
        lambda b, x: b.transpose(x, order),
        lambda t, x: x.permute(*order).contiguous(),
        lambda x: np.ascontiguousarray(x.transpose(order)),
    )


def gather(shape: tuple[int, ...], count: int, axis: int) -> Make:
    """Rows, or elements of the last axis, by constant indices."""
    indices = np.random.default_rng(1).integers(0, shape[axis], count)
    return move(
        (shape,),
        Node("Gather", {"axis": axis}, (indices,)),
        lambda b, x: b.gather(x, b.constant(indices), axis=axis),
        lambda t, x: t.index_select(x, axis, t.from_numpy(indices)),
        lambda x: x.take(indices, axis=axis),
    )


def concat(axis: int, *shapes: tuple[int, ...]) -> Make:
    return move(
        shapes,
        Node("Concat", {"axis": axis}),
        lambda b, *x: b.concat(list(x), axis),
        lambda t, *x: t.cat(x, axis),
        lambda *x: np.concatenate(x, axis),
    )


def cut(shape: tuple[int, int], starts: Sequence[int], steps: Sequence[int]) -> Make:
    """A strided part of a matrix."""
    parts = tuple(slice(a, None, s) for a, s in zip(starts, steps, strict=True))
    return move(
        (shape,),
        Node("Slice", {}, tuple(map(np.array, (starts, shape, (0, 1), steps)))),
        lambda b, x: b.slice(x, starts, shape, steps),
        lambda t, x: x[parts].contiguous(),
        lambda x: np.ascontiguousarray(x[parts]),
    )


def pad(shape: tuple[int, ...], width: int) -> Make:
    """Zeros padded around the last two axes."""
    before = [0] * (len(shape) - 2) + [width] * 2
    return move(
        (shape,),
        Node("Pad", {}, (np.array([*before, *before]),)),
        lambda b, x: b.pad(x, before, before),
        lambda t, x: t.nn.functional.pad(x, [width] * 4),
        lambda x: np.pad(x, [(n, n) for n in before]),
    )


def stretch(shape: tuple[int, ...], wide: tuple[int, ...]) -> Make:
    """Copies along axes of size 1."""
    return move(
        (shape,),
        Node("Expand", {}, (np.array(wide),)),
        lambda b, x: b.broadcast_to(x, wide),
        lambda t, x: x.expand(*wide).contiguous(),
        lambda x: np.ascontiguousarray(np.broadcast_to(x, wide)),
    )


CASES: dict[str, Make] = {
    "transpose 512 x 512": transpose((512, 512), 1, 0),
    "transpose 2048 x 2048": transpose((2048, 2048), 1, 0),
    "transpose 10000 x 64": transpose((10000, 64), 1, 0),
    "transpose 64 x 10000": transpose((64, 10000), 1, 0),
    "transpose 501 x 397": transpose((501, 397), 1, 0),
    "NCHW to NHWC, 4 x 64 x 56 x 56": transpose((4, 64, 56, 56), 0, 2, 3, 1),
    "NHWC to NCHW, 4 x 56 x 56 x 64": transpose((4, 56, 56, 64), 0, 3, 1, 2),
    "NCHW to NHWC, 1 x 3 x 224 x 224": transpose((1, 3, 224, 224), 0, 2, 3, 1),
    "NHWC to NCHW, 1 x 224 x 224 x 3": transpose((1, 224, 224, 3), 0, 3, 1, 2),
    "heads apart, 8 x 128 x 12 x 64": transpose((8, 128, 12, 64), 0, 2, 1, 3),
    "keys, 8 x 128 x 12 x 64": transpose((8, 128, 12, 64), 0, 2, 3, 1),
    "gather 4096 rows of 30000 x 256": gather((30000, 256), 4096, 0),
    "gather 100 of the last of 4096 x 256": gather((4096, 256), 100, 1),
    "concat rows, 1000 and 500 x 256": concat(0, (1000, 256), (500, 256)),
    "concat columns, 1000 x 256 and 100": concat(1, (1000, 256), (1000, 100)),
    "slice of rows 2048 x 512": cut((2048, 512), (0, 0), (2, 1)),
    "slice of columns 2048 x 512": cut((2048, 512), (0, 17), (1, 1)),
    "every second column 2048 x 512": cut((2048, 512), (0, 0), (1, 2)),
    "pad 64 x 56 x 56": pad((64, 56, 56), 1),
    "stretch rows 1 x 512": stretch((1, 512), (1024, 512)),
    "stretch columns 1024 x 1": stretch((1024, 1), (1024, 512)),
}
TABLES = [Table("move", CASES, run)]
