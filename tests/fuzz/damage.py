"""Damage of files: bytes, members of an archive, or the header of a file of weights."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO

import numpy as np

Rng = np.random.Generator
Damage = Callable[[bytes, Rng], bytes]


def damaged(data: bytes, rng: Rng) -> bytes:
    """The bytes with some damage, more often of one kind than of several."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = DAMAGES[rng.integers(len(DAMAGES))](data, rng)
    return data


def _changed(data: bytes, rng: Rng) -> bytes:
    found = np.frombuffer(data, np.uint8).copy()
    places = rng.integers(0, max(1, len(found)), rng.integers(1, 5))
    if len(found):
        found[places] = rng.integers(0, 256, len(places))
    return found.tobytes()


def _flipped(data: bytes, rng: Rng) -> bytes:
    found = bytearray(data)
    if found:
        found[rng.integers(len(found))] ^= 1 << rng.integers(8)
    return bytes(found)


def _cut(data: bytes, rng: Rng) -> bytes:
    return data[: rng.integers(0, len(data) + 1)]


def _piece(data: bytes, rng: Rng) -> tuple[int, int]:
    start = int(rng.integers(0, len(data) + 1))
    return start, start + int(rng.integers(0, 64))


def _left_out(data: bytes, rng: Rng) -> bytes:
    start, stop = _piece(data, rng)
    return data[:start] + data[stop:]


def _doubled(data: bytes, rng: Rng) -> bytes:
    start, stop = _piece(data, rng)
    return data[:stop] + data[start:stop] * int(rng.integers(1, 4)) + data[stop:]


def _moved(data: bytes, rng: Rng) -> bytes:
    (start, stop), there = _piece(data, rng), int(rng.integers(0, len(data) + 1))
    return data[:there] + data[start:stop] + data[there:]


NUMBERS = [b"-1", b"0", b"2147483648", b"99999999999999999999", b"1e999", b"nan", b"4294967295"]


def _huge(data: bytes, rng: Rng) -> bytes:
    """One of the numbers of a text becomes another one, or four bytes do."""
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return _changed(data, rng)
    chosen = numbers[rng.integers(len(numbers))]
    number = NUMBERS[rng.integers(len(NUMBERS))]
    return data[: chosen.start()] + number + data[chosen.end() :]


def _word(data: bytes, rng: Rng) -> bytes:
    """One word stands in the place of another."""
    words = list(re.finditer(rb"[%@#!]?[A-Za-z_][\w.]*", data))
    if not words:
        return _changed(data, rng)
    old, new = words[rng.integers(len(words))], words[rng.integers(len(words))]
    return data[: old.start()] + new[0] + data[old.end() :]


def _nested(data: bytes, rng: Rng) -> bytes:
    there = int(rng.integers(0, len(data) + 1))
    bracket = [b"(", b"[", b"{", b"<"][rng.integers(4)]
    return data[:there] + bracket * int(10 ** rng.uniform(0, 5)) + data[there:]


DAMAGES: list[Damage] = [
    *(_changed, _flipped, _cut, _left_out, _doubled, _moved, _huge, _word, _word, _nested)
]


def damaged_member(data: bytes, rng: Rng) -> bytes:
    """An archive that is one, with other members."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    chosen, other = (int(n) for n in rng.integers(0, len(members), 2))
    name, content = members[chosen]
    match rng.integers(6):
        case 0:
            members.pop(chosen)
        case 1:
            members[chosen] = (members[other][0], content)
        case 2:
            members[chosen] = (name, members[other][1])
        case _:
            members[chosen] = (name, damaged(content, rng))
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in dict(members).items():
            archive.writestr(name, content)
    return file.getvalue()


def damaged_header(data: bytes, rng: Rng) -> bytes:
    """A file of safetensors whose header is as long as it says, and something else."""
    (length,) = struct.unpack_from("<Q", data)
    header = damaged(data[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + data[8 + length :]
