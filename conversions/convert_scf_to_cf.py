"""Structured control flow to branches.

The block around an operation is split at it, and the blocks of its regions go in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, cf, memref, scf
from xdsl.dialects.builtin import (
    DenseIntElementsAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriterListener

from ..core.building.creation import created
from ..core.building.tables import HandlerTable
from ..core.ir.typed import function_around
from ..core.ir.walks import erase_dead, operations_in
from ..core.pipelines.actions import allowed
from ..core.pipelines.budgets import EXACT
from ..dialects.program import UNROLL
from ..dialects.upstream import ops as upstream
from .to_llvm.types import numbers_attr

_LESS = {"predicate": IntegerAttr(arith.CMPI_COMPARISON_OPERATIONS.index("slt"), i64)}


class BranchTable(HandlerTable[tuple[Block, Block], Sequence[SSAValue]]):
    """How to lower operations, by their classes.

    A function takes the blocks before and after the operation, and returns the values of its
    results.
    """


STRUCTURED = BranchTable()


# %r = scf.for %i = %l to %u step %s iter_args(%a = %x) { body; yield %b }
#   == br ^test(%l, %x)
#      ^test(%i, %r): cond_br %i < %u, ^body, ^end
#      ^body: body; br ^test(%i + %s, %b)
@STRUCTURED.on(scf.ForOp)
def lower_for(op: scf.ForOp, around: tuple[Block, Block]) -> Sequence[SSAValue]:
    (start, end), test = around, op.body.block
    assert test.first_op is not None
    body = test.split_before(test.first_op)
    op.body.move_blocks_before(end)
    variable, *carried = test.args
    last = _ended(body)
    following = _added(body, op, arith.AddiOp, [variable, op.step], variable.type)
    _branch(body, op, test, [following, *last])
    _branch(start, op, test, [op.lb, *op.iter_args])
    _choose(test, op, _added(test, op, arith.CmpiOp, [variable, op.ub], i1, _LESS), body, end)
    return carried


# %r = scf.if %c { then; yield %a } else { other; yield %b }
#   == cond_br %c, ^then, ^other
#      ^then: then; br ^join(%a)
#      ^other: other; br ^join(%b)
#      ^join(%r): br ^end
@STRUCTURED.on(scf.IfOp)
def lower_if(op: scf.IfOp, around: tuple[Block, Block]) -> Sequence[SSAValue]:
    start, join = around
    if op.results:
        join = _joined(op, join)
    then = _inlined(op.true_region, op, join)
    other = _inlined(op.false_region, op, join) if op.false_region.blocks else join
    _choose(start, op, op.cond, then, other)
    return join.args


# %r = scf.while (%a = %x) { before; condition(%c) %b } do { ^bb0(%b): after; yield %d }
#   == br ^before(%x)
#      ^before(%a): before; cond_br %c, ^after(%b), ^end(%b)
#      ^after(%b): after; br ^before(%d)
@STRUCTURED.on(scf.WhileOp, upstream.WhileOp)
def lower_while(op: scf.WhileOp, around: tuple[Block, Block]) -> Sequence[SSAValue]:
    (start, end), before, after = around, op.before_region.block, op.after_region.block
    for number, kind in enumerate(op.result_types):
        end.insert_arg(kind, number)
    _branch(start, op, before, op.arguments)
    condition, *values = _ended(before)
    _choose(before, op, condition, after, end, values)
    _branch(after, op, before, _ended(after))
    for region in op.regions:
        region.move_blocks_before(end)
    return end.args


@STRUCTURED.on(scf.IndexSwitchOp)
def lower_switch(op: scf.IndexSwitchOp, around: tuple[Block, Block]) -> Sequence[SSAValue]:
    (start, end), values = around, op.cases.get_values()
    for number, kind in enumerate(op.result_types):
        end.insert_arg(kind, number)
    blocks = [_inlined(region, op, end) for region in (*op.case_regions, op.default_region)]
    case = _added(start, op, arith.IndexCastOp, [op.arg], i32)
    known = DenseIntElementsAttr.from_list(VectorType(i32, [len(values)]), values)
    switch = cf.SwitchOp(case, blocks[-1], (), known, blocks[:-1], [()] * len(values))
    switch.location = op.location
    start.add_op(switch)
    return end.args


def _added(
    block: Block,
    source: Operation,
    kind: type[Operation],
    operands: Sequence[SSAValue],
    result: Attribute,
    properties: Mapping[str, Attribute] = {},
) -> SSAValue:
    """The result of an operation at the end of a block."""
    op = created(kind, operands, [result], properties, location=source.location)
    block.add_op(op)
    return op.results[0]


def _branch(block: Block, source: Operation, to: Block, values: Sequence[SSAValue] = ()) -> None:
    branch = created(cf.BranchOp, values, location=source.location, successors=[to])
    block.add_op(branch)


def _choose(
    block: Block,
    source: Operation,
    condition: SSAValue,
    then: Block,
    other: Block,
    values: Sequence[SSAValue] = (),
) -> None:
    """A branch to one of two blocks with the same values."""
    branch = created(
        cf.ConditionalBranchOp,
        [condition, *values, *values],
        properties={"operandSegmentSizes": numbers_attr(1, len(values), len(values))},
        location=source.location,
        successors=[then, other],
    )
    block.add_op(branch)


def _joined(op: Operation, end: Block) -> Block:
    """A block before another one, to which it branches, with an argument for each result."""
    join = Block(arg_types=op.result_types)
    assert end.parent is not None
    end.parent.insert_block_before(join, end)
    _branch(join, op, end)
    return join


def _inlined(region: Region, source: Operation, join: Block) -> Block:
    """Move a region before a block, to which it then branches with what it yields."""
    first = region.block
    _branch(first, source, join, _ended(first))
    region.move_blocks_before(join)
    return first


def _ended(block: Block) -> list[SSAValue]:
    """Erase the end of a block; return its operands."""
    last = block.last_op
    assert last is not None
    values = list(last.operands)
    block.erase_op(last)
    return values


def _gathers(op: Operation) -> bool:
    """Whether a loop moves elements one by one, from or to places that it loads.

    It has too few instructions for its loads to overlap those of later iterations.
    """
    if not isinstance(op, scf.ForOp) or op.iter_args or any(o.regions for o in op.body.block.ops):
        return False
    loaded: set[SSAValue] = set()
    found = False
    for inner in op.body.block.ops:
        depends = not loaded.isdisjoint(inner.operands)
        if isinstance(inner, memref.LoadOp | memref.StoreOp):
            found = found or not loaded.isdisjoint(inner.indices)
        if depends or isinstance(inner, memref.LoadOp):
            loaded.update(inner.results)
    return found


class ConvertScfToCfPass(ModulePass):
    """Lower loops and conditions to branches, which keep the locations of both.

    Before:
    ```mlir
    func.func @f(%zero: index, %n: index, %one: index, %x: memref<?xf32>, %v: f32) {
      scf.for %i = %zero to %n step %one {
        memref.store %v, %x[%i] : memref<?xf32>
      }
      func.return
    }
    ```
    After:
    ```mlir
    func.func @f(%zero: index, %n: index, %one: index, %x: memref<?xf32>, %v: f32) {
      cf.br ^bb1(%zero : index)
    ^bb1(%i: index):
      %more = arith.cmpi slt, %i, %n : index
      cf.cond_br %more, ^bb2, ^bb3
    ^bb2:
      memref.store %v, %x[%i] : memref<?xf32>
      %next = arith.addi %i, %one : index
      cf.br ^bb1(%next : index)
    ^bb3:
      func.return
    }
    ```
    A function with a loop that moves elements from or to places that it loads gets `rt.unroll`.

    Requires: nothing.
    Leaves: no `scf.for`, `scf.while`, `scf.if` and `scf.index_switch`.
    """

    name = "convert-scf-to-cf"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        structured = [inner for inner in operations_in(op) if type(inner) in STRUCTURED]
        for loop in filter(_gathers, structured):
            function = function_around(loop)
            if function is not None:
                function.attributes[UNROLL] = UnitAttr()
        for inner in structured:
            if allowed("lower to branches", inner):
                # Replace an operation, whose regions have one block each.
                start = inner.parent
                assert start is not None
                results = STRUCTURED[type(inner)](inner, (start, start.split_before(inner)))
                for old, new in zip(inner.results, results, strict=True):
                    old.replace_all_uses_with(new)
                inner.detach()
                inner.erase()
        if allowed("erase dead code", op):
            erase_dead(op.body, PatternRewriterListener())
