"""Choose the convolutions for which blocks of channels gain more than layout changes cost.

How convolutions, and the operators between them, work on blocks is in `layouts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, f32, f64
from xdsl.ir import Block, Operation, SSAValue

from ....core.ir.walks import blocks_in
from ....core.target import Target
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import PRIMITIVE, ints
from ....dialects.graph.interfaces import GraphOp, element_type, rank
from ....dialects.graph.known import is_constant, sizes_of
from .layouts import CHANNELS, Blocking

_COPY = 2.0
"""Cycles per element whose layout changes."""
_ALONE = 4.0
"""Cycles of a scalar multiply-add, which waits for the one before it."""
_PLAIN, _BLOCKED = 0.7, 0.85
"""The fraction of two vector multiply-adds per cycle that is reached without and with blocks."""


_EXTENT = 32
"""What a symbolic height or width counts as."""


def elements(value: SSAValue) -> int:
    """The elements of a value, where a symbolic batch counts as 1."""
    first, *others = sizes_of(value) or (1,)
    sizes = (_EXTENT if n == DYNAMIC_INDEX else n for n in others)
    return math.prod(sizes, start=1 if first == DYNAMIC_INDEX else first)


def _gain(conv: graph.ConvOp, blocking: Blocking) -> float:
    """The cycles that blocks save a convolution, for each image of a symbolic batch."""
    products = elements(conv.result) * math.prod(sizes_of(conv.w)[1:])
    block = blocking.block(sizes_of(conv.result)[CHANNELS])
    # Without blocks lanes run along the last dimension, where strides leave gaps; along all places
    # where windows are single elements.
    places, strides = sizes_of(conv.result)[2:], ints(conv.strides)
    single = all(n == 1 for n in (*conv.window, *strides)) and DYNAMIC_INDEX not in places
    width = math.prod(places) if single else places[-1]
    plain, blocked = _ALONE, blocking.vectors(block) / (2 * _BLOCKED * block)
    if strides[-1] == 1:
        width = _EXTENT + 1 if width == DYNAMIC_INDEX else width
        lanes = width / blocking.vectors(width)
        plain = 1 / (2 * _PLAIN * lanes)
    return products * (plain - (blocked if block > 1 else _ALONE))


def _candidates(
    ops: Iterable[Operation], blocking: Blocking, *, packed: bool = True
) -> Iterator[graph.ConvOp]:
    """The convolutions that can work on blocks; if not `packed`, those that constants would let."""
    for op in ops:
        if not isinstance(op, graph.ConvOp) or not blocking.keeps_groups(op):
            continue
        weighed = all(is_constant(operand) for operand in op.operands[1:]) and not is_constant(op.x)
        numbers = element_type(op.x) in (f32, f64)
        if (weighed is packed and numbers) and all(map(blocking.has_blocks, (op.result, op.x))):
            yield op


def computed_filters(
    ops: Iterable[Operation], blocking: Blocking
) -> Iterator[tuple[graph.ConvOp, float]]:
    """Convolutions whose filters are computed, and the cycles that blocks would save them."""
    for conv in _candidates(ops, blocking, packed=False):
        if not is_constant(conv.w) and (gain := _gain(conv, blocking)) > 0:
            yield conv, gain


@dataclass
class Layouts:
    """Which operators of a block of operations work on blocks of channels.

    An operator other than a convolution does if at least half of the elements it reads are in
    blocks, so that an addition fuses with the convolution before it.
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
        """Whether at least half of the elements that an operator reads are in blocks."""
        computed = [v for v in op.operands if not is_constant(v)]
        inside = [v for v in computed if v in self.blocked]
        if (
            isinstance(op, GraphOp)
            and self.blocking.keeps_blocks(op)
            and any(rank(v) != rank(op.results[0]) for v in inside)
        ):
            return False
        return bool(inside) and 2 * sum(map(elements, inside)) >= sum(map(elements, computed))

    def laid_out(self, op: Operation) -> list[SSAValue]:
        """The computed operands of an operator on blocks whose layout changes."""
        return [
            v for v in self.blocking.laid_out(op) if v not in self.blocked and not is_constant(v)
        ]

    def left(self, value: SSAValue) -> bool:
        """Whether a blocked value has users that do not work on blocks."""
        return any(use.operation not in self.working for use in value.uses)

    def parts(self) -> list[list[Operation]]:
        """The operators on blocks, grouped by passing blocks to each other."""
        part_of: dict[Operation | Block, list[Operation]] = {}
        for op in self.ops:
            if op not in self.working:
                continue
            merged = [op]
            for value in op.operands:
                before = part_of.get(value.owner)
                if value in self.blocked and before is not None and before is not merged:
                    before += merged
                    part_of.update(dict.fromkeys(merged, before))
                    merged = before
            part_of.update({op: merged})
        return list({id(part): part for part in part_of.values()}.values())

    def copies(self, part: Sequence[Operation]) -> int:
        """The number of elements whose layout changes for some operators."""
        values = [v for op in part for v in self.laid_out(op)]
        values += [v for op in part for v in op.results if v in self.blocked and self.left(v)]
        return sum(elements(value) for value in dict.fromkeys(values))


def bodies(module: ModuleOp) -> Iterator[list[Operation]]:
    """The operators of each block of functions but primitive ones, whose layouts are fixed."""
    for function in [op for op in module.walk() if isinstance(op, func.FuncOp)]:
        if PRIMITIVE not in function.attributes and len(function.body.blocks) == 1:
            yield from (list(block.ops) for block in blocks_in(function))


def blocking_for(ops: Iterable[Operation], machine: Target) -> Blocking:
    """The blocks for the convolutions of a function on a machine."""
    convs = [op for op in ops if isinstance(op, graph.ConvOp)]
    lanes = machine.lanes(64 if f64 in map(element_type, (op.result for op in convs)) else 32)
    part = lanes // 2 if machine.has_fast_halves else lanes
    least = 1 if machine.has_masks else lanes
    return Blocking(lanes, part, least).for_groups_of(convs)


def choose_layouts(
    ops: Sequence[Operation],
    blocking: Blocking,
    note: Callable[[Sequence[graph.ConvOp], float, float], None] = lambda *_: None,
) -> Layouts:
    """The operators for which blocks save more than the layout changes cost.

    Args:
        ops: the operators of a function, in order.
        blocking: the blocks.
        note: is called with convolutions that change together, the cycles that blocks save
            them, and the cycles that the layouts around them cost.
    """
    convs: set[Operation] = set(_candidates(ops, blocking))
    while True:
        layouts, losing = Layouts(ops, convs, blocking), list[Operation]()
        for part in layouts.parts():
            own = [cast(graph.ConvOp, op) for op in part if op in convs]
            saved = sum(_gain(conv, blocking) for conv in own)
            spent = _COPY * layouts.copies(part)
            note(own, saved, spent)
            if saved <= spent:
                losing += own
        if not losing:
            return layouts
        convs -= set(losing)
