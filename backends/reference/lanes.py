"""Iterations that run together, and a record of which of them accessed an element of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

_NOBODY = -1


class Conflict(Exception):  # noqa: N818  (it is no error)
    """Two iterations of one loop access an element, and at least one of them writes it.

    `level` is that loop, as the number of open loops around it.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.level = level


class Lanes:
    """Iterations that run together, each a lane.

    Args:
        parent: the lanes that these are inside of, or a part of; None for a single outermost one.
        above: of each lane, the lane of the parent.
        numbers: of each lane, the number of its iteration; None for those of the parent.
    """

    def __init__(
        self,
        parent: Lanes | None = None,
        above: np.ndarray | None = None,
        numbers: np.ndarray | None = None,
    ) -> None:
        self.parent = parent
        self.above = np.zeros(1, np.int64) if above is None else above
        self.count = len(self.above)
        below = () if parent is None else tuple(level[self.above] for level in parent.path)
        self.path: tuple[np.ndarray, ...] = below if numbers is None else (*below, numbers)
        """Of each lane, the numbers of the iterations that it is in, the outermost first."""
        self._places: dict[Lanes, np.ndarray] = {self: np.arange(self.count)}

    def within(self, other: Lanes) -> np.ndarray:
        """Of each lane, the lane of `other`, which these are inside of or a part of."""
        if other not in self._places:
            assert self.parent is not None, "a value is used inside of where it is defined"
            self._places[other] = self.parent.within(other)[self.above]
        return self._places[other]


@dataclass(frozen=True)
class _LaneRecord:
    """The numbers of the iterations that accessed each element of a buffer.

    Of the iterations that read it, only the first and the last, and not those around them.
    """

    buffer: np.ndarray
    written: np.ndarray
    first_read: np.ndarray
    last_read: np.ndarray

    @staticmethod
    def of(buffer: np.ndarray) -> _LaneRecord:
        nobody = (np.full(buffer.size, _NOBODY) for _ in range(3))
        return _LaneRecord(buffer, *nobody)


class Accesses:
    """Which iterations have read and written the elements of flat buffers.

    An iteration may access what iterations around it have accessed and, after the end of a loop
    inside of it, what those have.
    """

    def __init__(self) -> None:
        self._around = np.empty(0, np.int64)
        """Of each open iteration, by its number, the iteration around it."""
        self._records: dict[int, _LaneRecord] = {}
        self._touched: list[list[tuple[np.ndarray, np.ndarray]]] = []

    @contextmanager
    def iterations(self, lanes: Lanes, above: np.ndarray) -> Iterator[Lanes]:
        """Open a loop inside of lanes, with an iteration for each entry of `above`, its lane."""
        first = len(self._around)
        around = lanes.path[-1][above] if lanes.path else np.full(len(above), _NOBODY)
        self._around = np.append(self._around, around)
        self._touched.append([])
        yield Lanes(lanes, above, np.arange(first, len(self._around)))
        # From here on, what they have accessed is what the iterations around them have.
        ended = self._touched.pop()
        for numbers, places in ended:
            last = numbers[places]
            numbers[places] = np.where(last >= first, self._around[last], last)
        if self._touched:
            self._touched[-1] += ended
        self._around = self._around[:first]

    def write(self, buffer: np.ndarray, places: np.ndarray, path: Sequence[np.ndarray]) -> None:
        """Record writes; `path` has the iterations that each is in, the outermost first.

        Raises:
            Conflict: if another iteration of one of the loops has accessed an element.
        """
        record = self._of(buffer)
        for numbers in (record.written, record.first_read, record.last_read):
            self._check(numbers[places], path)
        record.written[places] = path[-1]
        # Two of them may write the same one.
        self._check(record.written[places], path, same=True)
        self._touched[-1].append((record.written, places))

    def read(self, buffer: np.ndarray, places: np.ndarray, path: Sequence[np.ndarray]) -> None:
        """Record reads by iterations in ascending order.

        Raises:
            Conflict: if another iteration of one of the loops has written an element.
        """
        record, own = self._of(buffer), path[-1]
        self._check(record.written[places], path)
        for numbers, choose, order in (
            (record.first_read, np.minimum, slice(None, None, -1)),
            (record.last_read, np.maximum, slice(None)),
        ):
            known = numbers[places]
            new = np.where(_is_nobody_or(known, path), own, choose(known, own))
            # Of those that read the same element, the last one of this order stays.
            numbers[places[order]] = new[order]
            self._touched[-1].append((numbers, places))

    def _check(self, known: np.ndarray, path: Sequence[np.ndarray], *, same: bool = False) -> None:
        """Check that each number is none or one of those of a path, or `same`, its last one.

        Raises:
            Conflict: if one is another.
        """
        allowed = known == path[-1] if same else _is_nobody_or(known, path)
        if allowed.all():
            return
        wrong = int(np.argmin(allowed))
        around, number = set[int](), int(known[wrong])
        while number != _NOBODY:
            around.add(number)
            number = int(self._around[number])
        own = [int(level[wrong]) for level in path]
        raise Conflict(next(n for n, number in enumerate(own) if number not in around))

    def _of(self, buffer: np.ndarray) -> _LaneRecord:
        key = buffer.ctypes.data
        if key not in self._records:
            self._records[key] = _LaneRecord.of(buffer)
        return self._records[key]


def _is_nobody_or(numbers: np.ndarray, path: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each number is none, or one of those of a path."""
    found = numbers == _NOBODY
    for level in path:
        found |= numbers == level
    return found
