"""The fused multiply-add: a product and a sum that are rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from ...core.dims import Dim, Shape, product
from ...core.typed import dense_array
from .attrs import FLOAT_TENSOR
from .interfaces import FusionKind, GraphOp, Index, Nest, ShapeFacts, Sizes, widened
from .ops_binary import broadcast_index
from .ops_contraction import same_element_types

if TYPE_CHECKING:
    from .interfaces import Array


def wide_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c in a wider type: f64, or long double for f64.

    A product of two f32 is exact in f64, so that only the sum is rounded before the result.
    """
    wide = np.float64 if a.dtype.itemsize < 8 else np.longdouble
    return np.multiply(a, b, dtype=wide) + c


@irdl_op_definition
class FmaOp(GraphOp):
    """a * b + c, rounded once, in f32 for 16 bits; the three are broadcast as in NumPy.

    %y = graph.fma %a, %b, %c
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
    """

    name = "graph.fma"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    a = operand_def(FLOAT_TENSOR)
    b = operand_def(FLOAT_TENSOR)
    c = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a `,` $b `,` $c attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[a, b, c], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        a, b, c = shapes
        return [facts.broadcast(facts.broadcast(a, b), c)]

    def flops(self, sizes: Sizes) -> Dim:
        return Dim.of(2) * product(sizes.shape(self.result))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b, c = (widened(dense_array(array)) for array in arrays)
        with np.errstate(all="ignore"):
            return self.stored(wide_fma(a, b, c).astype(a.dtype))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        a, b, c = (nest.at(v, broadcast_index(v, index)) for v in self.operands)
        return nest.insert(math.FmaOp(a, b, c))
