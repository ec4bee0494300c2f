"""Progress of what takes more than two seconds, with the time that is left: on terminals only."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..core.progress import progress
from .console import err


def passes_shown(what: str) -> AbstractContextManager[None]:
    """Show which pass runs, how many have, and the time that is left, on stderr."""
    return progress(what, console=err)
