"""Dominance: every value is defined before its uses, which xDSL's verifier does not check.

Text may name a value before the line that defines it, so parsed IR has to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.utils.exceptions import VerifyException

from ..errors import explain
from .control_flow import reachable
from .provenance import origin


def verify_module(module: ModuleOp) -> None:
    """Verify a module: each operation, and dominance.

    Dominance comes first, because verifiers look at the owners of operands.

    Raises:
        VerifyException: with the first fact that does not hold.
    """
    verify_dominance(module)
    module.verify()


def verify_dominance(op: Operation) -> None:
    """Check that every operand in the regions of `op` is defined on each path to its use.

    Raises:
        VerifyException: naming the first operation that uses a value too early.
    """
    for user, fact in early_uses(op):
        raise VerifyException(explain(user.name, fact, origin=origin(user)))


def early_uses(op: Operation) -> list[tuple[Operation, str]]:
    """The operations in `op` that use an operand before its definition, and a description.

    Unreachable blocks are skipped, as in MLIR.
    """
    found: list[tuple[Operation, str]] = []
    for region in op.regions:
        _look_through(region, set(), found)
    return found


def _look_through(
    region: Region, visible: set[SSAValue], found: list[tuple[Operation, str]]
) -> None:
    """Find early uses in a region; the values of `visible` are defined before it."""
    if len(region.blocks) < 2:
        for block in region.blocks:
            _look_through_block(block, visible, found)
        return
    dominance, blocks = DominanceInfo(region), reachable(region.blocks)
    for block in blocks:
        above = [b for b in blocks if dominance.strictly_dominates(b, block)]
        _look_through_block(block, visible.union(*map(_defined, above)), found)


def _look_through_block(
    block: Block, visible: set[SSAValue], found: list[tuple[Operation, str]]
) -> None:
    visible.update(block.args)
    for op in block.ops:
        if not visible.issuperset(op.operands):
            number = next(n for n, operand in enumerate(op.operands) if operand not in visible)
            found.append((op, f"operand {number} is used before it is defined"))
        for region in op.regions:
            _look_through(region, visible, found)
        visible.update(op.results)
    visible.difference_update(_defined(block))


def _defined(block: Block) -> Iterator[SSAValue]:
    """The values that a block defines."""
    yield from block.args
    for op in block.ops:
        yield from op.results


def dependents_between(ops: Sequence[Operation]) -> list[Operation] | None:
    """The operations between those of one block that need a result of them.

    None if one of them needs it in turn: then they cannot become one operation.

    Args:
        ops: the operations in the order of the block.
    """
    inside, last = set(ops), ops[-1]
    depending: dict[Operation, None] = {}
    op = ops[0]
    while op is not last:
        assert op.next_op is not None
        op = op.next_op
        makers = {operand.owner for inner in op.walk() for operand in inner.operands}
        if op not in inside:
            if not makers.isdisjoint(inside) or not makers.isdisjoint(depending):
                depending[op] = None
        elif not makers.isdisjoint(depending):
            return None
    return list(depending)
