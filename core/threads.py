"""How many threads a call may use: what the environment states, and the cores of the process."""

from __future__ import annotations

import os
import re
from typing import TypeGuard

from .boundary.arrays import is_integer
from .errors import TargetError, explain

VARIABLE = "STEPWELL_NUM_THREADS"
MOST_THREADS = 256
"""As many threads can run tiles of one call, its own included: the tickets in `thread_pool.ll`."""
SOME_THREADS = f"1 to {MOST_THREADS}"
"""The range of a number of threads, for errors."""


def are_threads(number: object) -> TypeGuard[int]:
    """Whether a number of threads is one that a call may have."""
    return is_integer(number) and 1 <= number <= MOST_THREADS


def stated_threads() -> int | None:
    """The number of threads that the environment states; None if it states none.

    Raises:
        TargetError: if it is not a number from 1 to 256.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    # Python refuses to read thousands of digits.
    number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
    if not are_threads(number):
        fact = "wrong number of threads"
        raise TargetError(explain(VARIABLE, fact, expected=SOME_THREADS, got=repr(text)))
    return number


def available_cores() -> int:
    """The number of cores that this process may run on now."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def most_threads() -> int:
    """The largest number of threads of a call of a loaded program.

    Raises:
        TargetError: if the environment states a wrong number.
    """
    return stated_threads() or min(available_cores(), MOST_THREADS)
