"""Copies between the host and the device: which buffers host code touches, and when.

Kernels on a device read and write its memory. What they write and the arena are newest there:
whatever the host writes is copied to the device at once, and what it reads is copied from there,
unless nothing has run on the device since it was. Inputs are copied before their first use on the
device, results at the end; constants are on both.

This goes by buffers in program order, and needs no lifetimes: views of the arena may overlap, as
slots are reused, and each copy is right whatever else is in its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ...core.ir.walks import operations_in
from ...dialects.host_accesses import host_reads, host_writes
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream

_VIEWS = (memref.CastOp, memref.ViewOp, upstream.ReinterpretCastOp, rt.SliceOp)


def place_copies(body: Region, inputs: Iterable[SSAValue], results: Sequence[SSAValue]) -> int:
    """Insert copies into the body of a function, if some of its kernels run on a device.

    Args:
        body: one block, in which calls of these kernels say so.
        inputs: the buffers of its arguments, which nobody writes to.
        results: the buffers of its results.

    Returns:
        How many copies there are.
    """
    if not any(map(_is_on_device, operations_in(body))):
        return 0
    copies, block = _Copies(body, inputs), body.block
    copies.place_inputs(block)
    fresh, last = copies.place(block), block.last_op
    assert last is not None
    copies.to_host([result for result in results if result not in fresh], last)
    return copies.count


class _Copies:
    def __init__(self, body: Region, inputs: Iterable[SSAValue]) -> None:
        self.count = 0
        self._inputs = set(inputs)
        self._on_device = set(_on_device(body))

    def place_inputs(self, block: Block) -> None:
        """Copy inputs to the device before the first operation of a block that passes them on."""
        known = set[SSAValue]()
        for op in list(block.ops):
            for root in dict.fromkeys(_passed_on(op)):
                if root in self._inputs and root not in known:
                    known.add(root)
                    self._insert(rt.ToDeviceOp(root), op)

    def place(self, block: Block) -> set[SSAValue]:
        """Copy what the host reads and writes in a block.

        Returns:
            The buffers whose contents are the same on both at the end.
        """
        fresh = set[SSAValue]()
        for op in list(block.ops):
            reads, writes = host_reads(op), host_writes(op)
            self.to_host([buffer for buffer in reads if buffer not in fresh], op)
            fresh.update(reads, writes)
            for buffer in filter(self._is_shared, writes):
                assert op.next_op is not None
                self._insert(rt.ToDeviceOp(buffer), op.next_op)
            for region in op.regions:
                for inner in region.blocks:
                    self.place(inner)
            if op.regions or _is_on_device(op):
                fresh.clear()
        return fresh

    def to_host(self, buffers: Iterable[SSAValue], op: Operation) -> None:
        """Copy buffers to the host before an operation, but for those that are always there."""
        for buffer in filter(self._is_shared, dict.fromkeys(buffers)):
            self._insert(rt.ToHostOp(buffer), op)

    def _is_shared(self, buffer: SSAValue) -> bool:
        """Whether both the host and the device may write to a buffer."""
        root = _root(buffer)
        is_constant = root in self._inputs or isinstance(root.owner, rt.ConstantOp)
        return root in self._on_device and not is_constant

    def _insert(self, copy: rt.ToDeviceOp | rt.ToHostOp, before: Operation) -> None:
        block = before.parent
        assert block is not None
        copy.location = before.location
        block.insert_op_before(copy, before)
        self.count += 1


def _is_on_device(op: Operation) -> bool:
    return isinstance(op, rt.CallOp) and op.writes is not None


def _root(buffer: SSAValue) -> SSAValue:
    """The buffer that another one is a view of; the context for all views of its arena."""
    while isinstance(owner := buffer.owner, _VIEWS):
        buffer = owner.operands[0]
    return owner.context if isinstance(owner, rt.ArenaOp) else buffer


def _on_device(body: Region) -> Iterator[SSAValue]:
    """The roots of the buffers that a device may touch.

    What control flow carries on may be any of those that reach it.
    """
    for op in operations_in(body):
        yield from _passed_on(op)
        yield from op.results if op.regions else ()
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _passed_on(op: Operation) -> Iterator[SSAValue]:
    """The roots of the buffers that an operation, and those in it, pass to a device, or to another
    block."""
    for inner in operations_in(op):
        if _is_on_device(inner) or inner.regions or inner.has_trait(IsTerminator):
            for operand in inner.operands:
                if isinstance(operand.type, MemRefType):
                    yield _root(operand)
