"""The choices of the rules that can be overridden: the parameters that tuning searches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Knobs:
    """Choices of the default schedule; None leaves the choice to the rule."""

    rows: int | None = None
    """Rows of a register tile."""
    vectors: int | None = None
    """Machine vectors of a register tile, or of a step of statements and sums of rows."""
    unroll: int | None = None
    """Accumulators for each place of a tile, and for the entries of a sparse row."""
    panels: str | None = None
    """Whether the loop over panels is `outside` or `inside` of that over rows."""
    tail: str | None = None
    """`mask` to handle remaining rows of a product by masking, not by a nest of their own."""
    tile_scale: float = 1.0
    """The size of the tiles for threads, as a multiple of the default."""


ANALYTIC = Knobs()
"""No choice is overridden."""

CHOICES: dict[str, tuple[object, ...]] = {
    "rows": (None, *range(1, 15)),
    "vectors": (None, 1, 2, 3, 4, 6, 8),
    "unroll": (None, 1, 2, 4, 8),
    "panels": (None, "outside", "inside"),
    "tail": (None, "mask"),
    "tile_scale": (1.0, 0.25, 0.5, 2.0, 4.0),
}
"""The values that are tried, the analytic one first."""
