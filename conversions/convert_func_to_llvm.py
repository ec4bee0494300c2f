"""Functions, calls and returns to the LLVM dialect.

Every function has the plain calling convention: an `index` is as wide as on the target, a buffer
is its address followed by one index for each symbolic dimension. Several results are returned as
a struct.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region
from xdsl.passes import ModulePass

from ..core.pipelines.budgets import EXACT
from ..dialects.program import kept_attributes
from ..dialects.stages import reach
from ..dialects.upstream import ops as upstream
from .to_llvm.calls import plain_call
from .to_llvm.lowering import Lowering, LoweringTable, lower_module

FUNC = LoweringTable()
"""How to lower each operation of `func`."""

_EXTERNAL, _INTERNAL = llvm.LinkageAttr("external"), llvm.LinkageAttr("internal")
_NO_ATTRIBUTES = DictionaryAttr({})


@FUNC.on(func.FuncOp)
def lower_func(old: func.FuncOp, low: Lowering) -> None:
    body = old.detach_region(old.body)
    new = llvm.FuncOp(
        old.sym_name,
        llvm.LLVMFunctionType(
            [part for type in old.function_type.inputs for part in low.parts_of(type)],
            _result_type(low, old.function_type.outputs.data),
        ),
        # A private function with a body can be inlined away; one without comes from elsewhere.
        linkage=_INTERNAL
        if old.sym_visibility == StringAttr("private") and body.blocks
        else _EXTERNAL,
        body=body,
        other_props={"arg_attrs": _argument_attributes(low, old)},
        extra_attrs=kept_attributes(old),
    )
    old.add_region(Region())
    low.perform(new)
    if body.blocks:
        low.convert_arguments(body.blocks[0])
        low.walk_function(body)


def _result_type(low: Lowering, types: Sequence[Attribute]) -> Attribute | None:
    parts = [part for type in types for part in low.parts_of(type)]
    if len(parts) < 2:
        return parts[0] if parts else None
    return llvm.LLVMStructType.from_type_list(parts)


def _argument_attributes(low: Lowering, op: func.FuncOp) -> ArrayAttr[DictionaryAttr] | None:
    """LLVM's attributes of each argument, given to the address of a buffer; no others."""
    if op.arg_attrs is None:
        return None
    result: list[DictionaryAttr] = []
    for type, given in zip(op.function_type.inputs, op.arg_attrs, strict=True):
        kept = {key: value for key, value in given.data.items() if key.startswith("llvm.")}
        result.append(DictionaryAttr(kept) if kept else _NO_ATTRIBUTES)
        result += [_NO_ATTRIBUTES] * (len(low.parts_of(type)) - 1)
    return ArrayAttr(result) if any(one.data for one in result) else None


@FUNC.on(func.ReturnOp)
def lower_return(op: Operation, low: Lowering) -> None:
    parts = [part for operand in op.operands for part in low.parts(operand)]
    if len(parts) < 2:
        low.perform(llvm.ReturnOp.create(operands=parts))
        return
    type = llvm.LLVMStructType.from_type_list([part.type for part in parts])
    result = low.emit(upstream.PoisonOp, (), type)
    for number, part in enumerate(parts):
        position = {"position": DenseArrayBase.from_list(i64, [number])}
        result = low.emit(llvm.InsertValueOp, (result, part), type, position)
    low.perform(llvm.ReturnOp.create(operands=[result]))


@FUNC.on(func.CallOp)
def lower_call(call: func.CallOp, low: Lowering) -> None:
    arguments = [part for operand in call.operands for part in low.parts(operand)]
    result_type = _result_type(low, [result.type for result in call.results])
    new = low.perform(plain_call(call.callee, arguments, result_type))
    if not call.results:
        return
    returned = new.results[0]
    flat = [part for result in call.results for part in low.parts_of(result.type)]
    if len(flat) > 1:
        values = [
            low.emit(
                llvm.ExtractValueOp,
                (returned,),
                type,
                {"position": DenseArrayBase.from_list(i64, [number])},
            )
            for number, type in enumerate(flat)
        ]
    else:
        values = [returned]
    for result in call.results:
        count = len(low.parts_of(result.type))
        low.define(result, tuple(values[:count]))
        values = values[count:]


class ConvertFuncToLlvmPass(ModulePass):
    """Lower functions, calls and returns to the LLVM dialect.

    Before:
    ```mlir
    func.func @f(%x: memref<?x4xf32> {llvm.noalias}, %i: i64) -> i64 {
      func.return %i : i64
    }
    ```
    After:
    ```mlir
    llvm.func @f(%x: !llvm.ptr {llvm.noalias}, %0: i64, %i: i64) -> i64 {
      llvm.return %i : i64
    }
    ```
    Requires: contiguous buffers.
    Leaves: no operation of `func`. Attributes of arguments are kept where LLVM knows them, those
    of a function where they say how it is called (`dialects/program.py`).
    """

    name = "convert-func-to-llvm"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, FUNC, ["func"])
        reach(op, "llvm")
