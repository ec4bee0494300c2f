"""Channels in blocks: how operators work on [N, C/b, *sizes, b] instead of [N, C, *sizes].

A layout change is a reshape and a transpose, to which fusion, constant folding and cancellation
apply as usual. The block size follows from the number of channels alone, and from the groups that
convolutions of a function read and write them in, so that values with equally many channels have
the same blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ints
from ....dialects.graph.interfaces import GraphOp, rank, set_result_types, tensor_type
from ....dialects.graph.known import sizes_of
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.plan.uses import Uses
from ....dialects.graph.remapped_axes import BlockableInterface

CHANNELS = 1
"""The axis of the channels."""
_PREFERRED_VECTORS = (2, 3, 2.5, 1.5, 1)
"""Vectors in a block, best first: a register tile of two vectors needs the fewest loads."""
_FILLED = 0.75
"""Blocks of groups fill at least this part of their vectors."""


@dataclass(frozen=True)
class Blocking:
    """The blocks for a machine whose vectors have `lanes` lanes.

    The vectors of a block are counted in parts of `part` lanes: in halves, where half a vector
    takes half of the time.
    """

    lanes: int
    part: int
    least: int = 1
    """The fewest channels of a block of a group: those of a vector where there are no masks."""
    groups: Mapping[int, int] = field(default_factory=dict)
    """By numbers of channels that have groups: the number that blocks divide, so as to cut none."""
    uses: Uses = field(default_factory=lambda: Uses(Recorder()), compare=False, repr=False)

    def vectors(self, block: int) -> float:
        """The number of vectors of a block; the last one may be partly filled, or half of one."""
        return max(1, -(-block // self.part) * self.part / self.lanes)

    def block(self, channels: int) -> int:
        """The divisor of a number of channels, and of their groups, that fills vectors best."""
        channels = self.groups.get(channels, channels)
        most = int(max(_PREFERRED_VECTORS)) * self.lanes
        divisors = [n for n in range(1, min(channels, most) + 1) if channels % n == 0]

        def rating(block: int) -> tuple[float, int]:
            vectors = self.vectors(block)
            return block / vectors, -_PREFERRED_VECTORS.index(vectors)

        return max(divisors, key=rating)

    def for_groups_of(self, convs: Iterable[graph.ConvOp]) -> Blocking:
        """Blocks that are parts of the groups of convolutions, if those fill vectors."""
        groups: dict[int, int] = {}
        for conv in convs:
            parts = _groups(conv)
            if all(n > 0 and self._fills_vectors(self.block(n)) for n in parts.values()):
                for channels, part in parts.items():
                    groups[channels] = math.gcd(part, groups.get(channels, channels))
        return replace(self, groups=groups)

    def _fills_vectors(self, block: int) -> bool:
        return block >= max(self.least, _FILLED * self.vectors(block) * self.lanes)

    def keeps_groups(self, conv: graph.ConvOp) -> bool:
        """Whether blocks of the channels of a convolution fill vectors, and cut no groups.

        Groups of one channel each may lie in any block of several.
        """
        blocks = [(self.block(n), part) for n, part in _groups(conv).items() if n > 0]
        if conv.is_depthwise:
            return all(block > 1 for block, _ in blocks)
        return all(part % block == 0 and self._fills_vectors(block) for block, part in blocks)

    def same_block(self, channels: Sequence[int]) -> bool:
        """Whether values with these numbers of channels have the block size of their concatenation.

        Each is then a run of its blocks, and no layout change is needed.
        """
        return len({self.block(n) for n in (*channels, sum(channels))}) == 1

    def has_blocks(self, value: SSAValue) -> bool:
        """Whether channels of a value can be blocked: the reshape can be expressed."""
        kind = value.type
        if not isinstance(kind, TensorType) or rank(value) < 3:
            return False
        return sizes_of(value)[CHANNELS] > 0 and 0 not in sizes_of(value)

    def type_of(self, value: SSAValue) -> TensorType:
        """The type of a value with blocked channels."""
        kind, sizes = tensor_type(value), list(tensor_type(value).get_shape())
        block = self.block(sizes[CHANNELS])
        sizes[CHANNELS] //= block
        return TensorType(kind.element_type, [*sizes, block])

    def into_blocks(self, value: SSAValue, of: int) -> list[GraphOp]:
        """The operators that lay out an operand of an elementwise operator of rank `of`.

        A value that broadcasts along the channels gets a last axis of size 1.
        """
        sizes, axis = list(sizes_of(value)), CHANNELS - of + rank(value)
        if not sizes:
            return []
        if axis < 0 or sizes[axis] == 1:
            return [graph.ReshapeOp(value, [*_target(sizes), 1])]
        block = self.block(sizes[axis])
        divided = [sizes[axis] // block, block]
        target = [*sizes[:axis], *divided, *sizes[axis + 1 :]]
        order = [n for n in range(len(target)) if n != axis + 1]
        if target.count(DYNAMIC_INDEX) <= 1:
            parts = graph.ReshapeOp(value, _target(target))
            return [parts, graph.TransposeOp(parts, [*order, axis + 1])]
        # Sizes that are copied keep their places: channels are divided behind them.
        others = [n for n in range(len(sizes)) if n != axis]
        last = graph.TransposeOp(value, [*others, axis])
        parts = graph.ReshapeOp(last, [*_target([sizes[n] for n in others]), *divided])
        back = [*others[:axis], len(others), *range(axis, len(others)), len(others) + 1]
        return [last, parts, graph.TransposeOp(parts, back)]

    def out_of_blocks(self, value: SSAValue, kind: TensorType) -> list[GraphOp]:
        """The operators that change a blocked value back to its type without blocks."""
        count = rank(value)
        if count == 3:  # Only channels are left, whose blocks are contiguous.
            return [graph.ReshapeOp(value, _target(kind.get_shape()), kind)]
        images = range(CHANNELS + 1, count - 1)
        if list(kind.get_shape()).count(DYNAMIC_INDEX) <= 1:
            moved = graph.TransposeOp(value, [*range(CHANNELS + 1), count - 1, *images])
            return [moved, graph.ReshapeOp(moved, _target(kind.get_shape()), kind)]
        moved = graph.TransposeOp(value, [0, *images, CHANNELS, count - 1])
        batch, channels, *image = kind.get_shape()
        whole = graph.ReshapeOp(moved, [*_target([batch, *image]), channels])
        back = [0, count - 2, *range(1, count - 2)]
        return [moved, whole, graph.TransposeOp(whole, back, kind)]

    def fits(self, op: Operation) -> bool:
        """Whether an operator other than a convolution can work on blocks."""
        if self.uses.is_pointwise(op):
            result = op.results[0]
            return self.has_blocks(result) and all(self._goes_with(v, result) for v in op.operands)
        return isinstance(op, GraphOp) and self._properties(op) is not None

    def _properties(self, op: GraphOp) -> dict[str, Attribute] | None:
        """The properties with which an operator works on blocks, if it says that it can.

        Its operands `in_blocks` and its result have blocks of the same size.
        """
        if not isinstance(op, BlockableInterface) or len(op.results) != 1 or not op.in_blocks:
            return None
        if not all(map(self.has_blocks, op.in_blocks)):
            return None
        blocks = {self._block_of(value) for value in (*op.in_blocks, op.results[0])}
        block = blocks.pop() if len(blocks) == 1 else None
        return None if block is None else op.on_blocks(CHANNELS, block)

    def _goes_with(self, operand: SSAValue, result: SSAValue) -> bool:
        """Whether an operand of an elementwise operator can be laid out like the result."""
        sizes, axis = sizes_of(operand), CHANNELS - rank(result) + rank(operand)
        channels = sizes[axis] if axis >= 0 else 1
        return 0 not in sizes and channels in (1, sizes_of(result)[CHANNELS])

    def _block_of(self, value: SSAValue) -> int | None:
        """The blocks of the channels of a value, which may have no other sizes."""
        sizes = sizes_of(value)
        if len(sizes) <= CHANNELS or sizes[CHANNELS] <= 0 or 0 in sizes:
            return None
        return self.block(sizes[CHANNELS])

    def laid_out(self, op: Operation) -> Sequence[SSAValue]:
        """The operands of an operator on blocks, the first ones, that are in blocks."""
        if isinstance(op, graph.ConvOp):
            return op.operands[:1]
        if isinstance(op, BlockableInterface) and not self.uses.is_pointwise(op):
            return op.in_blocks
        return op.operands

    def on_blocks(self, op: GraphOp, operands: Sequence[SSAValue]) -> GraphOp:
        """The blocked form of `op`, a convolution or an operator that `fits`."""
        if isinstance(op, graph.ConvOp):
            x = operands[0]
            steps = ints(op.strides), ints(op.dilations)
            bias = operands[2] if len(operands) > 2 else None
            block = self.block(sizes_of(op.result)[CHANNELS])
            return graph.BlockedConvOp(x, operands[1], bias, *steps, block)
        copy = op.clone()
        if not self.uses.is_pointwise(op):
            copy.properties |= self._properties(op) or {}
        copy.operands = operands
        types = [self.type_of(op.results[0])] if self.keeps_blocks(op) else copy.infer_types()
        set_result_types(copy, types)
        return copy

    def keeps_blocks(self, op: GraphOp) -> bool:
        """Whether the result of an operator on blocks is in blocks as well."""
        return self.has_blocks(op.results[0])


def _groups(conv: graph.ConvOp) -> dict[int, int]:
    """The numbers of channels of the image and the result of a convolution, and of one group.

    There are none if all channels are one group.
    """
    *_, groups = conv.steps
    numbers = (sizes_of(value)[CHANNELS] for value in (conv.x, conv.result))
    return {n: n // groups for n in numbers} if groups > 1 else {}


def _target(sizes: Sequence[int]) -> list[int]:
    """The `shape` of a `graph.reshape` that keeps several symbolic sizes, or has one of them."""
    symbolic = 0 if list(sizes).count(DYNAMIC_INDEX) > 1 else -1
    return [symbolic if n == DYNAMIC_INDEX else n for n in sizes]
