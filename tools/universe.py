"""The universe of this project: what plain `xdsl-opt` finds by the entry point `xdsl.universe`."""

from __future__ import annotations

from xdsl.universe import Universe

from ..core.registry import own_dialects, own_passes

STEPWELL_UNIVERSE = Universe(all_dialects=own_dialects(), all_passes=own_passes())
