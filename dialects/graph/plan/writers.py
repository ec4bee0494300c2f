"""The plan of a group with an operator that writes its results in loops of its own.

All that the group gives is computed in these loops: what the operator reads where it reads it,
and what follows elementwise where an element is written.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..interfaces import GraphOp
from ..kinds import FusionKind
from ..nests.accesses import AtomKind
from .group_values import GroupValues
from .nest_plan import NestPlan, Refusal


class WriterPlanner:
    """Plans the loops of one operator, with what it reads and what follows it."""

    def __init__(self, values: GroupValues, writer: GraphOp) -> None:
        self.values, self.writer = values, writer
        self.made = dict[SSAValue, SSAValue](zip(writer.results, writer.results, strict=True))
        """Values that are computed where an element of a result of the writer is written."""

    def planned(self) -> NestPlan:
        """The plan, or the first reason against it."""
        plan = NestPlan(writer=self.writer)
        for op in self.values.ops:
            if plan.refusal is None and op is not self.writer:
                plan.refusal = self._follow(op)
        for number, value in enumerate(self.values.results):
            if plan.refusal is None:
                plan.refusal = self._refusal_of(value)
            if plan.refusal is None:
                plan.followers.setdefault(self.made[value], []).append(number)
        plan.repeated = self._repeated()
        return plan

    def _follow(self, op: GraphOp) -> Refusal | None:
        """Note what an operator makes of elements that are written, or why it cannot."""
        value = op.results[0]
        if op.fusion == FusionKind.NEST:
            why = f"{op.name} and {self.writer.name} write their results in loops of their own"
            return Refusal(value, why)
        read = [operand for operand in op.operands if operand in self.made]
        sources = {self.made[operand] for operand in read}
        deep = next((result for result in op.results if self.values.is_deep(result)), None)
        if deep is not None:
            where = "in" if sources else "before"
            return Refusal(deep, f"a reduction cannot be {where} the loops of {self.writer.name}")
        if self._needs_rows_of_entries(op):
            why = "the row of a stored entry is needed"
            return Refusal(value, f"{why} in the loops of {self.writer.name}")
        if len(sources) > 1:
            return Refusal(value, f"it needs several results of {self.writer.name} at once")
        if not all(self.values.uses.at_own_index(op, operand) for operand in read):
            return Refusal(value, f"{self.writer.name} writes elements in another order")
        self.made |= {result: source for source in sources for result in op.results}
        return None

    def _needs_rows_of_entries(self, op: GraphOp) -> bool:
        """Whether an operator needs rows or columns of entries that it does not visit itself."""
        kinds = (AtomKind.ROW_OF_ENTRY, AtomKind.COLUMN_OF_ENTRY)
        recordings = map(self.values.recording, op.results)
        return any(atom.kind in kinds for recording in recordings for atom in recording.atoms)

    def _refusal_of(self, value: SSAValue) -> Refusal | None:
        """Why a result of the group is not computed where an element is written."""
        source = self.made.get(value)
        if source is None:
            return Refusal(value, f"it does not follow from what {self.writer.name} writes")
        recording = self.values.recording(source)
        number = self.writer.results.index(source)
        writes = [write for write in recording.writes if write.result == number]
        if value is source or all(write.is_final for write in writes):
            return None
        return Refusal(source, f"its elements are final only at the end of {self.writer.name}")

    def _repeated(self) -> set[SSAValue]:
        """Values whose elements are read several times, or by values that are repeated."""
        found = set[SSAValue]()
        for op in reversed(self.values.ops):
            for result in op.results:
                users = {use.operation for use in result.uses} & self.values.inside
                again = any(
                    self.values.uses.repeats(user, result) or not found.isdisjoint(user.results)
                    for user in users
                )
                if result not in self.made and (again or len(users) > 1):
                    found.add(result)
        return found
