"""Layers of other packages, as attributes of `stepwell.frontends.gnn`."""

from __future__ import annotations

import difflib
import sys
from typing import Any

from ...core.errors import explain
from ...core.plugins import layers


def __getattr__(name: str) -> Any:
    """The layer that another package registers by a name.

    Raises:
        AttributeError: if there is none, with the nearest names.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    known = layers()
    if name in known:
        return known[name]()
    own: list[str] = sys.modules[__package__ or ""].__all__
    near = ", ".join(difflib.get_close_matches(name, [*own, *known], 3))
    hint = f"nearest: {near}" if near else None
    raise AttributeError(explain("gnn", f'no layer "{name}"', hint=hint))
