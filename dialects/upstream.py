"""Standard operations that xDSL lacks, or defines for scalars only, under their own names.

xDSL's `arith`, `vector` and `llvm` dialects cover most of what is needed. What they miss is
here and nowhere else, in upstream MLIR's text form, so that `mlir-opt` reads what we print.
`Arith`, `Scf`, `Vector` and `Llvm` are xDSL's dialects with these operations added; a context that
holds them parses `arith.select` as `SelectOp` below. An operation that xDSL itself builds
(the `arith.cmpi` of a lowered loop, say) may still be xDSL's class: code that must take both
looks at the name, not at the class.

Nothing is defined here that xDSL already has right. Each class says what xDSL's lacks.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects import arith, llvm, memref, scf
from xdsl.dialects import vector as vector_dialect
from xdsl.dialects.builtin import (
    I1,
    I32,
    AnyFloatConstr,
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    SignlessIntegerConstraint,
    TensorType,
    UnitAttr,
    VectorType,
    container_of,
    i1,
    i32,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    RangeOf,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from ..core.typed import bits, memref_type, vector_type

_BOOL_LIKE = container_of(IntegerType(1))
_INTEGER_LIKE = container_of(base(IntegerType))
_INDEX_LIKE = container_of(base(IntegerType) | base(IndexType))
_FLOAT_LIKE = container_of(AnyFloatConstr)
_ARITH_NO_FLAGS = arith.FastMathFlagsAttr("none")


FLOAT_TYPES = (BFloat16Type, Float16Type, Float32Type, Float64Type)
"""The classes of the types of floats."""


def with_element_type(like: Attribute, element_type: Attribute) -> Attribute:
    """The type shaped as `like`, with another element type; scalars give `element_type`."""
    if isinstance(like, VectorType):
        return VectorType(element_type, like.shape, like.scalable_dims)
    if isinstance(like, TensorType):
        return TensorType(element_type, like.shape, like.encoding)
    return element_type


def _check_shapes(op: Operation, left: Attribute, right: Attribute) -> None:
    if not have_compatible_shape(left, right):
        raise VerifyException(f"{op.name}: shapes differ, expected that of {left}, got {right}")


# arith


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
            _check_shapes(self, self.result.type, self.cond.type)

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
        _check_shapes(self, self.lhs.type, self.result.type)

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
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=_ARITH_NO_FLAGS)
    result = result_def(_BOOL_LIKE)

    def __init__(
        self,
        operand1: Operation | SSAValue,
        operand2: Operation | SSAValue,
        arg: int | str,
        fastmath: arith.FastMathFlagsAttr = _ARITH_NO_FLAGS,
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
        _check_shapes(self, self.lhs.type, self.result.type)


class _ArithCast(IRDLOperation, ABC):
    """A cast of a scalar, a vector or a tensor, element by element."""

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_shapes(self, self.operands[0].type, self.results[0].type)
        self.verify_elements(
            get_element_type_or_self(self.operands[0].type),
            get_element_type_or_self(self.results[0].type),
        )

    def verify_elements(self, source: Attribute, target: Attribute) -> None:
        """Facts that relate the two element types; none by default."""


class _IntToFloat(_ArithCast, ABC):
    input = operand_def(_INTEGER_LIKE)
    result = result_def(_FLOAT_LIKE)

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[op], result_types=[target_type])


class _FloatToInt(_ArithCast, ABC):
    input = operand_def(_FLOAT_LIKE)
    result = result_def(_INTEGER_LIKE)

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[op], result_types=[target_type])


class _IntToInt(_ArithCast, ABC):
    input = operand_def(_INTEGER_LIKE)
    result = result_def(_INTEGER_LIKE)

    WIDENS: ClassVar[bool]

    def __init__(self, op: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[op], result_types=[target_type])

    def verify_elements(self, source: Attribute, target: Attribute) -> None:
        have = bits(source)
        want = bits(target)
        if (want > have) if self.WIDENS else (want < have):
            return
        relation = "wider" if self.WIDENS else "narrower"
        raise VerifyException(
            f"{self.name}: wrong width of the result, expected {relation} than {source}, "
            f"got {target}"
        )


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


class _IndexCast(_ArithCast, ABC):
    input = operand_def(_INDEX_LIKE)
    result = result_def(_INDEX_LIKE)

    def __init__(self, input_arg: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[input_arg], result_types=[target_type])

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


# scf


@irdl_op_definition
class WhileOp(scf.WhileOp):
    """`%r = scf.while (%a = %x) : (index) -> index { ... } do { ... }`.

    xDSL's prints its location before its regions, where nothing reads it.
    """

    name = "scf.while"

    arguments = var_operand_def()
    res = var_result_def()
    before_region = region_def("single_block")
    after_region = region_def("single_block")

    def print(self, printer: Printer) -> None:
        pairs = zip(self.before_region.block.args, self.arguments, strict=True)
        printer.print_string(" (")
        printer.print_list(pairs, lambda pair: self._print_pair(printer, pair))
        printer.print_string(") : ")
        printer.print_function_type(self.operand_types, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)


# vector


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """`%r = vector.broadcast %a : vector<1x8xf32> to vector<4x8xf32>`.

    xDSL's does not compare the shapes.
    """

    name = "vector.broadcast"

    source = operand_def()
    vector = result_def(VectorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($vector)"

    traits = traits_def(Pure())

    def __init__(self, source: Operation | SSAValue, result_type: VectorType):
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        source, target = self.source.type, vector_type(self.vector)
        if get_element_type_or_self(source) != target.element_type:
            raise VerifyException(
                f"{self.name}: element types differ, expected {target.element_type}, "
                f"got {get_element_type_or_self(source)}"
            )
        if not isinstance(source, VectorType):
            return
        have, want = source.get_shape(), target.get_shape()
        aligned = want[len(want) - len(have) :] if len(have) <= len(want) else ()
        if len(have) > len(want) or any(
            a not in (1, b) for a, b in zip(have, aligned, strict=True)
        ):
            raise VerifyException(f"{self.name}: cannot stretch {source} to {target}")


@irdl_op_definition
class ReductionOp(IRDLOperation):
    """`%r = vector.reduction <add>, %v, %acc fastmath<reassoc> : vector<16xf32> into f32`.

    xDSL's constructor gives the result the type of the vector.
    """

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "vector.reduction"

    vector = operand_def(VectorType.constr(T))
    acc = opt_operand_def(T)
    dest = result_def(T)
    kind = prop_def(vector_dialect.CombiningKindAttr)
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=_ARITH_NO_FLAGS)

    assembly_format = (
        "$kind `,` $vector (`,` $acc^)? (`fastmath` `` $fastmath^)? attr-dict `:` "
        "type($vector) `into` type($dest)"
    )

    traits = traits_def(Pure())

    def __init__(
        self,
        vector: SSAValue | Operation,
        kind: str,
        acc: SSAValue | Operation | None = None,
        fastmath: Iterable[FastMathFlag] | None = None,
    ):
        operand = SSAValue.get(vector)
        super().__init__(
            operands=[operand, [acc] if acc is not None else []],
            result_types=[get_element_type_or_self(operand.type)],
            properties={
                "kind": vector_dialect.CombiningKindAttr(vector_dialect.CombiningKindFlag(kind)),
                "fastmath": arith.FastMathFlagsAttr(fastmath),
            },
        )


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Loads `base[indices + offsets[lane]]` for each lane whose mask is set. Not in xDSL.

    `%r = vector.gather %base[%i][%offsets], %mask, %rest : memref<?xf32>, vector<8xi32>,
    vector<8xi1>, vector<8xf32> into vector<8xf32>`
    """

    V: ClassVar = VarConstraint("V", base(VectorType))
    OFFSETS: ClassVar = VectorType.constr(base(IntegerType) | base(IndexType))

    name = "vector.gather"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    offsets = operand_def(OFFSETS)
    mask = operand_def(VectorType[I1])
    pass_thru = operand_def(V)
    result = result_def(V)

    assembly_format = (
        "$base `[` $indices `]` `[` $offsets `]` `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($offsets) `,` type($mask) `,` type($pass_thru) "
        "`into` type($result)"
    )

    def __init__(
        self,
        base: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        offsets: SSAValue | Operation,
        mask: SSAValue | Operation,
        pass_thru: SSAValue | Operation,
    ):
        super().__init__(
            operands=[base, indices, offsets, mask, pass_thru],
            result_types=[SSAValue.get(pass_thru).type],
        )

    def verify_(self) -> None:
        memref = memref_type(self.base)
        result = vector_type(self.result)
        if memref.get_num_dims() != len(self.indices):
            raise VerifyException(
                f"{self.name}: wrong number of indices, expected {memref.get_num_dims()}, "
                f"got {len(self.indices)}"
            )
        if memref.element_type != result.element_type:
            raise VerifyException(
                f"{self.name}: element types differ, expected {memref.element_type}, "
                f"got {result.element_type}"
            )
        for other in (self.offsets.type, self.mask.type):
            _check_shapes(self, result, other)


# llvm: corrected operations


_LANES = ArrayAttr.constr(RangeOf(base(IntAttr)).of_length(1))
_LLVM_BOOL_LIKE = base(I1) | VectorType.constr(base(I1), shape=_LANES)
_LLVM_INT_LIKE = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_LLVM_FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)
_NO_FLAGS = llvm.FastMathAttr(None)


@irdl_op_definition
class LlvmSelectOp(IRDLOperation):
    """`%r = llvm.select %m, %a, %b : vector<4xi1>, vector<4xf32>`. xDSL's: i1 condition only."""

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "llvm.select"

    cond = operand_def(_LLVM_BOOL_LIKE)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=_NO_FLAGS, prop_name="fastmathFlags")

    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if self.cond.type != i1:
            _check_shapes(self, self.res.type, self.cond.type)


@irdl_op_definition
class FCmpOp(IRDLOperation):
    """`%r = llvm.fcmp "olt" %a, %b : vector<4xf32>`. xDSL's takes scalars only."""

    T: ClassVar = VarConstraint("T", _LLVM_FLOAT_LIKE)

    name = "llvm.fcmp"

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(_LLVM_BOOL_LIKE)
    predicate = prop_def(IntegerAttr)
    fastmath = prop_def(llvm.FastMathAttr, default_value=_NO_FLAGS, prop_name="fastmathFlags")

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
            properties={"predicate": predicate, "fastmathFlags": _NO_FLAGS},
        )

    def verify_(self) -> None:
        _check_shapes(self, self.lhs.type, self.res.type)

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
    ssa_indices = var_operand_def(_LLVM_INT_LIKE)
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr[I32])  # noqa: N815
    result = result_def(base(llvm.LLVMPointerType) | VectorType.constr(llvm.LLVMPointerType))
    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))  # noqa: N815
    inbounds = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        lanes = [value.type for value in self.ssa_indices if isinstance(value.type, VectorType)]
        for type in lanes:
            _check_shapes(self, self.result.type, type)
        if isinstance(self.result.type, VectorType) and not lanes:
            raise VerifyException(f"{self.name}: one address, got {self.result.type}")


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
        _check_shapes(self, self.value.type, self.mask.type)


# llvm: operations that xDSL does not have


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
        _check_shapes(self, self.res.type, self.mask.type)


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
        _check_shapes(self, self.res.type, self.mask.type)


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


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """`memref.prefetch %x[%i, %j], read, locality<3>, data : memref<400x400xf32>`, a hint.

    The locality ranges from 0, read once, to 3, keep in the nearest cache.
    """

    name = "memref.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    is_write = prop_def(IntegerAttr, prop_name="isWrite")
    locality = prop_def(IntegerAttr, prop_name="localityHint")
    is_data = prop_def(IntegerAttr, prop_name="isDataCache")

    def verify_(self) -> None:
        rank = memref_type(self.memref).get_num_dims()
        if len(self.indices) != rank:
            raise VerifyException(
                f"{self.name}: wrong number of indices, expected {rank}, got {len(self.indices)}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        how = "write" if self.is_write.value.data else "read"
        where = "data" if self.is_data.value.data else "instr"
        printer.print_string(f", {how}, locality<{self.locality.value.data}>, {where}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        memref = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(",")
        how = parser.expect(lambda: _one_of(parser, "read", "write"), "read or write")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        where = parser.expect(lambda: _one_of(parser, "data", "instr"), "data or instr")
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.resolve_operand(memref, parser.parse_type())
        places = [parser.resolve_operand(index, IndexType()) for index in indices]
        op = cls.create(
            operands=[source, *places],
            properties=prefetch_properties(how == "write", locality, where == "data"),
        )
        op.attributes |= attrs
        return op


def _one_of(parser: Parser, *keywords: str) -> str | None:
    found = (word for word in keywords if parser.parse_optional_keyword(word) is not None)
    return next(found, None)


def prefetch_properties(is_write: bool, locality: int, is_data: bool) -> dict[str, Attribute]:
    """The properties of a `memref.prefetch`."""
    return {
        "isWrite": IntegerAttr(int(is_write), i1),
        "localityHint": IntegerAttr(locality, i32),
        "isDataCache": IntegerAttr(int(is_data), i1),
    }


class LlvmCastOp(IRDLOperation, ABC):
    """A cast instruction: `%r = llvm.fptosi %a : vector<4xf32> to vector<4xi32>`."""

    arg = operand_def()
    res = result_def()

    assembly_format = "$arg attr-dict `:` type($arg) `to` type($res)"

    traits = traits_def(NoMemoryEffect())

    def verify_(self) -> None:
        _check_shapes(self, self.arg.type, self.res.type)


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


class FloatIntrinsicOp(IRDLOperation, ABC):
    """An intrinsic on floats or vectors of floats: `%r = llvm.intr.tanh(%a) : (f32) -> f32`."""

    T: ClassVar = VarConstraint("T", _LLVM_FLOAT_LIKE)

    args = var_operand_def(T)
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=_NO_FLAGS, prop_name="fastmathFlags")

    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, results)"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())


class IntIntrinsicOp(IRDLOperation, ABC):
    """An intrinsic on integers: `%r = llvm.intr.smax(%a, %b) : (i32, i32) -> i32`."""

    T: ClassVar = VarConstraint("T", _LLVM_INT_LIKE)

    args = var_operand_def(T)
    res = result_def(T)

    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, results)"

    traits = traits_def(Pure())


class FloatReduceOp(IRDLOperation, ABC):
    """A reduction of a vector: `%r = llvm.intr.vector.reduce.fmax(%v) : (...) -> f32`."""

    T: ClassVar = VarConstraint("T", AnyFloatConstr)

    vector = operand_def(VectorType.constr(T))
    res = result_def(T)
    fastmath = prop_def(llvm.FastMathAttr, default_value=_NO_FLAGS, prop_name="fastmathFlags")

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


def _intrinsics(kind: type[IRDLOperation], *names: str) -> dict[str, type[IRDLOperation]]:
    """One operation `llvm.intr.<name>` of this kind for each name."""
    made: dict[str, type[IRDLOperation]] = {}
    for name in names:
        class_name = "".join(word.capitalize() for word in name.split(".")) + "IntrinsicOp"
        fields = {"name": f"llvm.intr.{name}", "__doc__": f"The intrinsic `llvm.{name}`."}
        fields |= {"__module__": __name__, "__annotations__": {}}
        made[name] = irdl_op_definition(type(class_name, (kind,), fields))
    return made


INTRINSICS: dict[str, type[IRDLOperation]] = {
    **_intrinsics(FloatIntrinsicOp, "maximum", "minimum", "trunc", "round", "roundeven"),
    **_intrinsics(FloatIntrinsicOp, "log10", "tan", "asin", "acos", "atan", "atan2"),
    **_intrinsics(FloatIntrinsicOp, "sinh", "cosh", "tanh"),
    **_intrinsics(IntIntrinsicOp, "smax", "smin", "umax", "umin"),
    **_intrinsics(FloatReduceOp, "vector.reduce.fmax", "vector.reduce.fmin"),
    **_intrinsics(FloatReduceOp, "vector.reduce.fmaximum", "vector.reduce.fminimum"),
    **_intrinsics(IntReduceOp, "vector.reduce.add", "vector.reduce.mul"),
    **_intrinsics(IntReduceOp, "vector.reduce.and", "vector.reduce.or", "vector.reduce.xor"),
    **_intrinsics(IntReduceOp, "vector.reduce.smax", "vector.reduce.smin"),
    **_intrinsics(IntReduceOp, "vector.reduce.umax", "vector.reduce.umin"),
}
"""Intrinsics that xDSL's `llvm` dialect lacks, by LLVM's name without `llvm.`."""


def _with(dialect: Dialect, *replacements: type[Operation]) -> Dialect:
    """`dialect` with operations of these names replaced, and new ones added."""
    operations = {op.name: op for op in dialect.operations}
    operations |= {op.name: op for op in replacements}
    return Dialect(
        dialect.name,
        list(operations.values()),
        list(dialect.attributes),
        list(dialect._interfaces),  # xDSL has no public way to read them
    )


Arith = _with(
    arith.Arith,
    SelectOp,
    CmpiOp,
    CmpfOp,
    SIToFPOp,
    UIToFPOp,
    FPToSIOp,
    FPToUIOp,
    ExtSIOp,
    ExtUIOp,
    TruncIOp,
    IndexCastOp,
    IndexCastUIOp,
)

MemRef = _with(memref.MemRef, PrefetchOp)

Scf = _with(scf.Scf, WhileOp)

Vector = _with(vector_dialect.Vector, BroadcastOp, ReductionOp, GatherOp)

Llvm = _with(
    llvm.LLVM,
    LlvmSelectOp,
    FCmpOp,
    GEPOp,
    MaskedStoreOp,
    MaskedLoadOp,
    MaskedGatherOp,
    ExtractElementOp,
    PoisonOp,
    LlvmFPToSIOp,
    LlvmFPToUIOp,
    LlvmUIToFPOp,
    *INTRINSICS.values(),
)
