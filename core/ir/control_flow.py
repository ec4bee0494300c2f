"""Orders of the blocks of a function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block


def definitions_first(blocks: Sequence[Block]) -> list[Block]:
    """Blocks in reverse post-order from the first, then those that cannot be reached."""
    order = reachable(blocks)
    seen = set(order)
    return order + [block for block in blocks if block not in seen]


def reachable(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that can be reached from the first, in reverse post-order."""
    order: list[Block] = []
    seen = {blocks[0]}
    stack = [(blocks[0], iter(_successors(blocks[0])))]
    while stack:
        block, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            order.append(block)
            stack.pop()
        elif following not in seen:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    order.reverse()
    return order


def _successors(block: Block) -> Sequence[Block]:
    last = block.last_op
    return () if last is None else tuple(last.successors)
