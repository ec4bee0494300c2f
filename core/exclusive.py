"""One thread at a time uses LLVM, and none while the process forks.

llvmlite takes a lock around each call. Where a process forks while another thread has it, nobody in
the child releases it, and the first use of LLVM there would wait forever. The lock here is held for
as long as a thread uses LLVM, and a fork waits for it.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _Closable(Protocol):
    def close(self) -> object: ...


_LOCK = threading.RLock()
_unused: deque[_Closable] = deque()

os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


def exclusive(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """A function that uses LLVM, which one thread at a time runs.

    Objects of LLVM that only its local variables refer to are freed before other threads go on.
    """

    @functools.wraps(function)
    def alone(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        with _LOCK:
            try:
                return function(*args, **kwargs)
            finally:
                _close_unused()

    return alone


def close_after(owner: object, *objects: _Closable) -> None:
    """Free objects of LLVM, in this order, once their owner is gone.

    The collector may free the owner anywhere, also while its thread has another lock: where LLVM is
    in use, the next thread to leave it frees the objects.
    """
    weakref.finalize(owner, _release, *objects).atexit = False


def _release(*objects: _Closable) -> None:
    _unused.extend(objects)
    if _LOCK.acquire(blocking=False):
        try:
            _close_unused()
        finally:
            _LOCK.release()


def _close_unused() -> None:
    while _unused:
        _unused.popleft().close()
