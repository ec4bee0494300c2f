"""Frames: the working memory of calls, each with its own arena, reused by later calls."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

import numpy as np

from ..core.errors import StepwellError, explain
from ..dialects.rt.abi import ALIGNMENT, Word

Claim = Callable[[int], int | None]
"""Claims a free frame of the list with this head and returns its address; None if none is free."""


def aligned_bytes(size: int) -> np.ndarray:
    """So many bytes of memory, which begin at a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


class Frame:
    """The working memory of one call at a time: the context, then the arguments."""

    def __init__(self, size: int, constants: int, functions: int) -> None:
        self.words = (ctypes.c_int64 * size)()
        self.words[Word.CONSTANTS] = constants
        self.words[Word.FUNCTIONS] = functions
        self.address = ctypes.addressof(self.words)
        self._arena: np.ndarray | None = None

    def grow(self, size: int) -> None:
        """Allocate an arena of at least `size` bytes.

        Raises:
            StepwellError: if there is not enough memory.
        """
        # Freed before there is another one.
        self.drop_arena()
        try:
            self._arena = aligned_bytes(size)
        except MemoryError as error:
            raise no_memory(f"an arena of {size} bytes") from error
        self.words[Word.ARENA] = self._arena.ctypes.data
        self.words[Word.ARENA_BYTES] = size

    def drop_arena(self) -> None:
        """Free the arena; the next call that needs one allocates it."""
        self.words[Word.ARENA] = self.words[Word.ARENA_BYTES] = 0
        self._arena = None

    @property
    def arena(self) -> np.ndarray:
        """The bytes of the arena."""
        return np.empty(0, np.uint8) if self._arena is None else self._arena

    def give_back(self) -> None:
        """Release the frame for other calls."""
        self.words[Word.BUSY] = 0


class Frames:
    """The frames of a program: as many as the largest number of concurrent calls so far."""

    lock = threading.Lock()
    """Held while a list grows, or is replaced."""

    def __init__(self, size: int, constants: int, functions: int) -> None:
        """Create the list, which is empty at first.

        Args:
            size: the number of words of a frame.
            constants: address of the table of constants.
            functions: address of the table of registered functions.
        """
        self._content = (size, constants, functions)
        self._first = ctypes.c_int64()
        self.head = ctypes.addressof(self._first)
        """The address of the word with the address of the first frame."""
        self._known: dict[int, Frame] = {}
        self.claim: Claim = self._claim

    def take(self) -> Frame:
        """A frame for exclusive use until it is released."""
        address = self.claim(self.head)
        if address is not None:
            return self._known[address]
        frame = Frame(*self._content)
        frame.words[Word.BUSY] = 1
        with self.lock:
            self._known[frame.address] = frame
            frame.words[Word.NEXT] = self._first.value
            self._first.value = frame.address
        return frame

    def trim(self) -> None:
        """Free the arenas that no call uses."""
        idle = []
        while (address := self.claim(self.head)) is not None:
            idle.append(self._known[address])
        for frame in idle:
            frame.drop_arena()
            frame.give_back()

    @property
    def busy(self) -> bool:
        """Whether a call is using a frame."""
        return any(frame.words[Word.BUSY] for frame in self._known.values())

    def __contains__(self, address: int) -> bool:
        """Whether there is a frame at an address."""
        return address in self._known

    def at(self, address: int) -> Frame:
        """The frame at an address."""
        return self._known[address]

    def _claim(self, head: int) -> int | None:
        """Claim a frame; for programs whose frames only Python claims."""
        with self.lock:
            for address, frame in self._known.items():
                if not frame.words[Word.BUSY]:
                    frame.words[Word.BUSY] = 1
                    return address
        return None


def _renew_lock() -> None:
    Frames.lock = threading.Lock()


# Another thread, which the child of a fork does not have, may have held the lock.
os.register_at_fork(after_in_child=_renew_lock)


def no_memory(what: str) -> StepwellError:
    """The error of a call without enough memory."""
    return StepwellError(explain("call", f"not enough memory for {what}"))
