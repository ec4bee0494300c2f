"""Products on a device: tiles of blocks, panels in shared memory, and budgets of what it counts."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.ptx.counters import Emulation

from ..harness import cases, floats

DEVICE = "cuda:sm_90,emulated"
TOLERANCE = 2e-5
"""Sums of up to 70 products of numbers of size 1: one rounding for each, in another order."""


def layer(rows: int | None, columns: int, inner: int) -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (rows, inner), "f32")
    b.output(b.relu(b.dense(x, floats(columns, inner), bias=floats(columns))), name="y")
    return b.module()


def run(module: sw.Module, *inputs: np.ndarray) -> sw.Executable:
    exe = sw.compile(module, target=DEVICE)
    wanted = module.run_reference(*inputs)
    np.testing.assert_allclose(exe(*inputs), wanted, rtol=TOLERANCE, atol=TOLERANCE)
    return exe


def in_blocks(exe: sw.Executable) -> list[Emulation]:
    """The launches of blocks that the schedule has made."""
    return [launch for launch in exe.launches if "_block" in launch.kernel]


SIZES = [(32, 32, 8), (33, 65, 9), (70, 37, 19), (64, 128, 1), (31, 64, 16), (40, 40, 70)]


@pytest.mark.parametrize("sizes", cases(SIZES, SIZES[:-1]), ids=str)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    """Rows, columns and sums that fill no tile are threads of other launches, or in the thread."""
    rows, columns, inner = sizes
    exe = run(layer(rows, columns, inner), floats(rows, inner))
    assert bool(in_blocks(exe)) == (min(rows, columns) >= 32 and inner >= 8)


def test_any_number_of_rows() -> None:
    module = layer(None, 40, 20)
    exe = sw.compile(module, target=DEVICE)
    for rows in (0, 1, 32, 75):
        x = floats(rows, 20)
        wanted = module.run_reference(x)
        np.testing.assert_allclose(exe(x), wanted, rtol=TOLERANCE, atol=TOLERANCE)
        assert [launch.blocks for launch in in_blocks(exe)] == [rows // 32][: rows // 32]


def test_batches_at_every_stage() -> None:
    b = sw.Builder("main")
    x, y = b.input("x", (2, 33, 9), "f32"), b.input("y", (2, 9, 33), "f32")
    b.output(b.matmul(x, y), name="z")
    module, inputs = b.module(), (floats(2, 33, 9), floats(2, 9, 33))
    exe, wanted = run(module, *inputs), module.run_reference(*inputs)
    assert [launch.blocks for launch in in_blocks(exe)] == [2]
    for stage in ("scheduled", "loops"):
        found = exe.run_at(stage, *inputs)
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=stage)


def test_the_host_computes_the_same() -> None:
    """Sums are in one order; without a device, a block is a tile."""
    module, x = layer(64, 64, 24), floats(64, 24)
    exe = run(module, x)
    (made,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert "a tile of 32 x 32 for each block, of 4 x 4 for each thread" in str(made)
    host = sw.compile(module, schedule=f"@fused_dense_relu: {made.what}")
    np.testing.assert_array_equal(host(x), exe(x))


@pytest.mark.parametrize(
    ("size", "inner", "edge", "own", "share"),
    [
        (64, 64, 32, 4, 0.91),
        (128, 64, 64, 4, 0.9),
        # Its tile is also that of `test_columns_that_are_neighbours`.
        pytest.param(256, 32, 128, 8, 0.92, marks=pytest.mark.slow),
    ],
)
def test_budgets(size: int, inner: int, edge: int, own: int, share: float) -> None:
    """What the inner loop may cost: no bank conflict, whole sectors, and mostly products."""
    exe = run(layer(size, size, inner), floats(size, inner))
    (launch,) = exe.launches
    assert launch.threads == (edge // own) ** 2
    assert launch.blocks == (size // edge) ** 2
    products = size * size * inner // 32
    assert launch.mix["fma"] == products
    loads = [row for row in launch.lines if row.group == "load shared"]
    assert sum(row.conflicts for row in loads) == 0
    assert sum(row.warps for row in loads) <= products * 2 // own // 4, "16 bytes each"
    arithmetic = ("fma", "float", "integer", "conversion")
    assert products >= share * sum(launch.mix[kind] for kind in arithmetic)
    # 16 bytes of each access, in whole sectors.
    copies = [row for row in launch.lines if row.text.startswith("cp.async.cg")]
    assert sum(row.threads for row in copies) == launch.blocks * 2 * edge * inner // 4
    assert sum(row.sectors for row in copies) * 32 == sum(row.bytes for row in copies)
    # Threads wait for each other once for each panel.
    waits = [row for row in launch.lines if row.text.startswith("bar.sync")]
    assert sum(row.warps for row in waits) == launch.blocks * launch.threads // 32 * inner // 8
    # Each block reads its rows and columns once.
    reads = sum(row.bytes for row in launch.lines if row.group in ("copy", "load global"))
    assert reads <= launch.blocks * (2 * edge * inner + 2 * edge * own) * 4
    assert launch.total("diverged") == 0


@pytest.mark.parametrize("panels", cases([1, 2, 3, 4], [1, 2]))
def test_panels_are_copied_ahead(panels: int) -> None:
    """On a device with asynchronous copies, if there are two; sums have one order."""
    module, x = layer(32, 32, 8 * panels), floats(32, 8 * panels)
    exe = run(module, x)
    assert ("cp.async" in exe.ir("ptx")) == (panels > 1)
    older = sw.compile(module, target="cuda:sm_75,emulated")
    np.testing.assert_array_equal(exe(x), older(x))
    assert "cp.async" not in older.ir("ptx")
    for stage in ("scheduled", "loops") if panels in (2, 4) else ():
        np.testing.assert_array_equal(exe.run_at(stage, x), exe(x), err_msg=stage)


def test_what_is_not_waited_for_is_not_read() -> None:
    """An asynchronous copy is complete where its thread has waited, before the barrier."""
    exe, x = sw.compile(layer(32, 32, 24), target=DEVICE), floats(32, 24)
    wait, text, place = "cp.async.wait_all;", exe.ir("ptx"), -1
    arrays = [floats(32), x, floats(32, 24), np.zeros((32, 32), np.float32)]
    assert text.count(wait) == 3
    for _ in range(3):
        place = text.index(wait, place + 1)
        wrong = text[:place] + text[place + len(wait) :]
        with pytest.raises(sw.EmulationError, match="an asynchronous copy to the shared memory"):
            sw.emulate(wrong, [1, *arrays], grid=1, block=64)


@pytest.mark.parametrize(("size", "own", "terms"), [(64, 4, 4), (256, 8, 2)])
def test_columns_that_are_neighbours(size: int, own: int, terms: int) -> None:
    """Those of the second operand of `matmul`, of which a thread has one vector, or two."""
    b = sw.Builder("main")
    x, y = b.input("x", (size, 16), "f32"), b.input("y", (16, size), "f32")
    b.output(b.matmul(x, y), name="z")
    exe = run(b.module(), floats(size, 16), floats(16, size))
    (launch,) = exe.launches
    written = [row for row in launch.lines if row.group == "store global"]
    assert len(written) == own * own // 4
    assert sum(row.sectors for row in written) * 32 == size * size * 4
    loads = [row for row in launch.lines if row.group == "load shared"]
    assert sum(row.conflicts for row in loads) == 0
    products = size * size * 16 // 32
    assert launch.mix["fma"] == products
    # Vectors of 16 bytes of columns, and those of the terms of a part of the panel of rows.
    assert sum(row.warps for row in loads) == products // own // 4 + products // own // terms


def test_columns_of_eight_bytes() -> None:
    """Two make a vector of 16 bytes, and a thread has two of these, so no banks are in conflict."""
    b = sw.Builder("main")
    x, y = b.input("x", (64, 8), "f64"), b.input("y", (8, 64), "f64")
    b.output(b.matmul(x, y), name="z")
    exe = run(b.module(), *(floats(*shape).astype(np.float64) for shape in ((64, 8), (8, 64))))
    (launch,) = exe.launches
    assert "ld.shared.v2.b64" in exe.ir("ptx")
    assert sum(row.conflicts for row in launch.lines if row.group == "load shared") == 0


@pytest.mark.slow
def test_a_missing_barrier_of_a_product_is_a_race() -> None:
    """Each of those that the conversion derives."""
    exe, x = sw.compile(layer(32, 32, 24), target=DEVICE), floats(32, 24)
    exe(x)
    text = exe.ir("loops")
    places = [found.start() for found in re.finditer(r"rt\.barrier\n", text)]
    assert len(places) == 3
    for place in places:
        wrong = text[:place] + text[place:].replace("rt.barrier\n", "", 1)
        broken = sw.compile(sw.from_mlir(wrong, weights=exe.weights("loops")), target=DEVICE)
        with pytest.raises(sw.EmulationError, match="race"):
            broken(x)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_conversion_that_forgets_a_barrier_is_found(
    forget_barrier: Callable[[int], None], missing: int
) -> None:
    """Interpreters need no barriers, so it shows where the emulator runs."""
    forget_barrier(missing)
    exe = sw.compile(layer(32, 32, 24), target=DEVICE)
    with pytest.raises(sw.EmulationError, match="race"):
        exe(floats(32, 24))
