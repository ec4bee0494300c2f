"""The plan of the nests that compute a group of operators in one kernel.

Planning follows the values of a group from its results back to its arguments (`walk.py`), without
building IR. Fusion asks `plan_nests` before a group grows; `convert-graph-to-loop` builds what it
says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import func
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.errors import UnsupportedError, explain
from ..demands import SizeOperand, demands, read_operands
from ..interfaces import GraphOp, Sizes, rank, tensor_type
from ..kinds import FusionKind
from ..nests.recording import Recorder, is_reshape
from ..rearranging import is_framed
from ..sizes.shapes import SymbolicShapes
from .group_values import GroupValues
from .nest_plan import MOST_OPERATORS, NestPlan, PlannedLoop, Refusal, ResultNest
from .walk import Walk
from .writers import WriterPlanner


def plan_nests(
    ops: Sequence[GraphOp], results: Sequence[SSAValue], shapes: Sizes, recorder: Recorder
) -> NestPlan:
    """Plan the nests of a group.

    Args:
        ops: the operators of the group, in the order of their block.
        results: those of their results that are used outside of the group.
        shapes: the symbolic shapes of the values.
        recorder: knows what operators read.
    """
    return _Planner(GroupValues(ops, results, shapes, recorder)).planned()


def planned(function: func.FuncOp, shapes: Sizes, recorder: Recorder) -> NestPlan:
    """Plan the nests of a primitive function.

    Raises:
        UnsupportedError: if there is an operation in it that is not an operator of `graph`.
    """
    *body, returned = function.body.block.ops
    ops: list[GraphOp] = []
    for op in body:
        if not isinstance(op, GraphOp):
            raise UnsupportedError(explain(op.name, "has no value at an index"))
        ops.append(op)
    return plan_nests(ops, list(returned.operands), shapes, recorder)


def obstacle(function: func.FuncOp) -> str | None:
    """Why a primitive function cannot be one kernel; None where it can, or is one call.

    Raises:
        UnsupportedError: if there is an operation in it that is not an operator of `graph`.
        VerifyException: if its shapes cannot fit together.
    """
    refusal = planned(function, SymbolicShapes(function), Recorder()).refusal
    alone = len(function.body.block.ops) <= 2
    return None if refusal is None or alone else refusal.why


class _Planner:
    """Plans the nests of one group."""

    def __init__(self, values: GroupValues) -> None:
        self.values, self.plan = values, NestPlan()

    def planned(self) -> NestPlan:
        """The plan, or the first reason against it."""
        # Each group has literals of its own, which are not counted where it grows.
        if sum(bool(op.operands) for op in self.values.ops) > MOST_OPERATORS:
            middle = self.values.ops[len(self.values.ops) // 2 - 1]
            why = f"a kernel may have at most {MOST_OPERATORS} operators"
            self.plan.refusal = Refusal(middle.results[0], why)
            return self.plan
        self.plan.refusal = next(filter(None, map(self._refusal_of, self.values.ops)), None)
        if self.plan.refusal is not None:
            return self.plan
        self.values.study()
        writer = next((op for op in self.values.ops if op.fusion == FusionKind.NEST), None)
        if writer is not None:
            return WriterPlanner(self.values, writer).planned()
        waiting, computed = list(self._nests()), set[SSAValue]()
        while waiting:
            nest = waiting.pop(0)
            walk = self._walked(nest)
            if walk.refusal is not None:
                self.plan.refusal = walk.refusal
                return self.plan
            if nest.entries is not None and len(nest.results) > 1:
                waiting = [*map(self._nest_of, nest.results), *waiting]
                continue
            self.plan.nests.append(nest)
            self.plan.repeated |= walk.repeated | (walk.computed & computed)
            self.plan.hoisted |= walk.hoisted
            self.plan.in_result = walk.in_result
            computed |= walk.computed
            changed, self.plan.staged = walk.staged != self.plan.staged, walk.staged
            if changed and len(self.plan.nests) > 1:
                # A nest that was planned earlier may use values that are staged now.
                waiting = [*self.plan.nests, *waiting]
                self.plan.nests, self.plan.repeated, computed = [], set(), set()
        self.plan.nests.sort(key=lambda nest: nest.results[0])
        return self.plan

    def _refusal_of(self, op: GraphOp) -> Refusal | None:
        """Why an operator cannot be in a kernel with the others, whatever the nest."""
        if (why := op.refusal) is not None:
            return Refusal(op.results[0], why)
        read, sizes = read_operands(op), {demand.operand for demand in demands(op, SizeOperand)}
        for value in op.operands:
            if value in read and value.owner in self.values.inside:
                why = "indices are checked before the kernel that reads by them runs"
                if value in sizes:
                    why = "a size is read before the kernel that has it runs"
                return Refusal(value, why)
        return None

    def _nests(self) -> list[ResultNest]:
        """The results by the nest that computes them.

        Each has its own, but for numbers that reductions give for the same rows, for what is made
        of the same value, index by index, and for rows of one shape that are made of the entries
        of the same rows.
        """
        nests: dict[object, ResultNest] = {}
        keys: dict[SSAValue, object] = {}
        for number, value in enumerate(self.values.results):
            nest = self._nest_of(number)
            key: object = number
            if rank(nest.source) == 1 and self.values.is_deep(value):
                key = self.values.shapes.shape(nest.source)  # no bare size: it may equal a number
            elif nest.reshapes == [None]:
                sources = self._sources(value)
                own = self._rows_of(value, sources) or number
                key = next((keys[source] for source in sources if source in keys), own)
                keys |= dict.fromkeys(sources, key)
            known = nests.setdefault(key, nest)
            if known is not nest:
                known.results += nest.results
                known.reshapes += nest.reshapes
        return list(nests.values())

    def _rows_of(self, value: SSAValue, sources: Iterable[SSAValue]) -> object:
        """The matrices whose rows are visited for a value, and its shape; None if there are none.

        Args:
            value: the value.
            sources: what it is made of, index by index.
        """
        ops = (source.owner for source in sources if source.owner in self.values.inside)
        found = (self.values.uses.walked(op) for op in ops if isinstance(op, GraphOp))
        walked = frozenset[SSAValue]().union(*found)
        return (walked, self.values.shapes.shape(value)) if walked else None

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """A value, and those of the group that it is made of, index by index."""
        found = [value]
        for made in found:
            op = made.owner
            if not isinstance(op, GraphOp):
                continue
            for operand in op.operands:
                own = operand.owner in self.values.inside
                if own and operand not in found and self.values.uses.at_own_index(op, operand):
                    found.append(operand)
        return found

    def _nest_of(self, number: int) -> ResultNest:
        """The nest of one result by itself."""
        value = self.values.results[number]
        reshape = self._reshape_of(value)
        if reshape is None:
            return ResultNest([number], value, [None])
        assert isinstance(reshape.owner, GraphOp)
        return ResultNest([number], reshape.owner.operands[0], [reshape])

    def _reshape_of(self, value: SSAValue) -> SSAValue | None:
        """The reshape of something that reduces, of which `value` is made index by index.

        Or `value` itself, if it is something that reduces, with a constant around it.
        """
        if self.values.is_deep(value) and is_framed(value.owner):
            return value
        while self.values.is_deep(value):
            op = value.owner
            assert isinstance(op, GraphOp)
            if is_reshape(op):
                return value
            recording = self.values.recording(value)
            own = tuple(AffineExpr.dimension(n) for n in range(recording.rank))
            reads = [r for r in recording.reads if self.values.is_deep(op.operands[r.operand])]
            if recording.reduces or len(recording.atoms) > recording.rank:
                return None
            if len(reads) != 1 or reads[0].index != own:
                return None
            operand = op.operands[reads[0].operand]
            if tensor_type(operand).get_shape() != tensor_type(value).get_shape():
                return None
            value = operand
        return None

    def _walked(self, nest: ResultNest) -> Walk:
        """Follow a nest back to its arguments, in the loops that its reductions need."""
        nest.order = nest.entries = None
        walk = Walk(self.values, nest, self.plan.staged).done()
        if walk.entries is not None:
            nest.entries = walk.entries
            return Walk(self.values, nest, self.plan.staged).done()
        nest.order = _better_order(walk.root, walk.reductions)
        if nest.order is not None:
            ordered = Walk(self.values, nest, self.plan.staged).done()
            if ordered.refusal is None:
                several = [dim for dim in nest.order if not walk.root[dim].runs_once]
                nest.reordered = several != sorted(several)
                return ordered
            nest.order = None
        return walk


def _better_order(
    loops: Sequence[PlannedLoop], reductions: Iterable[frozenset[PlannedLoop]]
) -> list[int] | None:
    """The loops that a reduction depends on, then the others; None where that is so already.

    A reduction that needs some of the loops only is then computed before the others begin. A
    loop that runs once may stay where it is.
    """
    for needed in reductions:
        inside = [n for n, loop in enumerate(loops) if loop in needed or loop.runs_once]
        if 0 < len(inside) < len(loops) and inside != list(range(len(inside))):
            return inside + [n for n in range(len(loops)) if n not in inside]
    return None
