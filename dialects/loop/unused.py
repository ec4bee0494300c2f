"""Removal of operations whose results are unused."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import memref
from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from .ops import LoadOp, PartitionPointOp


def erase_unused(block: Block, unchanged: Collection[Operation] = ()) -> None:
    """Erase operations without side effects whose results are unused, but none in `unchanged`."""
    op = block.last_op
    while op is not None:
        if op.regions and op not in unchanged:
            erase_unused(op.regions[0].block, unchanged)
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
