"""Operators whose elements depend on those before them: cumulative sums, products and extrema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.irdl import operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from .....core.algebra.dims import Shape
from .....core.errors import explain
from .....core.ir.typed import dense_array
from ...attrs import NUMERIC_TENSOR, ReduceKind, ReduceKindAttr, is_float
from ...axes import AxisOp
from ...combiners import COMBINER_OF
from ...constructors import operator
from ...interfaces import FusionKind, ShapeFacts, element_type, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar

if TYPE_CHECKING:
    from ...interfaces import Array

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

    def write(self, k: KernelBody, x: Buffer, result: Buffer) -> None:
        axis, extent = self.axis_from_front, x.shape[self.axis_from_front]
        combiner, element = COMBINER_OF[self.kind.data], element_type(self.x)
        exclusive, reverse = bool(self.exclusive.value.data), bool(self.reverse.value.data)
        init = k.apply(combiner.key, k.apply(combiner.init, x.type), element)
        if self.kind.data == ReduceKind.SUM and is_float(x.type) and not exclusive:
            # -0.0 + x == x  for every x, -0.0 included
            init = k.scalar(-0.0, x.type)
        with k.loops([*x.shape[:axis], *x.shape[axis + 1 :]]) as rest:

            def step(place: Index, before: Scalar) -> tuple[Scalar]:
                own = extent - 1 - place if reverse else place
                index = (*rest[:axis], own, *rest[axis:])
                total = k.apply(combiner.joined, before, x[index], element)
                result[index] = before if exclusive else total
                return (total,)

            k.carry(extent, [init], step)
