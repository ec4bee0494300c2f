"""Graphs in the layout of the Open Graph Benchmark: a folder `raw` with one large graph.

Either `edge.csv.gz`, a line of source and target for each edge, and `num-node-list.csv.gz`; or
`data.npz` with `edge_index` and `num_nodes_list`.
"""

from __future__ import annotations

import gzip
import io
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy

from ..core.errors import InputError
from ..core.files.reading import ReadingError, opened
from .errors import damaged, error

Piece = tuple[np.ndarray, np.ndarray, None]
_DAMAGE = (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error, ReadingError)
_NPZ, _CSV, _COUNT = "data.npz", "edge.csv.gz", "num-node-list.csv.gz"


def is_ogb(path: Path) -> bool:
    """Whether a path is such a folder, or its `raw`."""
    return _raw(path) is not None


def read_ogb(path: Path, length: int) -> tuple[Callable[[], Iterator[Piece]], int]:
    """A function that reads the edges, `length` at a time, and the number of nodes.

    Raises:
        InputError: if a file cannot be read, or there are several graphs.
    """
    raw = _raw(path)
    assert raw is not None
    if (raw / _NPZ).exists():
        count = _count(raw / _NPZ, _counts_of_npz)
        return lambda: _checked(raw / _NPZ, length, _read_npz), count
    count = _count(raw / _COUNT, _counts_of_csv)
    return lambda: _checked(raw / _CSV, length, _read_csv), count


def _raw(path: Path) -> Path | None:
    for folder in (path / "raw", path):
        if any((folder / name).exists() for name in (_NPZ, _CSV)):
            return folder
    return None


def _count(path: Path, read: Callable[[Path], np.ndarray]) -> int:
    try:
        counts = read(path)
    except _DAMAGE as reason:
        raise damaged(path, reason) from reason
    if counts.size != 1:
        raise error(f"{path} has several graphs", 1, counts.size)
    return int(counts.item())


def _checked(
    path: Path, length: int, read: Callable[[Path, int], Iterator[Piece]]
) -> Iterator[Piece]:
    try:
        yield from read(path, length)
    except InputError:
        raise
    except _DAMAGE as reason:
        raise damaged(path, str(reason).partition("\n")[0]) from reason


def _counts_of_csv(path: Path) -> np.ndarray:
    with opened(path) as file, gzip.open(file, "rt") as text:
        return np.loadtxt(text, np.int64, delimiter=",", ndmin=1)


def _read_csv(path: Path, length: int) -> Iterator[Piece]:
    with opened(path) as file, gzip.open(file, "rt") as text, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the last piece may have no line
        while True:
            piece = np.loadtxt(text, np.int64, delimiter=",", max_rows=length, ndmin=2)
            if not piece.size:
                return
            if piece.shape[1] != 2:
                raise ValueError(f"expected two numbers in a line, got {piece.shape[1]}")
            yield piece[:, 0], piece[:, 1], None


def _counts_of_npz(path: Path) -> np.ndarray:
    with opened(path) as file, ZipFile(file) as archive:
        data = archive.read("num_nodes_list.npy")
    return npy.read_array(io.BytesIO(data), allow_pickle=False)


def _read_npz(path: Path, length: int) -> Iterator[Piece]:
    """Both rows of `edge_index`, each by a stream of its own: the archive may be compressed."""
    with opened(path) as file, ZipFile(file) as archive:
        streams = [archive.open("edge_index.npy") for _ in range(2)]
        shapes = [_header(stream) for stream in streams]
        (two, count), dtype = shapes[0]
        if two != 2:
            raise ValueError(f"edge_index has shape {shapes[0][0]}, expected (2, E)")
        left = count * dtype.itemsize
        while left:
            left -= len(_exactly(streams[1], min(left, 1 << 24)))
        for first in range(0, count, length):
            wanted = min(length, count - first) * dtype.itemsize
            sources, targets = (np.frombuffer(_exactly(s, wanted), dtype) for s in streams)
            yield sources, targets, None


def _header(stream: IO[bytes]) -> tuple[tuple[int, int], np.dtype]:
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    if len(shape) != 2 or by_columns or dtype.kind not in "iu":
        raise ValueError(f"edge_index is not an array of integers, shape (2, E), got {shape}")
    return (shape[0], shape[1]), dtype


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the file ends too early")
    return data
