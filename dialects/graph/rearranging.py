"""Interfaces of operators whose results are their operands in another place, shape or number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set

from xdsl.ir import Operation, SSAValue

from .nests.nest import Indices, Nest


class AliasInterface(Operation, ABC):
    """An operator whose result may be in a buffer together with operands."""

    @property
    def is_alias(self) -> bool:
        """Whether the result is a part of the first operand's buffer, perhaps in another shape.

        Outside of kernels the operator then needs no code.
        """
        return True

    @property
    def offsets(self) -> Sequence[int] | None:
        """Where in the result each operand begins, if it is a range of its elements, in order.

        None if one is not, or not known to be. Else kernels can compute the operands in the buffer
        of the result, and outside of kernels the operator then needs no code.
        """
        return None


def is_alias(op: Operation) -> bool:
    """Whether the result of an operation is a part of its first operand's buffer."""
    return isinstance(op, AliasInterface) and op.is_alias


class PlacementInterface(Operation, ABC):
    """An operator whose result has each element of its first operand in one place."""

    @abstractmethod
    def result_index(self, nest: Nest, index: Indices) -> Indices | None:
        """Where in the result the element of the first operand at an index is.

        None where that takes sizes that are not known.
        """


class ReshapeInterface(PlacementInterface):
    """An operator whose result has the elements of its first operand in the same order."""


class FrameInterface(PlacementInterface):
    """An operator whose result is its operand with other elements around it."""

    @property
    @abstractmethod
    def margins(self) -> Sequence[tuple[int, int]]:
        """The number of elements before and after the operand in each dimension."""

    @property
    @abstractmethod
    def has_constant_frame(self) -> bool:
        """Whether the elements around the operand are one constant."""

    @abstractmethod
    def fill(self, nest: Nest) -> SSAValue:
        """That constant."""


def is_framed(op: object) -> bool:
    """Whether the result of an operation is its operand with a constant around it."""
    return isinstance(op, FrameInterface) and op.has_constant_frame


class BatchInterface(Operation, ABC):
    """An operator that may work on many slices at once."""

    @abstractmethod
    def may_batch(self, operands: Set[int]) -> bool:
        """Whether the operands of these numbers may have one more dimension in front.

        The result then has it too, and a slice of the result is that of slices.
        """
