"""Convolutions of single places: filters of a group as rows, all places of an image as lanes."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import RNG, as_reference, cases, close, floats

# Channels, filters and groups; sizes of the image.
SHAPES = [
    (12, 20, 4, (7, 7)),
    (34, 34, 2, (14, 14)),
    (68, 34, 2, (3, 5)),
    (6, 10, 1, (7, 3)),
    (272, 272, 4, (7, 7)),
    (10, 30, 10, (5, 5)),
    (4, 6, 2, (1, 1)),
    (8, 8, 4, (2, 16)),
    (3, 9, 3, (11,)),
    (8, 6, 2, (3, 3, 3)),
]


def program(shape: tuple, images: int | str, dtype: str = "f32", given: bool = False) -> sw.Module:
    """A convolution, a residual and an activation; the weights are constants or given."""
    channels, filters, groups, sizes = shape
    b = sw.Builder()
    x = b.input("x", (images, channels, *sizes), dtype)
    r = b.input("r", (images, filters, *sizes), dtype)
    kind = np.float64 if dtype == "f64" else np.float32
    w = RNG.standard_normal((filters, channels // groups, *[1] * len(sizes))).astype(kind)
    bias = RNG.standard_normal(filters).astype(kind)
    weights = [w, bias]
    if given:
        weights = [b.input(name, a.shape, dtype) for name, a in (("w", w), ("bias", bias))]
    b.output(b.relu(b.conv(x, *weights, groups=groups) + r))
    return b.module()


def arrays(shape: tuple, images: int) -> list[np.ndarray]:
    channels, filters, _, sizes = shape
    return [floats(images, channels, *sizes), floats(images, filters, *sizes)]


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("shape", cases(SHAPES, SHAPES[:4]))
def test_shapes(shape: tuple, target: str) -> None:
    as_reference(program(shape, 2), *arrays(shape, 2), rtol=2e-5, scaled=True, target=target)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_any_batch(shape: tuple) -> None:
    module = program(shape, "n")
    exe = sw.compile(module, threads=2)
    for images in (0, 1, 3):
        xs = arrays(shape, images)
        close(exe(*xs), module.run_reference(*xs), 2e-5, scaled=True)


@pytest.mark.parametrize("rounding", ["unseen", "kept"])
def test_double_precision(rounding: str) -> None:
    xs = [x.astype(np.float64) for x in arrays(SHAPES[0], 1)]
    module = program(SHAPES[0], 1, "f64")
    as_reference(module, *xs, rtol=1e-13, scaled=True, threads=1, rounding=rounding)


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_given_weights(shape: tuple) -> None:
    channels, filters, groups, sizes = shape
    weights = floats(filters, channels // groups, *[1] * len(sizes)), floats(filters)
    module = program(shape, 1, given=True)
    as_reference(module, *arrays(shape, 1), *weights, rtol=2e-5, scaled=True, threads=1)


@pytest.mark.parametrize(("target", "columns"), [("x86-64-v4", 32), ("znver4", 49)])
def test_all_filters_of_a_group_are_rows(target: str, columns: int) -> None:
    kernels = Compilation.of(Request(program(SHAPES[4], 1), target)).text("scheduled")
    assert f"split(j, 68, tail=peel); fuse(l, m); split(l_m, {columns}, tail=mask)" in kernels
