"""Outlining: operators of a block move into a function that is called in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....core.building.creation import copied
from ....core.ir.dominance import dependents_between
from ....core.ir.provenance import fuse
from ....core.ir.symbols import free_symbol
from ....core.ir.typed import owned
from ....core.ir.walks import is_same
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import PRIMITIVE
from ....dialects.graph.demands import read_operands
from ....dialects.graph.interfaces import GraphOp
from ....dialects.loop.ops import KernelOp


def has_kernel(op: Operation) -> TypeGuard[GraphOp]:
    """Whether an operation is an operator that can be (part of) a kernel."""
    if not isinstance(op, GraphOp) or isinstance(op, graph.ConstantOp):
        return False
    return op.refusal is None


def bring_together(ops: Sequence[Operation]) -> None:
    """Move the operations that need results of `ops` after the last of them.

    Args:
        ops: operations in the order of the block, none of which depends on moved ones.
    """
    depending = dependents_between(ops)
    assert depending is not None
    for op in depending:
        op.detach()
    if depending:
        Rewriter.insert_op(depending, InsertPoint.after(ops[-1]))


def _in_order(ops: Sequence[Operation]) -> list[Operation]:
    """Operations of one block in its order."""
    block, inside = ops[0].parent, set(ops)
    assert block is not None
    return [op for op in block.ops if op in inside]


class Outliner:
    """Moves groups of operators into primitive functions, one for equal groups of a name."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.functions: dict[str, list[func.FuncOp]] = {}
        named = (func.FuncOp, KernelOp)
        self.taken = {f.sym_name.data for f in module.walk() if isinstance(f, named)}

    def outline(
        self, ops: Sequence[Operation], results: Sequence[SSAValue], name: str
    ) -> func.FuncOp:
        """Replace operators by a call of a primitive function, which is returned.

        Args:
            ops: the operators, in the order of their block, or of what it was when others
                were not outlined yet.
            results: those of their results that are used elsewhere; none of the operators
                may need what is made of them elsewhere (`dependents_between`).
            name: the name of the function, with a number appended where it is taken.
        """
        if any(value.owner is not ops[-1] for value in results):
            # What others needed may have been moved since.
            ops = _in_order(ops)
            bring_together(ops)
        arguments = _arguments(ops)
        function = self._shared(_primitive(ops, arguments, results), name)
        call = func.CallOp(function.sym_name.data, arguments, [v.type for v in results])
        call.location = fuse(ops)
        function.location = fuse([function, *ops])
        Rewriter.insert_op(call, InsertPoint.before(ops[-1]))
        for result, old in zip(call.results, results, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        for op in reversed(ops):
            Rewriter.erase_op(op)
        return function

    def _shared(self, function: func.FuncOp, name: str) -> func.FuncOp:
        for known in self.functions.get(name, []):
            if known.function_type == function.function_type and is_same(known.body, function.body):
                for one, other in zip(known.body.walk(), function.body.walk(), strict=True):
                    one.location = fuse([one, other])
                return known
        unique = free_symbol(name, self.taken)
        self.taken.add(unique)
        function.properties["sym_name"] = StringAttr(unique)
        self.functions.setdefault(name, []).append(function)
        self.module.body.block.add_op(function)
        return function


def _arguments(ops: Sequence[Operation]) -> list[SSAValue]:
    """The values that operators use and do not make, in order of use, but for splats.

    Indices and sizes stay arguments: those of a kernel are read before it runs.
    """
    inside = set(ops)
    values = [v for op in ops for v in op.operands if v.owner not in inside]
    indices = {value for op in ops for value in read_operands(op)}
    return [v for v in dict.fromkeys(values) if graph.splat_of(v) is None or v in indices]


def _primitive(
    ops: Sequence[Operation], arguments: Sequence[SSAValue], results: Sequence[SSAValue]
) -> func.FuncOp:
    """The function that computes a group; constants with one value everywhere are cloned."""
    block = Block(arg_types=[value.type for value in arguments])
    copies: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    for argument, value in zip(block.args, arguments, strict=True):
        argument.name_hint = value.name_hint
    for op in ops:
        for operand in op.operands:
            if operand not in copies:
                block.add_op(copied(owned(operand, Operation), copies))
        copy = copied(op, copies)
        if isinstance(copy, graph.CallDpsOp):
            # The names are those of the function that it was in; the kernel says the sizes.
            copy.result_dims = None
        block.add_op(copy)
    returned = [copies[result] for result in results]
    block.add_op(func.ReturnOp(*returned))
    types = ([a.type for a in block.args], [v.type for v in returned])
    function = func.FuncOp("primitive", types, Region(block), "private")
    function.attributes[PRIMITIVE] = UnitAttr()
    return function
