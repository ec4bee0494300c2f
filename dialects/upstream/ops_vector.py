"""Operations of `vector` that xDSL lacks or does not verify."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects import vector as vector_dialect
from xdsl.dialects.builtin import I1, IndexType, IntegerType, MemRefType, VectorType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type, vector_type
from .element_types import check_shapes
from .ops_arith import ARITH_NO_FLAGS


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
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=ARITH_NO_FLAGS)

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
            check_shapes(self, result, other)
