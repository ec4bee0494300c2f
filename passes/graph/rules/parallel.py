"""Combine products of one operand into a wider one: the part common to all kinds.

A kind states which products can be combined and along which axis their results are concatenated;
the rest, such as which users are combined with them and what that costs, is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....core.ir.context import decide
from ....core.ir.provenance import fuse
from ....core.pipelines.actions import allowed
from ....core.pipelines.exactness import Exactness
from ....dialects.graph import ops as graph
from ....dialects.graph.composite import CompositeOp
from ....dialects.graph.interfaces import FusionKind, GraphOp, rank, set_result_types
from ....dialects.graph.known import is_constant, sizes_of
from ....dialects.graph.ops.elementwise.bases import UnaryOp
from ....dialects.graph.ops.elementwise.binary import BinaryOp
from ....dialects.graph.ops.moves.select import WHOLE_END
from .permission import Permission


@dataclass(frozen=True)
class ProductKind:
    """Products that can be combined: a common operand, and constants."""

    key: Callable[[Operation], tuple[object, ...] | None]
    """The key common to products that can be combined; None for other operations."""
    axis: Callable[[SSAValue], int]
    """The axis of the columns, or channels, of a result, counted from the back."""
    weight_axes: Callable[[Operation], Sequence[int]]
    """The axis of the columns of each constant operand."""
    unit: str
    """The unit that the axes before it count: row, image."""
    obstacle: Callable[[Sequence[GraphOp], Sequence[GraphOp]], str | None] = lambda *_: None
    """Why products, given with the last operators that are combined with them, should not be
    combined; None if only the cost of copies matters."""


@dataclass(frozen=True)
class ConcatenatedAxis:
    """The axis along which results of a kind are concatenated."""

    axis: int

    def count(self, op: Operation) -> int:
        """The number of columns of a result."""
        return sizes_of(op.results[0])[self.axis]

    def elements(self, value: SSAValue) -> int:
        """The elements from the axis on, where symbolic sizes count as 1."""
        return math.prod(n for n in sizes_of(value)[self.axis :] if n >= 0)

    def are_vector(self, value: SSAValue, count: int) -> bool:
        """Whether a value has one element for each of `count` columns."""
        ones = [1] * rank(value)
        if rank(value) < -self.axis:
            return False
        ones[self.axis] = count
        return list(sizes_of(value)) == ones


def combine(ctx: Context, module: ModuleOp, kind: ProductKind, least: int) -> None:
    """Combine products of a kind if at least `least` of them have the same operand."""
    if not Permission(module).allows(Exactness.OPEN, module):
        return
    groups: dict[tuple[object, ...], list[GraphOp]] = {}
    position: dict[Operation, int] = {}
    for number, op in enumerate(module.walk()):
        position[op] = number
        if (key := kind.key(op)) is not None:
            groups.setdefault((op.parent, *key), []).append(cast(GraphOp, op))
    for products in groups.values():
        if len(products) >= max(least, 2):
            _combine(ctx, products, kind, position)


def _readers(op: Operation) -> list[Operation]:
    return list(dict.fromkeys(use.operation for use in op.results[0].uses))


def _copies(op: Operation) -> bool:
    """Whether a slice of columns in place of `op` would be a separate kernel."""
    # A fused reader reads the columns in place.
    readers = _readers(op)
    kinds = (FusionKind.CONTRACTION, FusionKind.OPAQUE)
    return len(readers) != 1 or not isinstance(readers[0], GraphOp) or readers[0].fusion in kinds


def _next(branches: Sequence[GraphOp], columns: ConcatenatedAxis) -> list[GraphOp] | None:
    """The operators that follow all branches in the same way, if any."""
    following: list[GraphOp] = []
    for branch in branches:
        readers = _readers(branch)
        if len(readers) != 1 or not isinstance(op := readers[0], UnaryOp | BinaryOp | CompositeOp):
            return None
        if op.fusion != FusionKind.ELEMENTWISE or len(op.operands) > 2:
            return None
        following.append(op)
    first = following[0]
    if len(set(following)) != len(following):
        return None
    same = all(type(op) is type(first) and op.properties == first.properties for op in following)
    pairs = zip(following, branches, strict=True)
    fits = all(_follows(op, branch, columns) for op, branch in pairs)
    alike = len({tuple(rank(operand) for operand in op.operands) for op in following}) == 1
    return following if same and fits and alike else None


def _follows(op: GraphOp, branch: GraphOp, columns: ConcatenatedAxis) -> bool:
    """Whether `op` works on each column of its branch alone, with only constants besides."""
    if op.results[0].type != branch.results[0].type:
        return False
    if len(op.operands) == 1:
        return True
    other = op.operands[1]
    return (
        op.operands[0] is branch.results[0]
        and is_constant(other)
        and columns.are_vector(other, columns.count(branch))
    )


class _Combination:
    """One wide product for several, and wide operators for those that follow all of them.

    `stages` are the operators that the wide ones replace: the products, then their users.
    """

    def __init__(self, products: Sequence[GraphOp], kind: ProductKind) -> None:
        self.kind, self.columns = kind, ConcatenatedAxis(kind.axis(products[0].results[0]))
        self.stages: list[list[GraphOp]] = [list(products)]
        self.new: list[GraphOp] = []
        self.constants: dict[Operation, None] = {}

    def build(self) -> SSAValue:
        """Make the wide operators; returns the last result."""
        products = self.stages[0]
        first = products[0]
        x, *weights = (list(column) for column in zip(*(p.operands for p in products), strict=True))
        axes = self.kind.weight_axes(first)
        wide = self._like(first, [x[0], *map(self._concat, weights, axes)], products)
        while (following := _next(self.stages[-1], self.columns)) is not None:
            beside = [op.operands[1] for op in following if isinstance(op, BinaryOp)]
            axis = rank(beside[0]) + self.columns.axis if beside else 0
            others = [self._concat(beside, axis)] if beside else []
            wide = self._like(following[0], [wide, *others], following)
            self.stages.append(following)
        return wide

    def slices(self, wide: SSAValue) -> list[SSAValue]:
        """The columns of `wide` that replace each operator of the last stage."""
        result: list[SSAValue] = []
        starts, ends = [0] * rank(wide), [WHOLE_END if n < 0 else n for n in sizes_of(wide)]
        axis = self.columns.axis
        ends[axis] = 0
        for op in self.stages[-1]:
            starts[axis], ends[axis] = ends[axis], ends[axis] + self.columns.count(op)
            part = graph.SliceOp(wide, starts, ends, result_type=op.results[0].type)
            result.append(self._add(part, [op]))
        return result

    def _concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        owners = [value.owner for value in values if isinstance(value.owner, Operation)]
        self.constants.update(dict.fromkeys(owners))
        return self._add(graph.ConcatOp(values, axis), owners)

    def _like(
        self, op: GraphOp, operands: list[SSAValue], sources: Sequence[Operation]
    ) -> SSAValue:
        """The same operator on wider operands."""
        copy = op.clone()
        copy.operands = operands
        set_result_types(copy, copy.infer_types())
        return self._add(copy, sources)

    def _add(self, op: GraphOp, sources: Sequence[Operation]) -> SSAValue:
        op.location = fuse(sources)
        self.new.append(op)
        return op.results[0]


def _combine(
    ctx: Context, products: Sequence[GraphOp], kind: ProductKind, position: Mapping[Operation, int]
) -> None:
    """Combine products if that moves fewer elements, and report the decision."""
    # x is read once instead of once for each product; copies are read and written.
    columns = ConcatenatedAxis(kind.axis(products[0].results[0]))
    # The last of the operators that follow all products in the same way.
    ends = list(products)
    while (following := _next(ends, columns)) is not None:
        ends = following
    saved = (len(products) - 1) * columns.elements(products[0].operands[0])
    spent = 2 * sum(columns.elements(op.results[0]) for op in ends if _copies(op))
    cost = f"for each {kind.unit} {saved} fewer elements to read, {spent} to copy"
    why = kind.obstacle(products, ends) or ("slices would cost more" if spent >= saved else None)
    if why is not None:
        decide(ctx, products, "keep the products separate", why, cost, kind="missed")
        return
    if not allowed("combine", products[0]):
        return
    combination, first = _Combination(products, kind), products[0]
    parts = combination.slices(combination.build())
    for constant in combination.constants:
        if position[constant] > position[first]:
            constant.detach()
            Rewriter.insert_op(constant, InsertPoint.before(first))
    Rewriter.insert_op(combination.new, InsertPoint.before(first))
    for branch, part in zip(combination.stages[-1], parts, strict=True):
        branch.results[0].replace_all_uses_with(part)
    for stage in reversed(combination.stages):
        for op in stage:
            Rewriter.erase_op(op)
    decide(ctx, products, "one product for all", "they read the same operand", cost)
