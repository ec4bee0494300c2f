"""The thread pool of this process: one, whatever code needs it first; see `thread_pool`."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

from ...dialects.rt.abi import PARALLEL_TILES
from .images import Image, MappedImage, system_function

FORGET = "stepwell_forget_workers"
"""The function that makes the pool forget its threads, in the child of a fork."""

_entries: list[int] = []
_guards = [threading.Lock()]
"""The lock of `_entries`, in which another lock may take its place."""


def _renew_lock() -> None:
    _guards[:] = [threading.Lock()]


# Another thread, which the child of a fork does not have, may have held the lock.
os.register_at_fork(after_in_child=_renew_lock)


def entry(start: Callable[[], tuple[int, int]]) -> int:
    """The address of the function that runs tiles.

    Args:
        start: loads the code of the pool, which must stay until the process ends, and returns the
            addresses of this function and of `FORGET`. It is called once in a process.
    """
    with _guards[0]:
        if not _entries:
            address, forget = start()
            os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(forget))
            _entries.append(address)
    return _entries[0]


def mapped(image: Image) -> tuple[int, int]:
    """The two addresses of a pool that is an image."""
    code = MappedImage(image, system_function).keep_forever()
    return code.address(PARALLEL_TILES), code.address(FORGET)
