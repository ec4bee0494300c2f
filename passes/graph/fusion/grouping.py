"""Which operators become one kernel: groups, by how operators use each other.

What an operator reads is known from its value at an index (`dialects/graph/plan`), so that
operators of plug-ins take part. Groups are made in seven steps:

1. A contraction, then a reduction, takes the elementwise operators that follow it and need
   its result at their own index only: its epilogue.
2. Every other operator joins the group of all its users, if computing it there, at the index that
   they need, has no extra cost; otherwise it starts a group.
3. A sparse product whose rows are only read by a small dense product goes into the kernel of
   that product, which then computes row by row.
4. Values of the entries of a sparse matrix that are only read where one kernel visits its rows,
   such as the softmax of an attention, go into that kernel.
5. What a row needs of itself, such as its mean, goes into the kernel that visits the row.
6. Groups that give numbers for each row of one sparse matrix, such as its degree, become one.
7. A group that cannot be one kernel by its plan is cut.

Until step 6 every operator of a group but the last is used within the group only, and the last
comes last in the function. A path that leaves a group therefore leaves it at its last operator
and cannot come back: groups never form a cycle. Step 6 looks for paths.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from ....dialects.graph.interfaces import FusionKind, GraphOp, Sizes, tensor_type
from ....dialects.graph.plan.nest_plan import NestPlan
from ....dialects.graph.plan.planner import plan_nests
from ....dialects.graph.plan.recording import Recorder, is_reshape
from ....dialects.graph.plan.uses import Uses
from .cutting import parts
from .outlining import has_value

_ANCHORS = (FusionKind.CONTRACTION, FusionKind.REDUCTION)
_LONGEST_STAGED_ROW = 1024
# What has a value for each entry is computed once for a few vectors of a row, not once for all
# of it, and a softmax needs a score three times.
_LONGEST_ROW_OF_ENTRY = 128
_LONGEST_DOT_OF_ENTRY = 16


@dataclass(frozen=True)
class Cut:
    """Operators that cannot be one kernel by their plan, and why."""

    ops: frozenset[GraphOp]
    why: str


@dataclass(eq=False)
class Group:
    """Operators that become one kernel, and why they may."""

    anchor: GraphOp | None
    ops: list[GraphOp] = field(default_factory=list)
    repeated: set[GraphOp] = field(default_factory=set)
    """Those that are computed more often than they have elements."""
    why: str = "elementwise operators are computed where they are used"
    cut: Cut | None = None
    """Why the operators after it are in other kernels, if they were in this one at first."""

    @property
    def results(self) -> list[SSAValue]:
        """The results of the last operator, and of others those that are used elsewhere."""
        *inner, last = self.ops
        inside = set(self.ops)
        shared = [r for op in inner for r in op.results if not inside.issuperset(users_of(op))]
        return [*shared, *last.results]

    def sort(self, position: dict[Operation, int]) -> None:
        """Bring the operators into the order of the function."""
        self.ops.sort(key=lambda op: position[op])


class Grouping:
    """The groups of the operators of one block.

    Args:
        block: the body of a function.
        shapes: the symbolic shapes of the function.
        max_ops: the largest number of operators in a group; 0 sets no limit.
        max_width: the largest width of the dense product of step 3.
    """

    def __init__(self, block: Block, shapes: Sizes, max_ops: int, max_width: int) -> None:
        self.max_ops = max_ops or math.inf
        self.shapes, self.recorder = shapes, Recorder()
        self.uses = Uses(self.recorder)
        self.position = {op: number for number, op in enumerate(block.ops)}
        self.members = [op for op in block.ops if has_value(op)]
        self.group_of: dict[Operation | Block, Group] = {}
        for kind in _ANCHORS:
            for op in self.members:
                if op.fusion == kind:
                    self._start_with_epilogue(op)
        for op in reversed(self.members):
            if op not in self.group_of:
                self._join_users(op)
        for op in self.members:
            self._stage_rows_for(op, max_width)
        for op in reversed(self.members):
            self._join_shares(op)
            self._join_entries(op)
        for op in reversed(self.members):
            self._join_rows(op)
        for op in self.members:
            self._join_siblings(op)
        for group in self.groups:
            self._cut(group)

    @property
    def groups(self) -> list[Group]:
        """All groups, in the order of their last operators."""
        found = list(dict.fromkeys(self.group_of[op] for op in self.members))
        for group in found:
            group.sort(self.position)
        return sorted(found, key=lambda group: self.position[group.ops[-1]])

    def _add(self, group: Group, ops: Iterable[GraphOp]) -> None:
        for op in ops:
            group.ops.append(op)
            self.group_of[op] = group

    def _start_with_epilogue(self, anchor: GraphOp) -> None:
        """Step 1: the longest run of elementwise operators that only its last one leaves."""
        region, closed = {anchor: None}, 1
        leaving: set[Operation] = {anchor}
        for user in self._followers(region):
            if len(region) >= self.max_ops or not self._is_epilogue(user, region):
                break
            region[user] = None
            makers = {o.owner for o in user.operands}
            leaving = {
                op
                for op in {*leaving, user}
                if op not in makers or any(u not in region for u in users_of(op))
            }
            if leaving == {user}:
                closed = len(region)
        group = Group(anchor)
        if closed > 1:
            group.why = "its epilogue is computed while the result is in registers"
        self._add(group, list(region)[:closed])

    def _followers(self, region: Mapping[GraphOp, None]) -> Iterator[Operation]:
        """The users of the growing `region`, in the order of the function."""
        seen: set[Operation] = set()
        queue: list[tuple[int, Operation]] = []
        newest = next(iter(region))
        while True:
            for user in users_of(newest):
                # A user inside the region of another operation counts as one outside.
                if user in self.position and user not in seen:
                    seen.add(user)
                    heapq.heappush(queue, (self.position[user], user))
            if not queue:
                return
            follower = heapq.heappop(queue)[1]
            yield follower
            # The caller that requests the next one has put this one into the region.
            newest = follower

    def _is_epilogue(self, op: Operation, region: Mapping[GraphOp, None]) -> TypeGuard[GraphOp]:
        if not has_value(op) or op in self.group_of:
            return False
        if _only_adds_axes(op):
            # One number for each row becomes a column: no other loops, another index.
            return next(iter(region)).fusion == FusionKind.REDUCTION
        if isinstance(op, GraphOp) and self.uses.takes_rows(op):
            # The others, which are not computed, must not be needed by anything else.
            alone = all(u in region or u is op for part in region for u in users_of(part))
            return alone and bool(self.uses.walked(next(iter(region))))
        whole = all(self.uses.at_own_index(op, o) for o in op.operands if o.owner in region)
        return whole and op.fusion == FusionKind.ELEMENTWISE

    def _join_users(self, op: GraphOp) -> None:
        """Step 2: put `op` into the group of all its users, or into a new one."""
        users = users_of(op)
        groups = {self.group_of.get(user) for user in users}
        group = groups.pop() if len(groups) == 1 else None
        if group is None or len(group.ops) >= self.max_ops:
            self._add(Group(None), [op])
            return
        value = op.results[0]
        repeated = any(user in group.repeated or self.uses.repeats(user, value) for user in users)
        whole = all(self.uses.at_own_index(user, value) for user in users)
        affordable = self.uses.is_cheap(op) or (not repeated and (whole or len(users) == 1))
        if op.fusion == FusionKind.OPAQUE or not affordable or any(_bars(u, op) for u in users):
            self._add(Group(None), [op])
            return
        self._add(group, [op])
        if repeated:
            group.repeated.add(op)

    def _stage_rows_for(self, op: GraphOp, max_width: int) -> None:
        """Step 3: bring the rows that a small dense product reads into its kernel."""
        # dense(relu(spmm(a, x) + b), w)[i] needs the row relu(spmm(a, x) + b)[i] only
        group = self.group_of[op]
        if group.anchor is not op or op.fusion != FusionKind.CONTRACTION or self.uses.walked(op):
            return
        hidden = op.operands[0]
        rows = self.group_of.get(hidden.owner)
        if rows is None or rows is group or rows.anchor is None:
            return
        # Whether a plain sum over neighbours gains, too, has not been measured.
        if not self.uses.reads_values(rows.anchor) or not self.uses.reads_row(op, hidden):
            return
        width, hidden_width = _width(op.results[0]), _width(hidden)
        small = 0 < width <= max_width and 0 < hidden_width <= _LONGEST_STAGED_ROW
        total = len(rows.ops) + len(group.ops)
        if not small or not hidden.has_one_use() or total > self.max_ops:
            return
        dense = (part for part in rows.ops if part.fusion == FusionKind.CONTRACTION)
        if any(not self.uses.walked(part) for part in dense):
            return
        self._add(group, rows.ops)
        group.why = f"the row of {hidden_width} values between the products never leaves the cache"

    def _join_rows(self, last: GraphOp) -> None:
        """Step 5: bring a group that `last` ends into the kernel that visits its rows."""
        # (x - mean(x))[i, j] needs mean(x)[i] only, which is computed before j begins
        group, users = self.group_of[last], users_of(last)
        targets = {self.group_of.get(user) for user in users}
        target = targets.pop() if len(targets) == 1 else None
        if target is None or target is group or any(_bars(user, last) for user in users):
            return
        if len(target.ops) + len(group.ops) > self.max_ops:
            return
        if group.anchor is not None:
            anchors = (group.anchor, target.anchor or group.anchor)
            if any(op.fusion != FusionKind.REDUCTION or self.uses.walked(op) for op in anchors):
                return
            if any(self.uses.overlaps(user, last.results[0]) for user in users):
                return
            if not self._keeps_its_rows(target, last.results[0]):
                return
            if not self._stays_in_rows(target, group, last.results[0]):
                return
            target.why = "what a row needs of itself is computed before the row is visited"
        elif not all(self.uses.is_cheap(op) for op in group.ops):
            return
        self._add(target, group.ops)

    def _keeps_its_rows(self, target: Group, value: SSAValue) -> bool:
        """Whether what a group makes of `value` has its rows, but for a last reshape."""
        target.sort(self.position)
        made = {value}
        for op in target.ops:
            if made.isdisjoint(op.operands):
                continue
            reshaped = is_reshape(op) and value not in op.operands
            if op.fusion not in (FusionKind.ELEMENTWISE, FusionKind.REDUCTION) and not reshaped:
                return False
            made.update(op.results)
        return True

    def _stays_in_rows(self, target: Group, group: Group, value: SSAValue) -> bool:
        """Whether a kernel of two groups computes `value` of the second one once for each row.

        It does not change the order of its loops for that: rows are contiguous.
        """
        plan = self.plan([*target.ops, *group.ops], target)
        if plan.refusal is not None or any(nest.reordered for nest in plan.nests):
            return False
        return value not in plan.staged and value not in plan.repeated

    def plan(self, ops: Iterable[GraphOp], results_of: Group) -> NestPlan:
        """The plan of the kernel of some operators, with the results of a group."""
        ordered = sorted(ops, key=lambda op: self.position[op])
        results_of.sort(self.position)
        return plan_nests(ordered, results_of.results, self.shapes, self.recorder)

    def _join_shares(self, op: GraphOp) -> None:
        """Step 4: bring what reduces the same rows of entries as another group into its kernel."""
        # the maximum and the sum of a row are the same for the softmax of its entries and for
        # the share of its self loop
        group = self.group_of[op]
        if group.anchor is not op or not self.uses.entries(op):
            return
        group.sort(self.position)
        last = group.ops[-1]
        targets = {self.group_of.get(user) for user in users_of(last)}
        target = targets.pop() if len(targets) == 1 else None
        if target is None or target is group or len(target.ops) + len(group.ops) > self.max_ops:
            return
        beside = any(
            self.uses.entries(part) == self.uses.entries(op)
            and list(part.operands) == list(op.operands)
            for part in target.ops
        )
        if beside and self._stays_in_rows(target, group, last.results[0]):
            self._add(target, group.ops)

    def _join_entries(self, user: GraphOp) -> None:
        """Step 4: bring what `user` reads entry by entry into its kernel."""
        # edge_softmax(a, e)[p] for the entries p of a row needs the scores of that row only
        group = self.group_of[user]
        for value, matrix in self.uses.entries(user).items():
            values = self.group_of.get(value.owner)
            readers = [use.operation for use in value.uses]
            if (
                values is None
                or values is group
                or not all(
                    self.group_of.get(reader) is group and value in self.uses.entries(reader)
                    for reader in readers
                )
            ):
                continue
            total = len(values.ops) + len(group.ops)
            own = tensor_type(user.results[0]).get_shape()[tensor_type(value).get_num_dims() :]
            short = all(n != DYNAMIC_INDEX for n in own) and math.prod(own) <= _LONGEST_ROW_OF_ENTRY
            if total > self.max_ops or not short or not self._is_of_entries(values, matrix):
                continue
            self._add(group, values.ops)
            group.why = "the values of the entries of a row are computed where they are read"

    def _join_siblings(self, op: GraphOp) -> None:
        """Step 6: bring a group to another one that visits the rows of the same matrix."""
        group, walked = self.group_of[op], self._numbers_of_rows(op)
        if group.anchor is not op or not walked:
            return
        for other in self.members[: self.members.index(op)]:
            target = self.group_of[other]
            if target.anchor is not other or self._numbers_of_rows(other) != walked:
                continue
            total = len(target.ops) + len(group.ops)
            apart = self._needs(group, target) or self._needs(target, group)
            if target is group or total > self.max_ops or apart:
                continue
            self._add(target, group.ops)
            target.why = "the rows of one matrix are visited once"
            return

    def _numbers_of_rows(self, op: GraphOp) -> set[SSAValue]:
        """The matrix for whose rows an operator computes one number each, if there is one."""
        one = tensor_type(op.results[0]).get_num_dims() == 1
        return self.uses.walked(op) if one and op.fusion == FusionKind.REDUCTION else set()

    def _cut(self, group: Group) -> None:
        """Step 7: cut a group that cannot be one kernel, until each part can."""
        divided = parts(group.ops, group.results, self.shapes, self.recorder)
        if len(divided) == 1:
            return
        for part in divided:
            alone = Group(group.anchor if group.anchor in part.ops else None)
            alone.why = group.why
            if part.why is not None:
                alone.cut = Cut(frozenset(group.ops), part.why)
            self._add(alone, part.ops)

    def _is_of_entries(self, group: Group, matrix: SSAValue) -> bool:
        """Whether a group computes values of the entries of a matrix, at low cost for each."""
        matrices: set[SSAValue] = set()
        for op in group.ops:
            of_entries = self.uses.of_entries(op)
            matrices |= of_entries | set(self.uses.entries(op).values())
            expensive = of_entries and self.uses.longest_loop(op) > _LONGEST_DOT_OF_ENTRY
            if expensive or (op.fusion == FusionKind.CONTRACTION and not of_entries):
                return False
        return matrices == {matrix}

    def _needs(self, group: Group, other: Group) -> bool:
        """Whether what `group` computes is made of what `other` computes, be it far away."""
        seen: set[Operation] = set()
        queue: list[Operation] = list(other.ops)
        while queue:
            op = queue.pop()
            if op in seen:
                continue
            unit = self.group_of[op].ops if op in self.group_of else [op]
            if self.group_of.get(op) is group:
                return True
            seen.update(unit)
            queue += [user for part in unit for user in self._users_in_block(part)]
        return False

    def _users_in_block(self, op: Operation) -> list[Operation]:
        """The operations of the block that use `op`, or within which it is used."""
        found: list[Operation] = []
        for user in users_of(op):
            while user not in self.position:
                parent = user.parent_op()
                assert parent is not None
                user = parent
            found.append(user)
        return found


def users_of(op: Operation) -> list[Operation]:
    """The operations that use a result of `op`, each once, in a fixed order."""
    return list(dict.fromkeys(use.operation for result in op.results for use in result.uses))


def _only_adds_axes(op: Operation) -> bool:
    """Whether `op` is a reshape that adds or removes axes of size 1 only."""
    if not isinstance(op, GraphOp) or not is_reshape(op):
        return False
    given, wanted = (
        [n for n in tensor_type(v).get_shape() if n != 1] for v in (op.operands[0], op.results[0])
    )
    return given == wanted and given.count(DYNAMIC_INDEX) <= 1


def _bars(user: Operation, op: GraphOp) -> bool:
    """Whether `op` must not be computed inside `user`."""
    if not isinstance(user, GraphOp):
        return True
    if user.fusion in (FusionKind.CONTRACTION, FusionKind.OPAQUE):
        return True
    # Indices are checked before a kernel runs: they have to be there then.
    return isinstance(user, GraphOp) and any(i.owner is op for i, _, _ in user.index_bounds)


def _width(value: SSAValue) -> int:
    """The number of columns of a matrix; 0 if unknown, or for other values."""
    shape = tensor_type(value).get_shape()
    return shape[1] if len(shape) == 2 and shape[1] != DYNAMIC_INDEX else 0
