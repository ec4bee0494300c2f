"""Named arrays that are written piece by piece, in memory or as `.npy` files of a folder.

A folder is complete once it has its JSON file, which lists the arrays and is written last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.lib import format as npy

from ...core.files.reading import LARGEST_LIST, ReadingError, map_npy, read_json, read_text
from ...core.files.writing import write_atomically
from ..errors import damaged

HEADER = "partition.json"
_KIND, _VERSION = "stepwell partition", 1
_DTYPES = ("int32", "int64", "float32", "float64")
_LARGEST_HEADER = 64 * LARGEST_LIST


class ArrayWriter(Protocol):
    """An array that is written from its beginning to its end."""

    def append(self, piece: np.ndarray, /) -> None: ...


class Store(Protocol):
    """Where the arrays of a partition are written."""

    def create(self, name: str, dtype: Any, length: int) -> ArrayWriter:
        """An array of one dimension, to which pieces of that length in all are appended."""
        ...

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The arrays, all of which are complete."""
        ...


class _InMemory:
    def __init__(self, dtype: Any, length: int) -> None:
        self.array = np.empty(length, dtype)
        self._filled = 0

    def append(self, piece: np.ndarray) -> None:
        self.array[self._filled : self._filled + len(piece)] = piece
        self._filled += len(piece)


class ArraysInMemory:
    """Arrays in memory."""

    def __init__(self) -> None:
        self._writers: dict[str, _InMemory] = {}

    def create(self, name: str, dtype: Any, length: int) -> ArrayWriter:
        return self._writers.setdefault(name, _InMemory(dtype, length))

    def arrays(self) -> Mapping[str, np.ndarray]:
        for writer in self._writers.values():
            writer.array.flags.writeable = False
        return {name: writer.array for name, writer in self._writers.items()}


class _File:
    # By `write`, which reports a full disk; a store to a map would end the process.
    def __init__(self, path: Path, dtype: Any, length: int) -> None:
        self._path, self._dtype = path, np.dtype(dtype)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (length,)}
        with open(path, "wb") as file:
            npy.write_array_header_1_0(file, header)

    def append(self, piece: np.ndarray) -> None:
        append_array(self._path, np.ascontiguousarray(piece, self._dtype))


def append_array(path: Path, array: np.ndarray) -> None:
    """Append the elements of a contiguous array to a file."""
    with open(path, "ab", buffering=0) as file:
        data = array.data.cast("B")
        while data:
            data = data[file.write(data) :]


class ArrayFolder(Mapping[str, np.ndarray]):
    """Arrays in the files of a folder; those that are read are memory maps."""

    def __init__(
        self, path: str | os.PathLike[str], listed: Mapping[str, Sequence[Any]], key: str
    ) -> None:
        """Refer to arrays of a folder, by their names, dtypes and lengths.

        Args:
            path: the folder.
            listed: for each array its dtype and length.
            key: what tells the partition from others that the folder has had.
        """
        self.path, self.key = Path(path), key
        self._listed = {name: (str(dtype), int(length)) for name, (dtype, length) in listed.items()}

    def create(self, name: str, dtype: Any, length: int) -> ArrayWriter:
        self._listed[name] = (np.dtype(dtype).name, length)
        return _File(self._file(name), dtype, length)

    def arrays(self) -> Mapping[str, np.ndarray]:
        return self

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __getitem__(self, name: str) -> np.ndarray:
        expected = self._listed[name]
        try:
            array = map_npy(self._file(name))
        except ReadingError as error:
            raise damaged(self._file(name), str(error)) from error
        found = (array.dtype.name, len(array) if array.ndim == 1 else array.shape)
        if found != expected:
            want, got = (f"{length} of {dtype}" for dtype, length in (expected, found))
            raise damaged(self._file(name), f"another array, expected {want}, got {got}")
        return array

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the header, with `facts`, after which the folder is complete."""
        head = {"kind": _KIND, "version": _VERSION, "key": self.key}
        whole = {**head, **facts, "arrays": self._listed}
        write_atomically(self.path / HEADER, json.dumps(whole).encode())

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.npy"


def read_folder(path: str | os.PathLike[str]) -> tuple[ArrayFolder, dict[str, Any]]:
    """The arrays of a complete folder, and the facts that its header has.

    Raises:
        InputError: if there is no header, or it is not one of a partition.
    """
    header = Path(path) / HEADER
    try:
        facts = read_json(read_text(header, _LARGEST_HEADER))
    except ReadingError as error:
        raise damaged(header, str(error)) from error
    if not isinstance(facts, dict) or facts.get("kind") != _KIND:
        raise damaged(header, "not the header of a partition")
    if facts.get("version") != _VERSION:
        raise damaged(header, f"unknown version, expected {_VERSION}, got {facts.get('version')}")
    listed = facts.get("arrays")
    if not isinstance(listed, dict) or not all(map(_is_listed, listed.values())):
        raise damaged(header, "not a list of arrays")
    key = facts.get("key", "")
    if not isinstance(key, str):
        raise damaged(header, "its key is no text")
    return ArrayFolder(path, listed, key), facts


def _is_listed(entry: object) -> bool:
    match entry:
        case [str(dtype), int(length)]:
            return dtype in _DTYPES and length >= 0
    return False
