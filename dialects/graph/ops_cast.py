"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.dims import Shape
from ...core.dtypes import dtype_of, is_real
from ...core.exactness import Exactness
from ...core.typed import dense_array, tensor_type
from . import scalars
from .attrs import DENSE_TENSOR, holds_all_values
from .interfaces import FusionKind, GraphOp, Index, Nest, ShapeFacts, element_type, widened
from .rewrites import forward

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class CastOp(GraphOp, HasCanonicalizationPatternsInterface):
    """The elements in another type.

    Floats are truncated toward zero to integers, integers keep their low bits, and i1 is
    true for all that is not 0. A float outside the range of i32 (of i64, if the target is that
    or ui32) and NaN become its smallest integer first, as on x86.

    %y = graph.cast %x : (tensor<4x3xi64>) -> tensor<4x3xf32>
    """

    name = "graph.cast"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    x = operand_def(DENSE_TENSOR)
    result = result_def(DENSE_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue | Operation, target: Attribute) -> None:
        """Cast to an element type."""
        source = tensor_type(SSAValue.get(x))
        super().__init__(operands=[x], result_type=TensorType(target, source.get_shape()))

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (CastToSame(), CastWiderAndBack())

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.result)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, target = dense_array(arrays[0]), dtype_of(element_type(self.result))
        with np.errstate(all="ignore"):
            if is_real(x.dtype) and target.kind in "iu":
                wide = np.int64 if target in (np.int64, np.uint32) else np.int32
                x = _float_to_integer(widened(x), wide)
            return (x.astype(target),)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        value = nest.at(self.x, index)
        return scalars.convert(nest, value, element_type(self.x), element_type(self.result))


def _float_to_integer(x: np.ndarray, wide: type[np.signedinteger]) -> np.ndarray:
    limits = np.iinfo(wide)
    inside = (x >= float(limits.min)) & (x < -float(limits.min))
    return np.where(inside, np.where(inside, x, 0).astype(wide), limits.min)


@Exactness.EXACT
class CastToSame(RewritePattern):
    # cast(x) == x  for x of that type
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        forward(op, op.x, rewriter)


@Exactness.EXACT
class CastWiderAndBack(RewritePattern):
    # cast(cast(x)) == x  where the type between holds all values of x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, CastOp):
            return
        if holds_all_values(element_type(inner.result), element_type(inner.x)):
            forward(op, inner.x, rewriter)
