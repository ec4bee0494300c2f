"""Demands of operators on what surrounds their kernels: operands to read, sizes to check or keep.

Indices, offsets and sizes in operands are arguments of a kernel, never computed inside it, because
they are read before it runs. Sizes in results are returned by the kernel that computes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation

from ...core.algebra.dims import Dim
from ..loop.arguments import SizeCondition


@dataclass(frozen=True)
class ReadOperand:
    """An operand that is read before the kernel runs."""

    operand: SSAValue


@dataclass(frozen=True)
class IndexBound(ReadOperand):
    """An operand with indices, the operand or result they point into, and its dimension."""

    into: SSAValue
    dimension: int


@dataclass(frozen=True)
class OffsetBound(ReadOperand):
    """An operand with offsets, the operand whose slices they delimit, and its dimension.

    Offsets never decrease, from 0 up to the size of the dimension.
    """

    into: SSAValue
    dimension: int


class SizeOperand(ReadOperand):
    """An operand that holds a size: see `ShapeFacts.size`."""


@dataclass(frozen=True)
class SizeResult:
    """A result that holds the size of others: see `ShapeFacts.size`."""

    result: SSAValue


@dataclass(frozen=True)
class SizeBound:
    """A dimension of an operand, the least size that it must have, and the largest, if any.

    Where that size is symbolic, it is checked before a kernel runs.
    """

    operand: SSAValue
    dimension: int
    least: int = 0
    most: int | None = None

    def conditions(self, op: IRDLOperation, size: Dim) -> Iterator[SizeCondition]:
        """The conditions of the operator on the size of the dimension."""
        named = [
            name
            for name, _ in op.get_irdl_definition().operands
            if self.operand in (v if isinstance(v := getattr(op, name), tuple) else (v,))
        ]
        what = f"dimension {self.dimension} of {named[0]}"
        if self.least > 0:
            yield SizeCondition(size, self.least, False, op.name, what)
        if self.most is not None:
            yield SizeCondition(size, self.most, True, op.name, what)


Demand = ReadOperand | SizeResult | SizeBound


class DemandInterface(Operation, ABC):
    """An operator that demands something from outside of its kernel."""

    @property
    @abstractmethod
    def demands(self) -> Sequence[Demand]:
        """The demands, in any order."""


_DemandT = TypeVar("_DemandT", bound=Demand)


def demands(op: Operation, kind: type[_DemandT]) -> list[_DemandT]:
    """The demands of one kind that an operation has."""
    if not isinstance(op, DemandInterface):
        return []
    return [demand for demand in op.demands if isinstance(demand, kind)]


def read_operands(op: Operation) -> set[SSAValue]:
    """The operands that are read before the kernel of an operation runs."""
    return {demand.operand for demand in demands(op, ReadOperand)}


def size_results(op: Operation) -> set[SSAValue]:
    """The results of an operation that hold the sizes of others."""
    return {demand.result for demand in demands(op, SizeResult)}
