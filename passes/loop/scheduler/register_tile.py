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


@dataclass(frozen=True)
class RegisterTile:
    """A register tile of `rows` x `vectors` * `lanes` for each of `sums`."""

    rows: int
    vectors: int
    lanes: int
    most: int
    """The rows of the largest tile that does not spill."""
    sums: int = 1

    @property
    def columns(self) -> int:
        """The columns of the tile, and of a panel."""
        return self.vectors * self.lanes

    @property
    def in_a_row(self) -> int:
        """The accumulators of a row, in vectors."""
        return self.vectors * self.sums


def choose_tile(
    target: Target,
    lanes: int,
    rows: int | None,
    columns: int | None,
    apart: int | None = None,
    sums: int = 1,
) -> RegisterTile:
    """The register tile for M rows and N columns, None where they are unknown.

    NV leaves the smallest part of the last panel empty, MR the smallest part of the last tile;
    among equals NV is 2 and MR as large as it can be by the rules above. Rather than tiles of fewer
    than `WELL_USED` rows there are as few tiles as possible. Where the number of rows is unknown MR
    is `ROWS_OF_ANY`, or more where those would be too few accumulators.

    Args:
        target: the machine.
        lanes: the elements of a vector.
        rows: M.
        columns: N.
        apart: the distance in bytes between rows of the first operand, if known.
        sums: how many sums are computed at once.
    """
    registers = target.vector_registers - (0 if target.memory_operands else AHEAD)
    if columns is not None and columns < lanes:
        lanes = power_of_two_from(columns)
    fewest = FEWEST_ROWS if rows is None else max(1, min(rows, FEWEST_ROWS))
    choices = [n for n in (2, 3, 4, 1) if _most_rows(registers, n * sums) >= fewest] or [1]
    vectors = choices[0]
    if columns is not None:
        vectors = min(choices, key=lambda n: -(-columns // (n * lanes)) * n * lanes)
    in_a_row = vectors * sums
    addresses = target.general_registers - OTHER_ADDRESSES
    most = max(1, min(addresses, _most_rows(registers, vectors, sums)))
    if apart and apart % target.l1_way_bytes == 0:
        most = min(most, target.l1_ways)
    wanted = target.in_flight * 3 // 2
    if rows is None:
        few = min(ROWS_OF_ANY, most)
        enough = (
            m
            for m in range(few, most)
            if m * in_a_row * partial_sums(target, m * in_a_row) >= wanted
        )
        return RegisterTile(next(enough, most), vectors, lanes, most, sums)
    if rows <= most:
        return RegisterTile(max(1, rows), vectors, lanes, most, sums)
    least = min(most, -(-wanted // in_a_row))
    best = min(range(most, least - 1, -1), key=lambda m: -rows % m)
    if best < WELL_USED:
        best = max(least, -(-rows // -(-rows // most)))
    return RegisterTile(best, vectors, lanes, most, sums)


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
