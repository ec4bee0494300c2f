"""Operations of `arith` on vectors and tensors, where xDSL's take scalars only."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    IntegerType,
    container_of,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from ...core.ir.definitions import irdl_op_definition
from .element_types import check_shapes, with_element_type

_BOOL_LIKE = container_of(IntegerType(1))
_INTEGER_LIKE = container_of(base(IntegerType))
_INDEX_LIKE = container_of(base(IntegerType) | base(IndexType))
_FLOAT_LIKE = container_of(AnyFloatConstr)

ARITH_NO_FLAGS = arith.FastMathFlagsAttr("none")
"""The flags of an operation that keeps the rules of IEEE 754."""


@irdl_op_definition
class SelectOp(arith.SelectOp):
    """`%r = arith.select %mask, %a, %b : vector<4xi1>, vector<4xf32>`.

    xDSL's takes an i1 condition only.
    """

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "arith.select"

    cond = operand_def(_BOOL_LIKE)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    assembly_format = None

    def verify_(self) -> None:
        if self.cond.type != i1:
            check_shapes(self, self.result.type, self.cond.type)

    def print(self, printer: Printer) -> None:  # the condition's type is printed for vectors only
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        position = parser.pos
        operands = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        if parser.parse_optional_punctuation(","):
            types.append(parser.parse_type())
        condition = types[0] if len(types) == 2 else i1
        types = [condition, types[-1], types[-1]]
        op = cls(*parser.resolve_operands(operands, types, position))
        op.attributes |= attributes
        return op


@irdl_op_definition
class CmpiOp(arith.ComparisonOperation):
    """`%r = arith.cmpi slt, %a, %b : vector<4xi32>`, a vector of i1.

    xDSL's gives one i1 whatever it compares, and folds `x == x` of vectors to one i1.
    """

    T: ClassVar = VarConstraint("T", _INDEX_LIKE)

    name = "arith.cmpi"

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(_BOOL_LIKE)

    def __init__(
        self, operand1: Operation | SSAValue, operand2: Operation | SSAValue, arg: int | str
    ):
        left = SSAValue.get(operand1)
        number = arith.CMPI_COMPARISON_OPERATIONS.index(arg) if isinstance(arg, str) else arg
        IRDLOperation.__init__(
            self,
            operands=[left, operand2],
            result_types=[with_element_type(left.type, i1)],
            properties={"predicate": IntegerAttr(number, 64)},
        )

    def verify_(self) -> None:
        check_shapes(self, self.lhs.type, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> CmpiOp:
        return arith.CmpiOp.parse.__func__(cls, parser)

    print = arith.CmpiOp.print


@irdl_op_definition
class CmpfOp(arith.CmpfOp):
    """`%r = arith.cmpf olt, %a, %b : vector<4xf32>`, a vector of i1.

    xDSL's gives one i1 whatever it compares.
    """

    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    name = "arith.cmpf"

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=ARITH_NO_FLAGS)
    result = result_def(_BOOL_LIKE)

    def __init__(
        self,
        operand1: Operation | SSAValue,
        operand2: Operation | SSAValue,
        arg: int | str,
        fastmath: arith.FastMathFlagsAttr = ARITH_NO_FLAGS,
    ):
        left = SSAValue.get(operand1)
        number = arith.CMPF_COMPARISON_OPERATIONS.index(arg) if isinstance(arg, str) else arg
        IRDLOperation.__init__(
            self,
            operands=[left, operand2],
            result_types=[with_element_type(left.type, i1)],
            properties={"predicate": IntegerAttr(number, 64), "fastmath": fastmath},
        )

    def verify_(self) -> None:
        check_shapes(self, self.lhs.type, self.result.type)


class _ArithCast(IRDLOperation, ABC):
    """A cast of a scalar, a vector or a tensor, element by element."""

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    traits = traits_def(Pure())

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[op], result_types=[target_type])

    def verify_(self) -> None:
        check_shapes(self, self.operands[0].type, self.results[0].type)
        self.verify_elements(
            get_element_type_or_self(self.operands[0].type),
            get_element_type_or_self(self.results[0].type),
        )

    def verify_elements(self, source: Attribute, target: Attribute) -> None:
        """Facts that relate the two element types; none by default."""


class _IntToFloat(_ArithCast, ABC):
    input = operand_def(_INTEGER_LIKE)
    result = result_def(_FLOAT_LIKE)


class _FloatToInt(_ArithCast, ABC):
    input = operand_def(_FLOAT_LIKE)
    result = result_def(_INTEGER_LIKE)


class _Width(_ArithCast, ABC):
    """A cast to a wider or to a narrower type."""

    WIDENS: ClassVar[bool]

    def verify_elements(self, source: Attribute, target: Attribute) -> None:
        have, want = (cast(FixedBitwidthType, kind).bitwidth for kind in (source, target))
        if (want > have) if self.WIDENS else (want < have):
            return
        relation = "wider" if self.WIDENS else "narrower"
        raise VerifyException(
            f"{self.name}: wrong width of the result, expected {relation} than {source}, "
            f"got {target}"
        )


class _IntToInt(_Width, ABC):
    input = operand_def(_INTEGER_LIKE)
    result = result_def(_INTEGER_LIKE)


class _FloatToFloat(_Width, ABC):
    input = operand_def(_FLOAT_LIKE)
    result = result_def(_FLOAT_LIKE)


@irdl_op_definition
class SIToFPOp(_IntToFloat):
    """`%r = arith.sitofp %a : vector<4xi32> to vector<4xf32>`. xDSL's takes scalars only."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_IntToFloat):
    """`%r = arith.uitofp %a : vector<4xi32> to vector<4xf32>`. xDSL's takes scalars only."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_FloatToInt):
    """`%r = arith.fptosi %a : vector<4xf32> to vector<4xi32>`. xDSL's takes scalars only."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_FloatToInt):
    """`%r = arith.fptoui %a : vector<4xf32> to vector<4xi32>`. xDSL's takes scalars only."""

    name = "arith.fptoui"


@irdl_op_definition
class RemfOp(arith.FloatingPointLikeBinaryOperation):
    """`%r = arith.remf %a, %b : f32`: a - b * trunc(a / b), exactly. Not in xDSL."""

    name = "arith.remf"

    traits = traits_def(Pure())


@irdl_op_definition
class ExtSIOp(_IntToInt):
    """`%r = arith.extsi %a : vector<4xi8> to vector<4xi32>`. xDSL's takes scalars only."""

    name = "arith.extsi"
    WIDENS: ClassVar[bool] = True


@irdl_op_definition
class ExtUIOp(_IntToInt):
    """`%r = arith.extui %a : vector<4xi8> to vector<4xi32>`. xDSL's takes scalars only."""

    name = "arith.extui"
    WIDENS: ClassVar[bool] = True


@irdl_op_definition
class TruncIOp(_IntToInt):
    """`%r = arith.trunci %a : vector<4xi32> to vector<4xi8>`. xDSL's takes scalars only."""

    name = "arith.trunci"
    WIDENS: ClassVar[bool] = False


@irdl_op_definition
class ExtFOp(_FloatToFloat):
    """`%r = arith.extf %a : f32 to f64`. xDSL's compares neither shapes nor widths."""

    name = "arith.extf"
    WIDENS: ClassVar[bool] = True


@irdl_op_definition
class TruncFOp(_FloatToFloat):
    """`%r = arith.truncf %a : f64 to f32`. xDSL's compares neither shapes nor widths."""

    name = "arith.truncf"
    WIDENS: ClassVar[bool] = False


class _IndexCast(_ArithCast, ABC):
    input = operand_def(_INDEX_LIKE)
    result = result_def(_INDEX_LIKE)

    def verify_elements(self, source: Attribute, target: Attribute) -> None:
        if isinstance(source, IndexType) == isinstance(target, IndexType):
            raise VerifyException(
                f"{self.name}: wrong types, expected index on one side, got {source} and {target}"
            )


@irdl_op_definition
class IndexCastOp(_IndexCast):
    """`%r = arith.index_cast %a : vector<4xi32> to vector<4xindex>`. xDSL's: scalars only."""

    name = "arith.index_cast"


@irdl_op_definition
class IndexCastUIOp(_IndexCast):
    """`%r = arith.index_castui %a : i32 to index`: the integer is unsigned. Not in xDSL."""

    name = "arith.index_castui"
