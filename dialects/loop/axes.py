"""Which values become blocks when loops become axes, and whether that is legal.

Turning a loop into an axis gives a dimension to every value that depends on its variable. The
analysis walks the nest once, takes the smallest fixed point around accumulators, and refuses where
a value cannot become a block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from .attrs import LoopKind
from .loops import bound_of, enclosing
from .nests import MOST_LANES, ScheduleError, refusal
from .ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp, YieldOp

AxisSet = frozenset[int]

NONE: AxisSet = frozenset()


class Axes:
    """The axes that values will have; `lanes` is the length of each axis.

    Args:
        step: the name of the primitive, for its errors.
        kernel: the kernel.
        targets: the loops that become axes, in the order of the axes, all nested in one another. A
            reduction is the whole body of another one, the outer half of a split. Loops beside one
            another, as two reductions one after the other, become one axis if they are of one
            length: no value has lanes of both.

    Raises:
        ScheduleError: if one of the loops cannot be an axis.
    """

    def __init__(self, step: str, kernel: KernelOp, targets: Sequence[ForOp]) -> None:
        self.step, self.kernel = step, kernel
        self.targets: list[ForOp] = []
        self.lanes: list[int] = []
        self.of: dict[SSAValue, AxisSet] = {}
        self.inner: dict[ForOp, ForOp] = {}
        """For the outer half of each reduction that becomes an axis, that reduction."""
        self._number: dict[ForOp, int] = {}
        self._variables: dict[SSAValue, ForOp] = {}
        for target in targets:
            self._take(target)
        for outer, inner in self.inner.items():
            if outer in self.targets:
                fact = f'its partial sums are those of "{outer.loop_name.data}", an axis as well'
                raise self.refuse(inner, fact)
        self.root = self._outermost()
        self._visit(self.root)

    def axis(self, target: ForOp) -> int:
        """The number of the axis that a loop becomes."""
        return self._number[target]

    def refuse(
        self, loop: ForOp, fact: str, expected: object = None, got: object = None
    ) -> ScheduleError:
        """The error of the primitive for one of its loops."""
        return refusal(self.step, self.kernel, loop, fact, expected, got)

    def _take(self, target: ForOp) -> None:
        if target.over_entries:
            raise self.refuse(target, "rows differ in length, so entries cannot be an axis")
        if target in self.targets:
            raise self.refuse(target, "is named twice")
        if target.kind.data.keeps_order or target.kind.data.is_distributed:
            raise self.refuse(target, "wrong kind", LoopKind.PARALLEL, target.kind.data)
        lanes = bound_of(target)[0]
        if not isinstance(lanes, AffineConstantExpr):
            raise self.refuse(target, "its size is not known", "a constant bound; split it first")
        limited = len(bound_of(target)) > 1
        if lanes.value < 1 or (limited and lanes.value == 1):
            raise self.refuse(target, "wrong number of lanes", "at least 1", lanes.value)
        shared = self._beside(target, lanes.value)
        if shared is None and math.prod([*self.lanes, lanes.value]) > MOST_LANES:
            fact, got = "wrong number of lanes", math.prod([*self.lanes, lanes.value])
            raise self.refuse(target, fact, f"at most {MOST_LANES}", got)
        if target.is_reduction:
            outer = target.parent_op()
            if not target.is_joinable:
                raise self.refuse(target, "its accumulators cannot be combined")
            if limited or lanes.value < 2:
                raise self.refuse(target, "wrong size of a reduction", "a constant above 1")
            if (
                not isinstance(outer, ForOp)
                or outer.over_entries
                or outer.body.block.first_op is not target
                or list(outer.yielded) != list(target.results)
                or list(target.inits) != list(outer.carried)
                or outer.combiners != target.combiners
            ):
                raise self.refuse(
                    target, "is not the whole body of another reduction; split it first"
                )
            self.inner[outer] = target
        self.targets.append(target)
        self._number[target] = len(self.lanes) if shared is None else shared
        if shared is None:
            self.lanes.append(lanes.value)
        self._variables[target.variable] = target

    def _beside(self, target: ForOp, lanes: int) -> int | None:
        """The axis of a loop of so many lanes beside another one, in the same block around them."""
        around = {*enclosing(target)}
        for other, axis in self._number.items():
            apart = other not in around and target not in enclosing(other)
            if apart and self.lanes[axis] == lanes:
                return axis
        return None

    def _outermost(self) -> ForOp:
        """The operation around all of the targets.

        Raises:
            ScheduleError: if they are not nested in one another.
        """
        around = {target: set(enclosing(target)) for target in self.targets}
        chain = sorted(self.targets, key=lambda target: len(around[target]))
        for outer, inner in itertools.combinations(chain, 2):
            if outer not in around[inner] and self.axis(outer) != self.axis(inner):
                raise self.refuse(inner, f'is not inside of loop "{outer.loop_name.data}"')
        first = chain[0]
        return next(o for o, i in self.inner.items() if i is first) if first.is_reduction else first

    # The walk.

    def _axes(self, values: Sequence[SSAValue]) -> AxisSet:
        return NONE.union(*[self.of.get(value, NONE) for value in values])

    def _blame(self, axes: AxisSet) -> ForOp:
        """The first of the loops that these axes come from."""
        return next(target for target in self.targets if self.axis(target) == min(axes))

    def _visit(self, op: Operation) -> None:
        match op:
            case ForOp():
                self._visit_for(op)
            case LoadOp():
                self.of[op.result] = self._place(op)
            case StoreOp():
                self._visit_store(op)
            case LocalOp():
                loop = next(t for t in enclosing(op) if t in self.targets)
                raise self.refuse(loop, "each of its iterations has a local buffer")
            case _:
                self._visit_other(op)

    def _visit_for(self, op: ForOp) -> None:
        if axes := self._axes(op.bounds):
            name = f'"{op.loop_name.data}"'
            fact = f"the bound of {name} depends on it"
            if op.over_entries:
                fact = f"its rows differ in length, see {name}"
            raise self.refuse(self._blame(axes), fact)
        inner = self.inner.get(op)
        if inner is not None:
            axis = self.of[inner.variable] = frozenset({self.axis(inner)})
            self._carry(op, inner, axis)
            self.of |= {last: self.of[last] - axis for last in op.results}
            return
        if op in self.targets and self.lanes[self.axis(op)] > 1:
            self.of[op.variable] = frozenset({self.axis(op)})
        self._carry(op, op)

    def _carry(self, outer: ForOp, op: ForOp, own: AxisSet = NONE) -> None:
        """The axes of carried values: those of the initial and of the yielded values."""
        axes = [self._axes([init]) | own for init in outer.inits]
        while True:
            self.of |= zip((*outer.carried, *op.carried), (*axes, *axes), strict=True)
            for inner in op.body.block.ops:
                if not isinstance(inner, YieldOp):
                    self._visit(inner)
            wider = [a | self._axes([y]) for a, y in zip(axes, op.yielded, strict=True)]
            if wider == axes:
                break
            axes = wider
        self.of |= zip((*op.results, *outer.results), (*axes, *axes), strict=True)

    def _visit_store(self, op: StoreOp) -> None:
        place, value = self._place(op), self._axes([op.value])
        if op.accumulates:
            value = self._axes([t.variable for t in enclosing(op) if t in self.targets])
        if missing := value - place:
            raise self.refuse(self._blame(missing), "its iterations store to one place")

    def _visit_other(self, op: Operation) -> None:
        for operand in op.operands:
            if isinstance(operand.type, VectorType):
                raise self.refuse(self.root, "has blocks already; all axes are made at once")
            if (target := self._variables.get(operand)) and not op.name.startswith("arith."):
                raise self.refuse(target, f"its variable is used as a value by {op.name}")
        axes = self._axes(op.operands)
        if axes and not op.name.startswith(("arith.", "math.")):
            raise self.refuse(self._blame(axes), f"{op.name} takes no blocks")
        for result in op.results:
            self.of[result] = axes

    def _place(self, op: LoadOp | StoreOp) -> AxisSet:
        """The axes of the index of an access."""
        if op.map.data.num_symbols:
            raise self.refuse(self.root, "has blocks already; all axes are made at once")
        indices = op.indices
        for operand in indices:
            if operand not in self._variables and (axes := self._axes([operand])):
                fact = f"an index of {op.name} is computed from it"
                raise self.refuse(self._blame(axes), fact)
        return self._axes(indices)
