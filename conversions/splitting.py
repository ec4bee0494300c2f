"""A primitive function that cannot be one kernel becomes several, with buffers in between."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..core.provenance import fuse
from ..dialects.graph import ops as graph
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.shapes import SymbolicShapes
from ..dialects.loop.ops import KernelOp


def split_primitive(
    module: ModuleOp, function: func.FuncOp, value: SSAValue, calls: Sequence[func.CallOp]
) -> func.FuncOp:
    """Move what computes `value` into a function of its own, which is returned.

        y = f(x) where f(x) = h(g(x))  ->  t = f_0(x); y = f(t) where f_0 = g, f = h

    What is needed on both sides is cut first, so that nothing is computed twice.

    Args:
        module: the module of the function.
        function: a primitive function.
        value: a result of one of its operators that is not all it returns.
        calls: the calls of the function; each becomes two.
    """
    ops = _slice_of(value)
    inside = set(ops)
    for op in ops:
        users = {use.operation for result in op.results for use in result.uses}
        if op is not value.owner and not isinstance(op, graph.ConstantOp) and users - inside:
            return split_primitive(module, function, op.results[0], calls)
    args = [arg for arg in function.body.block.args if any(arg in op.operands for op in ops)]
    shapes = SymbolicShapes(function)
    before = _function(module, function, ops, args, shapes)
    results = cast(Operation, value.owner).results
    numbers = [function.body.block.args.index(arg) for arg in args]
    block = function.body.block
    count = len(block.args)
    passed = [block.insert_arg(result.type, len(block.args)) for result in results]
    names = {arg: _names(shapes, arg) for arg in block.args[:count]}
    for result, arg in zip(results, passed, strict=True):
        names[arg] = _names(shapes, result)
        arg.name_hint = result.name_hint
        result.replace_all_uses_with(arg)
    for op in reversed(ops):
        if not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)
    kept = [n for n in range(count) if block.args[n].first_use is not None]
    for number in reversed(range(count)):
        if number not in kept:
            block.erase_arg(block.args[number])
    function.function_type = FunctionType.from_lists(
        [arg.type for arg in block.args], function.function_type.outputs.data
    )
    function.arg_attrs = ArrayAttr([names[arg] for arg in block.args])
    for call in calls:
        _call_twice(call, before, numbers, kept)
    return before


def _slice_of(value: SSAValue) -> list[Operation]:
    """The operations that compute a value, in the order of their block."""
    needed: set[Operation] = set()
    waiting = [value.owner]
    while waiting:
        op = waiting.pop()
        if isinstance(op, Operation) and op not in needed:
            needed.add(op)
            waiting += [operand.owner for operand in op.operands]
    block = cast(Operation, value.owner).parent
    assert block is not None
    return [op for op in block.ops if op in needed]


def _names(shapes: SymbolicShapes, value: SSAValue) -> DictionaryAttr:
    """What an argument says of the sizes of a value: their names, where they have some."""
    names = ["" if d.is_static else str(d) for d in shapes.shape(value)]
    names = [name if re.fullmatch(r"[A-Za-z]\w*", name) else "" for name in names]
    return DictionaryAttr(
        {"graph.dims": ArrayAttr([StringAttr(name) for name in names])} if any(names) else {}
    )


def _function(
    module: ModuleOp,
    source: func.FuncOp,
    ops: Sequence[Operation],
    args: Sequence[SSAValue],
    shapes: SymbolicShapes,
) -> func.FuncOp:
    """A primitive function of copies of operations, which returns what the last one gives."""
    block = Block(arg_types=[arg.type for arg in args])
    copies: dict[SSAValue, SSAValue] = dict(zip(args, block.args, strict=True))
    for old, new in zip(args, block.args, strict=True):
        new.name_hint = old.name_hint
    for op in ops:
        block.add_op(op.clone(copies))
    returned = [copies[result] for result in ops[-1].results]
    block.add_op(func.ReturnOp(*returned))
    types = ([a.type for a in block.args], [v.type for v in returned])
    named = (func.FuncOp, KernelOp)
    taken = {op.sym_name.data for op in module.ops if isinstance(op, named)}
    number = 0
    while (name := f"{source.sym_name.data}_{number}") in taken:
        number += 1
    names = ArrayAttr([_names(shapes, arg) for arg in args])
    result = func.FuncOp(name, types, Region(block), "private", arg_attrs=names)
    result.attributes["graph.primitive"] = UnitAttr()
    result.location = fuse(op for op in ops if isinstance(op, GraphOp))
    Rewriter.insert_op(result, InsertPoint.before(source))
    return result


def _call_twice(
    call: func.CallOp, before: func.FuncOp, numbers: Sequence[int], kept: Sequence[int]
) -> None:
    """Call `before` with some of the arguments, and what was called with the rest."""
    first = func.CallOp(
        SymbolRefAttr(before.sym_name.data),
        [call.arguments[number] for number in numbers],
        list(before.function_type.outputs),
    )
    first.location = before.location
    second = func.CallOp(
        call.callee,
        [*(call.arguments[number] for number in kept), *first.results],
        list(call.result_types),
    )
    second.location = call.location
    for old, new in zip(call.results, second.results, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(call, [first, second], list(second.results))
