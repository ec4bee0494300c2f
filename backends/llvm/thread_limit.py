"""The number of threads of a saved program, which is lowered where it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...dialects.rt.abi import PARALLEL_TILES
from .boundary.code import ENTRY
from .linking import Definitions, linked

MOST_THREADS = "stepwell_most_threads"
"""The word with the largest number of threads of a call."""
FILE = Path(__file__).with_suffix(".ll")
_LIMITED = "limited_tiles"


def with_limit(program: Any, target_machine: Any) -> Any:
    """A program of LLVM whose calls of the thread pool obey `MOST_THREADS`; it is consumed."""
    program.get_function(PARALLEL_TILES).name = _LIMITED
    return linked([FILE], Definitions(), [ENTRY, MOST_THREADS], target_machine, [program])
