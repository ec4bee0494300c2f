"""Walks over operations: all of them in order, or the few that a pattern is written for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriterListener, PatternRewriteWalker
from xdsl.transforms.dead_code_elimination import is_trivially_dead


def operations_in(root: Operation | Region) -> Iterator[Operation]:
    """An operation and all that is in it, or all that is in a region, in the order of the text.

    This is `root.walk()` without a generator for each level, at a third of its time. What is
    behind the operation that was given last must not change.
    """
    waiting: list[Operation] = []
    _push(root.regions if isinstance(root, Operation) else (root,), waiting)
    if isinstance(root, Operation):
        yield root
    while waiting:
        op = waiting.pop()
        yield op
        if op.regions:
            _push(op.regions, waiting)


def _push(regions: tuple[Region, ...], waiting: list[Operation]) -> None:
    """Put what is directly in some regions on a stack, the last operation first."""
    for region in reversed(regions):
        block = region.last_block
        while block is not None:
            op = block.last_op
            while op is not None:
                waiting.append(op)
                op = op.prev_op
            block = block.prev_block


@dataclass(eq=False, repr=False)
class RootedWalker(PatternRewriteWalker):
    """Applies a pattern to the operations of some classes only, those that it is written for."""

    roots: tuple[type[Operation], ...] = field(default=(), kw_only=True)
    """The classes."""

    def _populate_worklist(self, op: Operation | Region | Block) -> None:
        for inner in op.walk(
            reverse=not self.walk_reverse, region_first=not self.walk_regions_first
        ):
            if isinstance(inner, self.roots):
                self._worklist.push(inner)

    def _handle_operation_insertion(self, op: Operation) -> None:
        if isinstance(op, self.roots):
            super()._handle_operation_insertion(op)


def erase_dead(region: Region, listener: PatternRewriterListener) -> bool:
    """Erase what has no effect and no result that is used; whether there was any.

    To be called after the walks of a `PatternRewriteWalker`, instead of asking each operation of
    each walk whether it is dead.
    """
    waiting, erased = list(operations_in(region)), set[Operation]()
    while waiting:
        op = waiting.pop()
        if op in erased or not is_trivially_dead(op):
            continue
        waiting += [value.owner for value in op.operands if isinstance(value.owner, Operation)]
        erased.update(operations_in(op))
        listener.handle_operation_removal(op)
        op.detach()
        op.erase()
    return bool(erased)
