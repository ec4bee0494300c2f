"""Every value is defined before it is used: xDSL's verifier does not look.

Text may name a value before the line that defines it, so what was read has to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.utils.exceptions import VerifyException

from .control_flow import reachable
from .errors import explain
from .provenance import origin


def verify_dominance(op: Operation) -> None:
    """Check that in the regions of `op` every operand is defined on each way to its use.

    Blocks that cannot be reached are left out, as MLIR does.

    Raises:
        VerifyException: naming the first operation that uses a value too early.
    """
    for region in op.regions:
        _verify_region(region, set())


def _verify_region(region: Region, visible: set[SSAValue]) -> None:
    """Check a region in which the values of `visible` are defined."""
    if len(region.blocks) < 2:
        for block in region.blocks:
            _verify_block(block, visible)
        return
    dominance, blocks = DominanceInfo(region), reachable(region.blocks)
    for block in blocks:
        above = [b for b in blocks if dominance.strictly_dominates(b, block)]
        _verify_block(block, visible.union(*map(_defined, above)))


def _verify_block(block: Block, visible: set[SSAValue]) -> None:
    seen = {*visible, *block.args}
    for op in block.ops:
        for number, operand in enumerate(op.operands):
            if operand not in seen:
                fact = f"operand {number} is used before it is defined"
                raise VerifyException(explain(op.name, fact, origin=origin(op)))
        for region in op.regions:
            _verify_region(region, seen)
        seen.update(op.results)


def _defined(block: Block) -> Iterable[SSAValue]:
    """The values that a block defines."""
    return (*block.args, *(result for op in block.ops for result in op.results))
