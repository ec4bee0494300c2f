"""Convolutions on a device: a tile of pixels and channels of the result for each block.

Of each input channel, or block of them, the threads copy the pixels and the weights that the tile
needs to shared memory. It is a product whose rows are never written down. Tiles divide the sizes,
so that nothing remains.
"""

from __future__ import annotations

import math

from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp, LocalOp
from ....dialects.loop.proofs.levels import SHARED_BYTES, WARP, space_of
from .schedule import Schedule

ROWS, COLUMNS = 16, 16
"""The most rows and columns of pixels of a tile."""
OWN_ROWS, OWN_CHANNELS = 4, 8
"""The most of its rows and channels that a thread has: each pixel that it reads is for all of these
channels, each weight for all of these rows."""
MOST_WINDOW = 64
"""The most terms of a window: it is unrolled, and spills if it is larger."""
GROUPS = 2
"""The most groups of so many channels of a tile."""


def schedule_block_convolution(schedule: Schedule, nest: str) -> str | None:
    """Schedule a convolution of two dimensions; return the reason, None where it does not fit.

    Channels are outside of pixels, or blocks of them inside.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    while schedule.takes(schedule.sink, loops[-1].loop_name.data):
        # A bias is loaded outside of pixels.
        loops = perfect_nest(schedule.for_loop(nest))
    sizes = [extent_of(loop) or 0 for loop in loops]
    reductions = [op for op in loops[-1].body.block.ops if isinstance(op, ForOp)]
    if len(loops) not in (4, 5) or len(reductions) != 1 or not _is_window(reductions[0]):
        return None
    names = [loop.loop_name.data for loop in loops]
    row, column, channel = (2, 3, 1) if len(loops) == 4 else (2, 3, 4)
    high, wide = _divisor(sizes[row], ROWS), _divisor(sizes[column], COLUMNS)
    tall, own = _divisor(high, OWN_ROWS), _divisor(sizes[channel], OWN_CHANNELS)
    groups = _divisor(sizes[channel] // max(1, own), GROUPS)
    if own < 2 or high // max(1, tall) * wide * groups < WARP:
        return None
    rows, columns = schedule.split(names[row], high), schedule.split(names[column], wide)
    own_rows = schedule.split(rows.inner, tall)
    channels = schedule.split(names[channel], own * groups)
    own_channels = schedule.split(channels.inner, own)
    others = [name for n, name in enumerate(names) if n not in (row, column, channel)]
    blocks = [*others, channels.outer, rows.outer, columns.outer]
    threads = [own_channels.outer, own_rows.outer, columns.inner]
    schedule.reorder(*blocks, *threads, own_rows.inner, own_channels.inner)
    schedule.bind(*blocks, level="blocks")
    schedule.bind(*threads)
    schedule.unroll(own_rows.inner)
    schedule.unroll(own_channels.inner)
    schedule.stage_panels(reductions[0].loop_name.data)
    if _shared_bytes(schedule.for_loop(blocks[0])) > SHARED_BYTES:
        return None
    return f"{high} x {wide} pixels of {own * groups} channels for each block"


def _is_window(reduction: ForOp) -> bool:
    """Whether a reduction has others in it, as over the rows and columns of a small window."""
    inner = [op for op in reduction.body.block.ops if isinstance(op, ForOp)]
    if not reduction.is_reduction or len(inner) != 1 or not inner[0].is_reduction:
        return False
    window = [op for op in inner[0].walk() if isinstance(op, ForOp)]
    return math.prod(extent_of(op) or MOST_WINDOW + 1 for op in window) <= MOST_WINDOW


def _divisor(size: int, most: int) -> int:
    """The largest divisor of a size up to a number; 0 of none."""
    return max((n for n in range(1, most + 1) if size and size % n == 0), default=0)


def _shared_bytes(blocks: ForOp) -> int:
    """The bytes of the buffers of a block."""
    buffers = [op for op in blocks.walk() if isinstance(op, LocalOp) and space_of(op) is not None]
    kinds = [memref_type(op.result) for op in buffers]
    return sum(math.prod(kind.get_shape()) * byte_size(kind.element_type) for kind in kinds)
