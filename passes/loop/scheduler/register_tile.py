"""The register tile of a contraction: how many rows of how many vectors are accumulated at once.

Its size follows from the target by three rules:

- MR rows and NV vectors do not spill while there are MR * NV + NV + 1 vector registers:
  accumulators, one row of the second operand, one splat of the first; and `AHEAD` more splats,
  loaded ahead, if arithmetic takes no operand from memory;
- MR rows need as many general registers for their addresses, beside `OTHER_ADDRESSES`; and where
  rows are a multiple of a way of the first-level cache apart, as many of its ways;
- MR * NV is at least 1.5 times the number of fmas in flight (latency times those issued in a
  cycle), since loads delay some of them; a tile of fewer rows cuts its reduction into partial sums.

Where S sums are computed at once, such as the gates of a recurrent cell, each has MR x NV
accumulators and its own second operand. They are loaded one after the other, so the splats of all
rows stay in registers: MR * NV * S + MR + NV.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....core.target import Target
from .accesses import power_of_two_from

OTHER_ADDRESSES = 4
"""General registers for the stack, the panel, the counter and an offset."""
AHEAD = 2
"""Splats loaded ahead on machines without memory operands."""
MOST_UNROLLED = 4
"""Accumulators for each place of a tile; more are not worth combining."""
FEWEST_ROWS = 3
"""Tiles of fewer rows, unless there are no more, load as many vectors as they accumulate."""
WELL_USED = 6
"""Tiles of fewer rows read panels faster than a second-level cache delivers them."""
ROWS_OF_ANY = 8
"""Rows of a tile if their number is unknown: each vector of a panel is used this many times."""
NARROW = 2
"""Vectors of half the width per cycle where 512-bit units take two cycles for whole ones."""
LOAD = 0.55
"""The cycles of a load among others on a machine of two per cycle, or of up to two fmas."""
PEELED = 24
"""A last panel of its own saves at least this fraction (1/n): it doubles the code."""


@dataclass(frozen=True)
class RegisterTile:
    """A register tile of `rows` x `columns`, in `vectors`, for each of `sums`."""

    rows: int
    vectors: int
    lanes: int
    columns: int
    """The columns of the tile, and of a panel."""
    most: int
    """The rows of the largest tile that does not spill."""
    sums: int = 1
    last: int = 0
    """The columns of a last panel that has a tile of its own, 0 if there is none."""

    @property
    def in_a_row(self) -> int:
        """The accumulators of a row, in vectors."""
        return self.vectors * self.sums


@dataclass(frozen=True)
class _Product:
    """The rows and columns to cut into tiles, and the machine that computes them."""

    target: Target
    lanes: int
    rows: int | None
    columns: int | None
    sums: int
    odd: bool
    """Whether a last panel may have a tile of its own."""
    exact: bool
    """Whether a part of a vector is several narrower ones, instead of one with a mask."""

    @property
    def registers(self) -> int:
        """The vector registers, without those of splats that are loaded ahead."""
        return self.target.vector_registers - (0 if self.target.memory_operands else AHEAD)

    def height(self, vectors: int) -> int:
        """The most rows of a tile with so many vectors in each."""
        addresses = self.target.general_registers - OTHER_ADDRESSES
        return max(1, min(addresses, _most_rows(self.registers, vectors, self.sums)))

    def cycles(self, columns: int) -> float:
        """Those of a row of a tile for each step of the sum: of its fmas, or of its loads."""
        each = self.target.fma_per_cycle
        whole, rest = divmod(columns, self.lanes)
        vectors = self.exact_vectors(columns) if self.exact else whole + (rest > 0)
        fmas = vectors / each
        if self.odd and self.is_narrower(columns):
            fmas = whole / each + 1 / NARROW
        return max(fmas, LOAD / max(1, each / 2) * (1 + vectors / self.height(vectors)))

    def exact_vectors(self, columns: int) -> int:
        """The vectors of a row without masks: whole ones, and halves, quarters and so on."""
        return columns // self.lanes + (columns % self.lanes).bit_count()

    def is_narrower(self, columns: int) -> bool:
        """Whether a last vector of half the width makes a panel faster."""
        return self.target.has_fast_halves and 0 < columns % self.lanes <= self.lanes // 2

    def cut(self) -> tuple[int, int]:
        """The vectors of a panel, and the columns of a last one with a tile of its own, or 0."""
        columns, lanes = self.columns, self.lanes
        fewest = FEWEST_ROWS if self.rows is None else max(1, min(self.rows, FEWEST_ROWS))
        choices = [
            n for n in (2, 3, 4, 1) if _most_rows(self.registers, n * self.sums) >= fewest
        ] or [1]
        if columns is None:
            return choices[0], 0
        few = self.rows is not None and self.rows < WELL_USED
        if few and not self.exact:
            # Reading the panels takes longest.
            return min(choices, key=lambda n: -columns % (n * lanes)), 0
        of_all: dict[int, float] = {}
        of_peeled: dict[int, float] = {}
        for n in choices:
            whole, rest = divmod(columns, n * lanes)
            panel, last = self.cycles(n * lanes), self.cycles(rest) if rest else 0.0
            of_all[n] = (whole + (rest > 0)) * panel if whole else last
            if self.odd and whole and rest:
                of_peeled[n] = whole * panel + last
        if self.exact:
            of_all |= of_peeled
        # A tile of few rows needs all columns for its accumulators.
        best = min(
            of_all, key=lambda n: (of_all[n], few and n in of_peeled, -columns % (n * lanes))
        )
        peeled = min(of_peeled, key=lambda n: of_peeled[n], default=best)
        if of_peeled.get(peeled, math.inf) * PEELED <= of_all[best] * (PEELED - 1):
            best = peeled
        elif not self.exact or best not in of_peeled:
            return best, 0
        return best, columns % (best * lanes)


def choose_tile(
    target: Target,
    lanes: int,
    rows: int | None,
    columns: int | None,
    apart: int | None = None,
    sums: int = 1,
    odd: bool = False,
    packed: bool = True,
) -> RegisterTile:
    """The register tile for M rows and N columns, None where they are unknown.

    NV takes the fewest cycles, or for few rows leaves the smallest part of the last panel empty; MR
    leaves the smallest part of the last tile empty. Among equals NV is 2 and MR as large as it can
    be by the rules above. Rather than tiles of fewer than `WELL_USED` rows there are as few tiles
    as possible. Where the number of rows is unknown MR is `ROWS_OF_ANY`, or more where those would
    be too few accumulators.

    Args:
        target: the machine.
        lanes: the elements of a vector.
        rows: M.
        columns: N.
        apart: the distance in bytes between rows of the first operand, if known.
        sums: how many sums are computed at once.
        odd: whether a panel may end within a vector, and the last one have a tile of its own.
        packed: whether panels are padded, so that all lanes of the last one can be loaded. On a
            machine without masks others consist of whole vectors and parts of one.
    """
    if columns is not None and columns < lanes:
        lanes = power_of_two_from(columns)
    exact = odd and not packed and not target.has_masks
    product = _Product(target, lanes, rows, columns, sums, odd, exact)
    vectors, last = product.cut()
    width, in_a_row, most = vectors * lanes, vectors * sums, product.height(vectors)
    if odd and columns is not None and columns < width:
        if exact:
            width, vectors = columns, product.exact_vectors(columns)
            in_a_row, most = vectors * sums, product.height(vectors)
        elif product.is_narrower(columns):
            # Splats of two widths are loaded ahead, those of all rows.
            width, most = columns, min(most, (product.registers - vectors) // (in_a_row + 1))
    if apart and apart % target.l1_way_bytes == 0:
        most = min(most, target.l1_ways)
    best = _rows_of_tile(target, rows, most, in_a_row)
    return RegisterTile(best, vectors, lanes, width, most, sums, last)


def _rows_of_tile(target: Target, rows: int | None, most: int, in_a_row: int) -> int:
    """MR of a tile with so many accumulators in a row, `most` if they all fit."""
    wanted = target.in_flight * 3 // 2
    if rows is None:
        few = min(ROWS_OF_ANY, most)
        enough = (
            m
            for m in range(few, most)
            if m * in_a_row * partial_sums(target, m * in_a_row) >= wanted
        )
        return next(enough, most)
    if rows <= most:
        return max(1, rows)
    least = min(most, -(-wanted // in_a_row))
    best = min(range(most, least - 1, -1), key=lambda m: -rows % m)
    return best if best >= WELL_USED else max(least, -(-rows // -(-rows // most)))


def partial_sums(target: Target, accumulators: int) -> int:
    """The number of partial sums of a tile with this many accumulators."""
    # A third of the registers is for what each copy of a step loads.
    factor, most = 1, min(MOST_UNROLLED, target.vector_registers * 2 // 3 // accumulators)
    while accumulators * factor < target.in_flight * 3 // 2 and factor * 2 <= most:
        factor *= 2
    return factor


def _most_rows(registers: int, vectors: int, sums: int = 1) -> int:
    if sums > 1:
        return (registers - vectors) // (vectors * sums + 1)
    return (registers - 1 - vectors) // vectors
