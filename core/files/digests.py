"""SHA-256 of arrays and other memory, on several threads where it takes long."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Buffer: TypeAlias = bytes | memoryview
_LARGE = 1 << 22
"""Bytes from which starting threads pays off."""


def digests(buffers: Sequence[Buffer]) -> list[str]:
    """The SHA-256 of each of these, in hexadecimal."""
    threads = min(len(buffers), os.cpu_count() or 1, 4)
    if threads < 2 or sum(map(len, buffers)) < _LARGE:
        return list(map(_digest, buffers))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        # The largest one first: otherwise it could end long after the others.
        order = sorted(range(len(buffers)), key=lambda n: -len(buffers[n]))
        found = dict(zip(order, pool.map(_digest, [buffers[n] for n in order]), strict=True))
    return [found[number] for number in range(len(buffers))]


def bytes_of(array: np.ndarray) -> memoryview:
    """The elements of an array, in the order of its indices; a copy if they lie otherwise."""
    if not array.size:
        return memoryview(b"")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _digest(buffer: Buffer) -> str:
    return hashlib.sha256(buffer).hexdigest()
