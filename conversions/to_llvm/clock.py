"""The clock that `rt.clock` reads, in the LLVM dialect."""

from __future__ import annotations

import time

from xdsl.dialects import llvm
from xdsl.dialects.builtin import SymbolRefAttr, i32, i64
from xdsl.ir import Block, Region

from ...dialects.rt import ops as rt
from ..convert_func_to_llvm import direct_call
from .checks import Assembler
from .types import PTR, int_attr

CLOCK = "rt_clock"
SYSTEM_CLOCK_TYPE = llvm.LLVMFunctionType([i32, PTR], i32)
_NANOSECONDS = 1_000_000_000


def clock() -> llvm.FuncOp:
    """A function without arguments that returns the nanoseconds of the system's steady clock."""
    block = Block()
    at = Assembler(block)
    properties = {"elem_type": i64, "alignment": int_attr(8, 64)}
    now = at.emit(llvm.AllocaOp, (at.integer(2),), PTR, properties)
    which = at.integer(time.CLOCK_MONOTONIC, i32)
    at.perform(direct_call(SymbolRefAttr(rt.SYSTEM_CLOCK), [which, now], i32))
    seconds = at.load(now, i64, 8)
    rest = at.load(at.at(now, at.integer(1), i64), i64, 8)
    whole = at.emit(llvm.MulOp, (seconds, at.integer(_NANOSECONDS)), i64)
    total = at.emit(llvm.AddOp, (whole, rest), i64)
    at.perform(llvm.ReturnOp.create(operands=[total]))
    return llvm.FuncOp(
        CLOCK, llvm.LLVMFunctionType([], i64), llvm.LinkageAttr("internal"), body=Region(block)
    )
