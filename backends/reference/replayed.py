"""Results of calls that are known from another run of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from .memory import Pointer
from .remembered import Remembered, name_of


class Replayed(Remembered):
    """What calls wrote in another run: they write it again, instead of being run.

    This is how a single call is interpreted in a program that takes long as a whole.

    Args:
        calls: the arrays that each call wrote, its last arguments, by the name of the function and
            the number of the call, from 1.
        except_for: the call that runs; None for none.
    """

    def __init__(
        self,
        calls: Mapping[tuple[str, int], Sequence[np.ndarray]],
        except_for: tuple[str, int] | None,
    ) -> None:
        super().__init__()
        self._calls, self._except_for = calls, except_for
        self._times: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin a run: its calls are counted anew."""
        super().begin()
        self._times.clear()

    def replay(self, callee: Operation, arguments: Sequence[Any]) -> bool:
        """Write what the same call wrote in the other run.

        Returns:
            False if that is not known: the function has to run.
        """
        name = name_of(callee)
        self._times[name] += 1
        call = name, self._times[name]
        known = () if call == self._except_for else self._calls.get(call, ())
        memories = [one for one in arguments if isinstance(one, np.ndarray | Pointer)]
        pairs = [*zip(reversed(memories), reversed(known), strict=False)]
        parts = [_part(memory, array) for memory, array in pairs]
        if not parts or len(parts) < len(known) or any(part is None for part in parts):
            return False
        for part, (_, array) in zip(parts, pairs, strict=True):
            assert part is not None
            part[...] = array[tuple(map(slice, part.shape))]
        return True


def _part(memory: np.ndarray | Pointer, array: np.ndarray) -> np.ndarray | None:
    """Where to write an array; None if the memory is for another one.

    Rows of a buffer may be shorter than those of the array: passes append undefined elements.
    """
    if isinstance(memory, np.ndarray):
        fits = memory.shape[:-1] == array.shape[:-1] and memory.size <= array.size
        return memory if fits and memory.dtype == array.dtype else None
    if memory.allocation is None:
        return None
    raw = memory.allocation.bytes[memory.offset :][: array.nbytes]
    return raw.view(array.dtype).reshape(array.shape) if raw.size == array.nbytes else None
