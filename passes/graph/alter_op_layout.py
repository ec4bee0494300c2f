"""Channels of images in blocks, where convolutions gain more by it than the copies cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.actions import allowed
from ...core.context import decide, target_of
from ...core.target import Target, named
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import ints
from ...dialects.graph.interfaces import GraphOp, element_type, rank, tensor_type
from ...dialects.graph.known import is_constant, sizes_of
from .rules.layouts import CHANNELS, Blocking

_COPY = 2.0
"""Cycles for each element that is laid out in another way."""
_ALONE = 4.0
"""Cycles for a multiply-add that is in no vector: it waits for the one before."""
_PLAIN, _BLOCKED = 0.7, 0.85
"""The part of two vectors of multiply-adds in a cycle that is reached without and with blocks."""
_ROWS_PER_COPY = 64
"""So many rows of a product gain as much by other weights as laying these out costs."""


def _elements(value: SSAValue) -> int:
    """The elements of a value, where symbolic sizes count as 1."""
    return math.prod(n for n in sizes_of(value) if n != DYNAMIC_INDEX)


def _gain(conv: graph.ConvOp, blocking: Blocking) -> float:
    """The cycles that blocks save a convolution, for each image of a symbolic batch."""
    products = _elements(conv.result) * math.prod(sizes_of(conv.w)[1:])
    block = blocking.block(sizes_of(conv.result)[CHANNELS])
    width = sizes_of(conv.result)[-1]
    # Without blocks lanes run along the last dimension, where strides leave gaps.
    plain, blocked = _ALONE, blocking.vectors(block) / (2 * _BLOCKED * block)
    if ints(conv.strides)[-1] == 1:
        lanes = blocking.lanes if width == DYNAMIC_INDEX else width / blocking.vectors(width)
        plain = 1 / (2 * _PLAIN * lanes)
    return products * (plain - (blocked if block > 1 else _ALONE))


def _candidates(ops: Iterable[Operation], blocking: Blocking) -> Iterator[graph.ConvOp]:
    """The convolutions that can work on blocks."""
    for op in ops:
        if not isinstance(op, graph.ConvOp) or op.groups.value.data != 1:
            continue
        weighed = all(is_constant(operand) for operand in op.operands[1:]) and not is_constant(op.x)
        numbers = element_type(op.x) in (f32, f64)
        if weighed and numbers and blocking.has_blocks(op.result) and blocking.has_blocks(op.x):
            yield op


@dataclass
class Layouts:
    """Which operators of a block of operations work on blocks of channels.

    An operator that is no convolution does where at least half of what it reads has blocks, so
    that a sum stays in the kernel of the convolution before it.
    """

    ops: Sequence[Operation]
    convs: set[Operation]
    blocking: Blocking
    working: set[Operation] = field(default_factory=set)
    blocked: set[SSAValue] = field(default_factory=set)

    def __post_init__(self) -> None:
        for op in self.ops:
            if op not in self.convs and not (self._follows(op) and self.blocking.fits(op)):
                continue
            self.working.add(op)
            if self.blocking.keeps_blocks(cast(GraphOp, op)):
                self.blocked.update(op.results)

    def _follows(self, op: Operation) -> bool:
        """Whether at least half of the elements that an operator reads have blocks."""
        computed = [v for v in op.operands if not is_constant(v)]
        inside = [v for v in computed if v in self.blocked]
        if (
            isinstance(op, GraphOp)
            and self.blocking.keeps_blocks(op)
            and any(rank(v) != rank(op.results[0]) for v in inside)
        ):
            return False
        return bool(inside) and 2 * sum(map(_elements, inside)) >= sum(map(_elements, computed))

    def laid_out(self, op: Operation) -> list[SSAValue]:
        """The operands of an operator on blocks that are not constants and get another layout."""
        values = op.operands[:1] if op in self.convs else op.operands
        return [v for v in values if v not in self.blocked and not is_constant(v)]

    def left(self, value: SSAValue) -> bool:
        """Whether a value with blocks is needed without them, too."""
        return any(use.operation not in self.working for use in value.uses)

    def parts(self) -> list[list[Operation]]:
        """The operators on blocks, those together that hand blocks to each other."""
        part_of: dict[Operation, list[Operation]] = {}
        for op in self.ops:
            if op not in self.working:
                continue
            merged = [op]
            for value in op.operands:
                before = part_of.get(cast(Operation, value.owner))
                if value in self.blocked and before is not None and before is not merged:
                    before += merged
                    part_of.update(dict.fromkeys(merged, before))
                    merged = before
            part_of.update({op: merged})
        return list({id(part): part for part in part_of.values()}.values())

    def copies(self, part: Sequence[Operation]) -> int:
        """The elements that get another layout because of some operators."""
        values = [v for op in part for v in self.laid_out(op)]
        values += [v for op in part for v in op.results if v in self.blocked and self.left(v)]
        return sum(_elements(value) for value in dict.fromkeys(values))


class Rewriting:
    """Makes the operators on blocks, and layouts where values with and without blocks meet."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts, self.blocking = layouts, layouts.blocking
        self.inside: dict[tuple[SSAValue, int], SSAValue] = {}

    def run(self) -> None:
        replaced = [op for op in self.layouts.ops if op in self.layouts.working]
        for op in replaced:
            self._rewrite(cast(GraphOp, op))
        for op in reversed(replaced):
            Rewriter.erase_op(op)

    def _rewrite(self, op: GraphOp) -> None:
        laid_out = op.operands[:1] if op in self.layouts.convs else op.operands
        of = max(rank(value) for value in laid_out)
        operands = [self._on_blocks(value, of, op) for value in laid_out]
        new = self.blocking.on_blocks(op, [*operands, *op.operands[len(operands) :]])
        result, old = self._add([new], op), op.results[0]
        if old in self.layouts.blocked:
            self.inside[old, rank(old)] = result
        if old not in self.layouts.blocked or self.layouts.left(old):
            self._leave(op, result)

    def _on_blocks(self, value: SSAValue, of: int, user: GraphOp) -> SSAValue:
        """A value as an operator on blocks of rank `of` takes it."""
        if (value, of) not in self.inside:
            new = self.blocking.into_blocks(value, of)
            self.inside[value, of] = self._add(new, user) if new else value
        return self.inside[value, of]

    def _leave(self, op: GraphOp, result: SSAValue) -> None:
        """Give the users of `op` that do not work on blocks what they took before."""
        old = op.results[0]
        back = self._add(self.blocking.out_of_blocks(result, tensor_type(old)), op)
        for use in list(old.uses):
            if use.operation not in self.layouts.working:
                use.operation.operands[use.index] = back

    def _add(self, new: Sequence[GraphOp], place: GraphOp) -> SSAValue:
        for op in new:
            op.location = place.location
        Rewriter.insert_op(list(new), InsertPoint.before(place))
        return new[-1].results[0]


def _choose(ctx: Context, ops: Sequence[Operation], blocking: Blocking) -> Layouts:
    """The operators that work on blocks where that saves more than layouts cost."""
    convs: set[Operation] = set(_candidates(ops, blocking))
    while True:
        layouts, losing = Layouts(ops, convs, blocking), list[Operation]()
        for part in layouts.parts():
            own = [cast(graph.ConvOp, op) for op in part if op in convs]
            saved = sum(_gain(conv, blocking) for conv in own)
            spent = _COPY * layouts.copies(part)
            cost = f"about {saved:.0f} cycles saved, {spent:.0f} to change layouts"
            if saved <= spent:
                losing += own
                why = "layouts would cost more"
                decide(ctx, own, "channels stay apart", why, cost, kind="missed")
            else:
                blocks = sorted({blocking.block(sizes_of(conv.result)[CHANNELS]) for conv in own})
                what = f"channels in blocks of {' and '.join(map(str, blocks))}"
                decide(ctx, own, what, "a vector then holds channels of one place", cost)
        if not losing:
            return _allowed(layouts, ops, blocking)
        convs -= set(losing)


def _allowed(layouts: Layouts, ops: Sequence[Operation], blocking: Blocking) -> Layouts:
    """The layouts without those that are held back; see `core.actions`."""
    parts = [part for part in layouts.parts() if not allowed("use blocks of channels", part[0])]
    back = {op for part in parts for op in part}
    return Layouts(ops, layouts.convs - back, blocking) if back else layouts


def _lay_out_weights(ctx: Context, op: graph.DenseOp) -> None:
    """Give a product of many rows with computed weights those as they are read."""
    # dense(x, w) == matmul(x, transpose(w))
    rows = _elements(op.result) // max(1, sizes_of(op.result)[-1])
    if is_constant(op.w) or rows < _ROWS_PER_COPY or rank(op.x) < 2:
        return
    weights = graph.TransposeOp(op.w, [1, 0])
    new: list[GraphOp] = [weights, graph.MatmulOp(op.x, weights)]
    if op.bias is not None:
        new.append(graph.AddOp(new[-1], op.bias))
    if new[-1].results[0].type != op.result.type or not allowed("lay out weights", op):
        return
    for part in new:
        part.location = op.location
    decide(ctx, op, "lay out its weights at run time", f"{rows} rows use them")
    Rewriter.replace_op(op, new, new[-1].results)


@dataclass(frozen=True)
class GraphAlterOpLayoutPass(ModulePass):
    """Let convolutions, and what is between them, work on blocks of channels where that pays.

    Before:

    ```mlir
    func.func @main(%x: tensor<1x2x64xf32>) -> tensor<1x4x31xf32> {
      %w = graph.constant dense<0.5> : tensor<4x2x3xf32>
      %y = graph.conv %x, %w strides = [2] dilations = [1] groups = 1
          : (tensor<1x2x64xf32>, tensor<4x2x3xf32>) -> tensor<1x4x31xf32>
      func.return %y : tensor<1x4x31xf32>
    }
    ```

    Options: `target=x86-64-v3`

    After:

    ```mlir
    func.func @main(%x: tensor<1x2x64xf32>) -> tensor<1x4x31xf32> {
      %w = graph.constant dense<0.5> : tensor<4x2x3xf32>
      %s = graph.reshape %x shape = [1, 1, 2, 64] : (tensor<1x2x64xf32>) -> tensor<1x1x2x64xf32>
      %b = graph.transpose %s permutation = [0, 1, 3, 2]
          : (tensor<1x1x2x64xf32>) -> tensor<1x1x64x2xf32>
      %c = graph.blocked_conv %b, %w strides = [2] dilations = [1] block = 4
          : (tensor<1x1x64x2xf32>, tensor<4x2x3xf32>) -> tensor<1x1x31x4xf32>
      %t = graph.transpose %c permutation = [0, 1, 3, 2]
          : (tensor<1x1x31x4xf32>) -> tensor<1x1x4x31xf32>
      %y = graph.reshape %t shape = [1, 4, 31] : (tensor<1x1x4x31xf32>) -> tensor<1x4x31xf32>
      func.return %y : tensor<1x4x31xf32>
    }
    ```

    A layout is a reshape and a transpose, made only where a value with blocks meets an operator
    that works without them or the other way round, so no two of them cancel. Elementwise
    operators, pads, pools, sums over places, slices and concatenations of whole blocks are done
    on blocks. Convolutions that hand blocks to each other change together, or stay as they are
    if the layouts around them cost more than they save. The filters stay: constants are packed
    when their kernel is scheduled, and so are the weights of `dense`. Computed weights of a
    `dense` with many rows are transposed.

    Requires: `graph-fold-constant` after it, which lays out constants; the passes that look for
        `graph.conv` before it.
    Leaves: convolutions with groups, with computed filters, and those of integers and f16.
    """

    name = "graph-alter-op-layout"

    target: str | None = None
    """The name of the machine to lay out for; by default that of the compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine: Target = target_of(ctx) if self.target is None else named(self.target)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if "graph.primitive" in function.attributes or len(function.body.blocks) != 1:
                continue
            ops = list(function.body.block.ops)
            kinds = {element_type(o.results[0]) for o in ops if isinstance(o, graph.ConvOp)}
            bits = 64 if f64 in kinds else 32
            Rewriting(_choose(ctx, ops, Blocking(machine.lanes(bits)))).run()
            for dense in [o for o in ops if isinstance(o, graph.DenseOp)]:
                _lay_out_weights(ctx, dense)
