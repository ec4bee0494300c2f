"""Rows on a device: softmax, norms and reductions by a block of threads for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import cases, floats

DEVICE = "cuda:sm_90,emulated"
TOLERANCE = 5e-6
"""Sums of up to 1500 numbers of size 1 in other orders, relative to results of size 1."""

OPERATORS: dict[str, Callable[[sw.Builder, Any], Any]] = {
    "softmax": lambda b, x: b.softmax(x),
    "sum": lambda b, x: b.reduce(x, "sum", axes=[-1], keepdims=False) / 100.0,
    "max": lambda b, x: b.reduce(x, "max", axes=[-1], keepdims=False),
}


@pytest.mark.parametrize("name", ["softmax", "sum", "max"])
@pytest.mark.parametrize("shape", [(2, 32), (5, 70), (2, 3, 33), (2, 1500), (40, 20)])
def test_rows(name: str, shape: tuple[int, ...], all_tests: bool) -> None:
    b = sw.Builder("main")
    b.output(OPERATORS[name](b, b.input("x", shape, "f32")), name="y")
    module, x = b.module(), floats(*shape)
    exe, wanted = sw.compile(module, target=DEVICE), module.run_reference(x)
    for stage in ("scheduled", "loops", "ptx") if all_tests or shape == (5, 70) else ("ptx",):
        found = exe.run_at(stage, x)
        np.testing.assert_allclose(found, wanted, TOLERANCE, TOLERANCE, err_msg=stage)
    exe(x)
    (launch,) = exe.launches
    assert ("_block" in launch.kernel) == (shape[-1] >= 32)
    if shape[-1] >= 32:
        assert launch.blocks == np.prod(shape[:-1])
        assert launch.total("conflicts") == 0
        # A warp takes five steps, and then all of it the result; warps join in shared memory.
        warps, sums = launch.threads // 32, 2 if name == "softmax" else 1
        assert launch.mix["shuffle"] == launch.blocks * warps * sums * (6 if warps == 1 else 5)
        assert ("barrier" in launch.mix) == (warps > 1 or name == "softmax")


def test_a_norm_of_any_number_of_rows() -> None:
    b = sw.Builder("main")
    b.output(b.layer_norm(b.input("x", (None, 70), "f32"), floats(70), floats(70)), name="y")
    module = b.module()
    exe = sw.compile(module, target=DEVICE)
    for rows in (0, 1, 6):
        x = floats(rows, 70)
        np.testing.assert_allclose(exe(x), module.run_reference(x), TOLERANCE, TOLERANCE)


def test_rows_are_read_in_whole_sectors() -> None:
    """A row of 256 floats: neighbours in a warp read neighbours, in each of the passes over it."""
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", (4, 256), "f32")), name="y")
    exe = sw.compile(b.module(), target=DEVICE)
    exe(floats(4, 256))
    assert exe.launches[0].coalescing == 1
    assert exe.launches[0].total("sectors") == 3 * 4 * 256 * 4 // 32


def test_not_a_number_in_a_row() -> None:
    b = sw.Builder("main")
    b.output(b.reduce(b.input("x", (3, 40), "f32"), "max", axes=[1], keepdims=False), name="y")
    module, x = b.module(), floats(3, 40)
    x[1, 33] = np.nan
    np.testing.assert_array_equal(sw.compile(module, target=DEVICE)(x), module.run_reference(x))


@pytest.mark.parametrize(
    "sizes", cases([(33, 40, 8), (1, 33, 5), (70, 9, 4)], [(1, 33, 5), (70, 9, 4)]), ids=str
)
def test_attention_in_shared_memory(sizes: tuple[int, int, int]) -> None:
    """A tile of queries is a block, and its threads are along each of its nests."""
    queries, keys, width = sizes
    b = sw.Builder("main")
    shapes = [(1, 2, queries, width), (1, 2, keys, width), (1, 2, keys, width)]
    given = [b.input(f"x{n}", shape, "f32") for n, shape in enumerate(shapes)]
    b.output(b.attention(*given), name="y")
    module, inputs = b.module(), [floats(*shape) for shape in shapes]
    exe, wanted = sw.compile(module, target=DEVICE), module.run_reference(*inputs)
    for stage in ("scheduled", "loops", "ptx"):
        found = exe.run_at(stage, *inputs)
        np.testing.assert_allclose(found, wanted, TOLERANCE, TOLERANCE, err_msg=stage)
    exe(*inputs)
    (launch,) = exe.launches
    assert launch.shared_bytes > 0
    assert ".local" not in exe.ir("ptx")
    # A warp may span rows.
    assert launch.total("conflicts") <= launch.total("wavefronts") // 6
