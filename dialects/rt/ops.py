"""All of the `rt` dialect, under the one name by which others import it.

from stepwell.dialects.rt import ops as rt

arena = rt.ArenaOp(context, size)
"""

from __future__ import annotations

from .abi import (
    ARENA_TOO_SMALL,
    BARRIER,
    COPIED_BYTES,
    COPY,
    DETAIL_WORDS,
    ITERATION_WORDS,
    LAUNCH,
    PARALLEL_TILES,
    RECORD_WORDS,
    SHUFFLE,
    SYSTEM_ABORT,
    SYSTEM_ALLOCATE,
    SYSTEM_CLOCK,
    SYSTEM_FREE,
    THREAD,
    THREADS,
    TO_DEVICE,
    TO_HOST,
    WORDS,
    TileOrder,
    Word,
)
from .attrs import ARENA_TYPE, ContextType
from .buffers import verify_contiguous, verify_index_buffer
from .failures import FailingOp, IterationOp, failing_operations, iterations_around
from .ops_call import CalleeExists, CallOp, CallPackedOp, CallTilesOp
from .ops_check import CheckCsrOp, CheckIndexOp, CheckOffsetsOp, CheckOp, DropTrueCheck
from .ops_clock import ClockOp, RecordOp
from .ops_memory import ArenaOp, ConstantOp, SliceOp
from .ops_tiles import (
    BarrierOp,
    CaptureConstant,
    CopyAsyncOp,
    DropCapture,
    ParallelTilesOp,
    ShuffleOp,
    YieldOp,
)
from .ops_transfer import ToDeviceOp, ToHostOp
from .statuses import CallFailure

__all__ = [
    "ARENA_TOO_SMALL",
    "ARENA_TYPE",
    "BARRIER",
    "COPIED_BYTES",
    "COPY",
    "DETAIL_WORDS",
    "ITERATION_WORDS",
    "LAUNCH",
    "PARALLEL_TILES",
    "RECORD_WORDS",
    "SHUFFLE",
    "SYSTEM_ABORT",
    "SYSTEM_ALLOCATE",
    "SYSTEM_CLOCK",
    "SYSTEM_FREE",
    "THREAD",
    "THREADS",
    "TO_DEVICE",
    "TO_HOST",
    "WORDS",
    "ArenaOp",
    "BarrierOp",
    "CallFailure",
    "CallOp",
    "CallPackedOp",
    "CallTilesOp",
    "CalleeExists",
    "CaptureConstant",
    "CheckCsrOp",
    "CheckIndexOp",
    "CheckOffsetsOp",
    "CheckOp",
    "ClockOp",
    "ConstantOp",
    "ContextType",
    "CopyAsyncOp",
    "DropCapture",
    "DropTrueCheck",
    "FailingOp",
    "IterationOp",
    "ParallelTilesOp",
    "RecordOp",
    "ShuffleOp",
    "SliceOp",
    "TileOrder",
    "ToDeviceOp",
    "ToHostOp",
    "Word",
    "YieldOp",
    "failing_operations",
    "iterations_around",
    "verify_contiguous",
    "verify_index_buffer",
]
