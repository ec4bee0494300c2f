"""The place of the largest or smallest element along an axis: `arg_reduce`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.irdl import operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from .....core.algebra.dims import Dim, Shape
from .....core.errors import explain
from .....core.ir.typed import dense_array
from ...attrs import NUMERIC_TENSOR, ReduceKind, ReduceKindAttr, is_float
from ...axes import AxisOp
from ...combiners import COMBINER_OF, COMBINERS
from ...constructors import operator
from ...demands import DemandInterface, SizeBound
from ...interfaces import FusionKind, Indices, Nest, ShapeFacts, element_type, widened
from ...nests import scalars

if TYPE_CHECKING:
    from ...interfaces import Array

_I32_MAX = (1 << 31) - 1


@operator(axis=-1, keepdims=False, last=False)
class ArgReduceOp(AxisOp, DemandInterface):
    """The place of the maximum or minimum along an axis, an i64.

    Of several places the first one, with `last` the last one; a NaN counts as the extremum, as in
    NumPy. An empty axis is an error.

    %y = graph.arg_reduce max %x axis = 1 keepdims = false last = false
        : (tensor<4x3xf32>) -> tensor<4xi64>
    """

    name = "graph.arg_reduce"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    kind = prop_def(ReduceKindAttr)
    keepdims = prop_def(IntegerAttr.constr(i1))
    last = prop_def(IntegerAttr.constr(i1))
    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$kind $x `axis` `=` $axis `keepdims` `=` $keepdims `last` `=` $last attr-dict `:` "
        "functional-type(operands, results)"
    )

    def verify_(self) -> None:
        if self.kind.data not in (ReduceKind.MAX, ReduceKind.MIN):
            got = self.kind.data.value
            raise VerifyException(explain(self.name, "wrong kind", expected="max, min", got=got))
        super().verify_()

    def infer_element_types(self) -> list[Attribute]:
        return [i64]

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        return (SizeBound(self.x, self.axis_from_front, 1),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        axis = self.axis_from_front
        if x[axis] == 0:
            facts.fail("a place in an empty axis", "a size of 1 or more", 0)
        one = (Dim.of(1),) if self.keepdims.value.data else ()
        return [(*x[:axis], *one, *x[axis + 1 :])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, axis = widened(dense_array(arrays[0])), self.axis_from_front
        find = np.argmax if self.kind.data == ReduceKind.MAX else np.argmin
        keep = bool(self.keepdims.value.data)
        if not self.last.value.data:
            return self.stored(find(x, axis=axis, keepdims=keep))
        return self.stored(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=keep))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        axis, combiner = self.axis_from_front, COMBINER_OF[self.kind.data]
        element = element_type(self.x)
        type = nest.compute_type(element)
        extent = nest.extent(self.x, axis)
        rest = index[axis + 1 :] if self.keepdims.value.data else index[axis:]
        short = isinstance(extent, AffineConstantExpr) and extent.value <= _I32_MAX
        place_type = i32 if short else i64
        chosen = COMBINERS["max" if self.last.value.data else "min"]

        def key(place: Indices) -> SSAValue:
            return combiner.key(nest, nest.at(self.x, (*index[:axis], *place, *rest)), element)

        def better(place: Indices, best: SSAValue) -> SSAValue:
            return combiner.step(nest, best, key(place))

        def found(place: Indices, best: SSAValue) -> SSAValue:
            x = key(place)
            own = scalars.from_index(nest, nest.value(place[0]), place_type)
            candidate = scalars.select(nest, self._is(nest, x, extremum), own, none)
            return chosen.step(nest, best, candidate)

        extremum = nest.reduce([extent], combiner.name, combiner.init(nest, type), better)
        count = scalars.from_index(nest, nest.value(extent), place_type)
        none = nest.constant(-1, place_type) if self.last.value.data else count
        place = nest.reduce([extent], chosen.name, none, found)
        return scalars.convert(nest, place, place_type, i64)

    @staticmethod
    def _is(nest: Nest, x: SSAValue, extremum: SSAValue) -> SSAValue:
        """Whether an element is the extremum, or a NaN, as the extremum is if there is one."""
        same = scalars.equal(nest, x, extremum)
        if not is_float(x.type):
            return same
        is_nan = nest.insert(arith.CmpfOp(x, x, "une"))
        return nest.insert(arith.OrIOp(same, is_nan))
