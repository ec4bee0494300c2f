"""Outline the bodies of parallel regions into functions."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...core.ir.walks import operations_in
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...dialects.program import BLOCK, KERNEL
from ...dialects.rt import ops as rt


def _outline(op: rt.ParallelTilesOp, function: func.FuncOp, name: str) -> func.FuncOp:
    """Move the body of a region into a function after `function`, called for each tile."""
    types = [IndexType(), *(value.type for value in op.captures)]
    outlined = func.FuncOp.create(
        properties={
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists(types, []),
            "sym_visibility": StringAttr("private"),
            **_argument_attributes(op, function),
        },
        regions=[op.detach_region(op.body)],
        location=op.location,
    )
    if op.block is not None:
        outlined.attributes[BLOCK] = op.block
    if op.device is not None and KERNEL not in function.attributes:
        outlined.attributes[KERNEL] = ArrayAttr([*(value.type for value in op.captures)])
    for block in outlined.body.blocks:
        last = block.last_op
        if isinstance(last, rt.YieldOp):
            end = func.ReturnOp()
            end.location = last.location
            last.detach()
            last.erase()
            block.add_op(end)
    call = rt.CallTilesOp(op.count, name, list(op.captures), op.alternating, op.device, op.block)
    call.location = op.location
    block, place = op.parent, function.parent
    assert block is not None
    assert place is not None
    block.insert_op_before(call, op)
    op.detach()
    op.erase()
    place.insert_op_after(outlined, function)
    return outlined


def _argument_attributes(
    op: rt.ParallelTilesOp, function: func.FuncOp
) -> dict[str, ArrayAttr[DictionaryAttr]]:
    """The attributes of arguments of `function`, such as noalias, which hold for a tile too."""
    if function.arg_attrs is None:
        return {}
    given = function.arg_attrs.data

    def of(value: SSAValue) -> DictionaryAttr:
        if not isinstance(value, BlockArgument) or value.block is not _entry(function):
            return DictionaryAttr({})
        kept = given[value.index].data.items()
        return DictionaryAttr({key: value for key, value in kept if key.startswith("llvm.")})

    attributes = [DictionaryAttr({}), *(of(value) for value in op.captures)]
    return {"arg_attrs": ArrayAttr(attributes)} if any(a.data for a in attributes) else {}


def _entry(function: func.FuncOp) -> Block:
    return function.body.blocks[0]


def _outermost(function: Operation) -> list[rt.ParallelTilesOp]:
    """The outermost parallel regions of a function; outlining moves inner ones with them."""
    # Operations derive from an ABC, for which isinstance is slow.
    regions = [op for op in operations_in(function) if type(op) is rt.ParallelTilesOp]
    return [op for op in regions if not any(op is not r and r.is_ancestor(op) for r in regions)]


class RtOutlineTilesPass(ModulePass):
    """Turn the body of each parallel region into a private function of its tile and captures.

    Before:
    ```mlir
    func.func @k(%x: memref<?xf32> {llvm.noalias}, %n: index) {
      rt.parallel_tiles %n captures(%x : memref<?xf32>) {
      ^bb0(%t: index, %a: memref<?xf32>):
        rt.yield
      }
      func.return
    }
    ```
    After:
    ```mlir
    func.func @k(%x: memref<?xf32> {llvm.noalias}, %n: index) {
      rt.call_tiles %n, @k_tiles0(%x) : memref<?xf32>
      func.return
    }
    func.func private @k_tiles0(%t: index, %a: memref<?xf32> {llvm.noalias}) {
      func.return
    }
    ```
    Requires: parallel regions in functions.
    Leaves: no `rt.parallel_tiles`.
    """

    name = "rt-outline-tiles"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in operations_in(op) if type(inner) is func.FuncOp]
        taken = {function.sym_name.data for function in functions}
        while functions:
            function = functions.pop(0)
            for region in _outermost(function):
                if not allowed("outline", region):
                    continue
                number = 0
                part = "tiles" if region.device is None else "thread"
                part = part if region.block is None else "block"
                while f"{function.sym_name.data}_{part}{number}" in taken:
                    number += 1
                name = f"{function.sym_name.data}_{part}{number}"
                taken.add(name)
                functions.append(_outline(region, function, name))
