"""Where intermediate buffers lie in the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.dims import Dim


@dataclass(frozen=True)
class Lifetime:
    """A buffer in the arena: its size in bytes, and the steps from which and to which it lives."""

    size: Dim
    first: int
    last: int


@dataclass(frozen=True)
class ArenaPlan:
    """Slots of the arena, by size, and the slot of each buffer."""

    slots: tuple[Dim, ...]
    slot_of: tuple[int, ...]


def plan_arena(buffers: Sequence[Lifetime]) -> ArenaPlan:
    """Put buffers that do not live at the same time into the same slot.

    A buffer takes a free slot of the same size, else the smallest free static slot that is
    large enough, else it enlarges the largest free static slot, else it gets a new one.
    Symbolic sizes share a slot only where they are the same polynomial. `buffers` are in
    order of their first step.
    """
    slots: list[Dim] = []
    busy_until: list[int] = []
    slot_of: list[int] = []
    for buffer in buffers:
        free = [n for n in range(len(slots)) if busy_until[n] < buffer.first]
        slot = _choose(buffer.size, slots, free)
        if slot is None:
            slot = len(slots)
            slots.append(buffer.size)
            busy_until.append(buffer.last)
        elif buffer.size.is_static and slots[slot].value < buffer.size.value:
            slots[slot] = buffer.size
        busy_until[slot] = buffer.last
        slot_of.append(slot)
    return ArenaPlan(tuple(slots), tuple(slot_of))


def _choose(size: Dim, slots: Sequence[Dim], free: Sequence[int]) -> int | None:
    for n in free:
        if slots[n] == size:
            return n
    static = sorted((n for n in free if slots[n].is_static), key=lambda n: slots[n].value)
    if not size.is_static or not static:
        return None
    return next((n for n in static if slots[n].value >= size.value), static[-1])
