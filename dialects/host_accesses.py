"""The buffers that the host reads and writes where it executes the public function of a program."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ..core.ir.symbols import find_symbol
from ..core.ir.typed import memref_type
from .loop.ops import KernelOp
from .rt import ops as rt


def host_reads(op: Operation) -> list[SSAValue]:
    """The buffers that the host reads to execute an operation.

    A store to one of several elements leaves the others as they are, which is to read them.
    """
    match op:
        case memref.LoadOp():
            return [op.memref]
        case memref.StoreOp() if memref_type(op.memref).get_num_dims():
            return [op.memref]
        case memref.CopyOp():
            return [op.source]
        case rt.CheckCsrOp() | rt.CheckIndexOp() | rt.CheckOffsetsOp():
            return _buffers(op.operands)
        case rt.CallPackedOp():
            return _buffers(op.inputs)
        case rt.CallOp() if (kernel := _on_host(op)) is not None:
            return _buffers(op.arguments[: len(kernel.inputs)])
        case _:
            return []


def host_writes(op: Operation) -> list[SSAValue]:
    """The buffers that the host writes to where it executes an operation."""
    match op:
        case memref.StoreOp():
            return [op.memref]
        case memref.CopyOp():
            return [op.destination]
        case rt.CallPackedOp():
            return _buffers(op.outputs)
        case rt.CallOp() if (kernel := _on_host(op)) is not None:
            return _buffers(op.arguments[len(kernel.inputs) :])
        case _:
            return []


def _on_host(call: rt.CallOp) -> KernelOp | None:
    """The kernel that a call runs on the host; None for a function, whose operations are seen."""
    callee = find_symbol(call, call.callee)
    return callee if isinstance(callee, KernelOp) and call.writes is None else None


def _buffers(values: Iterable[SSAValue]) -> list[SSAValue]:
    return [value for value in values if isinstance(value.type, MemRefType)]
