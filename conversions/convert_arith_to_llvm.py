"""Arithmetic on scalars and machine vectors to LLVM instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    VectorType,
    bf16,
    f32,
    i1,
    i16,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..core.pipelines.budgets import EXACT
from ..dialects.upstream import ops as upstream
from .to_llvm.lowering import Lowering, LoweringTable, Parts, lower_module
from .to_llvm.types import NO_FASTMATH, dense, element_of, fastmath_of, int_attr, lanes_of

ARITH = LoweringTable()
"""How to lower each operation of `arith`."""

_INTEGER: dict[type[Operation], type[Operation]] = {
    arith.AddiOp: llvm.AddOp,
    arith.SubiOp: llvm.SubOp,
    arith.MuliOp: llvm.MulOp,
    arith.DivSIOp: llvm.SDivOp,
    arith.DivUIOp: llvm.UDivOp,
    arith.RemSIOp: llvm.SRemOp,
    arith.RemUIOp: llvm.URemOp,
    arith.AndIOp: llvm.AndOp,
    arith.OrIOp: llvm.OrOp,
    arith.XOrIOp: llvm.XOrOp,
    arith.ShLIOp: llvm.ShlOp,
    arith.ShRSIOp: llvm.AShrOp,
    arith.ShRUIOp: llvm.LShrOp,
    arith.MaxSIOp: upstream.INTRINSICS["smax"],
    arith.MinSIOp: upstream.INTRINSICS["smin"],
    arith.MaxUIOp: upstream.INTRINSICS["umax"],
    arith.MinUIOp: upstream.INTRINSICS["umin"],
    **dict.fromkeys((arith.CmpiOp, upstream.CmpiOp), llvm.ICmpOp),
}

_FLOAT: dict[type[Operation], type[Operation]] = {
    arith.AddfOp: llvm.FAddOp,
    arith.SubfOp: llvm.FSubOp,
    arith.MulfOp: llvm.FMulOp,
    arith.DivfOp: llvm.FDivOp,
    upstream.RemfOp: llvm.FRemOp,
    arith.MaximumfOp: upstream.INTRINSICS["maximum"],
    arith.MinimumfOp: upstream.INTRINSICS["minimum"],
    arith.MaxnumfOp: llvm.VectorFMaxOp,
    arith.MinnumfOp: llvm.VectorFMinOp,
    arith.NegfOp: llvm.FNegOp,
    **dict.fromkeys((arith.CmpfOp, upstream.CmpfOp), upstream.FCmpOp),
}

_CASTS: dict[type[Operation], type[Operation]] = {
    **dict.fromkeys((arith.ExtFOp, upstream.ExtFOp), llvm.FPExtOp),
    **dict.fromkeys((arith.TruncFOp, upstream.TruncFOp), llvm.FPTruncOp),
    **dict.fromkeys((arith.ExtSIOp, upstream.ExtSIOp), llvm.SExtOp),
    **dict.fromkeys((arith.ExtUIOp, upstream.ExtUIOp), llvm.ZExtOp),
    **dict.fromkeys((arith.TruncIOp, upstream.TruncIOp), llvm.TruncOp),
    **dict.fromkeys((arith.SIToFPOp, upstream.SIToFPOp), llvm.SIToFPOp),
    **dict.fromkeys((arith.UIToFPOp, upstream.UIToFPOp), upstream.LlvmUIToFPOp),
    **dict.fromkeys((arith.FPToSIOp, upstream.FPToSIOp), upstream.LlvmFPToSIOp),
    **dict.fromkeys((arith.FPToUIOp, upstream.FPToUIOp), upstream.LlvmFPToUIOp),
}

_OVERFLOW = {
    arith.IntegerOverflowFlag.NSW: 1,
    arith.IntegerOverflowFlag.NUW: 2,
}

_UNORDERED = int_attr(arith.CMPF_COMPARISON_OPERATIONS.index("uno"), 64)


@ARITH.on(arith.ConstantOp)
def lower_constant(op: Operation, low: Lowering) -> SSAValue:
    value, type = op.properties["value"], op.results[0].type
    (target,) = low.parts_of(type)
    lanes_of(type)
    if isinstance(value, IntegerAttr):
        return low.integer(value.value.data, target)
    if isinstance(value, FloatAttr):
        if element_of(type) == bf16:
            return low.integer(_bits(value.value.data), target)
        return low.constant(value, target)
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(target, VectorType):
        low.refuse("constant cannot be converted", "a number or dense elements", type)
    if target != type:
        number = _bits if element_of(type) == bf16 else int
        value = dense(target, [number(element) for element in value.get_values()])
    return low.constant(value, target)


@ARITH.on(*_INTEGER)
def lower_integer(op: Operation, low: Lowering) -> SSAValue:
    operands = [low.value(operand) for operand in op.operands]
    result = low.parts_of(op.results[0].type)[0]
    return low.emit(_INTEGER[type(op)], operands, result, {**_overflow(op), **_predicate(op)})


def _overflow(op: Operation) -> Mapping[str, Attribute]:
    flags = op.properties.get("overflowFlags")
    if not isinstance(flags, arith.IntegerOverflowAttr) or not flags.data:
        return {}
    return {"overflowFlags": int_attr(sum(_OVERFLOW[flag] for flag in flags.data), 32)}


def _predicate(op: Operation) -> Mapping[str, Attribute]:
    predicate = op.properties.get("predicate")
    return {} if predicate is None else {"predicate": predicate}


@ARITH.on(*_FLOAT)
def lower_float(op: Operation, low: Lowering) -> SSAValue:
    operands = [low.value(operand) for operand in op.operands]
    properties = {**fastmath_of(op), **_predicate(op)}
    return low.emit(_FLOAT[type(op)], operands, op.results[0].type, properties)


# Selecting between buffers selects between addresses and between sizes.
@ARITH.on(arith.SelectOp, upstream.SelectOp)
def lower_select(op: Operation, low: Lowering) -> Parts:
    condition = low.value(op.operands[0])
    return tuple(
        one
        if one is other
        else low.emit(upstream.LlvmSelectOp, (condition, one, other), one.type, NO_FASTMATH)
        for one, other in zip(low.parts(op.operands[1]), low.parts(op.operands[2]), strict=True)
    )


@ARITH.on(*_CASTS)
def lower_cast(op: Operation, low: Lowering) -> SSAValue:
    if element_of(op.operands[0].type) == bf16:
        return _from_bf16(op, low)
    if element_of(op.results[0].type) == bf16:
        return _to_bf16(op, low)
    return low.emit(_CASTS[type(op)], (low.value(op.operands[0]),), op.results[0].type)


def _bits(number: float) -> int:
    """The bits of a bf16, as a signed integer."""
    return int.from_bytes(bf16.pack((number,)), "little", signed=True)


def _only_f32(op: Operation, low: Lowering, other: Attribute) -> tuple[Attribute, Attribute]:
    """The integer types of an f32 and of a bf16, for a cast between the two."""
    if op.name not in (arith.ExtFOp.name, arith.TruncFOp.name) or element_of(other) != f32:
        low.refuse("cast cannot be converted", "bf16 to f32, or f32 to bf16", other)
    return upstream.with_element_type(other, i32), upstream.with_element_type(other, i16)


# The bits of a bf16 are the upper half of those of the f32 with its value.
def _from_bf16(op: Operation, low: Lowering) -> SSAValue:
    result = op.results[0].type
    wide, _ = _only_f32(op, low, result)
    bits = low.emit(llvm.ZExtOp, (low.value(op.operands[0]),), wide)
    bits = low.emit(llvm.ShlOp, (bits, low.number(16, wide)), wide)
    return low.emit(llvm.BitcastOp, (bits,), result)


# (bits + 0x7fff + the last bit that stays) >> 16 rounds to nearest even; a NaN stays one.
def _to_bf16(op: Operation, low: Lowering) -> SSAValue:
    value, type = low.value(op.operands[0]), op.operands[0].type
    wide, narrow = _only_f32(op, low, type)
    flag = upstream.with_element_type(type, i1)
    sixteen = low.number(16, wide)
    bits = low.emit(llvm.BitcastOp, (value,), wide)
    upper = low.emit(llvm.LShrOp, (bits, sixteen), wide)
    odd = low.emit(llvm.AndOp, (upper, low.number(1, wide)), wide)
    bias = low.emit(llvm.AddOp, (odd, low.number(0x7FFF, wide)), wide)
    rounded = low.emit(llvm.AddOp, (bits, bias), wide)
    rounded = low.emit(llvm.LShrOp, (rounded, sixteen), wide)
    quiet = low.emit(llvm.OrOp, (upper, low.number(0x40, wide)), wide)
    unordered = {"predicate": _UNORDERED, **NO_FASTMATH}
    is_nan = low.emit(upstream.FCmpOp, (value, value), flag, unordered)
    chosen = low.emit(upstream.LlvmSelectOp, (is_nan, quiet, rounded), wide, NO_FASTMATH)
    return low.emit(llvm.TruncOp, (chosen,), narrow)


@ARITH.on(arith.IndexCastOp, upstream.IndexCastOp, upstream.IndexCastUIOp)
def lower_index_cast(op: Operation, low: Lowering) -> SSAValue:
    value, (target,) = low.value(op.operands[0]), low.parts_of(op.results[0].type)
    have, want = _width(value.type), _width(target)
    if have == want:
        return value
    if want < have:
        return low.emit(llvm.TruncOp, (value,), target)
    widen = llvm.ZExtOp if isinstance(op, upstream.IndexCastUIOp) else llvm.SExtOp
    return low.emit(widen, (value,), target)


def _width(type: Attribute) -> int:
    return cast(FixedBitwidthType, element_of(type)).bitwidth


@ARITH.on(arith.BitcastOp)
def lower_bitcast(op: Operation, low: Lowering) -> SSAValue:
    value, (target,) = low.value(op.operands[0]), low.parts_of(op.results[0].type)
    return value if value.type == target else low.emit(llvm.BitcastOp, (value,), target)


# floordiv(a, b) == a / b - 1  where the signs of the remainder and of b differ, else a / b
# ceildiv(a, b) == a / b + 1  where the signs of the remainder and of b agree, else a / b
@ARITH.on(arith.FloorDivSIOp, arith.CeilDivSIOp)
def lower_rounded_division(op: Operation, low: Lowering) -> SSAValue:
    is_floor = isinstance(op, arith.FloorDivSIOp)
    a, b = (low.value(operand) for operand in op.operands)
    type, zero = a.type, low.number(0, a.type)
    quotient = low.emit(llvm.SDivOp, (a, b), type)
    remainder = low.emit(llvm.SRemOp, (a, b), type)
    inexact = low.compare("ne", remainder, zero)
    mixed = low.emit(llvm.XOrOp, (remainder, b), type)
    wrong = low.compare("slt" if is_floor else "sge", mixed, zero)
    wanted = low.emit(llvm.AndOp, (inexact, wrong), wrong.type)
    adjust = llvm.SubOp if is_floor else llvm.AddOp
    adjusted = low.emit(adjust, (quotient, low.number(1, type)), type)
    operands = (wanted, adjusted, quotient)
    return low.emit(upstream.LlvmSelectOp, operands, type, NO_FASTMATH)


# ceildiv(a, b) == a / b + (a mod b != 0)
@ARITH.on(arith.CeilDivUIOp)
def lower_ceildivui(op: Operation, low: Lowering) -> SSAValue:
    a, b = (low.value(operand) for operand in op.operands)
    type = a.type
    quotient = low.emit(llvm.UDivOp, (a, b), type)
    remainder = low.emit(llvm.URemOp, (a, b), type)
    inexact = low.compare("ne", remainder, low.number(0, type))
    return low.emit(llvm.AddOp, (quotient, low.emit(llvm.ZExtOp, (inexact,), type)), type)


class ConvertArithToLlvmPass(ModulePass):
    """Lower arithmetic on scalars and machine vectors to the LLVM dialect.

    Before:
    ```mlir
    func.func @f(%a: i32, %b: i32) -> i1 {
      %0 = arith.addi %a, %b : i32
      %1 = arith.cmpi slt, %0, %b : i32
      func.return %1 : i1
    }
    ```
    After:
    ```mlir
    func.func @f(%a: i32, %b: i32) -> i1 {
      %0 = llvm.add %a, %b : i32
      %1 = llvm.icmp "slt" %0, %b : i32
      func.return %1 : i1
    }
    ```
    Requires: vectors of one fixed dimension.
    Leaves: no operation of `arith`; an `index` is an integer, with casts where others use it.
    """

    name = "convert-arith-to-llvm"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, ARITH, ["arith"])
