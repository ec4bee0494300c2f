"""What regions under construction use from outside becomes arguments of theirs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue


def captured(blocks: Sequence[Block]) -> list[SSAValue]:
    """What blocks use from outside, which becomes last arguments of each of them."""
    found: dict[SSAValue, None] = {}
    for block in blocks:
        found |= {v: None for op in block.ops for v in op.operands if block_of(v) is not block}
    for block in blocks:
        copies: dict[SSAValue, SSAValue] = {}
        for value in found:
            copies[value] = block.insert_arg(value.type, len(block.args))
            copies[value].name_hint = value.name_hint
        for op in block.ops:
            op.operands = [copies.get(operand, operand) for operand in op.operands]
    return list(found)


def block_of(value: SSAValue) -> Block | None:
    """The block that a value is defined in."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
