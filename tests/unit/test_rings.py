"""Rings: arrays in which the parts of one host have their rows, each its own first."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError, StepwellError
from stepwell.distributed.engines import LocalEngine
from stepwell.distributed.storage import blocks
from stepwell.distributed.storage.blocks import PartBlock
from stepwell.distributed.storage.pages import populate
from stepwell.distributed.storage.rings import ring_rows

F32 = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("rows", "widths", "expected"),
    [(101, [20, 12], 1024), (1, [mmap.PAGESIZE], 1), (17, [256, 512], 32), (5, [], 5), (0, [4], 0)],
)
def test_rings_fill_pages(rows: int, widths: list[int], expected: int) -> None:
    assert mmap.PAGESIZE == 4096
    assert ring_rows(rows, widths) == expected
    assert all(expected * width % mmap.PAGESIZE == 0 for width in widths)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_each_part_has_its_rows_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool, kept: bool
) -> None:
    monkeypatch.setattr(blocks, "_maps", {})
    place = None if in_memory else str(tmp_path)
    ring = PartBlock.create_ring(place, "x", (1024, 3), F32, kept)
    for first, end in ((0, 400), (400, 1024)):
        own = ring.from_row(first).open_rows(slice(end - first), write=True)
        own[...] = np.arange(first, end)[:, None]
    for first in (0, 400, 1023):
        found = ring.from_row(first).open()
        assert found.shape == (1024, 3)
        assert np.array_equal(found[:, 1], np.roll(np.arange(1024), -first))
        assert found.flags.writeable == (in_memory or kept)
    if not in_memory and not kept:
        with pytest.raises(ValueError, match="read-only"):
            ring.open()[0] = 1


def test_rings_without_elements(tmp_path: Path) -> None:
    for place in (None, str(tmp_path)):
        ring = PartBlock.create_ring(place, f"x.{place is None}", (64, 0), F32)
        assert ring.from_row(63).open(write=True).shape == (64, 0)


def test_maps_end_with_their_arrays(tmp_path: Path) -> None:
    def count() -> int:
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    ring = PartBlock.create_ring(str(tmp_path), "x", (1024, 1), F32)
    array = ring.from_row(5).open()
    assert count() == 2
    del array
    assert count() == 0


def test_a_truncated_ring(tmp_path: Path) -> None:
    ring = PartBlock.create_ring(str(tmp_path), "x", (1024, 3), F32)
    os.truncate(ring.path, 4096)
    with pytest.raises(StepwellError, match="x: truncated, expected 12288 bytes, got 4096"):
        ring.open()
    ring.remove()
    with pytest.raises(blocks.BlockLostError, match="not there any more"):
        ring.open()


@pytest.mark.parametrize("in_memory", [False, True])
def test_no_room_for_a_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=r"cannot write .*x: No space left on device"):
        PartBlock.create_ring(None if in_memory else str(tmp_path), "x", (1024, 3), F32)
    assert not any(tmp_path.iterdir())


def test_pages_are_mapped_at_once(tmp_path: Path) -> None:
    """As far as the array goes."""
    ring = PartBlock.create_ring(str(tmp_path), "x", (64 * 1024, 1), F32)
    array = ring.open(write=True)

    def mapped() -> int:
        text = Path("/proc/self/smaps").read_text().split(str(tmp_path))[1]
        return int(text.split("Rss:")[1].split()[0])

    assert mapped() == 0
    populate(array[1024 : 9 * 1024 + 1])
    assert mapped() == 36


@pytest.mark.parametrize("processes", [False, True])
def test_systems_without_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: bool
) -> None:
    """As macOS: no files in memory without a name, and none that are allocated."""
    for name in ("memfd_create", "posix_fallocate"):
        monkeypatch.delattr(os, name, raising=False)
    ends, x = np.random.default_rng(0).integers(0, 9, (2, 30)), np.ones((9, 2), np.float32)
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e", indptr_dtype="i64"))
    b.output(b.spmm(a, b.relu(b.spmm(a, b.input("x", ("n", 2))))), name="y")
    partition = sw.partition(ends, 2, num_nodes=9, out=tmp_path / "parts")
    matrix = sw.partition(ends, 1, num_nodes=9)[0].to_csr()
    wanted = matrix @ (matrix @ x)
    with LocalEngine(2) as engine:
        engine.in_memory = not processes
        folder = tmp_path / "files"
        folder.mkdir()
        program = sw.distribute(b.module(), partition, engine, folder=folder, opt_level=0)
        np.testing.assert_allclose(program(x), wanted, rtol=1e-5)
        program.close()
    exe = sw.out_of_core(b.module(), partition, opt_level=0)
    exe(x, out=tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5)


def test_room_where_files_are_not_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with pytest.raises(InputError, match=r"cannot write .*x: No space left on device"):
        PartBlock.create_ring(str(tmp_path), "x", (1 << 50, 1), F32)
    assert not any(tmp_path.iterdir())
    PartBlock.create_ring(str(tmp_path), "x", (1024, 1), F32).open(write=True)[...] = 1
    assert (tmp_path / "x").stat().st_size == 4096
