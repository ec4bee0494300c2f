"""Interfaces of operators whose results are their operands in another place, shape or number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set

from xdsl.ir import Operation

from .nests.nest import Indices, Nest


class AliasInterface(Operation, ABC):
    """An operator whose result may be a part of the buffer of its first operand."""

    @property
    def is_alias(self) -> bool:
        """Whether the result is a part of the first operand's buffer, perhaps in another shape.

        Outside of kernels the operator then needs no code.
        """
        return True


def is_alias(op: Operation) -> bool:
    """Whether the result of an operation is a part of its first operand's buffer."""
    return isinstance(op, AliasInterface) and op.is_alias


class ReshapeInterface(Operation, ABC):
    """An operator whose result has the elements of its first operand in the same order."""

    @abstractmethod
    def result_index(self, nest: Nest, index: Indices) -> Indices | None:
        """Where in the result the element of the first operand at an index is.

        None where that takes sizes that are not known.
        """


class BatchInterface(Operation, ABC):
    """An operator that may work on many slices at once."""

    @abstractmethod
    def may_batch(self, operands: Set[int]) -> bool:
        """Whether the operands of these numbers may have one more dimension in front.

        The result then has it too, and a slice of the result is that of slices.
        """
