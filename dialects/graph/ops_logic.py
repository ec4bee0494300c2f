"""Comparisons, logic on truth values, and the choice between two tensors by a third."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Commutative

from ...core.dims import Shape
from ...core.exactness import Exactness
from . import scalars
from .attrs import DENSE_TENSOR, NUMERIC_TENSOR, STORED_TENSOR, TRUTH_TENSOR
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    Precision,
    ShapeFacts,
    element_type,
    tensor_type,
)
from .ops_binary import BinaryOp, broadcast_index
from .ops_constant import splat_of
from .ops_elementwise import UnaryOp
from .rewrites import forward, replace_by

if TYPE_CHECKING:
    from .interfaces import Array


class ComparisonOp(BinaryOp, ABC):
    """A comparison of two numbers; false if either is NaN."""

    lhs = operand_def(NUMERIC_TENSOR)
    rhs = operand_def(NUMERIC_TENSOR)
    result = result_def(TRUTH_TENSOR)

    def infer_element_types(self) -> list[Attribute]:
        return [i1]


@irdl_op_definition
class EqualOp(ComparisonOp):
    """a == b, for truth values as well.

    %y = graph.equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
    """

    name = "graph.equal"
    traits = traits_def(Commutative())

    lhs = operand_def(DENSE_TENSOR)
    rhs = operand_def(DENSE_TENSOR)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.equal(nest, a, b)

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a == b


@irdl_op_definition
class LessOp(ComparisonOp):
    """a < b.

    %y = graph.less %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
    """

    name = "graph.less"

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.compared(nest, scalars.less, a, b, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a < b


@irdl_op_definition
class LessEqualOp(ComparisonOp):
    """a <= b.

    %y = graph.less_equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
    """

    name = "graph.less_equal"

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.compared(nest, scalars.less_equal, a, b, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a <= b


@irdl_op_definition
class GreaterOp(ComparisonOp, HasCanonicalizationPatternsInterface):
    """a > b; canonically b < a.

    %y = graph.greater %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
    """

    name = "graph.greater"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (GreaterAsLess(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.compared(nest, scalars.less, b, a, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a > b


@irdl_op_definition
class GreaterEqualOp(ComparisonOp, HasCanonicalizationPatternsInterface):
    """a >= b; canonically b <= a.

    %y = graph.greater_equal %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xi1>
    """

    name = "graph.greater_equal"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (GreaterEqualAsLessEqual(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.compared(nest, scalars.less_equal, b, a, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a >= b


class LogicalBinaryOp(BinaryOp, ABC):
    """A function of two truth values."""

    lhs = operand_def(TRUTH_TENSOR)
    rhs = operand_def(TRUTH_TENSOR)
    result = result_def(TRUTH_TENSOR)


@irdl_op_definition
class LogicalAndOp(LogicalBinaryOp):
    """Whether both are true.

    %y = graph.logical_and %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
    """

    name = "graph.logical_and"
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.AndIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a & b


@irdl_op_definition
class LogicalOrOp(LogicalBinaryOp):
    """Whether one of them is true.

    %y = graph.logical_or %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
    """

    name = "graph.logical_or"
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.OrIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a | b


@irdl_op_definition
class LogicalXorOp(LogicalBinaryOp):
    """Whether they differ.

    %y = graph.logical_xor %a, %b : (tensor<4x3xi1>, tensor<3xi1>) -> tensor<4x3xi1>
    """

    name = "graph.logical_xor"
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.XOrIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a ^ b


@irdl_op_definition
class LogicalNotOp(UnaryOp, HasCanonicalizationPatternsInterface):
    """Whether x is false.

    %y = graph.logical_not %x : (tensor<4x3xi1>) -> tensor<4x3xi1>
    """

    name = "graph.logical_not"

    x = operand_def(TRUTH_TENSOR)
    result = result_def(TRUTH_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (LogicalNotTwice(),)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(arith.XOrIOp(x, nest.constant(True, i1)))

    def array(self, x: np.ndarray) -> np.ndarray:
        return ~x


@irdl_op_definition
class WhereOp(GraphOp, HasCanonicalizationPatternsInterface):
    """a where the condition holds, else b; the three are broadcast as in NumPy.

    Both are computed everywhere, and one is discarded.

    %y = graph.where %c, %a, %b
        : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.where"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    condition = operand_def(TRUTH_TENSOR)
    a = operand_def(STORED_TENSOR)
    b = operand_def(STORED_TENSOR)
    result = result_def(STORED_TENSOR)

    assembly_format = "$condition `,` $a `,` $b attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        condition: SSAValue | Operation,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[condition, a, b], result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (WhereSame(),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        condition, a, b = shapes
        if element_type(self.a) != element_type(self.b):
            facts.fail("element types differ", element_type(self.a), element_type(self.b))
        return [facts.broadcast(condition, facts.broadcast(a, b))]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.a)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        condition, a, b = cast(tuple[np.ndarray, ...], arrays)
        return self.stored(np.where(condition, a, b))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        condition, a, b = (nest.at(v, broadcast_index(v, index)) for v in self.operands)
        return scalars.select(nest, condition, a, b)


@Exactness.EXACT
class GreaterAsLess(RewritePattern):
    # a > b == b < a
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GreaterOp, rewriter: PatternRewriter) -> None:
        replace_by(op, LessOp(op.rhs, op.lhs), (op,), rewriter)


@Exactness.EXACT
class GreaterEqualAsLessEqual(RewritePattern):
    # a >= b == b <= a
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GreaterEqualOp, rewriter: PatternRewriter) -> None:
        replace_by(op, LessEqualOp(op.rhs, op.lhs), (op,), rewriter)


@Exactness.EXACT
class LogicalNotTwice(RewritePattern):
    # not not x == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LogicalNotOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, LogicalNotOp):
            forward(op, inner.x, rewriter)


@Exactness.EXACT
class WhereSame(RewritePattern):
    # where(c, x, x) == x, and where(true, a, b) == a  for a condition of static shape
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: WhereOp, rewriter: PatternRewriter) -> None:
        if not tensor_type(op.condition).has_static_shape():
            return
        condition = splat_of(op.condition)
        if op.a is op.b:
            forward(op, op.a, rewriter)
        elif condition is not None and tensor_type(op.result).has_static_shape():
            forward(op, op.a if condition else op.b, rewriter)
