"""How `graph.attention` is cut: into tiles of queries, and blocks of keys for each of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...nests import scalars
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar

ROWS = 128
"""The rows of a tile: its queries, each for all heads that share their keys."""
KEYS = 128
"""The keys of a block, if these are not all."""
FEW_KEYS = 256
"""Up to so many keys are one block."""
LEAST_KEYS, MOST_KEYS, LANES = 96, 192, 16
"""The keys of blocks of one size, and what divides that size."""


@dataclass(frozen=True)
class Attention:
    """The operands, the result and the properties of `graph.attention`."""

    q: Buffer
    k: Buffer
    v: Buffer
    mask: Buffer | None
    lengths: Buffer | None
    result: Buffer
    scale: float
    softcap: float
    window: tuple[int, int]
    """How many keys in front of its place and behind it a query is given; -1 for all."""
    at_end: bool
    safe: bool


@dataclass(frozen=True)
class Tiles:
    """Tiles of `size` queries each, from a first one on."""

    start: int | Index
    count: int | Index
    step: int
    size: int | Index


def tiles_of(length: int | Index, shared: int) -> list[Tiles]:
    """Tiles of all queries, each of which is a row for each of the heads in `shared`."""
    most = max(1, ROWS // shared)
    if isinstance(length, Index):
        whole = length // most
        return [Tiles(0, whole, most, most), Tiles(whole * most, 1, 0, length % most)]
    # Tiles of known sizes differ by at most 1.
    count = max(1, -(-length // most))
    least, larger = divmod(length, count)
    found, start = list[Tiles](), 0
    for number, size in ((larger, least + 1), (count - larger, least)):
        if number and size:
            found.append(Tiles(start, number, size, size))
        start += number * size
    return found


def block_of(keys: int | Index) -> int:
    """The size of a block, for a number of keys: it divides the number where that is known."""
    if isinstance(keys, Index):
        return KEYS
    if keys <= FEW_KEYS:
        return max(1, keys)
    sizes = [n for n in range(LEAST_KEYS, MOST_KEYS + 1, LANES) if keys % n == 0]
    return min(sizes, key=lambda n: abs(n - KEYS), default=KEYS)


class Visible:
    """The keys that some query of a tile is given, and the blocks that they are in.

    Args:
        k: receives what is computed of them.
        op: the operator.
        batch: the indices of the batch.
        first: the first query of the tile.
        queries: how many there are.
    """

    def __init__(
        self,
        k: KernelBody,
        op: Attention,
        batch: tuple[Index, ...],
        first: Index,
        queries: int | Index,
    ) -> None:
        self.body, self.op, self.queries = k, op, queries
        size = op.k.shape[-2]
        self.block, self.keys = block_of(size), size
        if op.lengths is not None:
            count = k.apply(scalars.to_index, op.lengths[batch])
            self.keys = k.index(k.minimum(k.maximum(count, 0), k.value(size)))
        self.place = first
        """The place of the first query among the keys."""
        if op.at_end:
            self.place = first + self.keys - op.q.shape[-2]

    @property
    def is_one_block(self) -> bool:
        """Whether one block has all keys, as is known at compile time."""
        return self.keys == self.block

    def visit(self, take: Callable[[int | Index, int | Index], None]) -> None:
        """Call `take` with the first key of each block, and its size.

        The last block may have fewer keys. It is taken in code of its own.
        """
        k, size = self.body, self.block
        start, end = self._interval()
        whole, rest = self.keys // size, self.keys % size
        first, count = start // size, whole
        if end is not None:
            blocks = k.value((end + (size - 1)) // size)
            count = k.index(k.minimum(blocks, k.value(whole)))
        with k.serial(count - first) as number:
            take((first + number) * size, size)
        last = whole * size
        if isinstance(rest, int) and (rest == 0 or end is None):
            if rest:
                take(last, rest)
            return
        with k.only_if(k.value(last) < k.value(self.keys if end is None else end)):
            take(last, rest)

    def _interval(self) -> tuple[int | Index, Index | None]:
        """The first key that some query is given, and the end; None for the number of keys."""
        k, (left, right) = self.body, self.op.window
        start, end, keys = 0, None, k.value(self.keys)
        if right >= 0:
            last = k.value(self.place + self.queries + right)
            end = k.index(k.maximum(k.minimum(last, keys), 0))
        if left >= 0:
            begin = k.maximum(k.value(self.place - left), 0)
            start = k.index(k.minimum(begin, k.value(self.keys if end is None else end)))
        if isinstance(self.queries, Index):
            # A tile of what is left may have no queries.
            empty = k.equal(k.value(0), k.value(self.queries))
            most = k.value(self.keys if end is None else end)
            end = k.index(k.where(empty, k.value(start), most))
        return start, end

    def is_cut(self, start: int | Index, count: int | Index) -> Scalar:
        """Whether some query is not given all keys of a block."""
        k, (left, right) = self.body, self.op.window
        found = list[Scalar]()
        if right >= 0:
            found.append(self.place + (right + 1) < k.value(start + count))
        if left >= 0:
            begin = k.value(self.place + self.queries - (left + 1))
            found.append(k.value(start) < begin)
        return found[0] if len(found) == 1 else found[0] | found[1]
