"""The universe of this project: what plain `xdsl-opt` finds by the entry point `xdsl.universe`."""

from __future__ import annotations

from xdsl.universe import Universe

from ..core.registry import CORRECTED_PASSES, own_dialects, own_passes

STEPWELL_UNIVERSE = Universe(
    all_dialects=own_dialects(),
    # No two universes may have a pass of the same name.
    all_passes={n: load for n, load in own_passes().items() if n not in CORRECTED_PASSES},
)
