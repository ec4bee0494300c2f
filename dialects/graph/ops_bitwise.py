"""Operators on the bits of integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Commutative

from ...core.exactness import Exactness
from ...core.typed import bits
from . import scalars
from .attrs import INTEGER_TENSOR, SHIFTED_TENSOR, is_unsigned
from .interfaces import Nest, element_type
from .ops_binary import BinaryOp
from .ops_elementwise import UnaryOp
from .ops_logic import LogicalAndOp, LogicalBinaryOp, LogicalNotOp, LogicalOrOp, LogicalXorOp
from .rewrites import forward, replace_by


class BitwiseBinaryOp(BinaryOp, HasCanonicalizationPatternsInterface, ABC):
    """A function of two integers, bit by bit."""

    LOGICAL: ClassVar[type[LogicalBinaryOp]]
    """The same function of truth values."""

    lhs = operand_def(INTEGER_TENSOR)
    rhs = operand_def(INTEGER_TENSOR)
    result = result_def(INTEGER_TENSOR)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (BitwiseAsLogical(),)


@irdl_op_definition
class BitwiseAndOp(BitwiseBinaryOp):
    """The bits that are set in both; for truth values, canonically `graph.logical_and`.

    %y = graph.bitwise_and %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.bitwise_and"
    LOGICAL: ClassVar[type[LogicalBinaryOp]] = LogicalAndOp
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.AndIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a & b


@irdl_op_definition
class BitwiseOrOp(BitwiseBinaryOp):
    """The bits that are set in one of them; for truth values, canonically `graph.logical_or`.

    %y = graph.bitwise_or %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.bitwise_or"
    LOGICAL: ClassVar[type[LogicalBinaryOp]] = LogicalOrOp
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.OrIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a | b


@irdl_op_definition
class BitwiseXorOp(BitwiseBinaryOp):
    """The bits that differ; for truth values, canonically `graph.logical_xor`.

    %y = graph.bitwise_xor %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.bitwise_xor"
    LOGICAL: ClassVar[type[LogicalBinaryOp]] = LogicalXorOp
    traits = traits_def(Commutative())

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(arith.XOrIOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a ^ b


@irdl_op_definition
class BitwiseNotOp(UnaryOp, HasCanonicalizationPatternsInterface):
    """The bits that are not set; for truth values, canonically `graph.logical_not`.

    %y = graph.bitwise_not %x : (tensor<4x3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.bitwise_not"

    x = operand_def(INTEGER_TENSOR)
    result = result_def(INTEGER_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return BitwiseNotTwice(), BitwiseNotAsLogical()

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        ones = nest.constant(True, i1) if x.type == i1 else nest.constant(-1, x.type)
        return nest.insert(arith.XOrIOp(x, ones))

    def array(self, x: np.ndarray) -> np.ndarray:
        return ~x


class ShiftOp(BinaryOp, ABC):
    """An integer whose bits move by so many places as another integer says.

    By a number of places that is negative, or not below the number of bits, all bits move out.
    """

    lhs = operand_def(SHIFTED_TENSOR)
    rhs = operand_def(SHIFTED_TENSOR)
    result = result_def(SHIFTED_TENSOR)

    @abstractmethod
    def shifted(self, nest: Nest, a: SSAValue, places: SSAValue, inside: SSAValue) -> SSAValue:
        """The integer `a` shifted by `places` where `inside` holds, else without its bits."""

    @abstractmethod
    def moved(self, a: np.ndarray, places: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """The same for arrays."""

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        width = nest.constant(bits(element_type(self.lhs)), b.type)
        return self.shifted(nest, a, b, nest.insert(arith.CmpiOp(b, width, "ult")))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.moved(a, b, (b >= 0) & (b < bits(element_type(self.lhs))))


@irdl_op_definition
class ShiftLeftOp(ShiftOp):
    """a * 2 ** b, of which the low bits are kept; 0 for b < 0 and for b not below the width.

    %y = graph.shift_left %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.shift_left"

    def shifted(self, nest: Nest, a: SSAValue, places: SSAValue, inside: SSAValue) -> SSAValue:
        none = scalars.zero(nest, a.type)
        safe = scalars.select(nest, inside, places, none)
        return scalars.select(nest, inside, nest.insert(arith.ShLIOp(a, safe)), none)

    def moved(self, a: np.ndarray, places: np.ndarray, inside: np.ndarray) -> np.ndarray:
        return np.where(inside, np.left_shift(a, np.where(inside, places, 0)), 0)


@irdl_op_definition
class ShiftRightOp(ShiftOp):
    """a / 2 ** b, rounded down; for b < 0 and for b not below the width, 0 or -1 with a's sign.

    %y = graph.shift_right %a, %b : (tensor<4x3xi32>, tensor<3xi32>) -> tensor<4x3xi32>
    """

    name = "graph.shift_right"

    def shifted(self, nest: Nest, a: SSAValue, places: SSAValue, inside: SSAValue) -> SSAValue:
        none = scalars.zero(nest, a.type)
        if is_unsigned(element_type(self.lhs)):
            safe = scalars.select(nest, inside, places, none)
            return scalars.select(nest, inside, nest.insert(arith.ShRUIOp(a, safe)), none)
        # The last bit that is left is the sign.
        last = nest.constant(bits(element_type(self.lhs)) - 1, a.type)
        return nest.insert(arith.ShRSIOp(a, scalars.select(nest, inside, places, last)))

    def moved(self, a: np.ndarray, places: np.ndarray, inside: np.ndarray) -> np.ndarray:
        below = np.where(a < 0, -1, 0).astype(a.dtype)
        return np.where(inside, np.right_shift(a, np.where(inside, places, 0)), below)


@Exactness.EXACT
class BitwiseNotTwice(RewritePattern):
    # ~~x == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BitwiseNotOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, BitwiseNotOp):
            forward(op, inner.x, rewriter)


@Exactness.EXACT
class BitwiseNotAsLogical(RewritePattern):
    # ~x == not x  for truth values
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BitwiseNotOp, rewriter: PatternRewriter) -> None:
        if element_type(op.x) == i1:
            replace_by(op, LogicalNotOp(op.x), (op,), rewriter)


@Exactness.EXACT
class BitwiseAsLogical(RewritePattern):
    # a & b == (a and b), a | b == (a or b), a ^ b == (a xor b)  for truth values
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BitwiseBinaryOp, rewriter: PatternRewriter) -> None:
        if element_type(op.lhs) == i1:
            replace_by(op, op.LOGICAL(op.lhs, op.rhs), (op,), rewriter)
