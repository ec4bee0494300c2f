"""Why two groups are two kernels: a reason for each edge between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.graph.interfaces import FusionKind, GraphOp
from .grouping import Group, Grouping, users_of


@dataclass(frozen=True)
class Edge:
    """A value that one group computes and another one reads from memory, and why it does."""

    maker: Group
    reader: Group
    value: SSAValue
    why: str


def edges(grouping: Grouping) -> Iterator[Edge]:
    """The edges between groups; one for each two groups, about the first value that is read."""
    for reader in grouping.groups:
        seen = {reader}
        for value in (operand for op in reader.ops for operand in op.operands):
            maker = grouping.group_of.get(value.owner) if isinstance(value.owner, GraphOp) else None
            if maker is not None and maker not in seen:
                seen.add(maker)
                yield Edge(maker, reader, value, _why(grouping, maker, reader, value))


def _why(grouping: Grouping, maker: Group, reader: Group, value: SSAValue) -> str:
    """The first reason that holds; rules of single operators come before those of whole kernels."""
    op = value.owner
    assert isinstance(op, GraphOp)
    users = users_of(op)
    inside = [user for user in users if isinstance(user, GraphOp) and user in reader.ops]
    if maker.cut is not None and not maker.cut.ops.isdisjoint(reader.ops):
        return maker.cut.why
    if len(maker.ops) + len(reader.ops) > grouping.max_ops:
        return f"a kernel may have at most {grouping.max_ops} operators"
    for part in (op, *inside):
        if part.refusal is not None:
            return part.refusal
        if part.fusion == FusionKind.OPAQUE:
            return f"{part.name} has loops of its own"
    if len(users) > len(inside):
        return "it is needed outside of that kernel as well"
    if any(user.fusion == FusionKind.CONTRACTION for user in inside):
        return "a contraction reads each element many times and would compute it each time"
    if _is_contraction(maker):
        return (
            "only operators that read it at their own index can follow a contraction in its loops"
        )
    return _obstacle(grouping, maker, reader, value) or "the kernel that reads it has other rows"


def _obstacle(grouping: Grouping, maker: Group, reader: Group, value: SSAValue) -> str | None:
    """Why a kernel of both groups would be slow or impossible, if it would be."""
    uses, users = grouping.uses, [op for op in reader.ops if value in op.operands]
    if maker.anchor is not None and _is_contraction(reader):
        return "no other reduction can be in the loops of a contraction"
    if any(uses.repeats(user, value) and uses.overlaps(user, value) for user in users):
        return "an element of it is read more than once"
    if maker.anchor is None and len(users) > 1:
        return "several operators read it, at different indices"
    plan = grouping.plan([*maker.ops, *reader.ops], reader)
    if plan.refusal is not None:
        return plan.refusal.why
    if value in plan.repeated:
        return "it would be computed more than once"
    if any(nest.reordered for nest in plan.nests):
        return "the inner loop of the kernel would no longer run along memory"
    if value in plan.staged:
        return "it would need a local buffer"
    return None


def _is_contraction(group: Group) -> bool:
    return group.anchor is not None and group.anchor.fusion == FusionKind.CONTRACTION
