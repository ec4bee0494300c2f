"""How many threads a call may use: what the environment states, and the cores of the process."""

from __future__ import annotations

import os

from .errors import TargetError, explain

VARIABLE = "STEPWELL_NUM_THREADS"


def stated_threads() -> int | None:
    """The number of threads that the environment states; None if it states none.

    Raises:
        TargetError: if it is not a number above 0.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        fact = "wrong number of threads"
        raise TargetError(explain(VARIABLE, fact, expected="1 or more", got=repr(text)))
    return int(text)


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
    return stated_threads() or available_cores()
