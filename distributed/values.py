"""The values of the parts of a run: where each is, and what memory it leaves to later ones."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Iterable, Sequence

import numpy as np

from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from . import tasks
from .placement import Placement, Room
from .schedule import ExchangeSchedule
from .storage.blocks import PartBlock
from .storage.rings import ring_rows
from .tasks import Setting

_COLUMNS = np.iinfo(np.int32).max
"""The most columns of a matrix."""


class Values:
    """The values of the parts, in blocks, and the rings that those share which are exchanged.

    Args:
        placement: the program and the parts.
        room: where blocks are.
        schedule: what is exchanged.
    """

    def __init__(self, placement: Placement, room: Room, schedule: ExchangeSchedule) -> None:
        self._placement, self._room, self._schedule = placement, room, schedule
        self._partition = placement.partition
        self._rings: dict[str, PartBlock] = {}
        self.of: list[dict[str, PartBlock]] = []
        """The blocks of each part, by the names of values."""
        self.missing: set[str] = set()
        """The files that were found to be gone since they were last forgotten."""
        self.freed: set[str] = set()
        """The values that no later stage reads, and that are removed."""
        self.forget_all()

    def ring_rows(self) -> int | None:
        """The rows of rings, which are the same for all values that are exchanged.

        None if there are more than the columns of matrices have numbers.
        """
        specs = (self._schedule.specs[value] for value in self._schedule.exchanged)
        rows = ring_rows(self._partition.num_nodes, [_row_bytes(spec) for spec in specs])
        return rows if rows <= _COLUMNS else None

    def make_rings(self, values: Iterable[str], setting: Setting) -> None:
        """Make rings for those of some values that parts of this host exchange."""
        if setting.ring is None:
            return
        for value in self._schedule.exchanged.intersection(values):
            spec = self._schedule.specs[value]
            shape = setting.ring, *(size for size in spec.shape[1:] if isinstance(size, int))
            dtype, name = np.dtype(dtype_named(spec.dtype)), f"ring.{uuid.uuid4().hex[:12]}"
            given = setting.place, name, shape, dtype, setting.kept
            self._rings[value] = self._room.take(None, shape, dtype) or PartBlock.create_ring(
                *given
            )

    def spare(self, part: int, value: str) -> PartBlock | None:
        """A block for a value of a part: its rows of a ring, or one that is used again, if any."""
        if value in self._rings:
            return self._rings[value].from_row(int(self._partition.bounds[part]))
        spec, held = self._schedule.specs[value], self._placement.here(part).open()
        is_exchanged = value in self._schedule.exchanged
        shape = tasks.shape_of(self._placement.program, held, spec, is_exchanged)
        return self._room.take(part, shape, np.dtype(dtype_named(spec.dtype)))

    def lacking(self, values: Iterable[str], hosts: Sequence[str]) -> list[int]:
        """The parts whose host lacks some of these values.

        Args:
            values: the values.
            hosts: the host of the worker of each part.
        """
        wanted = list(values)

        def has(part: int, value: str) -> bool:
            block = self.of[part].get(value)
            return block is not None and (not block.path or block.host == hosts[part])

        parts = range(len(self.of))
        return [part for part in parts if not all(has(part, value) for value in wanted)]

    def forget(self, values: Iterable[str], parts: Iterable[int]) -> None:
        """Forget values of parts, which are made again."""
        for part, value in itertools.product(parts, values):
            self.of[part].pop(value, None)

    def forget_missing(self) -> None:
        """Forget what was in files that are gone."""
        for blocks in self.of:
            for name in [name for name, block in blocks.items() if block.path in self.missing]:
                del blocks[name]
        self.missing.clear()

    def forget_all(self) -> None:
        """Forget all blocks and rings."""
        self._rings.clear()
        self.of = [{} for _ in range(len(self._partition))]

    def free(self, values: Sequence[str]) -> None:
        """Remove what no later stage reads."""
        self.freed.update(values)
        self.give(values)

    def give(self, values: Iterable[str]) -> None:
        """Give values back to the room."""
        for name in values:
            for part, blocks in enumerate(self.of):
                block = blocks.pop(name, None)
                if block is not None and name not in self._rings:
                    self._room.give(part, block)
            if name in self._rings:
                self._room.give(None, self._rings.pop(name))


def _row_bytes(spec: ValueSpec) -> int:
    """The bytes of a row of a value."""
    sizes = [size for size in spec.shape[1:] if isinstance(size, int)]
    return math.prod(sizes) * dtype_named(spec.dtype).itemsize
