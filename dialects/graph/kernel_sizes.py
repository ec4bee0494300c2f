"""The sizes of the loops of a kernel, in those of the operands of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ...core.dims import Dim, size_of_argument
from ...core.typed import memref_type
from ..loop.bounds import constant_index
from ..loop.ops import ForOp, KernelOp
from ..sparse_tensor import is_sparse, part_count


class NoValueError(Exception):
    """A kernel has no value at an index; the text says why."""


@dataclass(frozen=True)
class Part:
    """What an argument of a kernel is of the tensor that is passed.

    `place` is 0 for the elements of a dense tensor; for a CSR matrix 0 to 3 are its row
    pointers, column indices, values and number of columns.
    """

    operand: int
    place: int


class KernelSizes:
    """The sizes of a kernel, in ``x0.1``: dimension 1 of the first operand.

    Args:
        kernel: the kernel.
        kinds: the types of the tensors that a call of it passes.

    Raises:
        NoValueError: if it has another number of buffers.
    """

    def __init__(self, kernel: KernelOp, kinds: Sequence[TensorType]) -> None:
        self.kinds, self.parts = kinds, _parts(kernel, kinds)

    def extent(self, loop: ForOp) -> Dim:
        """The number of iterations of a loop over a bound.

        Raises:
            NoValueError: if it does not follow from the sizes of the operands.
        """
        if len(loop.bound.data.results) != 1:
            raise NoValueError("the end of a loop is a minimum")
        return self.dim(loop.bound.data.results[0], loop.bounds)

    def dim(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Dim:
        """An expression over sizes as a size, in ``x0.1``: dimension 1 of the first operand."""
        match expr:
            case AffineConstantExpr():
                return Dim.of(expr.value)
            case AffineDimExpr():
                return self._size(operands[expr.position])
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
                return self.dim(expr.lhs, operands) + self.dim(expr.rhs, operands)
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
                return self.dim(expr.lhs, operands) * self.dim(expr.rhs, operands)
        raise NoValueError("the end of a loop is no sum of sizes")

    def _size(self, value: SSAValue) -> Dim:
        constant = constant_index(value)
        if constant is not None:
            return Dim.of(constant)
        if value in self.parts:
            return Dim.symbol(size_of_argument(self.parts[value].operand, 1))
        owner = value.owner
        if isinstance(owner, memref.DimOp) and owner.source in self.parts:
            dimension = constant_index(owner.index)
            if dimension is not None:
                return self._buffer_size(owner.source, dimension)
        if isinstance(owner, (arith.AddiOp, arith.SubiOp, arith.MuliOp)):
            left, right = self._size(owner.lhs), self._size(owner.rhs)
            if isinstance(owner, arith.MuliOp):
                return left * right
            return left + right if isinstance(owner, arith.AddiOp) else left - right
        raise NoValueError("the end of a loop is not known from the sizes of its operands")

    def _buffer_size(self, buffer: SSAValue, dimension: int) -> Dim:
        size = memref_type(buffer).get_shape()[dimension]
        if size >= 0:
            return Dim.of(size)
        part = self.parts[buffer]
        if not is_sparse(self.kinds[part.operand]):
            return Dim.symbol(size_of_argument(part.operand, dimension))
        if part.place != 0:
            raise NoValueError("the end of a loop is a number of stored entries")
        return Dim.symbol(size_of_argument(part.operand, 0)) + 1


def _parts(kernel: KernelOp, kinds: Sequence[TensorType]) -> dict[SSAValue, Part]:
    places = [
        Part(number, place)
        for number, kind in enumerate(kinds)
        for place in range(part_count(kind))
    ]
    if len(places) != len(kernel.inputs):
        raise NoValueError("it is called with another number of buffers")
    return dict(zip(kernel.inputs, places, strict=True))
