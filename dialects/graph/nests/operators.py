"""`OperatorBody`: what an operator writes its loops with, over any nest.

`written` runs `GraphOp.write` with it, and with the buffers of the operands and of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.errors import UnsupportedError, explain
from ....core.ir.provenance import origin
from ...sparse_tensor import is_sparse
from ..attrs import compute_type
from ..interfaces import GraphOp, element_type, faults_of, rank
from .body import KernelBody
from .buffers import Buffer, Elements, Index, Matrix, Row, Scalar
from .nest import Indices, PlaceSteps, WritingNest


def written(op: GraphOp, nest: WritingNest) -> None:
    """Let an operator write its loops into a nest.

    Raises:
        UnsupportedError: if it does something that it may not, or raises something.
    """
    k = OperatorBody(op, nest)
    operands = [getattr(op, name) for name, _ in op.get_irdl_definition().operands]
    results = [getattr(op, name) for name, _ in op.get_irdl_definition().results]
    numbers = iter(range(len(op.results)))
    with faults_of(op):
        op.write(
            k,
            *(_each(given, k.operand) for given in operands),
            *(_each(given, lambda _: k.result(next(numbers))) for given in results),
        )


def _each(given: Any, buffer: Callable[[SSAValue], Any]) -> Any:
    """The buffer of a value, None for one that is left out, a tuple for several ones."""
    if isinstance(given, Sequence):
        return tuple(buffer(value) for value in given)
    return None if given is None else buffer(given)


class OperatorBody(KernelBody):
    """Writes the loops of an operator.

    Attributes:
        op: the operator.
    """

    nest: WritingNest

    def __init__(self, op: GraphOp, nest: WritingNest) -> None:
        self.op, self.nest = op, nest

    def error(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> UnsupportedError:
        """An error that names the operator and its node."""
        where = origin(self.op)
        return UnsupportedError(
            explain(self.op.name, fact, expected=expected, got=got, origin=where, hint=hint)
        )

    def local_sizes(self, sizes: Sequence[int | Index]) -> Sequence[int | Index]:
        # No local buffer is empty.
        return [size or 1 for size in sizes]

    def operand(self, value: SSAValue) -> Buffer | SparseOperand:
        """An operand, whose elements are read where they are, or computed there."""
        if is_sparse(value.type):
            return SparseOperand(self, value)
        return self._buffer(value, _Operand(self, value))

    def result(self, number: int) -> Buffer:
        """A result, each of whose elements is written once, or filled and updated."""
        return self._buffer(self.op.results[number], _ResultElements(self, number))

    def _buffer(self, value: SSAValue, elements: Elements) -> Buffer:
        name, sizes = value.name_hint or "", _Sizes(self, value)
        return Buffer(self, name, element_type(value), elements, rank(value), lambda: sizes)

    def extent(self, value: SSAValue, axis: int) -> int | Index:
        """The size of a dimension."""
        expr = self.nest.extent(value, axis)
        return expr.value if isinstance(expr, AffineConstantExpr) else Index(self, expr)


class _Sizes(Sequence[int | Index]):
    """The sizes of an operand or a result, each of which is looked up where it is used."""

    def __init__(self, k: OperatorBody, value: SSAValue) -> None:
        self.k, self.value = k, value

    def __len__(self) -> int:
        return rank(self.value)

    @overload
    def __getitem__(self, axis: int) -> int | Index: ...
    @overload
    def __getitem__(self, axis: slice) -> Sequence[int | Index]: ...
    def __getitem__(self, axis: int | slice) -> Any:
        if isinstance(axis, slice):
            return [self.k.extent(self.value, own) for own in range(len(self))[axis]]
        return self.k.extent(self.value, range(len(self))[axis])


class _Operand(Elements):
    def __init__(self, k: OperatorBody, value: SSAValue) -> None:
        self.k, self.value, self.type = k, value, compute_type(element_type(value))

    def at(self, index: Indices) -> SSAValue:
        return self.k.nest.at(self.value, index)

    def put(self, index: Indices, value: SSAValue) -> None:
        raise self.k.error("writes to an operand", "to a result")

    def update(self, index: Indices, value: SSAValue, combine: str | None) -> None:
        self.put(index, value)

    def fill(self, shape: Sequence[int | Index], value: Callable[[Indices], SSAValue]) -> None:
        raise self.k.error("fills an operand", "a result")


class _ResultElements(Elements):
    def __init__(self, k: OperatorBody, number: int) -> None:
        self.k, self.number = k, number
        self.type = k.nest.compute_type(element_type(k.op.results[number]))

    def at(self, index: Indices) -> SSAValue:
        raise self.k.error("reads a result", "an operand, or a local buffer")

    def put(self, index: Indices, value: SSAValue) -> None:
        self.k.nest.write(self.number, index, value)

    def update(self, index: Indices, value: SSAValue, combine: str | None) -> None:
        self.k.nest.update(self.number, index, value, combine)

    def fill(self, shape: Sequence[int | Index], value: Callable[[Indices], SSAValue]) -> None:
        self.k.nest.fill(self.number, value)


class SparseOperand(Matrix):
    """A sparse operand of an operator, which is read by the entries of its rows."""

    def __init__(self, k: OperatorBody, value: SSAValue) -> None:
        self.k, self.value = k, value

    @property
    def shape(self) -> tuple[int | Index, int | Index]:
        return self.k.extent(self.value, 0), self.k.extent(self.value, 1)

    def row(self, index: Index | int) -> Row:
        return Row(self, self.k.index(index))

    def count(self, row: Index) -> Index:
        """The number of stored entries of a row."""
        return Index(self.k, self.k.nest.count(self.value, row.expr))

    def stored(self, position: AffineExpr) -> Scalar:
        return Scalar(self.k, self.k.nest.stored_entry(self.value, position))

    def fold(
        self,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        return self.k.nest.pattern_several(self.value, row, combines, inits, step)
