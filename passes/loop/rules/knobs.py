"""What the rules choose and may be told: the parameters that tuning searches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Knobs:
    """Choices of the default schedule; None is what the rule finds by itself."""

    rows: int | None = None
    """Rows of a register tile."""
    vectors: int | None = None
    """Machine vectors of a register tile, or that statements and sums of rows take at a time."""
    unroll: int | None = None
    """Accumulators for each place of a tile, and for the entries of a sparse row."""
    panels: str | None = None
    """Whether the loop over panels is `outside` or `inside` of that over rows."""
    tail: str | None = None
    """`mask` for what is left of the rows of a product as masked lanes, not as a nest."""
    share: float = 1.0
    """How large the tiles for threads are, as a multiple."""


ANALYTIC = Knobs()
"""What the rules find by themselves."""

CHOICES: dict[str, tuple[object, ...]] = {
    "rows": (None, *range(1, 15)),
    "vectors": (None, 1, 2, 3, 4, 6, 8),
    "unroll": (None, 1, 2, 4, 8),
    "panels": (None, "outside", "inside"),
    "tail": (None, "mask"),
    "share": (1.0, 0.25, 0.5, 2.0, 4.0),
}
"""The values that are tried, the analytic one first."""
