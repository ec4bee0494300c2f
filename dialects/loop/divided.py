"""Rebuilding a serial loop as parts that run independently."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ...core.algebra.affine import rounded_up_quotient
from ...core.ir.typed import memref_type
from .attrs import LoopKind
from .loops import bound_of
from .nests import check_number, plain_loop, refusal
from .ops import ForOp, KernelOp
from .rebuild import Rebuild


def divisible_loop(step: str, kernel: KernelOp, loop: str, parts: int, chunk: int) -> ForOp:
    """The serial loop that a step divides into parts of at least a chunk of iterations.

    Raises:
        ScheduleError: if it is not one that carries nothing, or a number is too small or too large.
    """
    target = plain_loop(step, kernel, loop, [LoopKind.SERIAL])
    for name, value in (("number of parts", parts), ("chunk", chunk)):
        check_number(step, kernel, target, name, value)
    if len(bound_of(target)) > 1:
        raise refusal(step, kernel, target, "its bound is the smaller of several")
    return target


class Divided(Rebuild):
    """Divides a loop into at most `parts`, each of which stands for `chunk` iterations or more."""

    def __init__(self, kernel: KernelOp, target: ForOp, parts: int, chunk: int) -> None:
        super().__init__(kernel, [target])
        self.target, self.parts, self.chunk = target, parts, chunk

    def visit_for(self, op: ForOp) -> None:
        if op is self.target:
            self.divide(op, *self.bound(op))
        else:
            super().visit_for(op)

    def divide(self, op: ForOp, count: AffineExpr) -> None:
        """Emit what takes the place of the loop, which has `count` iterations."""
        raise NotImplementedError

    def number_of_parts(self, count: AffineExpr) -> AffineExpr:
        """The smaller of `parts` and the number of chunks."""
        chunks = rounded_up_quotient(count, self.chunk)
        if isinstance(chunks, AffineConstantExpr):
            return AffineExpr.constant(min(self.parts, chunks.value))
        return self.number(self.smallest([AffineExpr.constant(self.parts), chunks], self.target))

    def size_of_part(self, whole: AffineExpr, parts: AffineExpr) -> AffineExpr:
        """The size of a part of `whole`, rounded up."""
        if isinstance(parts, AffineConstantExpr):
            return rounded_up_quotient(whole, max(1, parts.value))
        one = self.compute(AffineExpr.constant(1))
        divisor = self.emit(arith.MaxSIOp(self.compute(parts), one)).results[0]
        return self.number(self.emit(arith.CeilDivSIOp(self.compute(whole), divisor)).results[0])

    def size_of(self, buffer: SSAValue, dimension: int) -> AffineExpr:
        """The size of a dimension of an old buffer."""
        extent = memref_type(buffer).get_shape()[dimension]
        if extent != DYNAMIC_INDEX:
            return AffineExpr.constant(extent)
        axis = self.compute(AffineExpr.constant(dimension))
        return self.number(self.emit(memref.DimOp(self.value(buffer), axis)).results[0])
