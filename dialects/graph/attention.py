"""How `graph.attention` is cut: into tiles of queries, and blocks of keys for each of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from . import scalars
from .guards import only_if
from .interfaces import rank
from .nests.nest import WritingNest

ROWS = 128
"""The rows of a tile: its queries, each for all heads that share their keys."""
KEYS = 128
"""The keys of a block, if these are not all."""
FEW_KEYS = 256
"""Up to so many keys are one block."""
LEAST_KEYS, MOST_KEYS, LANES = 96, 192, 16
"""The keys of blocks of one size, and what divides that size."""
ZERO, ONE = AffineExpr.constant(0), AffineExpr.constant(1)


def known(extent: AffineExpr) -> int | None:
    """The number that a size is, None if it is symbolic."""
    return extent.value if isinstance(extent, AffineConstantExpr) else None


@dataclass(frozen=True)
class Attention:
    """The operands and properties of `graph.attention`."""

    q: SSAValue
    k: SSAValue
    v: SSAValue
    mask: SSAValue | None
    lengths: SSAValue | None
    scale: float
    softcap: float
    window: tuple[int, int]
    """How many keys in front of its place and behind it a query is given; -1 for all."""
    at_end: bool
    safe: bool


@dataclass(frozen=True)
class Tiles:
    """Tiles of `size` queries each, from a first one on."""

    start: AffineExpr
    count: AffineExpr
    step: int
    size: AffineExpr


def tiles_of(length: AffineExpr, shared: int) -> list[Tiles]:
    """Tiles of all queries, each of which is a row for each of the heads in `shared`."""
    most, total = max(1, ROWS // shared), known(length)
    if total is None:
        whole = length // most
        rest = Tiles(whole * most, ONE, 0, length % most)
        return [Tiles(ZERO, whole, most, AffineExpr.constant(most)), rest]
    # Tiles of known sizes differ by at most 1.
    count = max(1, -(-total // most))
    least, larger = divmod(total, count)
    found, start = list[Tiles](), 0
    for number, size in ((larger, least + 1), (count - larger, least)):
        if number and size:
            first, tiles, queries = map(AffineExpr.constant, (start, number, size))
            found.append(Tiles(first, tiles, size, queries))
        start += number * size
    return found


def block_of(keys: AffineExpr) -> int:
    """The size of a block, for a number of keys: it divides the number where that is known."""
    total = known(keys)
    if total is None:
        return KEYS
    if total <= FEW_KEYS:
        return max(1, total)
    sizes = [n for n in range(LEAST_KEYS, MOST_KEYS + 1, LANES) if total % n == 0]
    return min(sizes, key=lambda n: abs(n - KEYS), default=KEYS)


class Visible:
    """The keys that some query of a tile is given, and the blocks that they are in.

    Args:
        nest: receives what is computed of them.
        op: the operator.
        batch: the indices of the batch.
        first: the first query of the tile.
        queries: how many there are.
    """

    def __init__(
        self,
        nest: WritingNest,
        op: Attention,
        batch: tuple[AffineExpr, ...],
        first: AffineExpr,
        queries: AffineExpr,
    ) -> None:
        self.nest, self.op, self.queries = nest, op, queries
        size = nest.extent(op.k, rank(op.k) - 2)
        self.block, self.keys = block_of(size), size
        if op.lengths is not None:
            count = scalars.to_index(nest, nest.at(op.lengths, batch))
            self.keys = nest.index(self._least(self._not_negative(count), nest.value(size)))
        self.place = first
        """The place of the first query among the keys."""
        if op.at_end:
            self.place = first + self.keys - nest.extent(op.q, rank(op.q) - 2)

    @property
    def is_one_block(self) -> bool:
        """Whether one block has all keys, as is known at compile time."""
        return known(self.keys) == self.block

    def visit(self, take: Callable[[AffineExpr, AffineExpr], None]) -> None:
        """Call `take` with the first key of each block, and its size.

        The last block may have fewer keys. It is taken in code of its own.
        """
        nest, size = self.nest, self.block
        start, end = self._interval()
        whole, rest = self.keys // size, self.keys % size
        first, count = start // size, whole
        if end is not None:
            blocks = nest.value((end + (size - 1)) // size)
            count = nest.index(self._least(blocks, nest.value(whole)))

        def step(number: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            take((first + number) * size, AffineExpr.constant(size))
            return nothing

        nest.serial(count - first, [], step)
        if rest == ZERO:
            return
        last = whole * size
        if end is None and known(rest) is not None:
            take(last, rest)
            return
        end = self.keys if end is None else end
        is_left = scalars.less(nest, nest.value(last), nest.value(end))
        only_if(nest, is_left, lambda: take(last, rest))

    def _interval(self) -> tuple[AffineExpr, AffineExpr | None]:
        """The first key that some query is given, and the end; None for the number of keys."""
        nest, (left, right) = self.nest, self.op.window
        start, end, keys = ZERO, None, nest.value(self.keys)
        if right >= 0:
            last = nest.value(self.place + self.queries + right)
            end = nest.index(self._not_negative(self._least(last, keys)))
        if left >= 0:
            begin = self._not_negative(nest.value(self.place - left))
            most = self.keys if end is None else end
            start = nest.index(self._least(begin, nest.value(most)))
        if known(self.queries) is None:
            # A tile of what is left may have no queries.
            none, zero = nest.value(ZERO), nest.value(self.queries)
            empty = scalars.equal(nest, none, zero)
            most = nest.value(self.keys if end is None else end)
            end = nest.index(scalars.select(nest, empty, nest.value(start), most))
        return start, end

    def is_cut(self, start: AffineExpr, count: AffineExpr) -> SSAValue:
        """Whether some query is not given all keys of a block."""
        nest, (left, right) = self.nest, self.op.window
        found = list[SSAValue]()
        if right >= 0:
            last = nest.value(start + count)
            found.append(scalars.less(nest, nest.value(self.place + (right + 1)), last))
        if left >= 0:
            begin = nest.value(self.place + self.queries - (left + 1))
            found.append(scalars.less(nest, nest.value(start), begin))
        return found[0] if len(found) == 1 else nest.insert(arith.OrIOp(found[0], found[1]))

    def _least(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.nest.insert(arith.MinSIOp(a, b))

    def _not_negative(self, a: SSAValue) -> SSAValue:
        return self.nest.insert(arith.MaxSIOp(a, self.nest.value(ZERO)))
