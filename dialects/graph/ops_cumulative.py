"""Operators whose elements depend on those before them: cumulative sums, products and extrema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from ...core.dims import Shape
from ...core.errors import explain
from ...core.typed import dense_array
from .attrs import NUMERIC_TENSOR, ReduceKind, ReduceKindAttr, is_float
from .axes import AxisOp
from .combiners import COMBINER_OF
from .constructors import operator
from .interfaces import (
    FusionKind,
    Index,
    ShapeFacts,
    element_type,
    rank,
    widened,
)
from .nests.nest import WritingNest

if TYPE_CHECKING:
    from .interfaces import Array

_KINDS = (ReduceKind.SUM, ReduceKind.PROD, ReduceKind.MAX, ReduceKind.MIN)


@operator(axis=-1, exclusive=False, reverse=False)
class CumulativeOp(AxisOp):
    """The sum, product, maximum or minimum of all elements up to each one along an axis.

    With `exclusive` the element itself is left out, so that the first one is 0, 1, -inf or inf
    (the limits of integers); with `reverse` the axis is followed from its end. f16 is accumulated
    in f32, and integers wrap around.

    %y = graph.cumulative sum %x axis = 1 exclusive = false reverse = false
        : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.cumulative"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    kind = prop_def(ReduceKindAttr)
    exclusive = prop_def(IntegerAttr.constr(i1))
    reverse = prop_def(IntegerAttr.constr(i1))
    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$kind $x `axis` `=` $axis `exclusive` `=` $exclusive `reverse` `=` $reverse attr-dict "
        "`:` functional-type(operands, results)"
    )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def verify_(self) -> None:
        if self.kind.data not in _KINDS:
            expected = ", ".join(kind.value for kind in _KINDS)
            got = self.kind.data.value
            raise VerifyException(explain(self.name, "wrong kind", expected=expected, got=got))
        super().verify_()

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, axis = widened(dense_array(arrays[0])), self.axis_from_front
        combiner = COMBINER_OF[self.kind.data]
        ahead = np.flip(x, axis) if self.reverse.value.data else x
        with np.errstate(all="ignore"):
            found = combiner.ufunc.accumulate(ahead, axis, dtype=x.dtype)
        if self.exclusive.value.data:
            first = list(x.shape)
            first[axis] = min(1, first[axis])
            begin = np.full(first, combiner.first(x.dtype), x.dtype)
            before = np.take(found, range(found.shape[axis] - first[axis]), axis)
            found = np.concatenate([begin, before], axis)
        return self.stored(np.flip(found, axis) if self.reverse.value.data else found)

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        axis, dims = self.axis_from_front, range(rank(self.x))
        combiner, element = COMBINER_OF[self.kind.data], element_type(self.x)
        extent, type = nest.extent(self.x, axis), nest.compute_type(element)
        init = combiner.key(nest, combiner.init(nest, type), element)
        if self.kind.data == ReduceKind.SUM and is_float(type) and not self.exclusive.value.data:
            # -0.0 + x == x  for every x, -0.0 included
            init = nest.constant(-0.0, type)
        with nest.loops([nest.extent(self.x, dim) for dim in dims if dim != axis]) as rest:

            def step(place: AffineExpr, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
                own = extent - 1 - place if self.reverse.value.data else place
                index: Index = (*rest[:axis], own, *rest[axis:])
                total = combiner.joined(nest, totals[0], nest.at(self.x, index), element)
                nest.write(0, index, totals[0] if self.exclusive.value.data else total)
                return [total]

            nest.serial(extent, [init], step)
