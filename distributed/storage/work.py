"""The folder of a run that is larger than memory: values in files, and how far it has come."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...core.files.reading import LARGEST_LIST, ReadingError, map_npy, read_json, read_text
from ...core.files.writing import write_atomically
from ...core.ir.weights import WeightStore
from ..errors import damaged, error, unwritten
from ..partition import Partition
from .new_files import NewRows
from .rows import Extent, MappedRows, Rows, Sparse, gather

_STATE, _LOCK = "state.json", "stepwell.lock"
_KIND = "stepwell run"
_SAMPLE = 4096
"""The number of rows of an argument by which it is recognised."""
_SMALL = 1 << 28
"""The bytes of an array that is recognised by all its numbers: some tenths of a second."""


class WorkFolder:
    """The folder of a run, which holds a lock on it until it is closed.

    A folder of an interrupted run with the same key is continued, one with another key begun anew.
    """

    def __init__(self, folder: Path, key: str) -> None:
        """Open or create the folder.

        Raises:
            InputError: if it cannot be written, is not one of a run, or another run is using it.
        """
        self.folder, self._key = folder, key
        try:
            if not (folder / _LOCK).exists():
                self._refuse_others()
            self._lock = _locked(folder)
        except OSError as reason:
            raise unwritten(folder, reason) from reason
        try:
            self.finished = self._state().get(key, 0)
            if not self.finished:
                self.finish(0)
        except OSError as reason:
            self.close()
            raise unwritten(folder, reason) from reason
        except InputError:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock; the folder stays, unless it has been removed."""
        os.close(self._lock)

    def _state(self) -> dict[str, int]:
        """The number of finished stages by key; empty in a new folder."""
        path = self.folder / _STATE
        self._refuse_others()
        if not path.exists():
            return {}
        try:
            found = read_json(read_text(path, LARGEST_LIST))
        except ReadingError as reason:
            raise damaged(path, reason) from reason
        match found:
            case {"kind": str(kind), "key": str(key), "finished": int(count)} if kind == _KIND:
                return {key: count}
        raise damaged(path, "not the state of a run")

    def _refuse_others(self) -> None:
        """Leave folders with files alone that are none of a run."""
        names = {file.name for file in self.folder.iterdir()} if self.folder.exists() else set()
        if names - {_LOCK} and _STATE not in names:
            raise error(f"{self.folder} is not the folder of a run", "an empty or a new one")

    def finish(self, stages: int) -> None:
        """Note that the first stages are finished, and their values complete."""
        self.finished = stages
        state = {"kind": _KIND, "key": self._key, "finished": stages}
        try:
            write_atomically(self.folder / _STATE, json.dumps(state).encode())
        except OSError as reason:
            raise unwritten(self.folder, reason) from reason

    def path(self, name: str) -> Path:
        """The file of a value."""
        return self.folder / f"{name}.npy"

    def create(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], direct: bool
    ) -> NewRows:
        """A value to write, by direct I/O or through the page cache.

        Raises:
            InputError: if the disk has too little room.
        """
        # The file of an earlier run may have become a result: it is not written to.
        self.discard(name)
        return NewRows(self.path(name), shape, dtype, direct)

    def write(self, name: str, array: np.ndarray) -> None:
        """Write a small value.

        Raises:
            InputError: if the disk has too little room.
        """
        try:
            self.discard(name)
            with open(self.path(name), "wb") as file:
                np.save(file, array)
                file.flush()
                os.fsync(file.fileno())
        except OSError as reason:
            raise unwritten(self.folder, reason) from reason

    def open(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """A finished value, as a memory map.

        Raises:
            InputError: if its file is damaged.
        """
        try:
            array = map_npy(self.path(name))
        except ReadingError as reason:
            raise damaged(self.path(name), reason) from reason
        if array.shape != shape or array.dtype != dtype:
            got = f"{array.shape} of {array.dtype}"
            raise damaged(self.path(name), f"another array, expected {shape} of {dtype}, got {got}")
        return array

    def discard(self, name: str) -> None:
        """Remove a value that is not needed any more."""
        self.path(name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """The descriptor of the lock of a folder, which is created.

    The system releases it with this process. File systems without locks have none.

    Raises:
        InputError: if another run holds it.
        OSError: if the folder cannot be written.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as reason:
            os.close(descriptor)
            got = "another run is using it"
            raise error(f"{folder} is in use", "one run at a time", got) from reason
        except OSError as reason:
            if reason.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
        if os.fstat(descriptor).st_nlink:
            return descriptor
        # The run that held it has removed the folder.
        os.close(descriptor)


def key_of(
    text: str,
    weights: WeightStore,
    partition: Partition,
    rows: Mapping[str, Rows],
    whole: Mapping[str, np.ndarray],
) -> str:
    """What a run is recognised by: the program, the partition and the arguments.

    Arguments with a row for each node are known by their shape, dtype and evenly spaced rows; and
    a file, or a map to read of it, by its path, size and date, a small array by all its numbers,
    and an object by its version. Others are never recognised.
    """
    digest = hashlib.sha256(text.encode())
    for piece in _pieces(weights, partition, rows, whole):
        digest.update(repr((piece.shape, piece.dtype.str)).encode())
        digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


def _pieces(
    weights: WeightStore,
    partition: Partition,
    rows: Mapping[str, Rows],
    whole: Mapping[str, np.ndarray],
) -> Iterator[np.ndarray]:
    for name in sorted(weights):
        array: Any = weights[name]
        dense = isinstance(array, np.ndarray)
        yield from [array] if dense else [array.indptr, array.indices, array.data]
    yield np.frombuffer(partition.key.encode(), np.uint8)
    yield partition.bounds
    if partition.order is not None:
        yield partition.order
    yield np.array([part.num_entries for part in partition])
    for name in sorted(rows):
        count = rows[name].shape[0]
        sample = np.unique(np.linspace(0, max(0, count - 1), _SAMPLE).astype(np.int64))
        yield np.array(rows[name].shape)
        yield gather(rows[name], sample[:count])
        yield from _more(name, rows[name])
    for name in sorted(whole):
        yield whole[name]


def _more(name: str, rows: Rows) -> Iterator[np.ndarray]:
    """What is known of an argument beside some rows.

    Raises:
        InputError: if it has a version that is no text.
    """
    arrays: list[Any] = []
    if isinstance(rows, MappedRows):
        arrays = [rows.array]
    elif isinstance(rows, Sparse):
        arrays = [rows.matrix.indptr, rows.matrix.indices, rows.matrix.data]
    elif (version := getattr(rows, "version", None)) is not None:
        if not isinstance(version, str):
            got = type(version).__name__
            raise error(f'the version of input "{name}" is no text', "str or None", got)
        yield _text(version)
        return
    files = [_file(array) for array in arrays]
    numbers = sum(a.nbytes for a, file in zip(arrays, files, strict=True) if file is None)
    if not arrays or numbers > _SMALL:
        # What its other rows are is not known: no other run has the same key.
        yield np.frombuffer(os.urandom(16), np.uint8)
        return
    for array, file in zip(arrays, files, strict=True):
        if file is None:
            yield array
            continue
        status = os.stat(file.path)
        yield _text(os.path.realpath(file.path))
        yield np.array([status.st_size, status.st_mtime_ns, file.begin, *array.strides])


def _file(array: np.ndarray) -> Extent | None:
    """What an array has of a file whose date tells whether it has been written to."""
    extent = Extent.of(array)
    is_known = extent is not None and extent.is_fixed and os.path.exists(extent.path)
    return extent if is_known else None


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(errors="surrogateescape"), np.uint8)
