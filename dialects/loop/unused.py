"""Removal of operations whose results are unused."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Block
from xdsl.traits import is_side_effect_free

from .ops import LoadOp, PartitionPointOp


def erase_unused(block: Block) -> None:
    """Erase operations without side effects whose results are unused."""
    op = block.last_op
    while op is not None:
        for region in op.regions:
            erase_unused(region.block)
        before = op.prev_op
        if (
            op.results
            and not any(r.first_use for r in op.results)
            and (
                isinstance(op, LoadOp | PartitionPointOp | memref.DimOp) or is_side_effect_free(op)
            )
        ):
            op.detach()
            op.erase()
        op = before
