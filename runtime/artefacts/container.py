"""The container of an artefact: a zip whose members are stored as they are, and aligned.

So an array can be mapped into memory where it lies in the file, and other tools can read it too:
arrays are `.npy`, text is text. The last member is the manifest, which has the SHA-256 of the
others; the comment of the zip has that of the manifest.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from zipfile import ZIP64_LIMIT, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from ...core.dtype_names import register_dtypes
from ...core.errors import ImportModelError, explain
from ...core.files import writing
from ...core.files.reading import ReadingError, opened
from ...dialects.rt.abi import ALIGNMENT
from ..frames import aligned_bytes

MANIFEST = "manifest.json"
_COMMENT = b"stepwell manifest sha256 "
_HEADER = 30
"""The size of the header of a member before its name, and the places of two sizes in it."""
_PADDING = b"\x35\xd9"
"""The tag of a field that only aligns, as tools for other archives use it."""
_LARGE = 20
"""What the header of a large member has in addition."""


class ArtefactWriter:
    """Writes the members of an artefact."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip: ZipFile | None = None
        self._digests: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def add(self, name: str, data: bytes | memoryview, header: bytes = b"") -> str:
        """Add a member; returns its name, or that of a member with the same contents.

        `name` is changed if it is taken.
        """
        hashed = hashlib.sha256(header)
        hashed.update(data)
        digest = hashed.hexdigest()
        if digest in self._names:
            return self._names[digest]
        stem, ending = os.path.splitext(name)
        unique, number = name, len(self._digests)
        while unique in self._digests:
            unique, number = f"{stem}_{number}{ending}", number + 1
        self._write(unique, header, data)
        self._names[digest], self._digests[unique] = unique, digest
        return unique

    def add_array(self, name: str, array: np.ndarray) -> dict[str, Any]:
        """Add an array; returns what `Archive.array` reads it by. Equal arrays are stored once."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        raw = array.reshape(-1).view(np.uint8).data if array.size else b""
        plain = array.dtype if array.dtype.isbuiltin == 1 else np.dtype(f"V{array.dtype.itemsize}")
        header = io.BytesIO()
        facts = {"descr": plain.str, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(header, facts)
        part = self.add(f"{name}.npy", raw, header.getvalue())
        return {"part": part, "dtype": array.dtype.name, "shape": list(array.shape)}

    def copy(self, archive: Archive) -> None:
        """Write what another artefact is, in place of members."""
        self._file.write(archive.memory.data)

    def close(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, with the digests of the other members."""
        text = json.dumps({**manifest, "parts": self._digests}, separators=(",", ":")).encode()
        self._write(MANIFEST, b"", text)
        if self._zip is not None:
            self._zip.comment = _COMMENT + hashlib.sha256(text).hexdigest().encode()
        self.end()

    def end(self) -> None:
        """Let go of the file."""
        if self._zip is not None:
            self._zip.close()

    def _write(self, name: str, header: bytes, data: bytes | memoryview) -> None:
        info = ZipInfo(name)
        info.external_attr = 0o644 << 16
        info.file_size = len(header) + len(data)
        start = self._file.tell() + _HEADER + len(name.encode())
        start += _LARGE * (info.file_size * 1.05 > ZIP64_LIMIT)
        padding = -(start + 4) % ALIGNMENT
        info.extra = _PADDING + padding.to_bytes(2, "little") + bytes(padding)
        if self._zip is None:
            self._zip = ZipFile(self._file, "w", ZIP_STORED)
        with self._zip.open(info, "w") as member:
            member.write(header)
            member.write(data)


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[ArtefactWriter]:
    """Write an artefact to a file, which appears complete or not at all.

    Raises:
        ImportModelError: if the file cannot be written.
    """
    try:
        with writing.written(path, synced=True) as file:
            writer = ArtefactWriter(file)
            try:
                yield writer
            finally:
                writer.end()
    except OSError as error:
        fact = f"cannot write {path}: {error.strerror or error}"
        raise ImportModelError(explain("save", fact)) from error


class Archive:
    """An artefact that is read: its manifest, and its members in memory.

    Attributes:
        name: what errors call it.
        manifest: what the file says about its contents.
    """

    def __init__(self, name: str, memory: np.ndarray, source: Any) -> None:
        self.name, self.memory = name, memory
        self._places: dict[str, tuple[int, int]] = {}
        try:
            with ZipFile(source) as archive:
                stated = archive.comment
                for info in archive.infolist():
                    self._places[info.filename] = self._place(info)
        except (BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
            raise self.damaged("is no saved program, or was cut off") from error
        if not stated.startswith(_COMMENT) or MANIFEST not in self._places:
            raise self.damaged("is an archive, but no saved program of Stepwell")
        text = self._bytes(MANIFEST)
        if _COMMENT + hashlib.sha256(text).hexdigest().encode() != stated:
            raise self.damaged(f"{MANIFEST} is damaged")
        self.manifest: dict[str, Any] = json.loads(bytes(text))

    def damaged(self, fact: str) -> ImportModelError:
        """The error that the file is of no use."""
        return ImportModelError(explain(self.name, fact))

    def part(self, name: str) -> memoryview:
        """The contents of a member that is no array, after a check of its digest."""
        data = self._bytes(name)
        self._check(name, data)
        return data

    def array(self, facts: Mapping[str, Any], *, checked: bool) -> np.ndarray:
        """An array in the memory of the file, read-only; see `Writer.add_array`."""
        dtype, shape, name = _dtype(facts["dtype"]), tuple(facts["shape"]), str(facts["part"])
        data = self._bytes(name)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not 0 <= size <= len(data):
            raise self.damaged(f"{name} has another size than {self._size(facts)}")
        if checked:
            self._check(name, data)
        raw = data[len(data) - size :]
        return np.frombuffer(raw, dtype).reshape(shape) if size else np.zeros(shape, dtype)

    def check(self) -> int:
        """Check the digests of all members; returns their bytes."""
        total = 0
        for name in self.manifest["parts"]:
            data = self._bytes(name)
            self._check(name, data)
            total += len(data)
        return total

    def _size(self, facts: Mapping[str, Any]) -> str:
        return f"{facts['dtype']} {list(facts['shape'])}"

    def _check(self, name: str, data: memoryview) -> None:
        if hashlib.sha256(data).hexdigest() != self.manifest["parts"].get(name):
            raise self.damaged(f"{name} is damaged: its SHA-256 is another one")

    def _bytes(self, name: str) -> memoryview:
        if name not in self._places:
            raise self.damaged(f"{name} is missing")
        start, size = self._places[name]
        return self.memory.data[start : start + size]

    def _place(self, info: ZipInfo) -> tuple[int, int]:
        """Where the contents of a member begin, and their size."""
        at, memory = info.header_offset, self.memory
        if info.compress_type != ZIP_STORED or not 0 <= at <= len(memory) - _HEADER:
            raise ValueError(f"{info.filename} is not stored in it")
        lengths = memory[at + _HEADER - 4 : at + _HEADER].view("<u2")
        start = at + _HEADER + int(lengths.sum())
        if not 0 <= info.file_size <= len(memory) - start:
            raise ValueError(f"{info.filename} ends after it")
        return start, info.file_size


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        register_dtypes(name)
        return np.dtype(name)


def mapped(path: str | os.PathLike[str]) -> Archive:
    """The artefact in a file, which is mapped into memory: processes share it.

    Raises:
        ImportModelError: if the file cannot be read, or is damaged.
    """
    try:
        with opened(path) as file:
            return mapped_file(os.fspath(path), file)
    except ReadingError as error:
        fact = f"cannot read {path}: {error}"
        raise ImportModelError(explain("load", fact)) from error


def mapped_file(name: str | bytes, file: IO[bytes]) -> Archive:
    """The artefact in an open file; see `mapped`."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        raise ImportModelError(explain("load", f"cannot read {name}: it is empty"))
    memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return Archive(str(name), np.frombuffer(memory, np.uint8), memory)


def in_memory(data: bytes | memoryview) -> Archive:
    """The artefact that these bytes are.

    Raises:
        ImportModelError: if they are damaged.
    """
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    memory.flags.writeable = False
    return Archive("artefact", memory, io.BytesIO(data))
