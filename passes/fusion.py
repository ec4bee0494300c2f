"""Which operators become one kernel: groups, by how operators fuse.

Groups are made in six steps, all by fusion kind, so that operators of plug-ins take part:

1. A contraction, then a reduction, takes the elementwise operators that follow it and need
   its result at their own index only: its epilogue.
2. Every other operator joins the group in which all its users are, if computing it there, at
   the index that is asked for, costs nothing extra; otherwise it starts a group.
3. A sparse product whose rows are only read by a small dense product goes into the kernel of
   that product, which then computes row by row.
4. Values of the entries of a sparse matrix that are only read where one kernel goes through
   its rows, such as the softmax of an attention, go into that kernel.
5. What a row needs of itself, such as its mean, goes into the kernel that goes through the row.
6. Groups that give numbers for each row of one sparse matrix, such as its degree, become one.

Until the last step every operator of a group but the last is used within the group only, and
the last comes last in the function. A path that leaves a group therefore leaves it at its last
operator and cannot come back: groups never form a cycle. The last step looks for paths.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.graph import ops as graph
from ..dialects.graph.interfaces import FusionKind, GraphOp, tensor_type
from ..dialects.graph.ops_select import WHOLE_END
from ..dialects.graph.ops_sparse import RowOp
from .outlining import has_value

_ANCHORS = (FusionKind.CONTRACTION, FusionKind.REDUCTION)
# What costs no more than loading what it is made of, so that it may be computed repeatedly.
_CHEAP = (
    graph.AddOp,
    graph.SubOp,
    graph.MulOp,
    graph.FmaOp,
    graph.MaxOp,
    graph.MinOp,
    graph.NegOp,
    graph.ReluOp,
    graph.LeakyReluOp,
    graph.ClipOp,
    graph.CastOp,
    graph.DequantizeOp,
    graph.DropoutOp,
    graph.AbsOp,
    graph.EqualOp,
    graph.LessOp,
    graph.LessEqualOp,
    graph.LogicalAndOp,
    graph.LogicalOrOp,
    graph.LogicalXorOp,
    graph.LogicalNotOp,
    graph.WhereOp,
)
# Injective operators that ask for each operand element at most once. (A gather may ask for
# one often, and a concatenation computes all its operands everywhere.)
_ONCE = (graph.TransposeOp, graph.ReshapeOp, graph.SliceOp)
# Injective operators that compute where an element comes from, each time it is asked for.
_DEAR = (graph.ConcatOp, graph.PadOp)
# What goes through the rows of a sparse matrix, each by itself.
_OF_ROWS = (graph.SpmmOp, graph.AggregateOp, graph.DegreeOp, graph.ToDenseOp)
_LONGEST_STAGED_ROW = 1024
# What has a value for each entry is computed once for a few vectors of a row, not once for all
# of it, and a softmax asks three times for a score.
_LONGEST_ROW_OF_ENTRY = 128
_LONGEST_DOT_OF_ENTRY = 16


@dataclass(eq=False)
class Group:
    """Operators that become one kernel, and why they may."""

    anchor: GraphOp | None
    ops: list[GraphOp] = field(default_factory=list)
    repeated: set[GraphOp] = field(default_factory=set)
    """Those that are computed more often than they have elements."""
    why: str = "elementwise operators are computed where they are used"

    @property
    def results(self) -> list[SSAValue]:
        """The results of the last operator, and of others those that are used elsewhere."""
        *inner, last = self.ops
        inside = set(self.ops)
        shared = [r for op in inner for r in op.results if not inside.issuperset(_users(op))]
        return [*shared, *last.results]

    def sort(self, position: dict[Operation, int]) -> None:
        """Bring the operators into the order of the function."""
        self.ops.sort(key=lambda op: position[op])


class Grouping:
    """The groups of the operators of one block.

    Args:
        block: the body of a function.
        max_ops: the largest number of operators in a group; 0 sets no limit.
        max_width: the largest width of the dense product of step 3.
    """

    def __init__(self, block: Block, max_ops: int, max_width: int) -> None:
        self.max_ops = max_ops or math.inf
        self.position = {op: number for number, op in enumerate(block.ops)}
        self.members = [op for op in block.ops if has_value(op)]
        self.group_of: dict[Operation, Group] = {}
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
                if op not in makers or any(u not in region for u in _users(op))
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
            for user in _users(newest):
                # A user inside the region of another operation counts as one outside.
                if user in self.position and user not in seen:
                    seen.add(user)
                    heapq.heappush(queue, (self.position[user], user))
            if not queue:
                return
            follower = heapq.heappop(queue)[1]
            yield follower
            # Whoever asks for the next one has put this one into the region.
            newest = follower

    def _is_epilogue(self, op: Operation, region: Mapping[GraphOp, None]) -> TypeGuard[GraphOp]:
        if not has_value(op) or op in self.group_of:
            return False
        if _only_adds_axes(op):
            # One number for each row becomes a column: no other loops, another index.
            return next(iter(region)).fusion == FusionKind.REDUCTION
        if _cuts_rows(op):
            # The others, which are not computed, must not be asked for by anything else.
            alone = all(u in region or u is op for part in region for u in _users(part))
            return alone and isinstance(next(iter(region)), _OF_ROWS)
        whole = all(_is_whole(op, o) for o in op.operands if o.owner in region)
        return whole and op.fusion == FusionKind.ELEMENTWISE

    def _join_users(self, op: GraphOp) -> None:
        """Step 2: put `op` into the group of all its users, or into one of its own."""
        users = _users(op)
        groups = {self.group_of.get(user) for user in users}
        group = groups.pop() if len(groups) == 1 else None
        if group is None or len(group.ops) >= self.max_ops:
            self._add(Group(None), [op])
            return
        repeated = any(user in group.repeated or _repeats(user, op) for user in users)
        whole = all(_is_whole(user, op.results[0]) for user in users)
        affordable = _is_cheap(op) or (not repeated and (whole or len(users) == 1))
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
        if group.anchor is not op or not isinstance(op, (graph.DenseOp, graph.MatmulOp)):
            return
        hidden = op.operands[0]
        rows = self.group_of.get(cast(Operation, hidden.owner))
        if rows is None or rows is group or not isinstance(rows.anchor, graph.SpmmOp):
            return
        width, hidden_width = _width(op.results[0]), _width(hidden)
        small = 0 < width <= max_width and 0 < hidden_width <= _LONGEST_STAGED_ROW
        total = len(rows.ops) + len(group.ops)
        if not small or not hidden.has_one_use() or total > self.max_ops:
            return
        if any(isinstance(part, (graph.DenseOp, graph.MatmulOp)) for part in rows.ops):
            return
        self._add(group, rows.ops)
        group.repeated |= rows.repeated
        group.why = f"the row of {hidden_width} values between the products never leaves the cache"

    def _join_rows(self, last: GraphOp) -> None:
        """Step 5: bring a group that `last` ends into the kernel that goes through its rows."""
        # (x - mean(x))[i, j] needs mean(x)[i] only, which is computed before j begins
        group, users = self.group_of[last], _users(last)
        targets = {self.group_of.get(user) for user in users}
        target = targets.pop() if len(targets) == 1 else None
        if target is None or target is group or any(_bars(user, last) for user in users):
            return
        if len(target.ops) + len(group.ops) > self.max_ops:
            return
        if isinstance(group.anchor, graph.ReduceOp):
            target.sort(self.position)
            if not _goes_through_rows(target, last.results[0]):
                return
            target.why = "what a row needs of itself is computed before it is gone through"
        elif group.anchor is not None or not all(_is_cheap(op) for op in group.ops):
            return
        self._add(target, group.ops)
        target.repeated |= group.repeated | ({last} if group.anchor is None else set())

    def _join_shares(self, op: GraphOp) -> None:
        """Step 4: bring the shares of self loops to those of the edges, if a row has both."""
        # maximum and sum of a row are the same for both
        group = self.group_of[op]
        if not isinstance(op, graph.OwnSoftmaxOp) or group.anchor is not op:
            return
        group.sort(self.position)
        last = group.ops[-1]
        targets = {self.group_of.get(user) for user in _users(last)}
        target = targets.pop() if len(targets) == 1 else None
        if target is None or len(target.ops) + len(group.ops) > self.max_ops:
            return
        beside = any(
            isinstance(part, graph.EdgeSoftmaxOp) and list(part.operands) == list(op.operands)
            for part in target.ops
        )
        target.sort(self.position)
        if beside and _stay_in_rows(target.ops, last.results[0]):
            self._add(target, group.ops)
            target.repeated |= group.repeated

    def _join_entries(self, user: GraphOp) -> None:
        """Step 4: bring what `user` reads entry by entry into its kernel."""
        # edge_softmax(a, e)[p] for the entries p of a row needs the scores of that row only
        group = self.group_of[user]
        for value, matrix in user.entry_operands:
            values = self.group_of.get(cast(Operation, value.owner))
            readers = [use.operation for use in value.uses]
            if (
                values is None
                or values is group
                or not all(
                    self.group_of.get(reader) is group and _reads_entries(reader, value)
                    for reader in readers
                )
            ):
                continue
            total = len(values.ops) + len(group.ops)
            own = tensor_type(user.results[0]).get_shape()[tensor_type(value).get_num_dims() :]
            short = all(n != DYNAMIC_INDEX for n in own) and math.prod(own) <= _LONGEST_ROW_OF_ENTRY
            if total > self.max_ops or not short or not _is_of_entries(values, matrix):
                continue
            self._add(group, values.ops)
            group.repeated |= values.repeated
            group.why = "the values of the entries of a row are computed where they are read"

    def _join_siblings(self, op: GraphOp) -> None:
        """Step 6: bring a group to another one that goes through the rows of the same matrix."""
        group = self.group_of[op]
        if group.anchor is not op or not isinstance(op, RowOp):
            return
        for other in self.members[: self.members.index(op)]:
            target = self.group_of[other]
            if target.anchor is not other or not isinstance(other, RowOp) or other.a is not op.a:
                continue
            total = len(target.ops) + len(group.ops)
            apart = self._needs(group, target) or self._needs(target, group)
            if total > self.max_ops or apart:
                continue
            self._add(target, group.ops)
            target.why = "the rows of one matrix are gone through once"
            return

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
        for user in _users(op):
            while user not in self.position:
                parent = user.parent_op()
                assert parent is not None
                user = parent
            found.append(user)
        return found


def _is_of_entries(group: Group, matrix: SSAValue) -> bool:
    """Whether a group gives values of the entries of a matrix, at little cost for each."""
    matrices = {m for op in group.ops for _, m in op.entry_operands}
    for op in group.ops:
        if isinstance(op, graph.EntriesOp | graph.AtEntriesOp):
            matrices.add(op.a)
        elif isinstance(op, graph.SddmmOp):
            matrices.add(op.a)
            width = tensor_type(op.x).get_shape()[-1]
            dot = op.fusion == FusionKind.CONTRACTION
            if dot and (width == DYNAMIC_INDEX or width > _LONGEST_DOT_OF_ENTRY):
                return False
        elif op.fusion == FusionKind.CONTRACTION:
            return False
    return matrices == {matrix}


def _reads_entries(op: Operation, value: SSAValue) -> bool:
    """Whether an operator uses `value` as values of entries only."""
    if not isinstance(op, GraphOp):
        return False
    return [v for v, _ in op.entry_operands].count(value) == list(op.operands).count(value)


def _goes_through_rows(group: Group, value: SSAValue) -> bool:
    """Whether a group, in order, asks for each number of `value` in the loops of its own row."""
    if group.anchor is not None and not isinstance(group.anchor, graph.ReduceOp):
        return False
    return _stay_in_rows(group.ops, value)


def _stay_in_rows(ops: Iterable[GraphOp], value: SSAValue) -> bool:
    """Whether operators, in order, need each number of `value` in its own row only."""
    in_rows, reshaped = {value}, set[SSAValue]()
    for op in ops:
        if not reshaped.isdisjoint(op.operands):
            if not all(_is_whole(op, v) for v in op.operands if v in reshaped | in_rows):
                return False
            reshaped.update(op.results)
        elif isinstance(op, graph.ReshapeOp) and op.x in in_rows - {value} and not reshaped:
            reshaped.update(op.results)
        elif not in_rows.isdisjoint(op.operands):
            if not _stays_in_rows(op, value):
                return False
            in_rows.update(op.results)
    return True


def _stays_in_rows(op: GraphOp, value: SSAValue) -> bool:
    """Whether an operator goes through the rows of `value`, or reduces what lies within them."""
    result = tensor_type(op.results[0]).get_shape()
    if isinstance(op, graph.ReduceOp):
        within = _has_rows_of(op.result, tensor_type(op.x).get_shape())
        return within and _has_rows_of(value, result)
    return op.fusion == FusionKind.ELEMENTWISE and _has_rows_of(value, result)


def _has_rows_of(value: SSAValue, shape: Sequence[int]) -> bool:
    """Whether `value` has one number for each row: the leading sizes of `shape`, and ones."""
    sizes = list(tensor_type(value).get_shape())
    while sizes and sizes[-1] == 1:
        sizes.pop()
    same_rank = tensor_type(value).get_num_dims() == len(shape)
    return same_rank and list(shape[: len(sizes)]) == sizes


def _users(op: Operation) -> list[Operation]:
    """The operations that use a result of `op`, each once, in a fixed order."""
    return list(dict.fromkeys(use.operation for result in op.results for use in result.uses))


def _is_whole(op: Operation, operand: SSAValue) -> bool:
    """Whether an elementwise `op` needs `operand` at its own index: it is not broadcast."""
    if not isinstance(op, GraphOp) or op.fusion != FusionKind.ELEMENTWISE:
        return False
    given, wanted = (tensor_type(v).get_shape() for v in (operand, op.results[0]))
    pairs = zip(given, wanted, strict=False)
    return len(given) == len(wanted) and all(g != 1 or w == 1 for g, w in pairs)


def _only_adds_axes(op: Operation) -> bool:
    """Whether `op` is a reshape that adds or removes axes of size 1 only."""
    if not isinstance(op, graph.ReshapeOp):
        return False
    given, wanted = (
        [n for n in tensor_type(v).get_shape() if n != 1] for v in (op.operands[0], op.results[0])
    )
    return given == wanted and given.count(DYNAMIC_INDEX) <= 1


def _cuts_rows(op: Operation) -> bool:
    """Whether an operator takes some rows as they are, so that no others have to be computed."""
    whole = (0, WHOLE_END, 1)
    if not isinstance(op, graph.SliceOp):
        return False
    sizes = tensor_type(op.x).get_shape()[1:]
    return all(b in ((0, n, 1), whole) for b, n in zip(op.bounds[1:], sizes, strict=True))


def _repeats(user: Operation, op: GraphOp) -> bool:
    """Whether `user` may ask for one element of `op` more than once."""
    if not isinstance(user, GraphOp) or isinstance(user, _ONCE):
        return False
    if isinstance(user, graph.PoolOp):
        return True
    if user.fusion in _ANCHORS:
        return False
    return not _is_whole(user, op.results[0])


def _bars(user: Operation, op: GraphOp) -> bool:
    """Whether `op` must not be computed inside `user`."""
    if not isinstance(user, GraphOp):
        return True
    if user.fusion in (FusionKind.CONTRACTION, FusionKind.OPAQUE):
        return True
    # Indices are checked before a kernel runs: they have to be there then.
    return isinstance(user, GraphOp) and any(i.owner is op for i, _, _ in user.index_bounds)


def _is_cheap(op: GraphOp) -> bool:
    moves = op.fusion in (FusionKind.BROADCAST, FusionKind.INJECTIVE)
    return isinstance(op, _CHEAP) or (moves and not isinstance(op, _DEAR))


def _width(value: SSAValue) -> int:
    """The number of columns of a matrix; 0 where it is none or the number is not known."""
    shape = tensor_type(value).get_shape()
    return shape[1] if len(shape) == 2 and shape[1] != DYNAMIC_INDEX else 0
