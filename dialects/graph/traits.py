"""Facts that operators state of the numbers that they compute, for rewrites.

A fact of a class is a trait, `traits = traits_def(NeverNegative())`, which `op.has_trait` finds.
Where properties or operands decide, it is an interface: a base class beside `GraphOp` with one
answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import OpTrait

from .kinds import Precision


@dataclass(frozen=True)
class NeverNegative(OpTrait):
    """No element of a result is less than 0; it may be -0.0 or NaN."""


@dataclass(frozen=True)
class KeepsNonnegative(OpTrait):
    """No element of a result is less than 0 where none of the operands is."""


class SignInterface(Operation, ABC):
    """An operator whose properties or operands decide whether a result is negative."""

    @abstractmethod
    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        """Whether no element of a result is less than 0, from whether that is known of operands.

        Nothing is known of operands that are not floats, as sums of integers may wrap around.
        """


@dataclass(frozen=True)
class Homogeneous(OpTrait):
    """It has one operand, is elementwise, and ``f(s * x) == s * f(x)`` for s > 0."""


@dataclass(frozen=True)
class Discontinuous(OpTrait):
    """A result jumps where a float operand moves by a rounding, as that of `floor` does.

    Without this trait a result jumps where it is something other than floats: truth
    values, integers, quantised numbers.
    """

    operands: tuple[int, ...] | None = None
    """The numbers of the operands with which a result jumps; None: all of them."""


class OrderStatisticInterface(Operation, ABC):
    """An operator that may choose elements of its first operand by their order."""

    @property
    @abstractmethod
    def is_order_statistic(self) -> bool:
        """Whether each element of the result is one of the first operand's, chosen by its order.

        Their maximum is one: an increasing function may be applied to the result instead of to
        the operand.
        """


@dataclass(frozen=True)
class HalfPrecision(OpTrait):
    """Whether the operator may work on numbers of 16 bits.

    Without this trait it follows its operands if it only moves elements; else it never does.
    """

    policy: Precision


@dataclass(frozen=True)
class ReadsPattern(OpTrait):
    """Of its first operand, a sparse matrix, it reads the pattern alone."""


@dataclass(frozen=True)
class TakesEntries(OpTrait):
    """It reads the stored values of its first operand, a sparse matrix, or its last operand in
    their place, which is optional."""


@dataclass(frozen=True)
class RecomputeCost(OpTrait):
    """The cost of computing one element, where the recorded one misleads."""

    operations: int
    """A number of simple operations."""


@dataclass(frozen=True)
class AddedByPasses(OpTrait):
    """It assumes facts of its operands that bodies and passes know: no builder has its method."""
