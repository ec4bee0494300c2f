"""How blocks are cut into machine vectors.

A block is an n-dimensional vector whose dimensions are axes. The last axis is the lanes: it is
cut into machine vectors, its other axes are rows, each with its own vectors. A block with
one lane is a scalar in each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType

from ...core.target import Target
from ...core.walks import operations_in
from ...dialects.loop import ops as loop

Row = tuple[int, ...]


@dataclass(frozen=True)
class Chunk:
    """Lanes `offset` to `offset + lanes` of a row, in a machine vector of `width` lanes."""

    offset: int
    lanes: int
    width: int


@dataclass(frozen=True)
class Layout:
    """How a shape is cut: for each row the same chunks.

    `merged` axes at the end share one machine vector: 1, or 2 for two small ones.
    """

    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]
    merged: int = 1

    @property
    def rows(self) -> list[Row]:
        """The rows, in order."""
        return list(product(*(range(n) for n in self.shape[: len(self.shape) - self.merged])))

    def places(self) -> list[tuple[Row, int]]:
        """Every row with the number of each chunk, in order."""
        return [(row, chunk) for row in self.rows for chunk in range(len(self.chunks))]

    def position(self, row: Row, lane: int) -> Row:
        """The position in the block of a lane of a row."""
        if self.merged == 1:
            return (*row, lane)
        return (*row, *divmod(lane, self.shape[-1]))


class Layouts:
    """The layouts of one kernel.

    Args:
        lanes: how many elements a machine vector holds.
        masks: whether the machine has masked loads and stores for every type: a remainder is
            then one vector with lanes to spare, else several vectors of halving width.
        merged: shapes whose last two axes share a machine vector.
    """

    def __init__(self, lanes: int, masks: bool, merged: frozenset[tuple[int, ...]]) -> None:
        self.lanes = lanes
        self.masks = masks
        self.merged = merged
        self._made: dict[tuple[int, ...], Layout] = {}

    def __getitem__(self, shape: tuple[int, ...]) -> Layout:
        if shape not in self._made:
            if shape in self.merged:
                lanes = shape[-1] * shape[-2]
                self._made[shape] = Layout(shape, (Chunk(0, lanes, lanes),), 2)
            else:
                self._made[shape] = Layout(shape, self._cut(shape[-1]))
        return self._made[shape]

    def _cut(self, lanes: int) -> tuple[Chunk, ...]:
        chunks: list[Chunk] = []
        offset = 0
        while offset < lanes:
            rest = lanes - offset
            width = min(self.lanes, 1 << (rest - 1).bit_length())
            if width > rest and not self.masks:
                width //= 2
            chunks.append(Chunk(offset, min(width, rest), width))
            offset += width
        return tuple(chunks)


def layouts_for(kernel: loop.KernelOp, target: Target) -> Layouts:
    """How the blocks of a kernel are cut: by the widest numbers that it computes with."""
    floats, integers = {16}, {8}
    merged: set[tuple[int, ...]] = set()
    limited: set[tuple[int, ...]] = set()
    for op in operations_in(kernel):
        for kind in (value.type for value in (*op.operands, *op.results)):
            if isinstance(kind, VectorType) and isinstance(kind.element_type, AnyFloat):
                floats.add(kind.element_type.bitwidth)
            elif isinstance(kind, VectorType) and isinstance(kind.element_type, IntegerType):
                integers.add(kind.element_type.width.data)
        if isinstance(op, loop.LoadOp | loop.StoreOp) and op.limits:
            value = op.result if isinstance(op, loop.LoadOp) else op.value
            limited.add(loop.block_shape(value.type))
        if isinstance(op, loop.FoldOp):
            shape = loop.block_shape(op.value.type)
            if op.axis.value.data == len(shape) - 2:
                merged.add(shape)
    bits = max(floats) if len(floats) > 1 else max(integers)
    lanes = target.lanes(bits)
    fitting = {s for s in merged - limited if _fits(s[-2] * s[-1], lanes) and _fits(s[-1], lanes)}
    return Layouts(lanes, masks=target.vector_bits >= 512, merged=frozenset(fitting))


def _fits(lanes: int, most: int) -> bool:
    """Whether a machine vector has a part of this many lanes."""
    return 1 < lanes <= most and lanes & (lanes - 1) == 0
