"""Masked accesses, math functions and reductions of `llvm`: intrinsics that xDSL lacks."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    I1,
    I32,
    AnyFloatConstr,
    IntegerAttr,
    SignlessIntegerConstraint,
    VectorType,
)
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...core.ir.definitions import irdl_op_definition
from .element_types import check_shapes
from .ops_llvm import LLVM_FLOAT_LIKE, LLVM_INT_LIKE, LLVM_NO_FLAGS


@irdl_op_definition
class MaskedStoreOp(IRDLOperation):
    """`llvm.intr.masked.store %v, %p, %m {alignment = 4 : i32} : ...`. xDSL's: floats only."""

    name = "llvm.intr.masked.store"

    value = operand_def(VectorType)
    data = operand_def(llvm.LLVMPointerType)
    mask = operand_def(VectorType[I1])
    alignment = prop_def(IntegerAttr[I32])

    assembly_format = (
        "$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        check_shapes(self, self.value.type, self.mask.type)


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
    """Loads the lanes whose mask is set, and takes the others from `pass_thru`.

    `%r = llvm.intr.masked.load %p, %m, %rest {alignment = 4 : i32} :
    (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>`
    """

    V: ClassVar = VarConstraint("V", base(VectorType))

    name = "llvm.intr.masked.load"

    data = operand_def(llvm.LLVMPointerType)
    mask = operand_def(VectorType[I1])
    pass_thru = operand_def(V)
    res = result_def(V)
    alignment = prop_def(IntegerAttr[I32])

    assembly_format = (
        "$data `,` $mask `,` $pass_thru attr-dict `:` functional-type(operands, results)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        check_shapes(self, self.res.type, self.mask.type)


@irdl_op_definition
class MaskedGatherOp(IRDLOperation):
    """Loads through a vector of pointers the lanes whose mask is set.

    `%r = llvm.intr.masked.gather %ps, %m, %rest {alignment = 4 : i32} :
    (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>`
    """

    V: ClassVar = VarConstraint("V", base(VectorType))

    name = "llvm.intr.masked.gather"

    ptrs = operand_def(VectorType[llvm.LLVMPointerType])
    mask = operand_def(VectorType[I1])
    pass_thru = operand_def(V)
    res = result_def(V)
    alignment = prop_def(IntegerAttr[I32])

    assembly_format = (
        "$ptrs `,` $mask `,` $pass_thru attr-dict `:` functional-type(operands, results)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        check_shapes(self, self.res.type, self.mask.type)


class FloatIntrinsicOp(IRDLOperation, ABC):
    """An intrinsic on floats or vectors of floats: `%r = llvm.intr.tanh(%a) : (f32) -> f32`."""

    T: ClassVar = VarConstraint("T", LLVM_FLOAT_LIKE)
    COUNT: ClassVar[int]

    args = var_operand_def(T)
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=LLVM_NO_FLAGS, prop_name="fastmathFlags")

    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, results)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_count(self, self.COUNT)


class IntIntrinsicOp(IRDLOperation, ABC):
    """An intrinsic on integers: `%r = llvm.intr.smax(%a, %b) : (i32, i32) -> i32`."""

    T: ClassVar = VarConstraint("T", LLVM_INT_LIKE)
    COUNT: ClassVar[int]

    args = var_operand_def(T)
    res = result_def(T)

    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, results)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_count(self, self.COUNT)


class FloatReduceOp(IRDLOperation, ABC):
    """A reduction of a vector: `%r = llvm.intr.vector.reduce.fmax(%v) : (...) -> f32`."""

    T: ClassVar = VarConstraint("T", AnyFloatConstr)

    vector = operand_def(VectorType.constr(T))
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=LLVM_NO_FLAGS, prop_name="fastmathFlags")

    assembly_format = "`(` $vector `)` attr-dict `:` functional-type($vector, results)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())


class IntReduceOp(IRDLOperation, ABC):
    """A reduction of a vector: `%r = "llvm.intr.vector.reduce.add"(%v) : (...) -> i32`.

    Upstream gives these the generic form only.
    """

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)

    vector = operand_def(VectorType.constr(T))
    res = result_def(T)

    traits = traits_def(Pure())


def _check_count(op: Operation, count: int) -> None:
    """Raise where an intrinsic has another number of operands."""
    if len(op.operands) != count:
        fact, got = "wrong number of operands", len(op.operands)
        raise VerifyException(f"{op.name}: {fact}, expected {count}, got {got}")


def _intrinsics(
    kind: type[IRDLOperation], *names: str, count: int = 1
) -> dict[str, type[IRDLOperation]]:
    """One operation `llvm.intr.<name>` of this kind, with `count` operands, for each name."""
    made: dict[str, type[IRDLOperation]] = {}
    for name in names:
        class_name = "".join(word.capitalize() for word in name.split(".")) + "IntrinsicOp"
        fields = {"name": f"llvm.intr.{name}", "__doc__": f"The intrinsic `llvm.{name}`."}
        fields |= {"__module__": __name__, "__annotations__": {"COUNT": ClassVar[int]}}
        fields |= {"COUNT": count}
        made[name] = irdl_op_definition(type(class_name, (kind,), fields))
    return made


INTRINSICS: dict[str, type[IRDLOperation]] = {
    **_intrinsics(FloatIntrinsicOp, "trunc", "round", "roundeven", "log10", "tan", "asin"),
    **_intrinsics(FloatIntrinsicOp, "acos", "atan", "sinh", "cosh", "tanh"),
    **_intrinsics(FloatIntrinsicOp, "maximum", "minimum", "atan2", count=2),
    **_intrinsics(IntIntrinsicOp, "smax", "smin", "umax", "umin", count=2),
    **_intrinsics(FloatReduceOp, "vector.reduce.fmax", "vector.reduce.fmin"),
    **_intrinsics(FloatReduceOp, "vector.reduce.fmaximum", "vector.reduce.fminimum"),
    **_intrinsics(IntReduceOp, "vector.reduce.add", "vector.reduce.mul"),
    **_intrinsics(IntReduceOp, "vector.reduce.and", "vector.reduce.or", "vector.reduce.xor"),
    **_intrinsics(IntReduceOp, "vector.reduce.smax", "vector.reduce.smin"),
    **_intrinsics(IntReduceOp, "vector.reduce.umax", "vector.reduce.umin"),
}
"""Intrinsics that xDSL's `llvm` dialect lacks, by LLVM's name without `llvm.`."""
