"""Placement of intermediate buffers in the arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from ...core.algebra.dims import Dim


@dataclass(frozen=True)
class Lifetime:
    """A buffer in the arena: its size in bytes, and its first and last step.

    `over` are the numbers of buffers of the same size that the first step may overwrite if it is
    their last one.
    """

    size: Dim
    first: int
    last: int
    over: tuple[int, ...] = ()


@dataclass(frozen=True)
class ArenaPlan:
    """Slots of the arena, by size, and the slot of each buffer."""

    slots: tuple[Dim, ...]
    slot_of: tuple[int, ...]


def plan_arena(
    buffers: Sequence[Lifetime], may_share: Callable[[int], bool] = lambda _: True
) -> ArenaPlan:
    """Assign slots to buffers, given in the order of their first steps.

    A buffer takes the slot of one that it may overwrite, else a free slot of the same size, else
    the smallest free slot that is large enough, else it enlarges the largest of those that are
    smaller, else it gets a new one. A symbolic size is larger than another if it is so for all
    values of their symbols. `may_share` is called for each buffer that would reuse a slot.
    """
    slots: list[Dim] = []
    holder: list[int] = []
    slot_of: list[int] = []
    for number, buffer in enumerate(buffers):
        free = [n for n, held in enumerate(holder) if buffers[held].last < buffer.first]
        dying = [n for n in buffer.over if buffers[n].last == buffer.first]
        slot = next((slot_of[n] for n in dying if holder[slot_of[n]] == n), None)
        if slot is None:
            slot = _choose(buffer.size, slots, free)
        if slot is None or not may_share(number):
            slot = len(slots)
            slots.append(buffer.size)
            holder.append(number)
        elif buffer.size.is_at_least(slots[slot]):
            slots[slot] = buffer.size
        holder[slot] = number
        slot_of.append(slot)
    return ArenaPlan(tuple(slots), tuple(slot_of))


def _choose(size: Dim, slots: Sequence[Dim], free: Sequence[int]) -> int | None:
    for n in free:
        if slots[n] == size:
            return n
    enough = [n for n in free if slots[n].is_at_least(size)]
    if enough:
        return reduce(lambda a, b: a if slots[b].is_at_least(slots[a]) else b, enough)
    smaller = [n for n in free if size.is_at_least(slots[n])]
    if smaller:
        return reduce(lambda a, b: b if slots[b].is_at_least(slots[a]) else a, smaller)
    return None
