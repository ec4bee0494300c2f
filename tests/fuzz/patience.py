"""A limit of time for what may be endless in a program, such as walks through trees."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 2.0


class TooLongError(Exception):
    """It takes more than `SECONDS`."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise a `TooLongError` in code of Python that takes too long."""

    def stop(number: int, frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
