"""Pauses of Python's cyclic garbage collector, which belongs to the whole process."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """Counts the open contexts of all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._own = threading.local()
        """Its `open` is the number of open contexts of a thread."""
        self._was_enabled = False
        os.register_at_fork(after_in_child=self._forget_other_threads)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Open a context."""
        with self._lock:
            if not self._open:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._open += 1
        self._own.open = getattr(self._own, "open", 0) + 1
        try:
            yield
        finally:
            self._own.open -= 1
            with self._lock:
                self._open -= 1
                self._end()

    def _end(self) -> None:
        if not self._open and self._was_enabled:
            gc.enable()

    def _forget_other_threads(self) -> None:
        """Leave the contexts of threads that the child of a fork does not have."""
        self._lock = threading.Lock()
        if self._open:
            self._open = getattr(self._own, "open", 0)
            self._end()


without_collector = _Pauses().pause
"""Pause the collector within a context.

Contexts may nest, and those of several threads may overlap: the first one to begin disables the
collector, and the last one to end leaves it as it was found.
"""
