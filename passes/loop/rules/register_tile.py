"""The register tile of a contraction: how many rows of how many vectors are accumulated at once.

Its size follows from the target by three rules:

- MR rows and NV vectors do not spill while there are MR * NV + NV + 1 vector registers:
  accumulators, one row of the second operand, one splat of the first; and `AHEAD` more splats,
  loaded ahead, if arithmetic takes no operand from memory;
- MR rows need as many general registers for their addresses, beside `OTHER_ADDRESSES`; and where
  rows are a multiple of a way of the first-level cache apart, as many of its ways;
- MR * NV is at least 1.5 times the number of fmas in flight (latency times those issued in a
  cycle), since loads delay some of them; a tile of fewer rows cuts its reduction into partial sums.
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
ROWS_OF_ANY = 8
"""Rows of a tile if their number is unknown: each vector of a panel is used this many times."""


@dataclass(frozen=True)
class Tile:
    """A register tile of `rows` x `vectors` * `lanes`."""

    rows: int
    vectors: int
    lanes: int
    most: int
    """The rows of the largest tile that does not spill."""

    @property
    def columns(self) -> int:
        """The columns of the tile, and of a panel."""
        return self.vectors * self.lanes


def choose_tile(
    target: Target, lanes: int, rows: int | None, columns: int | None, apart: int | None = None
) -> Tile:
    """The register tile for M rows and N columns, None where they are unknown.

    NV leaves the smallest part of the last panel empty, MR the smallest part of the last tile;
    among equals NV is 2 and MR as large as it can be by the rules above. Where the number of rows
    is unknown MR is `ROWS_OF_ANY`, or more where those would be too few accumulators.

    Args:
        target: the machine.
        lanes: the elements of a vector.
        rows: M.
        columns: N.
        apart: the distance in bytes between rows of the first operand, if known.
    """
    registers = target.vector_registers - (0 if target.memory_operands else AHEAD)
    if columns is not None and columns < lanes:
        lanes = power_of_two_from(columns)
    vectors = 2
    if columns is not None:
        choices = [n for n in (2, 3, 4, 1) if _most_rows(registers, n) >= 3]
        vectors = min(choices, key=lambda n: -(-columns // (n * lanes)) * n * lanes)
    addresses = target.general_registers - OTHER_ADDRESSES
    most = min(addresses, _most_rows(registers, vectors))
    if apart and apart % target.l1_way_bytes == 0:
        most = min(most, target.l1_ways)
    wanted = target.in_flight * 3 // 2
    if rows is None:
        few = min(ROWS_OF_ANY, most)
        enough = (
            m for m in range(few, most) if m * vectors * partial_sums(target, m * vectors) >= wanted
        )
        return Tile(next(enough, most), vectors, lanes, most)
    if rows <= most:
        return Tile(max(1, rows), vectors, lanes, most)
    least = min(most, -(-wanted // vectors))
    best = min(range(most, least - 1, -1), key=lambda m: -rows % m)
    return Tile(best, vectors, lanes, most)


def partial_sums(target: Target, accumulators: int) -> int:
    """The number of partial sums of a tile with this many accumulators."""
    # A third of the registers is for what each copy of a step loads.
    factor, most = 1, min(MOST_UNROLLED, target.vector_registers * 2 // 3 // accumulators)
    while accumulators * factor < target.in_flight * 3 // 2 and factor * 2 <= most:
        factor *= 2
    return factor


def _most_rows(registers: int, vectors: int) -> int:
    return (registers - 1 - vectors) // vectors
