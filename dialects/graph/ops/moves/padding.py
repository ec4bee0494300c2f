"""What operators that pad a tensor with a constant have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def

from .....core.dtypes import LOW_BIT_FLOATS, dtype_of, integer_range, is_low_bit
from .....core.ir.typed import integer_type
from ...attrs import NUMBER, STORED_TENSOR, is_float, number_attr
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type
from ...nests import scalars
from ...nests.guards import clamped, guarded, is_inside


class PaddingOp(GraphOp, HasCanonicalizationPatternsInterface):
    """x with elements around it that are `value`.

    That is an f64, or an i64 for integers and truth values, or a ui64 for larger ones.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    value = prop_def(NUMBER)
    x = operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

    @property
    def number(self) -> float | int:
        """`value`, which is a float for floats and an integer for the others."""
        return cast("FloatAttr | IntegerAttr", self.value).value.data

    def check_value(self, facts: ShapeFacts) -> None:
        """Require that `value` is one of the element type."""
        element = element_type(self.x)
        if _is_float(element) != isinstance(self.value, FloatAttr):
            expected = "an f64" if _is_float(element) else "an i64"
            facts.fail(f"value has the wrong type for {element}", expected, self.value)
        if _is_float(element):
            return
        limits = integer_range(integer_type(element))
        if not limits[0] <= self.number <= limits[1]:
            fact = f"value does not fit {element}"
            facts.fail(fact, f"{limits[0]} to {limits[1]}", self.number)

    def padded(self, x: np.ndarray, margins: Sequence[tuple[int, int]]) -> np.ndarray:
        """An array with so many elements `value` before and after it in each dimension."""
        with np.errstate(over="ignore"):
            fill = np.array(self.number).astype(x.dtype)
        return np.pad(x, margins, mode="constant", constant_values=fill)

    def padded_at(self, nest: Nest, index: Indices, starts: Mapping[int, AffineExpr]) -> SSAValue:
        """The element at an index where x begins at these places of axes, `value` around it."""
        fill = self.fill(nest)
        extents = [nest.extent(self.x, axis) for axis in range(len(index))]
        if any(isinstance(e, AffineConstantExpr) and e.value == 0 for e in extents):
            return fill
        inside: SSAValue | None = None
        own, unknown = list(index), []
        for axis, start in starts.items():
            here = is_inside(nest, index[axis], start, extents[axis])
            inside = here if inside is None else nest.insert(arith.AndIOp(inside, here))
            if isinstance(extent := extents[axis], AffineConstantExpr):
                own[axis] = clamped(nest, index[axis], start, extent)
            else:
                own[axis] = index[axis] + start * -1
                unknown.append(axis)
        if inside is None:
            return nest.at(self.x, index)
        return scalars.select(nest, inside, self._read(nest, own, unknown, inside), fill)

    def _read(
        self, nest: Nest, own: Sequence[AffineExpr], unknown: Sequence[int], inside: SSAValue
    ) -> SSAValue:
        """The element of x at `own`, whose `unknown` parts are in bounds only if `inside`."""
        if not unknown:
            return nest.at(self.x, tuple(own))

        def read(zero: AffineExpr) -> SSAValue:
            return nest.at(
                self.x, tuple(e + zero if i in unknown else e for i, e in enumerate(own))
            )

        return guarded(nest, inside, read, element_type(self.x))

    def fill(self, nest: Nest) -> SSAValue:
        """`value` as it is stored: rounded to the element type, in which it may be infinite."""
        element = element_type(self.x)
        if is_low_bit(element):
            return scalars.literal(nest, self.number, element)
        with np.errstate(over="ignore"):
            return scalars.literal(
                nest, np.array(self.number).astype(dtype_of(element)).item(), element
            )


def value_property(x: SSAValue | Operation, value: float | int) -> FloatAttr | IntegerAttr:
    """The property `value` of an operator that pads x."""
    real = _is_float(element_type(SSAValue.get(x)))
    return number_attr(float(value) if real else int(value))


def _is_float(element: Attribute) -> bool:
    return is_float(element) or element in LOW_BIT_FLOATS
