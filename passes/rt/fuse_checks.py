"""Check the indices of a kernel row by row, just before they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import ConstantLike, is_side_effect_free

from ...core.actions import allowed
from ...core.budgets import EXACT
from ...core.context import decide
from ...core.symbols import find_symbol
from ...core.typed import memref_type
from ...core.walks import operations_in
from ...dialects.rt import ops as rt

_INDEX = IndexType()

SHORTEST = 128
"""Indices of a row; for fewer the check of each row costs more than it saves."""


@dataclass(frozen=True)
class _Fused:
    """A check of an argument of a kernel, `indices`, whose tiles read it row by row."""

    check: rt.CheckIndexOp
    call: rt.CallOp
    kernel: func.FuncOp
    tiles: rt.ParallelTilesOp
    indices: BlockArgument
    row: SSAValue
    """The number of the row in an iteration of a loop in the tiles."""


def _fused(check: rt.CheckIndexOp, call: rt.CallOp) -> _Fused | None:
    """A check in front of a call, if tiles of the kernel can make it."""
    kernel = find_symbol(call, call.callee)
    tiles = _only_tiles(kernel) if isinstance(kernel, func.FuncOp) else None
    if tiles is None:
        return None
    assert isinstance(kernel, func.FuncOp)
    buffer, pairs = _buffer(check.indices), zip(call.arguments, kernel.body.block.args, strict=True)
    found = [argument for passed, argument in pairs if _buffer(passed) is buffer]
    row = _row_of(tiles, found[0]) if len(found) == 1 else None
    return None if row is None else _Fused(check, call, kernel, tiles, found[0], row)


def _only_tiles(kernel: func.FuncOp) -> rt.ParallelTilesOp | None:
    """The tiles that are all a kernel does."""
    if len(kernel.body.blocks) != 1:
        return None
    found = [op for op in kernel.body.block.ops if isinstance(op, rt.ParallelTilesOp)]
    others = [op for op in kernel.body.block.ops if op not in found]
    pure = all(isinstance(op, func.ReturnOp) or is_side_effect_free(op) for op in others)
    return found[0] if len(found) == 1 and pure and len(found[0].body.blocks) == 1 else None


def _checks_before(call: rt.CallOp) -> Iterator[rt.CheckIndexOp]:
    """The checks between which and a call nothing is written."""
    op = call.prev_op
    while op is not None and (isinstance(op, rt.CheckIndexOp) or is_side_effect_free(op)):
        if isinstance(op, rt.CheckIndexOp):
            yield op
        op = op.prev_op


def _buffer(value: SSAValue) -> SSAValue:
    """The buffer that is cast to another type."""
    while isinstance(value.owner, memref.CastOp):
        value = value.owner.source
    return value


def _row_of(tiles: rt.ParallelTilesOp, indices: BlockArgument) -> SSAValue | None:
    """The row of indices that an iteration in the tiles reads alone, if each row is read."""
    captured = [a for v, a in zip(tiles.captures, tiles.captured, strict=True) if v is indices]
    if len(captured) != 1 or len([*indices.uses]) != 1:
        return None
    rows = {_row_of_access(use.operation, use.index) for use in captured[0].uses}
    row = rows.pop() if len(rows) == 1 else None
    kind = memref_type(indices)
    if row is None or not kind.has_static_shape() or prod(kind.get_shape()[1:]) < SHORTEST:
        return None
    return row if _is_each_row(row, tiles, kind.get_shape()[0]) else None


def _row_of_access(access: Operation, operand: int) -> SSAValue | None:
    if operand or not isinstance(access, memref.LoadOp | vector.LoadOp):
        return None
    return access.operands[1] if memref_type(access.operands[0]).get_num_dims() > 1 else None


def _is_each_row(row: SSAValue, tiles: rt.ParallelTilesOp, rows: int) -> bool:
    """Whether a value counts all rows: tile * n + i, for i from 0 to min(n, rows - tile * n)."""
    if not isinstance(row.owner, arith.AddiOp):
        return False
    loop = row.owner.parent_op()
    if not isinstance(loop, scf.ForOp) or loop.parent_op() is not tiles or loop.iter_args:
        return False
    start, step = row.owner.operands
    count, size = _factor(start, tiles.tile), _number(tiles.count)
    if step is not loop.body.block.args[0] or count is None or size is None:
        return False
    if _number(loop.lb) != 0 or _number(loop.step) != 1 or count * size < rows:
        return False
    if not isinstance(loop.ub.owner, arith.MinSIOp):
        return _number(loop.ub) == count and count * size == rows
    left, most = loop.ub.owner.operands
    if _number(most) != count or not isinstance(left.owner, arith.AddiOp):
        return False
    done, all_rows = left.owner.operands
    return _factor(done, tiles.tile) == -count and _number(all_rows) == rows


def _factor(value: SSAValue, tile: SSAValue) -> int | None:
    """The number f of a value that is f times the tile."""
    if value is tile:
        return 1
    if not isinstance(value.owner, arith.MuliOp) or value.owner.operands[0] is not tile:
        return None
    return _number(value.owner.operands[1])


def _number(value: SSAValue) -> int | None:
    constant = ConstantLike.get_constant_value(value)
    return constant.value.data if isinstance(constant, IntegerAttr) else None


def _fuse(fused: _Fused) -> rt.CallOp:
    """Let each row check its indices, and the caller look at the outcome; return the new call."""
    added = _passed_on(fused.kernel, fused.tiles, [_INDEX, rt.DETAILS_TYPE])
    _guard_row(fused, *added)
    check, call = fused.check, fused.call
    status, zero, none = rt.DetailsOp(check.context), _constant(0), _constant(0)
    reset = memref.StoreOp.get(none, status, [zero])
    passed = rt.CallOp(call.callee.string_value(), [check.extent, status, *call.arguments])
    found = memref.LoadOp.get(status, [zero])
    failed = arith.CmpiOp(found, none, "ne")
    again = scf.IfOp(failed, [], [Block([scf.YieldOp()])])
    Rewriter.replace_op(call, [status, zero, none, reset, passed, found, failed, again], [])
    check.detach()
    yielded = again.true_region.block.last_op
    assert yielded is not None
    again.true_region.block.insert_op_before(check, yielded)
    for op in (status, zero, none, reset, found, failed, again):
        op.location = check.location
    passed.location = call.location
    return passed


def _passed_on(
    kernel: func.FuncOp, tiles: rt.ParallelTilesOp, types: Sequence[Attribute]
) -> list[SSAValue]:
    """Add first arguments to a kernel, and capture them in its tiles; return them in there."""
    block, inner = kernel.body.block, tiles.body.block
    values = [block.insert_arg(kind, number) for number, kind in enumerate(types)]
    tiles.operands = [*tiles.operands, *values]
    kinds = [argument.type for argument in block.args]
    kernel.properties["function_type"] = FunctionType.from_lists(kinds, [])
    if kernel.arg_attrs is not None:
        more = [DictionaryAttr({})] * len(types)
        kernel.properties["arg_attrs"] = ArrayAttr([*more, *kernel.arg_attrs.data])
    return [inner.insert_arg(kind, len(inner.args)) for kind in types]


def _guard_row(fused: _Fused, extent: SSAValue, status: SSAValue) -> None:
    """Run an iteration only if all indices of its row are valid; else set the status."""
    tiles, row = fused.tiles, fused.row.owner
    assert isinstance(row, Operation)
    block = row.parent
    pairs = zip(tiles.captures, tiles.captured, strict=True)
    indices = next(inner for outer, inner in pairs if outer is fused.indices)
    assert block is not None
    end, body = block.last_op, Block()
    assert end is not None
    while (op := row.next_op) is not None and op is not end:
        op.detach()
        body.add_op(op)
    body.add_op(scf.YieldOp())
    length = _constant(prod(memref_type(indices).get_shape()[1:]))
    begin = arith.MuliOp(row, length)
    after = arith.AddiOp(begin, length)
    valid = rt.AreIndicesOp(indices, begin, after, extent, fused.check.from_front)
    zero, one = _constant(0), _constant(1)
    failed = Block([zero, one, memref.StoreOp.get(one, status, [zero]), scf.YieldOp()])
    made = [length, begin, after, valid, scf.IfOp(valid, [], [body], [failed])]
    block.insert_ops_before(made, end)
    for op in tiles.body.walk():
        if op.location is UNKNOWN_LOC:
            op.location = fused.check.location


def _constant(value: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(value, _INDEX))


@dataclass(frozen=True)
class RtFuseChecksPass(ModulePass):
    """Check the indices of a kernel row by row, so that a cache holds them when they are used.

    In the kernel, `rt.are_indices` is in front of what an iteration of a loop over rows does with
    its row, in a loop that is all that its tiles do. A row with an invalid index is left out, and
    noted in the words for details. The check of the whole array is moved behind the call: where a
    row was noted, it finds the first invalid index, and ends the call. The body of @k is not known
    here, so that its check stays where it is; tests/lit/passes/rt/fuse-checks.mlir has others.

    Before:
    ```mlir
    func.func @main(%ctx: !rt.context, %i: memref<8x128xi64>, %n: index) {
      rt.check_index %ctx, %i, %n "i" : memref<8x128xi64>
      rt.call @k(%i) : memref<8x128xi64>
      func.return
    }
    func.func private @k(memref<8x128xi64>)
    ```
    After:
    ```mlir
    func.func @main(%ctx: !rt.context, %i: memref<8x128xi64>, %n: index) {
      rt.check_index %ctx, %i, %n "i" : memref<8x128xi64>
      rt.call @k(%i) : memref<8x128xi64>
      func.return
    }
    func.func private @k(memref<8x128xi64>)
    ```
    Requires: `convert-loop-to-scf`, and not yet `rt-outline-tiles`.
    Leaves: the check of indices that no loop over all of their rows reads, of short rows, and of
        those of a kernel that is called twice.
    """

    name = "rt-fuse-checks"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls = [inner for inner in operations_in(op) if isinstance(inner, rt.CallOp)]
        times = Counter(call.callee.string_value() for call in calls)
        for call in calls:
            if times[call.callee.string_value()] > 1:
                continue
            current = call
            for check in list(_checks_before(call)):
                fused = _fused(check, current)
                if fused is not None and allowed("fuse check", check):
                    current = _fuse(fused)
                    decide(ctx, check, "check rows where they are read", "a cache then has them")
