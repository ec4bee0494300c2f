"""Reading untrusted files.

Every reader of the project opens its files here. A file must be regular, because a device or a pipe
may never end, and of limited size. Text is UTF-8. The nesting of brackets is limited to protect
Python's stack. An array must fit the data in its file and the memory of the machine.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

LARGEST_TEXT = 1 << 30
"""The maximum size of MLIR text, and of tuning records, in bytes."""

LARGEST_LIST = 1 << 20
"""The maximum size of text that people edit (a pipeline, a trace), in bytes."""

DEEPEST_JSON = 32
"""The maximum number of lists and objects around a value."""

STRING = r'"(?:[^"\\\n]|\\.)*+"?'
"""The pattern of a string in JSON and in MLIR; an unterminated one ends with its line."""

_JSON = re.compile(rf"{STRING}|[][{{}}]")
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][a-zA-Z][0-9]+)', 'fortran_order': (True|False), "
    rb"'shape': \((?:([0-9]+(?:, [0-9]+)*),?)?\), *\} *\n"
)
_LARGEST_HEADER = 1 << 16
_LARGEST_RATIO = 1032
"""The largest compression ratio of deflate."""
_BLOCK = 1 << 20
_DAMAGE = (BadZipFile, zlib.error, EOFError, SyntaxError, TokenError)


class ReadingError(Exception):
    """The reason why something cannot be read, which readers prefix with a subject and a path."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A regular file, open for reading.

    Raises:
        ReadingError: if it cannot be opened or is of another kind; also in place of an `OSError`
            or a `MemoryError` while it is read.
    """
    try:
        with _open(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ReadingError("not a regular file")
            yield file
    except OSError as error:
        raise ReadingError(error.strerror or str(error)) from error
    except MemoryError as error:
        raise ReadingError("not enough memory") from error


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    # Otherwise, opening a pipe would wait for its writer.
    now = getattr(os, "O_NONBLOCK", 0)
    try:
        # A number would be a descriptor that the process has open.
        name = os.fspath(path)
        return open(name, "rb", opener=lambda name, flags: os.open(name, flags | now))
    except (TypeError, ValueError) as error:  # the latter for a null byte
        raise ReadingError(f"not a path: {error}") from error


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """The contents of a file.

    Raises:
        ReadingError: if it cannot be read, or has more than `largest` bytes.
    """
    with opened(path) as file:
        check_size(size_of(file), largest)
        return read_stream(file, largest)


def read_stream(stream: IO[bytes], largest: int) -> bytes:
    """The rest of a stream.

    Raises:
        ReadingError: if it has more than `largest` bytes.
    """
    blocks, size = list[bytes](), 0
    while block := stream.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        if size > largest:
            raise ReadingError(f"too large, expected at most {amount(largest)}")
    return b"".join(blocks)


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> str:
    """The text in a file, with line feeds at the ends of lines.

    Raises:
        ReadingError: if it cannot be read, has more than `largest` bytes, or is not UTF-8.
    """
    try:
        text = read_bytes(path, largest).decode()
    except UnicodeDecodeError as error:
        raise ReadingError("not a text") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ReadingError: if it is not JSON, or is nested too deeply.
    """
    if too_deep(_JSON, text, DEEPEST_JSON) is not None:
        raise ReadingError(f"nested too deeply, expected at most {DEEPEST_JSON} brackets")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ReadingError("not JSON") from error


def too_deep(tokens: re.Pattern[str], text: str, deepest: int) -> int | None:
    """The position of the first bracket nested in `deepest` others; None if there is none.

    `tokens` matches brackets, and tokens such as strings whose brackets do not count.
    """
    depth = 0
    for match in tokens.finditer(text):
        token = match[0]
        if token in ("(", "[", "{", "<"):
            depth += 1
            if depth > deepest:
                return match.start()
        elif token in (")", "]", "}", ">"):
            depth = max(0, depth - 1)
    return None


# Sizes


def size_of(file: IO[bytes]) -> int:
    """The size of a file in bytes."""
    return os.fstat(file.fileno()).st_size


def check_size(size: int, largest: int) -> None:
    """Check a size against a limit, both in bytes.

    Raises:
        ReadingError: if it is larger.
    """
    if size > largest:
        raise ReadingError(f"too large, expected at most {amount(largest)}, got {amount(size)}")


def memory() -> int:
    """The memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system
        return 1 << 40


def amount(size: int) -> str:
    """A number of bytes in readable units."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {unit}"
    return f"{size} bytes"


# NumPy's formats


@contextmanager
def _numpy(kind: str) -> Iterator[None]:
    """Turn the errors of reading a damaged file in NumPy's format into `ReadingError`."""
    try:
        yield
    # NumPy, SciPy and `zipfile` raise all of these for a file with a few changed bytes.
    except (*_DAMAGE, ValueError, TypeError, RuntimeError, KeyError, AttributeError) as e:
        fact = str(e).partition("\n")[0].rstrip(".")
        raise ReadingError(f"not {kind} in NumPy's format: {fact}") from e


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """The array in a `.npy` file.

    Raises:
        ReadingError: if it cannot be read, or is not in NumPy's format.
    """
    with opened(path) as file, _numpy("an array"):
        check_size(_claimed(file, size_of(file)), memory())
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)


def map_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """The array in a `.npy` file, read-only, as a map of the file's memory.

    Raises:
        ReadingError: if it cannot be read, is not in NumPy's format, or is shorter than it claims.
    """
    with opened(path) as file, _numpy("an array"):
        bytes_of_data = _claimed(file, size_of(file))
        file.seek(0)
        shape, is_fortran, dtype = _read_header(file)
        # A file without data cannot be mapped.
        if not bytes_of_data:
            return np.empty(shape, dtype)
        order = "F" if is_fortran else "C"
        return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape, order))


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays in a `.npz` file, by name.

    Raises:
        ReadingError: if it cannot be read, or is not in NumPy's format.
    """
    with opened_npz(path) as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


@contextmanager
def opened_npz(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A `.npz` file, open for reading, whose arrays have the data that their headers claim.

    Raises:
        ReadingError: if it cannot be opened, or is not in NumPy's format; also in place of
            exceptions of NumPy while it is read.
    """
    with opened(path) as file, _numpy("an archive"):
        with ZipFile(file) as archive:
            members = archive.infolist()
            check_size(sum(_claimed_member(archive, member) for member in members), memory())
        file.seek(0)
        yield file


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is in Fortran's order, and the dtype of an array in NumPy's format.

    NumPy parses headers as Python, which some versions of CPython 3.11 and 3.12 do not do in two
    threads at a time: it ends in a SystemError. Headers as NumPy writes them are matched here.

    Raises:
        ValueError: if it is not in NumPy's format.
    """
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError("unknown version of NumPy's format")
    prefix = stream.read(2 * version[0])
    text = stream.read(min(int.from_bytes(prefix, "little"), _LARGEST_HEADER))
    match = _NPY_HEADER.fullmatch(text)
    if match is None:
        return read(BytesIO(prefix + text))
    shape = tuple(map(int, match[3].replace(b" ", b"").split(b",") if match[3] else []))
    return shape, match[2] == b"True", np.dtype(match[1].decode())


def _claimed_member(archive: ZipFile, member: ZipInfo) -> int:
    """The size in bytes of the array in a member of an archive.

    Raises:
        ValueError: if it is not in NumPy's format, or the member cannot hold so much data.
    """
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is compressed by an unknown method")
    if member.file_size > _LARGEST_RATIO * (member.compress_size + 1):
        raise ValueError(f"{member.filename} has less data than it claims")
    with archive.open(member) as stream:
        return _claimed(stream, member.file_size)


def _claimed(stream: IO[bytes], size: int) -> int:
    """The size in bytes of the array in a stream of `size` bytes, from its beginning.

    Raises:
        ValueError: if it is not in NumPy's format, or the stream has more or less data.
    """
    shape, _, dtype = _read_header(stream)
    data = size - stream.tell()
    if dtype.kind not in "biufcSUV" or not dtype.itemsize or any(n < 0 for n in shape):
        raise ValueError("the array has no numbers in it")
    if math.prod(shape) * dtype.itemsize != data:
        raise ValueError("the array has less data than it claims")
    return data
