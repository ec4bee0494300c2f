"""Which operators become one kernel: proposals to merge two groups, each answered with its reason.

Each operator starts as a group. Proposals come in the order of `Grouping.run`; `Costs.objection`
and the plan of the merged group decide: the size, then what it costs, then whether there is a
kernel. Each edge that stays between two groups has the reason of its last refusal on record.

A group takes in another one only where all users of that group are in it: a path that leaves it
meets the other one at once. So groups never form a cycle. Before siblings are merged, which have no
edge between them, and before what follows one of several results that an operator writes is, paths
are looked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....core.algebra.dims import Shape
from ....dialects.graph.demands import read_operands
from ....dialects.graph.interfaces import FusionKind, GraphOp, Sizes, tensor_type
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.ops.sources.constant import ConstantOp
from ....dialects.graph.plan.nest_plan import MOST_OPERATORS, NestPlan
from ....dialects.graph.plan.planner import plan_nests
from ....dialects.graph.plan.uses import Uses
from ....dialects.graph.rearranging import is_framed
from .costs import ELSEWHERE, MergeCosts
from .groups import FusionRegion, Gain, Group, Proposal, results_of, users_of
from .outlining import has_kernel

_ANCHORS = (FusionKind.CONTRACTION, FusionKind.REDUCTION, FusionKind.NEST)
_PLAIN = {Gain.EPILOGUE, Gain.USER}


@dataclass(frozen=True)
class Edge:
    """That one group reads from memory what another one computes, and why it does."""

    maker: Group
    reader: Group
    why: str


class Grouping:
    """The groups of the operators of one block.

    Args:
        block: the body of a function.
        shapes: the symbolic shapes of the function.
        max_ops: the largest number of operators in a group; 0 for what a kernel can hold.
        max_width: the largest width of a dense product that goes into a sparse one's kernel, or
            into that of a consumer that reads its rows again.
    """

    def __init__(self, block: Block, shapes: Sizes, max_ops: int, max_width: int) -> None:
        self.max_ops = min(max_ops or MOST_OPERATORS, MOST_OPERATORS)
        self.shapes, self.recorder = shapes, Recorder()
        self.uses = Uses(self.recorder)
        self.costs = MergeCosts(self.uses, max_width)
        self.position = {op: number for number, op in enumerate(block.ops)}
        self.members = [op for op in block.ops if has_kernel(op)]
        self.group_of: dict[object, Group] = {
            op: Group(op if op.fusion in _ANCHORS else None, [op]) for op in self.members
        }
        self._users: dict[Operation, list[Operation]] = {}
        self.refused: dict[tuple[SSAValue, Operation], str] = {}
        """Why a value is not computed in the kernel of a user: the last answer."""
        self.run()

    @property
    def groups(self) -> list[Group]:
        """All groups, in the order of their last operators."""
        found = dict.fromkeys(self.group_of[op] for op in self.members)
        return sorted(found, key=lambda group: self.position[group.ops[-1]])

    def edges(self) -> Iterator[Edge]:
        """The edges between groups; one for each two groups, about the first value that is read."""
        for reader in self.groups:
            seen = {reader}
            for op in reader.ops:
                for value in op.operands:
                    maker = self.group_of.get(value.owner)
                    if maker is not None and maker not in seen:
                        seen.add(maker)
                        yield Edge(maker, reader, self.refused[value, op])

    def run(self) -> None:
        """Make all proposals, in their order.

        1. A contraction, then a reduction, then an operator that writes its results takes the
           elementwise operators that follow it. A contraction takes a pad that follows these.
        2. Every other operator goes where all its users are, the last ones first.
        3. Groups that combine the same values in the rows of one sparse matrix become one.
        4. The rows that a sparse product makes go into the dense product that reads them.
        5. Values of stored entries go where one kernel visits the rows of their matrix.
        6. Whatever still has an edge to another group is proposed once more, for any gain: now
           operators read on what is stored, and parts of a product. So each edge that stays has
           its reason.
        7. Groups that give numbers for the rows of one sparse matrix become one.
        """
        for kind in _ANCHORS:
            for op in self.members:
                if op.fusion == kind:
                    self._propose_epilogue(self.group_of[op])
        for op in self.members:
            if op.fusion == FusionKind.CONTRACTION:
                self._propose_frame(self.group_of[op])
        backwards = self.members[::-1]
        self._propose_edges(backwards, {Gain.USER})
        self._propose_walks()
        self._propose_edges(self.members, {Gain.PRODUCT})
        self._propose_edges(backwards, {Gain.COMMON_REDUCTION, Gain.ENTRIES})
        self._propose_edges(backwards, set(Gain))
        self._propose_siblings()

    # The answer to a proposal.

    def _ask(self, proposal: Proposal) -> bool:
        """Merge two groups, or record why not."""
        why = self._objection(proposal)
        if why is None:
            self._merge(proposal)
            return True
        self.refused |= {(proposal.value, user): why for user in proposal.users}
        return False

    def _objection(self, proposal: Proposal) -> str | None:
        """Why two groups are not merged; None where they are."""
        maker, reader = proposal.maker, proposal.reader
        if len(maker.ops) + len(reader.ops) > self.max_ops:
            plural = "" if self.max_ops == 1 else "s"
            return f"a kernel may have at most {self.max_ops} operator{plural}"
        if self._is_needed_outside(proposal):
            return ELSEWHERE
        why = self.costs.objection(proposal)
        if why is not None or self._is_evident(proposal):
            return why
        plan = self._plan_of(proposal)
        if plan.refusal is not None:
            return plan.refusal.why
        return self.costs.objection_to(plan, proposal)

    def _is_needed_outside(self, proposal: Proposal) -> bool:
        """Whether what the maker computes is used where a merge would not allow it."""
        maker, reader = proposal.maker, proposal.reader
        if proposal.gain == Gain.SIBLINGS:
            return False
        if proposal.gain == Gain.STORED:
            return self._come_back([*maker.ops, *reader.ops])
        if proposal.gain == Gain.EPILOGUE and maker.is_of(FusionKind.NEST):
            return self._come_back([*maker.ops, *reader.ops])
        return any(user not in reader.ops for user in users_of(maker.results))

    def _is_evident(self, proposal: Proposal) -> bool:
        """Whether the plan of a merged group has the loops of the two, so that it need not be made.

        That is so for operators without loops of their own that pass on the index at which they
        are needed as a whole: then nothing else is computed, nor elsewhere.
        """
        maker, reader, used = proposal.maker, proposal.reader, proposal.users
        if proposal.gain == Gain.USER:
            # Once there are loops over the same row in a kernel, its operators may be in several.
            plain = _PLAIN.issuperset(reader.gains) and not self.costs.repeats(proposal)
            simple = plain or all(map(self.uses.is_cheap, maker.ops))
            alone = maker.ops if simple and len(maker.ops) == 1 else []
        elif proposal.gain == Gain.EPILOGUE:
            # A reshape is looped over by its source, unless two operators read what it makes.
            follows = [op.fusion == FusionKind.ELEMENTWISE for op in (*maker.ops[1:], *reader.ops)]
            evident = all(follows) and not maker.is_of(FusionKind.NEST)
            alone = used = reader.ops if evident else []
        else:
            return False
        checked = {value.owner for op in used for value in read_operands(op)}
        return bool(alone) and all(op not in checked and self.uses.passes_index(op) for op in alone)

    def _plan_of(self, proposal: Proposal) -> NestPlan:
        """The plan of the kernel of two groups."""
        ops = self._in_order([*proposal.maker.ops, *proposal.reader.ops])
        return plan_nests(ops, results_of(ops), self.shapes, self.recorder)

    def _merge(self, proposal: Proposal) -> None:
        """Put the operators of two groups into one."""
        target, other = proposal.reader, proposal.maker
        if proposal.gain in (Gain.EPILOGUE, Gain.FRAME, Gain.SIBLINGS):
            target, other = other, target
        if proposal.gain == Gain.USER and self.costs.repeats(proposal):
            target.repeated.update(other.ops)
        gains = dict.fromkeys([*target.gains, *other.gains])
        target.gains = [gain for gain in gains if gain != proposal.gain] + [proposal.gain]
        target.repeated |= other.repeated
        target.anchor = target.anchor or other.anchor
        target.ops = self._in_order([*target.ops, *other.ops])
        self.group_of |= dict.fromkeys(other.ops, target)

    def _in_order(self, ops: Iterable[GraphOp]) -> list[GraphOp]:
        return sorted(ops, key=lambda op: self.position[op])

    # The proposals.

    def _propose_epilogue(self, group: Group) -> None:
        """Propose the elementwise operators that follow a group, up to each that all paths meet.

        Each result of an operator that writes its results has its own.
        """
        (anchor,) = group.ops
        region = FusionRegion(anchor, separate=group.is_of(FusionKind.NEST))
        for user in self._followers(region.ops):
            if len(region.ops) > self.max_ops:
                return
            sources = region.sources_of(user)
            if not region.open >= sources or not self._is_epilogue(user, region.ops, group):
                region.open -= sources
                continue
            assert isinstance(user, GraphOp)
            segment = region.add(user)
            read = (value for op in segment for value in op.operands if value.owner in group.ops)
            value = next(read, None)
            if value is not None and not self._ask(
                Proposal(Gain.EPILOGUE, group, Group(None, segment), value)
            ):
                region.open -= sources

    def _propose_frame(self, group: Group) -> None:
        """Propose the operator that puts a constant around the only result of a group."""
        users = users_of(group.results)
        if len(group.results) == len(users) == 1 and is_framed(users[0]):
            frame = self.group_of.get(users[0])
            if frame is not None:
                self._ask(Proposal(Gain.FRAME, group, frame, group.results[0]))

    def _followers(self, region: Mapping[Operation, None]) -> Iterator[Operation]:
        """The users of the growing `region`, in the order of the function."""
        seen: set[Operation] = set()
        queue: list[tuple[int, Operation]] = []
        newest = next(iter(region))
        while True:
            for user in users_of(newest.results) if newest in region else ():
                # A user inside the region of another operation counts as one outside.
                if user in self.position and user not in seen:
                    seen.add(user)
                    heapq.heappush(queue, (self.position[user], user))
            if not queue:
                return
            follower = heapq.heappop(queue)[1]
            yield follower
            # The caller that requests the next one has put this one into the region, or not.
            newest = follower

    def _is_epilogue(self, op: Operation, region: Mapping[Operation, None], group: Group) -> bool:
        """Whether an operator can follow the operators of a region in their loops."""
        if op not in self.group_of or not isinstance(op, GraphOp):
            return False
        own = self.group_of[op]
        if own.anchor is not None or len(own.ops) > 1:
            return False
        if self.uses.only_adds_axes(op):
            # One number for each row becomes a column: no other loops, another index.
            return group.is_of(FusionKind.REDUCTION)
        if self.uses.takes_rows(op):
            # The others, which are not computed, must not be needed by anything else.
            alone = all(u in region or u is op for part in region for u in users_of(part.results))
            assert group.anchor is not None
            return alone and bool(self.uses.walked(group.anchor))
        whole = all(self.uses.at_own_index(op, o) for o in op.operands if o.owner in region)
        return whole and op.fusion == FusionKind.ELEMENTWISE

    def _propose_edges(self, ops: Iterable[GraphOp], gains: set[Gain]) -> None:
        """Propose, for each group that ends with one of these operators, those that read it."""
        for op in ops:
            group = self.group_of[op]
            if group.ops[-1] is not op:
                continue
            for value in group.results:
                for reader in dict.fromkeys(map(self.group_of.get, users_of([value]))):
                    maker = self.group_of[op]
                    if reader is None or maker is reader:
                        continue
                    for gain in self.costs.gains(maker, reader, value):
                        if gain in gains and self._ask(Proposal(gain, maker, reader, value)):
                            break

    def _propose_walks(self) -> None:
        """Propose each group together with an earlier one that combines what it combines.

        Both give a row of one shape for each row of one matrix, of values that both read. One may
        go on with what the other one makes, index by index, and through nothing else.
        """
        anchors: dict[object, list[GraphOp]] = {}
        for op in self.members:
            if op.fusion != FusionKind.CONTRACTION or self.group_of[op].anchor is not op:
                continue
            if walked := frozenset(self.uses.walked(op)):
                key = walked, *self._row_shapes(self.group_of[op])
                earlier = anchors.setdefault(key, [])
                if not any(self._join_walk(other, op) for other in earlier):
                    earlier.append(op)

    def _row_shapes(self, group: Group) -> frozenset[Shape]:
        """The shapes of what a group makes."""
        return frozenset(self.shapes.shape(value) for value in group.results)

    def _join_walk(self, other: GraphOp, op: GraphOp) -> bool:
        """Merge the groups of two operators that combine the same values in the same rows."""
        target, group = self.group_of[other], self.group_of[op]
        if len(self._row_shapes(target)) != 1 or self._read(other).isdisjoint(self._read(op)):
            return False
        passed = [(user, v) for v in target.results for user in users_of([v]) if user in group.ops]
        if not all(self.uses.at_own_index(user, value) for user, value in passed):
            return False
        if self._come_back([*target.ops, *group.ops]):
            return False
        return self._ask(Proposal(Gain.SIBLINGS, target, group, other.results[0]))

    def _read(self, op: GraphOp) -> set[SSAValue]:
        """What the group of an operator that walks a matrix reads for that operator."""
        found, waiting = set[SSAValue](), [op]
        for part in waiting:
            inside = [v.owner for v in part.operands if v.owner in self.group_of[op].ops]
            waiting += [owner for owner in inside if isinstance(owner, GraphOp)]
            found.update(v for v in part.operands if v.owner not in inside)
        constant = {v for v in found if isinstance(v.owner, ConstantOp)}
        return found - constant - self.uses.walked(op)

    def _propose_siblings(self) -> None:
        """Propose each group together with an earlier one that visits the rows of the same matrix.

        Neither may depend on the other, so no edge is there to record a refusal for.
        """
        anchors: dict[frozenset[SSAValue], list[GraphOp]] = {}
        for op in self.members:
            if op.fusion != FusionKind.REDUCTION or self.group_of[op].anchor is not op:
                continue
            # The matrix for whose rows it computes one number each, if there is one.
            one = tensor_type(op.results[0]).get_num_dims() == 1
            walked = frozenset(self.uses.walked(op) if one else ())
            if not walked:
                continue
            earlier = anchors.setdefault(walked, [])
            if not any(self._join_sibling(other, op) for other in earlier):
                earlier.append(op)

    def _join_sibling(self, other: GraphOp, op: GraphOp) -> bool:
        """Merge the groups of two operators that visit the rows of one matrix, if that pays."""
        target, group = self.group_of[other], self.group_of[op]
        if self._depends_on(target, group) or self._depends_on(group, target):
            return False
        return self._ask(Proposal(Gain.SIBLINGS, target, group, other.results[0]))

    def _depends_on(self, group: Group, other: Group) -> bool:
        """Whether what `group` computes depends on `other`, directly or transitively."""
        return self._reach(other.ops, group.ops, set())

    def _come_back(self, ops: Sequence[GraphOp]) -> bool:
        """Whether a path leaves some operators, which would be a group, and comes back."""
        users = [user for op in ops for user in self._users_in_block(op)]
        return self._reach([user for user in users if user not in ops], ops, set(ops))

    def _reach(
        self, start: Iterable[Operation], targets: Collection[Operation], seen: set[Operation]
    ) -> bool:
        """Whether a path of users from some operations, by way of groups, meets others.

        The search does not enter operations in `seen`.
        """
        queue = list(start)
        while queue:
            op = queue.pop()
            if op in targets:
                return True
            if op in seen:
                continue
            unit = self.group_of[op].ops if op in self.group_of else [op]
            seen.update(unit)
            queue += [user for part in unit for user in self._users_in_block(part)]
        return False

    def _users_in_block(self, op: Operation) -> list[Operation]:
        """The operations of the block that use `op`, or within which it is used."""
        known = self._users.get(op)
        if known is None:
            known = self._users[op] = []
            for user in users_of(op.results):
                while user not in self.position:
                    parent = user.parent_op()
                    assert parent is not None
                    user = parent
                known.append(user)
        return known
