"""Files past the page cache, memory that is used again, and rows that are written anywhere."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepwell.core.errors import InputError
from stepwell.core.files.reading import memory
from stepwell.distributed.storage.buffers import TileBuffers
from stepwell.distributed.storage.direct import BLOCK, DirectFile
from stepwell.distributed.storage.new_files import NewRows
from stepwell.distributed.storage.pages import memory_limit
from stepwell.distributed.storage.rows import MappedRows, gather, rows_of

from ..harness import RNG, floats

BYTES = RNG.integers(0, 256, 5 * BLOCK + 123, np.uint8)
RANGES = [(0, len(BYTES)), (17, 40), (BLOCK, 3 * BLOCK), (100, 2 * BLOCK + 1), (9, 9)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    BYTES.tofile(tmp_path / "bytes")
    return tmp_path / "bytes"


@pytest.fixture
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as threads:
        yield threads


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(("begin", "end"), RANGES)
def test_bytes_of_any_range(file: Path, begin: int, end: int, direct: bool) -> None:
    opened = DirectFile(file, write=True, direct=direct)
    for cached in (False, True):
        np.testing.assert_array_equal(opened.read(begin, end, cached=cached), BYTES[begin:end])
    # Aligned as the file is, and otherwise.
    held = np.zeros(len(BYTES) + 2 * BLOCK, np.uint8)
    for shift in (0, 1):
        first = (begin - held.ctypes.data) % BLOCK + shift
        new = held[first : first + end - begin]
        new[:] = BYTES[begin:end] + np.uint8(1 + shift)
        opened.write(begin, new)
        opened.flush()
        expected = BYTES.copy()
        expected[begin:end] = new
        np.testing.assert_array_equal(np.fromfile(file, np.uint8), expected)
        np.testing.assert_array_equal(opened.read(begin, end), new)


def test_files_that_end_before(file: Path) -> None:
    with pytest.raises(InputError, match=f"truncated, expected {len(BYTES) + 1} bytes, got"):
        DirectFile(file).read(BLOCK, len(BYTES) + 1)


def test_file_systems_with_other_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they refuse is read through the cache."""
    opened, original, refused = DirectFile(file), os.preadv, []

    def preadv(descriptor: int, buffers: Sequence[Any], place: int) -> int:
        if descriptor == opened._direct:
            refused.append(place)
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return original(descriptor, buffers, place)

    if opened._direct is None:
        pytest.skip("the file system reads through the cache only")
    monkeypatch.setattr(os, "preadv", preadv)
    for _ in range(2):
        np.testing.assert_array_equal(opened.read(5, 3 * BLOCK), BYTES[5 : 3 * BLOCK])
    assert refused == [0]


def test_buffers_are_used_again() -> None:
    buffers, f32 = TileBuffers(10 * BLOCK, 3), np.dtype(np.float32)
    buffers.begin(10 * BLOCK)
    first = buffers.take((BLOCK, 2), f32)
    second = buffers.take((3,), f32, place=128)
    assert second.ctypes.data % BLOCK == 128
    first[:], second[:] = 1, 2
    assert (first == 1).all()
    buffers.begin(10 * BLOCK)
    again = buffers.take((BLOCK,), f32)
    assert again.ctypes.data == first.ctypes.data
    assert (again == 1).all()
    # With less room what is behind it is given back to the system, which clears it.
    buffers.begin(BLOCK)
    buffers.begin(10 * BLOCK)
    assert not buffers.take((2 * BLOCK,), f32)[BLOCK // 4 :].any()


def test_systems_without_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", -1)
    assert TileBuffers(BLOCK, 1).take((4,), np.dtype(np.int64)).shape == (4,)


def test_files_that_were_removed_are_mapped(tmp_path: Path) -> None:
    x = floats(10, 4, dtype=float)
    np.save(tmp_path / "x.npy", x)
    rows = rows_of("x", tmp_path / "x.npy")
    assert isinstance(rows, MappedRows)
    (tmp_path / "x.npy").unlink()
    rows.use_direct_io()
    np.testing.assert_array_equal(gather(rows, np.arange(10)), x)


@pytest.mark.parametrize("direct", [True, False])
def test_rows_are_written_anywhere(tmp_path: Path, pool: Executor, direct: bool) -> None:
    """In ranges, and at places with gaps, which keep what they have."""
    x = floats(50_000, 24)
    new = NewRows(tmp_path / "x.npy", x.shape, x.dtype, direct)
    places = RNG.permutation(len(x))
    for some in (places[:20_000], places[20_000:]):
        new.scatter(x[some], some, pool)
    new.scatter(x[:0], places[:0], pool)
    new.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    new.write(1001, x[:30_000], pool)
    x[1001:31_001] = x[:30_000].copy()
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    rows = rows_of("x", tmp_path / "x.npy")
    assert isinstance(rows, MappedRows)
    if direct:
        rows.use_direct_io()
    sparse = np.sort(RNG.integers(0, len(x), 50))
    runs = np.concatenate([np.arange(0, 50_000, 2), np.arange(1, 50_000, 2)])
    for wanted in (places, sparse, runs, np.arange(7, 40_000), places[:0]):
        np.testing.assert_array_equal(gather(rows, wanted, None, pool), x[wanted])


def test_the_limit_of_memory() -> None:
    assert 0 < memory_limit() <= memory()
