"""Searches in the index arrays of sparse matrices."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, Region, SSAValue

from ...core.building.arithmetic import INDEX
from ...core.typed import memref_type
from ...dialects import upstream
from ...dialects.loop import ops as loop
from .indices import ZERO, Form
from .statements import Statements


class Searches(Statements):
    """The conversion of operations that read row pointers."""

    def entry(self, buffer: SSAValue, place: Form) -> Form:
        """An element of a row pointer or index array, which is not negative."""
        emit = self.emitter
        operands = self.buffers.operands(self.scalar(buffer), (place,), False)
        kind = memref_type(buffer).element_type
        value = emit.emit(memref.LoadOp, operands, [kind]).results[0]
        index = emit.emit(upstream.IndexCastOp, [value], [INDEX]).results[0]
        return self.indices.atom(index, nonnegative=True)

    def partition_point(self, op: Operation) -> bool:
        """`loop.partition_point`: a binary search, without a branch on what it finds.

        The row is one of `left` rows from `first` on, or the one after them. A step looks at
        the last row of their first half, and goes on with as many as are in the other half.
        Where to is masked by a sign: of a choice LLVM would make a branch, which goes the wrong
        way half of the time.
        """
        assert isinstance(op, loop.PartitionPointOp)
        emit, indices = self.emitter, self.indices
        rows = self.form(op.rows)
        aim = indices.value(self._aim(op, self._cost(op, rows)))
        before, after = IRBlock(arg_types=[INDEX, INDEX]), IRBlock(arg_types=[INDEX, INDEX])
        emit.open(before)
        more = emit.compare("ne", before.args[1], emit.index(0))
        emit.emit(scf.ConditionOp, [more, *before.args])
        emit.close()
        emit.open(after)
        first, left = (indices.atom(arg, nonnegative=True) for arg in after.args)
        half = indices.divide(left + 1, 2)
        cost = indices.value(self._cost(op, first + half - 1))
        sign = emit.pure(arith.SubiOp, [cost, aim], INDEX)
        below = emit.pure(arith.ShRSIOp, [sign, emit.index(63)], INDEX)
        taken = indices.atom(emit.pure(arith.AndIOp, [indices.value(half), below], INDEX))
        emit.emit(scf.YieldOp, [indices.value(form) for form in (first + taken, left - half)])
        emit.close()
        start = [indices.value(ZERO), indices.value(rows)]
        regions = [Region(before), Region(after)]
        found = emit.emit(upstream.WhileOp, start, [INDEX, INDEX], regions=regions)
        self.values[op.result] = indices.atom(found.results[0], True, indices.facts.of(rows)[1])
        return True

    def _cost(self, op: loop.PartitionPointOp, row: Form) -> Form:
        """The cost of the rows before a row."""
        return self.entry(op.indptr, row) + row * op.weight.value.data

    # c * p >= t * a  ==  c >= t * (a div p) + (t * (a mod p)) ceildiv p
    def _aim(self, op: loop.PartitionPointOp, total: Form) -> Form:
        """The least that the rows before a part cost, without products that overflow."""
        emit, indices = self.emitter, self.indices
        part, parts = self.form(op.part), self.form(op.parts)
        operands = [indices.value(total), indices.value(parts)]
        whole, rest = (
            indices.atom(emit.pure(kind, operands, INDEX), nonnegative=True)
            for kind in (arith.DivUIOp, arith.RemUIOp)
        )
        operands[0] = indices.value(part * rest + parts - 1)
        above = indices.atom(emit.pure(arith.DivUIOp, operands, INDEX), nonnegative=True)
        return part * whole + above
