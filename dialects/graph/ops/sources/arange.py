"""The numbers from 0 on: `arange`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import dense_array
from ...attrs import I64_TENSOR
from ...constructors import operator
from ...demands import DemandInterface, SizeOperand
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, declared_size
from ...nests import scalars
from ...traits import NeverNegative

if TYPE_CHECKING:
    from ...interfaces import Array


@operator(at_most=None)
class ArangeOp(GraphOp, DemandInterface):
    """The numbers from 0 to below `count`, which is a size that a scalar holds at run time.

    Where the scalar is a count that another operator returned, the size is the same. Another
    one that is negative or more than `at_most` is an error. Without `at_most`, memory is allocated
    once the size is known.

    %y = graph.arange %count at_most = 100 : (tensor<i64>) -> tensor<?xi64>
    """

    name = "graph.arange"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(NeverNegative())

    count = operand_def(TensorType(i64, []))
    at_most = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(I64_TENSOR)

    assembly_format = (
        "$count (`at_most` `=` $at_most^)? attr-dict `:` functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[SizeOperand, ...]:
        return (SizeOperand(self.count),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        bound = declared_size(self.result, 0)
        if self.at_most is not None:
            bound = Dim.of(self.at_most.value.data)
            if bound.value < 0:
                facts.fail("a bound is negative", "0 or more", bound)
        return [(facts.size(self.count, bound),)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.arange(int(dense_array(arrays[0])), dtype=np.int64),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return scalars.from_index(nest, nest.value(index[0]), i64)
