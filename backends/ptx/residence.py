"""Where the newest contents of memory are that a host and a device both have."""

from __future__ import annotations


class Residence:
    """Which bytes, by their addresses on the host, the device has, and which it alone has.

    The host writes first; what a kernel writes is stale on the host until it is copied.
    """

    def __init__(self) -> None:
        self._on_device = _Bytes()
        self._stale = _Bytes()

    def copied(self, start: int, size: int) -> None:
        """Note a copy, after which both have the same."""
        self._on_device.add(start, size)
        self._stale.remove(start, size)

    def written_by_device(self, start: int, size: int) -> None:
        """Note that a kernel may have written to bytes."""
        self._on_device.add(start, size)
        self._stale.add(start, size)

    def written_by_host(self, start: int, size: int) -> None:
        """Note that the host has written bytes."""
        self._on_device.remove(start, size)
        self._stale.remove(start, size)

    def is_on_device(self, start: int, size: int) -> bool:
        """Whether the device has all of some bytes."""
        return self._on_device.covers(start, size)

    def is_stale(self, start: int, size: int) -> bool:
        """Whether the device alone has the newest contents of some of these bytes."""
        return self._stale.overlaps(start, size)


class _Bytes:
    """A set of addresses, as disjoint ranges [start, end)."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, start: int, size: int) -> None:
        self.remove(start, size)
        if size > 0:
            self._ranges.append((start, start + size))

    def remove(self, start: int, size: int) -> None:
        self._ranges = _without(self._ranges, start, start + max(size, 0))

    def overlaps(self, start: int, size: int) -> bool:
        return any(first < start + size and start < end for first, end in self._ranges)

    def covers(self, start: int, size: int) -> bool:
        left = [(start, start + size)] if size > 0 else []
        for first, end in self._ranges:
            left = _without(left, first, end)
        return not left


def _without(ranges: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Ranges without the addresses from `start` to before `end`."""
    parts = (
        part
        for first, last in ranges
        for part in ((first, min(last, start)), (max(first, end), last))
    )
    return [(first, last) for first, last in parts if first < last]
