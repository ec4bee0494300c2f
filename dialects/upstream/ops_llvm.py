"""Instructions of `llvm` on vectors: those that xDSL lacks or restricts to scalars."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    I1,
    I32,
    AnyFloatConstr,
    ArrayAttr,
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    SignlessIntegerConstraint,
    UnitAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    RangeOf,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...core.ir.definitions import irdl_op_definition
from .element_types import check_shapes, with_element_type

_LANES = ArrayAttr.constr(RangeOf(base(IntAttr)).of_length(1))
_BOOL_LIKE = base(I1) | VectorType.constr(base(I1), shape=_LANES)

LLVM_INT_LIKE = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
"""An integer or a vector of integers."""

LLVM_FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)
"""A float or a vector of floats."""

LLVM_NO_FLAGS = llvm.FastMathAttr(None)
"""The flags of an operation that keeps the rules of IEEE 754."""


@irdl_op_definition
class LlvmSelectOp(IRDLOperation):
    """`%r = llvm.select %m, %a, %b : vector<4xi1>, vector<4xf32>`. xDSL's: i1 condition only."""

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "llvm.select"

    cond = operand_def(_BOOL_LIKE)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=LLVM_NO_FLAGS, prop_name="fastmathFlags")

    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if self.cond.type != i1:
            check_shapes(self, self.res.type, self.cond.type)


@irdl_op_definition
class FCmpOp(IRDLOperation):
    """`%r = llvm.fcmp "olt" %a, %b : vector<4xf32>`. xDSL's takes scalars only."""

    T: ClassVar = VarConstraint("T", LLVM_FLOAT_LIKE)

    name = "llvm.fcmp"

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(_BOOL_LIKE)
    predicate = prop_def(IntegerAttr)
    fastmath = prop_def(llvm.FastMathAttr, default_value=LLVM_NO_FLAGS, prop_name="fastmathFlags")

    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: Operation | SSAValue,
        rhs: Operation | SSAValue,
        predicate: str | IntegerAttr,
        attributes: dict[str, Attribute] | None = None,
    ):
        left = SSAValue.get(lhs)
        if isinstance(predicate, str):
            predicate = IntegerAttr(llvm.FCmpPredicateFlag(predicate).to_int(), 64)
        super().__init__(
            operands=[left, rhs],
            result_types=[with_element_type(left.type, i1)],
            attributes=attributes or {},
            properties={"predicate": predicate, "fastmathFlags": LLVM_NO_FLAGS},
        )

    def verify_(self) -> None:
        check_shapes(self, self.lhs.type, self.res.type)

    @classmethod
    def parse(cls, parser: Parser) -> FCmpOp:
        return llvm.FCmpOp.parse.__func__(cls, parser)

    print = llvm.FCmpOp.print


@irdl_op_definition
class GEPOp(llvm.GEPOp):
    """`%ps = llvm.getelementptr %p[%is] : (!llvm.ptr, vector<4xi32>) -> vector<4x!llvm.ptr>, f32`.

    xDSL's gives one address only.
    """

    name = "llvm.getelementptr"

    ptr = operand_def(llvm.LLVMPointerType)
    ssa_indices = var_operand_def(LLVM_INT_LIKE)
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr[I32])  # noqa: N815
    result = result_def(base(llvm.LLVMPointerType) | VectorType.constr(llvm.LLVMPointerType))
    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))  # noqa: N815
    inbounds = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        given, marked = len(self.ssa_indices), self.rawConstantIndices.get_values()
        places = marked.count(llvm.GEP_USE_SSA_VAL)
        if given != places:
            raise VerifyException(
                f"{self.name}: wrong number of indices, expected {places}, got {given}"
            )
        lanes = [value.type for value in self.ssa_indices if isinstance(value.type, VectorType)]
        for type in lanes:
            check_shapes(self, self.result.type, type)
        if isinstance(self.result.type, VectorType) and not lanes:
            raise VerifyException(f"{self.name}: one address, got {self.result.type}")


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
    """`%r = llvm.extractelement %v[%i : i64] : vector<4xf32>`."""

    E: ClassVar = VarConstraint("E", AnyAttr())

    name = "llvm.extractelement"

    vector = operand_def(VectorType.constr(E, shape=_LANES))
    position = operand_def(SignlessIntegerConstraint)
    res = result_def(E)

    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"

    traits = traits_def(NoMemoryEffect())


@irdl_op_definition
class PoisonOp(IRDLOperation):
    """`%r = llvm.mlir.poison : vector<4xf32>`, a value that must not be observed."""

    name = "llvm.mlir.poison"

    res = result_def()

    assembly_format = "attr-dict `:` type($res)"

    traits = traits_def(Pure())


class LlvmCastOp(IRDLOperation, ABC):
    """A cast instruction: `%r = llvm.fptosi %a : vector<4xf32> to vector<4xi32>`."""

    arg = operand_def()
    res = result_def()

    assembly_format = "$arg attr-dict `:` type($arg) `to` type($res)"

    traits = traits_def(NoMemoryEffect())

    def verify_(self) -> None:
        check_shapes(self, self.arg.type, self.res.type)


@irdl_op_definition
class LlvmFPToSIOp(LlvmCastOp):
    """Float to signed integer."""

    name = "llvm.fptosi"


@irdl_op_definition
class LlvmFPToUIOp(LlvmCastOp):
    """Float to unsigned integer."""

    name = "llvm.fptoui"


@irdl_op_definition
class LlvmUIToFPOp(LlvmCastOp):
    """Unsigned integer to float."""

    name = "llvm.uitofp"
