"""Convolutions on a device: tiles of pixels and channels, windows and weights in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import floats

DEVICE = "cuda:sm_90,emulated"
TOLERANCE = 2e-5
"""Sums of up to 144 products of numbers of size 1, in another order."""


def convolution(x: tuple[int, ...], w: tuple[int, ...], **options: Any) -> sw.Module:
    b = sw.Builder("main")
    given = b.input("x", x, "f32")
    b.output(b.relu(b.conv(given, floats(*w), bias=floats(w[0]), **options)), name="y")
    return b.module()


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "two images": ((2, 3, 10, 18), (6, 3, 3, 3), {}),
    "steps": ((1, 2, 17, 33), (4, 2, 3, 3), {"strides": [2, 2]}),
    "dilated": ((1, 2, 12, 20), (4, 2, 3, 3), {"dilations": [2, 2]}),
    "a prime number of rows": ((1, 1, 19, 10), (4, 1, 3, 3), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    shape, weights, options = CASES[name]
    module, x = convolution(shape, weights, **options), floats(*shape)
    exe, wanted = sw.compile(module, target=DEVICE), module.run_reference(x)
    if name == "steps":
        np.testing.assert_allclose(exe.run_at("loops", x), wanted, TOLERANCE, TOLERANCE)
    np.testing.assert_allclose(exe(x), wanted, TOLERANCE, TOLERANCE)
    in_blocks = any("_block0" in launch.kernel for launch in exe.launches)
    assert in_blocks == (name != "a prime number of rows")


def test_budgets() -> None:
    """Pixels and weights are read for several products; each from memory once for a block."""
    module, x = convolution((1, 4, 18, 18), (16, 4, 3, 3)), floats(1, 4, 18, 18)
    exe = sw.compile(module, target=DEVICE)
    exe(x)
    (launch,) = exe.launches
    assert (launch.blocks, launch.threads) == (1, 128)
    products = 16 * 16 * 16 * 4 * 9 // 32
    assert launch.mix["fma"] == products
    arithmetic = ("fma", "float", "integer", "conversion")
    assert products >= 0.7 * sum(launch.mix[kind] for kind in arithmetic)
    assert launch.mix["load shared"] <= 0.45 * products
    reads = [row for row in launch.lines if row.group == "load global"]
    assert sum(row.bytes for row in reads) <= 1.1 * 4 * (4 * 18 * 18 + 16 * 4 * 9)
    assert ".local" not in exe.ir("ptx")
