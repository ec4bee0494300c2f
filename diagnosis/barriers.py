"""Barriers that are missing in blocks of threads, which no interpreter notices.

Interpreters run the ranges of threads of a block one after the other, so they need no barriers.
Where threads have to wait is derived here from the operations of stage `loops`, and not from the
loops that the conversion to them sees: what that one forgets is found.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from ..backends.reference.lockstep_scf import VIEWS, stored_to
from ..core.ir.walks import operations_in
from ..dialects.program import PARTS
from ..dialects.rt import ops as rt

_NO_ACCESSES = (*VIEWS, memref.DimOp, rt.ParallelTilesOp, rt.ShuffleOp)


def unordered(module: ModuleOp) -> Operation | None:
    """The first operation of a block of threads that needs an `rt.barrier` before it and has none.

    It reads a buffer that an operation since the last barrier writes, or writes one that such an
    operation accesses. None if there is no such operation.
    """
    for op in operations_in(module):
        # A block of one thread has no ranges.
        if isinstance(op, rt.ParallelTilesOp) and op.block is not None and op.block.value.data > 1:
            accesses = _Accesses()
            accesses.run(op.body.block.ops)
            if accesses.late is not None:
                return accesses.late
    return None


class _Accesses:
    """The buffers that have been accessed since the last barrier.

    Attributes:
        late: the first operation that accesses one of them, and may not yet.
    """

    def __init__(self) -> None:
        self.late: Operation | None = None
        self._read, self._written = set[SSAValue](), set[SSAValue]()

    def run(self, ops: Iterable[Operation]) -> None:
        """Note the accesses of operations of all threads."""
        for op in ops:
            if isinstance(op, rt.BarrierOp):
                self._read, self._written = set(), set()
            elif op.regions and not isinstance(op, rt.ParallelTilesOp):
                self._run_regions(op)
            else:
                self._add(op)

    def _run_regions(self, op: Operation) -> None:
        before = self._read, self._written
        read, written = set(self._read), set(self._written)
        for region in op.regions:
            self._read, self._written = map(set, before)
            # An iteration of a loop follows another. There may be none at all.
            for _ in range(1 if isinstance(op, scf.IfOp) else 2):
                self.run(inner for block in region.blocks for inner in block.ops)
            read |= self._read
            written |= self._written
        self._read, self._written = read, written

    def _add(self, op: Operation) -> None:
        read, written = _accessed(op)
        if written & (self._read | self._written) or read & self._written:
            self.late = self.late or op
        self._read |= read
        self._written |= written


def _accessed(op: Operation) -> tuple[set[SSAValue], set[SSAValue]]:
    """The buffers that an operation reads and those that it writes, which other threads access."""
    read, written = set[SSAValue](), set[SSAValue]()
    shared: dict[SSAValue, SSAValue] = {}
    if isinstance(op, rt.ParallelTilesOp):
        shared = dict(zip(op.captured, op.captures, strict=True))
    for inner in operations_in(op):
        if isinstance(inner, _NO_ACCESSES):
            continue
        stored = stored_to(inner)
        for operand in inner.operands:
            buffer = _whole(operand)
            if buffer is None or (inner is not op and buffer not in shared):
                continue
            (written if operand is stored else read).add(shared.get(buffer, buffer))
    return read, written


def _whole(value: SSAValue) -> SSAValue | None:
    """The buffer that a value is a view of; None of what is none, and of a part of a thread."""
    while isinstance(owner := value.owner, VIEWS):
        if PARTS in owner.attributes:
            return None
        value = owner.operands[0]
    return value if isinstance(value.type, MemRefType) else None
