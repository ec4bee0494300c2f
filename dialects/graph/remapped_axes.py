"""Operators on operands whose dimensions are permuted, or in blocks, from what properties say.

A trait declares which properties hold axes, or a number for each dimension. The operator on such
operands is then the same one with these properties remapped: `TransposableInterface` and
`BlockableInterface` derive it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import OpTrait

from .attrs import i64_array, i64_attr, ints
from .interfaces import rank

Properties = dict[str, Attribute]


class AxesTrait(OpTrait, ABC):
    """Some properties of the operator say something of dimensions of its first operand."""

    @abstractmethod
    def transposed(self, op: Operation, order: Sequence[int]) -> Properties | None:
        """These properties for an operand whose dimension i was dimension order[i]."""

    @abstractmethod
    def blocked(self, op: Operation, axis: int) -> Properties | None:
        """These properties for an operand with blocks of an axis, which are a last dimension."""


@dataclass(frozen=True)
class HoldsAxis(AxesTrait):
    """A property holds one axis; a negative one counts from the back."""

    name: str = "axis"

    def transposed(self, op: Operation, order: Sequence[int]) -> Properties:
        return {self.name: i64_attr(list(order).index(self._axis(op)))}

    def blocked(self, op: Operation, axis: int) -> Properties | None:
        own = self._axis(op)
        return None if own == axis else {self.name: i64_attr(own)}

    def _axis(self, op: Operation) -> int:
        return cast("IntegerAttr", op.properties[self.name]).value.data % rank(op.operands[0])


@dataclass(frozen=True)
class HoldsAxes(AxesTrait):
    """A property holds some axes, which the result may lack; negative ones count from the back."""

    name: str = "axes"

    def transposed(self, op: Operation, order: Sequence[int]) -> Properties:
        own = self._axes(op)
        places = [place for place, axis in enumerate(order) if axis in own]
        return {self.name: i64_array(places)}

    def blocked(self, op: Operation, axis: int) -> Properties | None:
        own = self._axes(op)
        # One in front of the blocks would move them in the result.
        return {self.name: i64_array(own)} if all(one > axis for one in own) else None

    def _axes(self, op: Operation) -> list[int]:
        given = ints(cast("DenseArrayBase", op.properties[self.name]))
        return sorted(axis % rank(op.operands[0]) for axis in given)


@dataclass(frozen=True)
class HoldsNumbers(AxesTrait):
    """Properties hold a number for each dimension, or for each of the last ones.

    With the number `neutral` they leave a dimension as it is.
    """

    names: tuple[str, ...]
    neutral: int

    def transposed(self, op: Operation, order: Sequence[int]) -> Properties | None:
        front = self._front(op)
        if any(axis >= front for axis in order[:front]):
            return None
        places = [axis - front for axis in order[front:]]
        return self._changed(op, lambda numbers: [numbers[place] for place in places])

    def blocked(self, op: Operation, axis: int) -> Properties | None:
        place = axis - self._front(op)
        if place >= 0 and any(self._numbers(op, n)[place] != self.neutral for n in self.names):
            return None
        return self._changed(op, lambda numbers: [*numbers, self.neutral])

    def _front(self, op: Operation) -> int:
        """The number of dimensions of which nothing is said."""
        return rank(op.operands[0]) - len(self._numbers(op, self.names[0]))

    def _changed(self, op: Operation, change: Callable[[Sequence[int]], list[int]]) -> Properties:
        return {name: i64_array(change(self._numbers(op, name))) for name in self.names}

    def _numbers(self, op: Operation, name: str) -> Sequence[int]:
        return ints(cast("DenseArrayBase", op.properties[name]))


class TransposableInterface(Operation, ABC):
    """An operator that works on operands with permuted dimensions.

    Elementwise operators that read operands at their own index need not say so.
    """

    def on_transposed(self, order: Sequence[int]) -> Properties | None:
        """The properties with which the operator works on operands with permuted dimensions.

        Dimension i of each is then what dimension order[i] was, and so is that of the result if it
        has as many; one of fewer dimensions is as it was. None if that cannot be.

        Args:
            order: a permutation of the dimensions of all operands.
        """
        return _merged(self, lambda trait: trait.transposed(self, order))


class BlockableInterface(Operation, ABC):
    """An operator that works on operands with blocks of a dimension.

    Elementwise operators that read operands at their own index need not say so.
    """

    @property
    def in_blocks(self) -> Sequence[SSAValue]:
        """The operands that have blocks: all, or the first ones, where others stay as they are."""
        return self.operands

    def on_blocks(self, axis: int, size: int) -> Properties | None:
        """The properties with which the operator works on blocks of an axis.

        Operands `in_blocks` of shape ``[..., n, ...]`` then have the shape
        ``[..., n / size, ..., size]``, and so has the result. None if that cannot be.

        Args:
            axis: a dimension of these operands and of the result.
            size: the elements in a block, which divide the sizes of that dimension.
        """
        return _merged(self, lambda trait: trait.blocked(self, axis))


def _merged(op: Operation, remapped: Callable[[AxesTrait], Properties | None]) -> Properties | None:
    """The properties that the traits of an operator remap; None if one cannot, or there is none."""
    found = [remapped(trait) for trait in op.get_traits_of_type(AxesTrait)]
    known = [properties for properties in found if properties is not None]
    if not found or len(known) < len(found):
        return None
    return {name: value for properties in known for name, value in properties.items()}
