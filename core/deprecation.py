"""Warnings about features that the next release removes or changes: see `docs/stability.md`."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.rpartition(".core.")[0]


def warn_deprecated(subject: str, fact: str, *, hint: str) -> None:
    """Issue a `DeprecationWarning` for the innermost line outside of this package.

    Args:
        subject: the subject, as in errors.
        fact: the deprecation: "is deprecated", "states no version".
        hint: the replacement.
    """
    text = f"{subject}: {fact}, which the next release refuses; {hint}"
    # The `stacklevel` that attributes the warning to the caller of the package.
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and _is_inside(frame):
        # `warnings` does not count the frames of an import.
        level += "importlib._bootstrap" not in frame.f_code.co_filename
        frame = frame.f_back
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return name == _PACKAGE or name.startswith((f"{_PACKAGE}.", "importlib.", "functools"))
