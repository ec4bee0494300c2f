"""What a program has on the workers of an engine from one call to the next."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import StepwellError, explain
from .engines import Engine, Worker
from .partition import Partition
from .storage import folders
from .storage.blocks import KeptMaps, PartBlock
from .tasks import Job, PartSource

_MEMORY = Path("/dev/shm")
"""Where files are in memory."""
_SPARE = 1.5
"""The memory that has to be free, in bytes for each that a run may write: code takes some too."""


class Placement:
    """Handles of the stages of a program and of the parts of a graph, on their workers.

    Args:
        engine: where they are.
        program: the stages.
        partition: the parts.
    """

    def __init__(self, engine: Engine, program: Job, partition: Partition) -> None:
        self.engine, self.program, self.partition = engine, program, partition
        self._handles: dict[tuple[str, int | None], Any] = {}
        self._sources: dict[int, PartSource] = {}
        self._orders: dict[int, np.ndarray | None] = {}

    def order(self, part: int) -> np.ndarray | None:
        """The rows of a part in the original order, if its nodes are a range of them."""
        if part not in self._orders:
            nodes = self.partition.nodes(part)
            is_range = len(nodes) > 0 and np.ptp(nodes) == len(nodes) - 1
            self._orders[part] = np.argsort(nodes) if is_range else None
        return self._orders[part]

    def job(self, worker: str) -> Any:
        """The handle of the stages on a worker."""
        return self._placed((worker, None), self.program)

    def source(self, part: int, worker: str) -> Any:
        """The handle of a part on a worker."""
        folder = self.partition.folder
        if folder is None:
            return self._placed((worker, part), self.here(part))
        source = PartSource(part, os.path.abspath(folder), key=self.partition.key)
        return self._placed((worker, part), source)

    def here(self, part: int) -> PartSource:
        """A part in this process."""
        if part not in self._sources:
            self._sources[part] = PartSource(part, None, self.partition[part])
        return self._sources[part]

    def forget_all_but(self, workers: Container[str]) -> None:
        """Forget what was on workers that have ended, though one of their names may be there."""
        self._handles = {key: h for key, h in self._handles.items() if key[0] in workers}

    def _placed(self, key: tuple[str, int | None], value: object) -> Any:
        if key not in self._handles or not self.engine.holds(self._handles[key]):
            self._handles[key] = self.engine.put(value, key[0])
        return self._handles[key]


class Room:
    """Memory or files for the values of runs, used again where the engine allows it.

    Args:
        engine: where programs run.
        folder: where files are; by default in memory, if there is room, else on disk.
        needed: how many bytes a run may write.
    """

    def __init__(self, engine: Engine, folder: str | None, needed: int) -> None:
        self._engine, self._folder, self._needed = engine, folder, needed
        self._spares: dict[tuple[int | None, tuple[int, ...], np.dtype[Any]], list[PartBlock]] = {}
        self._kept: dict[str, Any] = {}
        self._place: str | None = None
        self._removal = weakref.finalize(self, lambda: None)

    @property
    def is_kept(self) -> bool:
        """Whether blocks are used again."""
        return self._engine.reuses

    def has_maps(self, workers: Sequence[Worker], near: bool) -> bool:
        """Whether workers may keep maps of the files of blocks.

        Args:
            workers: the worker of each part.
            near: whether a worker maps the blocks of all parts, not only those of its own.
        """
        if not self.is_kept:
            return False
        counts = Counter(workers)
        shares = {w: 1 if near else count / len(workers) for w, count in counts.items()}
        return all(share * self._needed <= worker.mapped for worker, share in shares.items())

    def keep_maps(self, worker: str) -> None:
        """Let a worker keep maps until the memory is freed.

        Raises:
            WorkerLostError: if the worker has ended.
        """
        if worker in self._kept and self._engine.holds(self._kept[worker]):
            return
        if (place := self.place()) is not None:
            self._kept[worker] = self._engine.put(KeptMaps(place), worker)

    def forget_all_but(self, workers: Container[str]) -> None:
        """Forget which maps were kept by workers that have ended."""
        self._kept = {worker: kept for worker, kept in self._kept.items() if worker in workers}

    def place(self) -> str | None:
        """The folder for files; None where workers share memory.

        Raises:
            StepwellError: if it cannot be created.
        """
        if self._place is None and not self._engine.in_memory:
            parent = self._parent
            try:
                place = self._place = folders.new_folder(parent)
            except OSError as error:
                fact = f"cannot create a folder in {parent}: {error.strerror}"
                raise StepwellError(explain("distribute", fact)) from error
            self._removal = weakref.finalize(self, folders.remove_folder, place)
        return self._place

    @property
    def is_on_disk(self) -> bool:
        """Whether values are in files that are not in memory."""
        return not self._engine.in_memory and _MEMORY not in (Path(self._parent) / "x").parents

    @property
    def _parent(self) -> str:
        """The folder in which that of the program is."""
        if self._folder is not None:
            return self._folder
        has_room = _MEMORY.is_dir() and _free_memory() > _SPARE * self._needed
        return str(_MEMORY) if has_room else tempfile.gettempdir()

    def take(
        self, part: int | None, shape: Sequence[int], dtype: np.dtype[Any]
    ) -> PartBlock | None:
        """A block of a part, or a ring of all, that is not needed any more, if there is one."""
        spares = self._spares.get((part, tuple(shape), dtype))
        return spares.pop() if spares else None

    def give(self, part: int | None, block: PartBlock) -> None:
        """Take back a block of a part, or a ring of all, that is not needed any more."""
        if self.is_kept:
            self._spares.setdefault((part, block.shape, block.dtype), []).append(block)
        else:
            block.remove()

    def forget(self) -> None:
        """Use nothing again of what there is: a worker that is lost may still write to it."""
        self._spares.clear()

    def clear(self) -> None:
        """Free memory, and remove the folder with all files."""
        self._spares.clear()
        self._kept.clear()
        self._removal()
        self._place = None


def _free_memory() -> int:
    """The bytes that files in memory may take."""
    free = shutil.disk_usage(_MEMORY).free
    with open("/proc/meminfo", encoding="ascii") as file:
        known = dict(line.split(":", 1) for line in file)
    return min(free, int(known["MemAvailable"].split()[0]) << 10)
