"""Operators along one axis, or several: the property, its range check and its canonical form."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import prop_def, traits_def

from .attrs import I64_ARRAY, i64_array, i64_attr, ints
from .interfaces import GraphOp, ShapeFacts, rank, unknown_sizes
from .remapped_axes import HoldsAxes, HoldsAxis


def shape_along(axis: int, rank: int) -> list[int]:
    """The shape of a vector along an axis, counted from the front, that broadcasts to a tensor."""
    return [-1, *[1] * (rank - axis - 1)]


class CanonicalPropertiesInterface(Operation, ABC):
    """An operator whose properties can mean the same with different values, such as axes."""

    @abstractmethod
    def canonical_properties(self) -> dict[str, Attribute]:
        """Properties in canonical form, to which `graph-canonicalize-ops` brings them."""


class AxisOp(GraphOp, CanonicalPropertiesInterface, ABC):
    """An operator along one axis of its first operand; a negative one counts from the back.

    An axis out of range is an error. The canonical form counts from the front.
    """

    traits = traits_def(HoldsAxis())

    axis = prop_def(IntegerAttr.constr(i64))

    @property
    def axis_from_front(self) -> int:
        """The axis, counted from the front."""
        return self.axis.value.data % rank(self.operands[0])

    def canonical_properties(self) -> dict[str, Attribute]:
        return {"axis": i64_attr(self.axis_from_front)}

    def infer_types(self) -> list[TensorType]:
        if self.operands:
            facts = ShapeFacts(self, unknown_sizes())
            facts.axis(self.axis.value.data, rank(self.operands[0]))
        return super().infer_types()


class AxesOp(GraphOp, CanonicalPropertiesInterface, ABC):
    """An operator along some axes of its first operand; negative ones count from the back.

    An axis out of range is an error, and so is one that is named twice. The canonical form
    counts from the front, in ascending order.
    """

    traits = traits_def(HoldsAxes())

    axes = prop_def(I64_ARRAY)

    @property
    def axes_from_front(self) -> tuple[int, ...]:
        """The axes counted from the front, in ascending order."""
        return tuple(sorted(axis % rank(self.operands[0]) for axis in ints(self.axes)))

    def canonical_properties(self) -> dict[str, Attribute]:
        return {"axes": i64_array(self.axes_from_front)}

    def infer_types(self) -> list[TensorType]:
        facts, given = ShapeFacts(self, unknown_sizes()), ints(self.axes)
        axes = [facts.axis(axis, rank(self.operands[0])) for axis in given]
        if len(set(axes)) != len(axes):
            facts.fail("an axis is named twice", "axes that differ", list(given))
        return super().infer_types()
