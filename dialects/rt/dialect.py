"""The `rt` dialect: what remains of a program without tensors and loop nests.

Why upstream is not enough: no standard dialect has a planned arena, a table of constants,
calls to functions registered at run time, checks that return an error number to the caller,
or tiles that several threads run. `memref.alloc` would hide the arena, `cf.assert` ends the
process, `omp` and `async` bring a run time of their own.

What lowers into it: `convert-graph-to-rt` makes the public function of these operations, with
buffers as arguments; `convert-loop-to-scf` makes `rt.parallel_tiles` from tile loops.

What it lowers to: `rt-outline-tiles` turns `rt.parallel_tiles` into a function and
`rt.call_tiles`; `convert-rt-to-llvm` does the rest, with `cf` and `func` for control flow.

The public function takes `!rt.context` first, then inputs, then results, all as buffers, and
returns an i32: 0 for success, `ARENA_TOO_SMALL` when the arena must grow (the bytes wanted are
then in the first detail), or the number of the operation that failed: operations that can fail
are numbered from 1 in the order in which `failing_operations` lists them.

The context is an array of 8-byte words, `Word` says which. Buffers are contiguous, row-major;
one passed to compiled code is its address followed by its symbolic sizes.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .attrs import ContextType
from .failures import IterationOp
from .ops_call import CallOp, CallPackedOp, CallTilesOp
from .ops_check import CheckCsrOp, CheckIndexOp, CheckOffsetsOp, CheckOp
from .ops_clock import ClockOp, RecordOp
from .ops_memory import ArenaOp, ConstantOp, SliceOp
from .ops_tiles import BarrierOp, CopyAsyncOp, ParallelTilesOp, ShuffleOp, YieldOp
from .ops_transfer import ToDeviceOp, ToHostOp

Rt = Dialect(
    "rt",
    [
        ConstantOp,
        ArenaOp,
        IterationOp,
        SliceOp,
        CallOp,
        CallPackedOp,
        CheckOp,
        CheckCsrOp,
        CheckIndexOp,
        CheckOffsetsOp,
        ParallelTilesOp,
        CallTilesOp,
        ClockOp,
        RecordOp,
        YieldOp,
        BarrierOp,
        CopyAsyncOp,
        ShuffleOp,
        ToDeviceOp,
        ToHostOp,
    ],
    [ContextType],
)
