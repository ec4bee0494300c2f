"""Pauses of Python's cyclic garbage collector, which belongs to the whole process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """Counts the open contexts of all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._was_enabled = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Open a context."""
        with self._lock:
            if not self._open:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                if not self._open and self._was_enabled:
                    gc.enable()


without_collector = _Pauses().pause
"""Pause the collector within a context.

Contexts may nest, and those of several threads may overlap: the first one to begin disables the
collector, and the last one to end leaves it as it was found.
"""
