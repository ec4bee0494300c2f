"""Clocks around the calls of the public function, and a table of their times."""

from __future__ import annotations

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func, llvm, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...core.errors import explain
from ...core.ir.context import weights_of
from ...core.ir.public_function import is_public
from ...core.pipelines.budgets import EXACT
from ...dialects.program import is_on_buffers
from ...dialects.rt import ops as rt

TABLE = "profile"
"""The name of the table among the constants of the program, or its prefix."""

_CHECKS = (rt.CheckCsrOp, rt.CheckIndexOp, rt.CheckOffsetsOp)
_COPIES = (memref.CopyOp, rt.ToDeviceOp, rt.ToHostOp)
_TIMED = (rt.CallOp, rt.CallPackedOp, *_CHECKS, *_COPIES)


def timed_operations(function: Operation) -> list[Operation]:
    """The timed operations of the public function, in the order of the rows of the table."""
    return [op for op in function.walk() if isinstance(op, _TIMED)]


def _instrument(function: func.FuncOp, key: str, slot: int) -> None:
    """Time operations of a function, and the function as a whole in the last row."""
    timed = timed_operations(function)
    block = function.body.block
    table = MemRefType(i64, [len(timed) + 1, rt.RECORD_WORDS])
    times, start = rt.ConstantOp(block.args[0], slot, key, table), rt.ClockOp()
    Rewriter.insert_op([times, start], InsertPoint.at_start(block))
    for row, op in enumerate(timed):
        since = rt.ClockOp()
        record = rt.RecordOp(since, times, row)
        since.location = record.location = op.location
        Rewriter.insert_op(since, InsertPoint.before(op))
        Rewriter.insert_op(record, InsertPoint.after(op))
    last = block.last_op
    assert last is not None
    Rewriter.insert_op(rt.RecordOp(start, times, len(timed)), InsertPoint.before(last))


class RtProfilePass(ModulePass):
    """Time each call, check and copy of the public function; times go to a table of constants.

    Row n of the table times the n-th of them, the last row the whole function.

    Before:
    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>) -> i32 {
      rt.call @k(%x) : memref<4xf32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    func.func private @k(memref<4xf32>)
    ```
    After:
    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>) -> i32 {
      %times = rt.constant %ctx, 0 "profile" : memref<2x2xi64>
      %start = rt.clock : i64
      %since = rt.clock : i64
      rt.call @k(%x) : memref<4xf32>
      rt.record %since, %times 0 : memref<2x2xi64>
      %ok = arith.constant 0 : i32
      rt.record %start, %times 1 : memref<2x2xi64>
      func.return %ok : i32
    }
    func.func private @k(memref<4xf32>)
    ```
    Requires: `convert-graph-to-rt`, and not yet `rt-outline-tiles`; with `stepwell.compile` not yet
        `convert-loop-to-scf`.
    Leaves: all other operations unchanged.
    """

    name = "rt-profile"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        slots = {c.slot.value.data for c in op.walk() if isinstance(c, rt.ConstantOp)}
        weights = weights_of(ctx)
        functions = [f for f in op.ops if isinstance(f, func.FuncOp) and is_public(f)]
        for function in filter(is_on_buffers, functions):
            if any(isinstance(inner, llvm.LoadOp) for inner in function.walk()):
                fact, expected = "slots are already addresses", "a pass before convert-rt-to-llvm"
                raise PassFailedException(explain(self.name, fact, expected=expected))
            rows = len(timed_operations(function)) + 1
            key = weights.add(TABLE, np.zeros((rows, rt.RECORD_WORDS), np.int64))
            _instrument(function, key, len(slots))
