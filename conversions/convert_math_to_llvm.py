"""Mathematical functions to LLVM instructions, intrinsics and calls of libm.

LLVM itself splits a vector intrinsic without an instruction into lanes.
Functions without an LLVM intrinsic or instruction (erf and a few others) call libm lane by lane.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import llvm, math
from xdsl.dialects.builtin import (
    ModuleOp,
    SymbolRefAttr,
    f32,
    f64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ..core.pipelines.budgets import APPROXIMATION
from ..dialects.upstream import ops as upstream
from .to_llvm.lowering import Lowering, LoweringTable, lower_module
from .to_llvm.types import element_of, fastmath_of, lanes_of

MATH = LoweringTable()
"""How to lower each operation of `math`."""

_INTRINSICS: dict[type[Operation], type[Operation]] = {
    math.AbsFOp: llvm.FAbsOp,
    math.CeilOp: llvm.FCeilOp,
    math.FloorOp: llvm.FFloorOp,
    math.SqrtOp: llvm.FSqrtOp,
    math.ExpOp: llvm.FExpOp,
    math.Exp2Op: llvm.FExp2Op,
    math.LogOp: llvm.FLogOp,
    math.Log2Op: llvm.FLog2Op,
    math.SinOp: llvm.FSinOp,
    math.CosOp: llvm.FCosOp,
    math.PowFOp: llvm.FPowOp,
    math.CopySignOp: llvm.FCopySignOp,
    math.FmaOp: llvm.FMAOp,
    **{
        kind: upstream.INTRINSICS[kind.name.removeprefix("math.")]
        for kind in (
            *(math.TruncOp, math.RoundOp, math.RoundEvenOp, math.Log10Op, math.TanOp, math.AsinOp),
            *(math.AcosOp, math.AtanOp, math.Atan2Op, math.SinhOp, math.CoshOp, math.TanhOp),
        )
    },
}

_LIBM = (
    *(math.ErfOp, math.ExpM1Op, math.Log1pOp, math.CbrtOp),
    *(math.AsinhOp, math.AcoshOp, math.AtanhOp),
)


@MATH.on(*_INTRINSICS)
def lower_intrinsic(op: Operation, low: Lowering) -> SSAValue:
    lanes_of(op.results[0].type)
    operands = [low.value(operand) for operand in op.operands]
    return low.emit(_INTRINSICS[type(op)], operands, op.results[0].type, fastmath_of(op))


# rsqrt(x) == 1 / sqrt(x)
@MATH.on(math.RsqrtOp)
def lower_rsqrt(op: Operation, low: Lowering) -> SSAValue:
    type, flags = op.results[0].type, fastmath_of(op)
    lanes_of(type)
    root = low.emit(llvm.FSqrtOp, (low.value(op.operands[0]),), type, flags)
    return low.emit(llvm.FDivOp, (low.number(1.0, type), root), type, flags)


# abs(x) == max(x, 0 - x)
@MATH.on(math.AbsIOp)
def lower_absi(op: Operation, low: Lowering) -> SSAValue:
    value = low.value(op.operands[0])
    negated = low.emit(llvm.SubOp, (low.number(0, value.type), value), value.type)
    return low.emit(upstream.INTRINSICS["smax"], (value, negated), value.type)


@MATH.on(*_LIBM)
def lower_libm(op: Operation, low: Lowering) -> SSAValue:
    value = low.value(op.operands[0])
    element = element_of(value.type)
    if element not in (f32, f64):
        low.refuse("no function of libm for this type", "f32 or f64", element)
    name = op.name.removeprefix("math.") + ("f" if element == f32 else "")
    low.declare(name, llvm.LLVMFunctionType([element], element))
    lanes = lanes_of(value.type)
    if lanes is None:
        return _call(low, name, value)
    result = low.emit(upstream.PoisonOp, (), value.type)
    for lane in range(lanes):
        at = low.integer(lane)
        called = _call(low, name, low.emit(upstream.ExtractElementOp, (value, at), element))
        result = low.emit(llvm.InsertElementOp, (result, called, at), value.type)
    return result


def _call(low: Lowering, name: str, argument: SSAValue) -> SSAValue:
    call = llvm.CallOp(SymbolRefAttr(name), argument, return_type=argument.type)
    return low.perform(call).results[0]


class ConvertMathToLlvmPass(ModulePass):
    """Lower mathematical functions to instructions, intrinsics and libm.

    Before:
    ```mlir
    func.func @f(%a: vector<4xf32>, %b: vector<4xf32>) -> vector<4xf32> {
      %0 = math.sqrt %a : vector<4xf32>
      %1 = math.copysign %0, %b : vector<4xf32>
      func.return %1 : vector<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%a: vector<4xf32>, %b: vector<4xf32>) -> vector<4xf32> {
      %0 = llvm.intr.sqrt(%a) : (vector<4xf32>) -> vector<4xf32>
      %1 = llvm.intr.copysign(%0, %b) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      func.return %1 : vector<4xf32>
    }
    ```
    Requires: vectors of one fixed dimension. Fast single-precision functions come from
    `convert-math-to-arith`, before this.
    Leaves: no operation of `math`.
    """

    name = "convert-math-to-llvm"
    budget = APPROXIMATION

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, MATH, ["math"])
