"""What operations of the `rt` dialect require of buffers and tables."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr, i32, i64
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ...core.errors import explain
from .abi import TABLE_WORDS


def verify_contiguous(op: Operation, buffer: MemRefType) -> None:
    """Raise where a buffer has a layout or a memory space: compiled code has neither."""
    if isinstance(buffer.layout, NoneAttr) and isinstance(buffer.memory_space, NoneAttr):
        return
    raise VerifyException(f"{op.name}: buffer is not contiguous, expected no layout, got {buffer}")


def verify_index_buffer(op: Operation, buffer: MemRefType) -> None:
    """Raise where a buffer does not hold i32 or i64."""
    verify_contiguous(op, buffer)
    if buffer.element_type not in (i32, i64):
        raise VerifyException(
            f"{op.name}: wrong element type, expected i32 or i64, got {buffer.element_type}"
        )


def verify_slot(op: Operation, slot: IntegerAttr) -> None:
    """Raise where a table of the context cannot have an entry."""
    number = slot.value.data
    if not 0 <= number < TABLE_WORDS:
        expected = f"0 <= slot < {TABLE_WORDS}"
        raise VerifyException(explain(op.name, "wrong slot", expected=expected, got=number))
