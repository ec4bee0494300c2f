"""Winograd's algorithm: the operators, where they are made, and how exact they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.ops.products.minimal_filtering import MOST, minimal_filtering
from stepwell.dialects.graph.ops.products.winograd import Bands, bands_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Builder, Value

from ..harness import RNG, as_reference, cases, close, floats

PAIRS = [(m, r) for m in range(1, MOST + 1) for r in range(1, MOST + 2 - m)]


@pytest.mark.parametrize(("m", "r"), PAIRS)
def test_minimal_filtering(m: int, r: int) -> None:
    by = minimal_filtering(m, r)
    assert np.array_equal(by.signal, np.rint(by.signal))
    signal, filter = RNG.standard_normal(m + r - 1), RNG.standard_normal(r)
    got = by.result @ ((by.filter @ filter) * (by.signal @ signal))
    np.testing.assert_allclose(got, np.correlate(signal, filter), atol=1e-13)


def expected(x: np.ndarray, w: np.ndarray, bias: Any, block: int) -> np.ndarray:
    """The relu of a convolution, in f64, of [N, C, H, W] and [M, C/groups, r, r]."""
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), w.shape[2:], (2, 3))
    groups = x.shape[1] // w.shape[1]
    parts = zip(np.split(windows, groups, 1), np.split(w.astype(np.float64), groups), strict=True)
    sums = [np.einsum("nchwij,mcij->nmhw", *part, optimize=True) for part in parts]
    found = np.concatenate(sums, axis=1)
    return blocked(np.maximum(found + bias, 0), block).astype(x.dtype)


def blocked(x: np.ndarray, block: int) -> np.ndarray:
    images, channels, *sizes = x.shape
    return np.moveaxis(x.reshape(images, channels // block, block, *sizes), 2, -1)


def program(
    x: tuple[int | str, ...], w: np.ndarray, tile: int, block: int, bias: np.ndarray | None = None
) -> sw.Module:
    b = sw.Builder()
    u = b.apply(graph.WinogradFilterOp, b.constant(w), tile=tile)
    given = {} if bias is None else {"bias": b.constant(bias)}
    image = b.input("x", x, "f64" if w.dtype == np.float64 else "f32")
    b.output(b.relu(b.apply(graph.WinogradConvOp, image, u, tile=tile, block=block, **given)))
    return b.module()


# Channels and their blocks, filters and theirs, sizes of the image, the window, the tile.
SHAPES = [
    (2, 1, 4, 2, (6, 4), 3, 2),
    (32, 16, 32, 32, (10, 14), 3, 4),
    (24, 8, 20, 10, (9, 7), 3, 4),
    (7, 7, 5, 5, (9, 8), 3, 2),
    (8, 8, 16, 16, (11, 12), 5, 2),
    (8, 8, 16, 16, (5, 3), 3, 4),
    (4, 4, 8, 8, (8, 8), 1, 4),
    (8, 8, 128, 32, (8, 8), 3, 4),
    (16, 16, 256, 32, (18, 18), 3, 4),
    (96, 32, 96, 32, (30, 100), 3, 4),
]


OPERATORS = list(itertools.product(SHAPES, (1, 2, 3)))
QUICK = list(zip([*SHAPES[:6], SHAPES[7]], (1, 2, 3, 1, 2, 3, 2), strict=True))
"""Each number of groups; the last one computes several parts of the filters of each group."""


@pytest.mark.parametrize("case", cases(OPERATORS, QUICK))
def test_operator(case: tuple[tuple, int]) -> None:
    shape, groups = case
    channels, own, filters, block, sizes, window, tile = shape
    w = floats(groups * filters, channels, window, window)
    channels, filters = groups * channels, groups * filters
    x = floats(2, channels, *sizes)
    bias = floats(filters)
    module = program((2, channels // own, *sizes, own), w, tile, block, bias)
    want = expected(x, w, bias[:, None, None], block)
    close(module.run_reference(blocked(x, own)), want, 2e-5, scaled=True)
    close(sw.compile(module, threads=2)(blocked(x, own)), want, 2e-5, scaled=True)


def test_double_precision() -> None:
    x, w = RNG.standard_normal((1, 6, 12, 12)), RNG.standard_normal((8, 6, 3, 3))
    module = program((1, 1, 12, 12, 6), w, 4, 8)
    want = expected(x, w, 0, 8)
    close(module.run_reference(blocked(x, 6)), want, 1e-13, scaled=True)
    close(sw.compile(module, threads=1)(blocked(x, 6)), want, 1e-13, scaled=True)


def test_any_batch() -> None:
    w = floats(16, 8, 3, 3)
    module = program(("n", 1, 9, 9, 8), w, 4, 16)
    exe = sw.compile(module, threads=2)
    for images in (0, 1, 3):
        x = floats(images, 8, 9, 9)
        close(exe(blocked(x, 8)), expected(x, w, 0, 16), 2e-5, scaled=True)


def test_computed_filters() -> None:
    b = sw.Builder()
    w = b.input("w", (4, 2, 3, 3))
    b.output(b.apply(graph.WinogradFilterOp, w, tile=2))
    for given in (floats(4, 2, 3, 3), np.full((4, 2, 3, 3), np.nan, np.float32)):
        as_reference(b.module(), given, rtol=1e-6, threads=1)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tile": 5}, r"the tile does not fit u"),
        ({"tile": 0}, r"the tile does not fit u"),
        ({"block": 3}, r"the block does not divide the filters, expected a divisor of 4, got 3"),
        ({"x": (1, 2, 2, 4, 1)}, r"the window is larger than axis 2, expected at most 2, got 3"),
        ({"x": (1, 3, 6, 4, 1)}, r"channels of x do not fall into groups of those of u"),
        ({"x": (1, 1, 6, 4, 1)}, r"of those of u, expected a multiple of 2, got 1"),
        ({"x": (1, 6, 6, 4, 1)}, r"groups do not divide the filters, expected a multiple of 3"),
        ({"x": (1, 1, 6, 4, 4)}, r"the block of x does not divide the channels of a group"),
        ({"x": (1, 4, 6, 4, 1), "block": 4}, r"the block does not divide the filters of a group"),
        ({"x": (1, 2, "h", 4, 1)}, r"x has the wrong shape, expected 5 dimensions, whose sizes"),
        ({"x": (2, 6, 4, 1)}, r"x has the wrong shape, expected 5 dimensions, whose sizes"),
        ({"u": (15, 2, 4)}, r"the tile does not fit u"),
        ({"u": (49, 2, 4), "tile": 5}, r"the tile does not fit u, .* n <= 6"),
        ({"u": (16, 2)}, r"u has the wrong shape, expected 3 sizes of 1 or more"),
        ({"bias": (3,)}, r"length of bias differs from the filters of u"),
        ({"bias": (4, 1)}, r"bias is not a vector"),
    ],
)
def test_refused(given: dict, why: str) -> None:
    given = {"x": (1, 2, 6, 4, 1), "u": (16, 2, 4), "tile": 2, "block": 2} | given
    b = sw.Builder()
    shapes = {name: given.pop(name) for name in ("x", "u", "bias") if name in given}
    values = {name: b.input(name, shape) for name, shape in shapes.items()}
    with pytest.raises(sw.InputError, match=why):
        b.apply(graph.WinogradConvOp, **values, **given)


def test_refused_filters() -> None:
    b = sw.Builder()
    with pytest.raises(sw.InputError, match=r"the window is not square"):
        b.apply(graph.WinogradFilterOp, b.input("w", (4, 2, 3, 1)), tile=2)
    with pytest.raises(sw.InputError, match=r"no algorithm for the tile and the window"):
        b.apply(graph.WinogradFilterOp, b.input("u", (4, 2, 3, 3)), tile=5)


def test_bands() -> None:
    assert bands_of(56, 4, 4) == [Bands(0, 7, 8)]
    assert bands_of(28, 4, 4) == [Bands(0, 1, 28)]
    assert bands_of(35, 4, 3) == [Bands(0, 2, 12), Bands(24, 1, 11)]
    assert bands_of(7, 2, 1) == [Bands(0, 3, 2), Bands(6, 1, 1)]
    for rows in range(1, 40):
        for best in range(1, 9):
            bands = bands_of(rows, 4, best)
            assert sum(band.count * band.rows for band in bands) == rows
            assert [band.start for band in bands][1:] == [bands[0].count * bands[0].rows][
                : len(bands) - 1
            ]


# Where it is used.

Program = Callable[[Builder, Value], Value]


def conv(b: Builder, x: Value, filters: int, window: int = 3, **facts: object) -> Value:
    channels = x.shape[1]
    assert isinstance(channels, int)
    scale = np.float32(window * channels**0.5)
    return b.conv(x, floats(filters, channels, window, window) / scale, floats(filters), **facts)


def model(build: Program, shape: tuple[int | str, ...] = (1, 32, 16, 16)) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", shape)))
    return b.module()


def padded(b: Builder, x: Value) -> Value:
    return b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1])


USED: dict[str, Program] = {
    "one": lambda b, x: b.relu(conv(b, x, 64)),
    "a residual": lambda b, x: b.relu(conv(b, padded(b, y := b.relu(conv(b, x, 32))), 32) + y),
    "a larger window": lambda b, x: conv(b, x, 32, window=5),
    "groups": lambda b, x: b.relu(b.conv(conv(b, x, 64), floats(96, 32, 3, 3) / 17, groups=2)),
}
NOT_USED: dict[str, Program] = {
    "strides": lambda b, x: conv(b, x, 64, strides=[2, 2]),
    "dilations": lambda b, x: conv(b, x, 64, dilations=[2, 2]),
    "small groups": lambda b, x: b.conv(x, floats(64, 4, 3, 3), groups=8),
    "one place": lambda b, x: conv(b, x, 64, window=1),
    "few places": lambda b, x: conv(b, b.slice(x, [0, 0, 0, 0], [1, 32, 5, 5]), 64),
    "an order that shows": lambda b, x: b.arg_reduce(conv(b, x, 64), "max", 1),
    "computed filters": lambda b, x: b.conv(x, b.slice(x, [0] * 4, [1, 32, 3, 3])),
}


WAYS = list(itertools.product(USED, ("host", "x86-64-v3")))
QUICK_WAYS = [way for n, way in enumerate(WAYS) if n % 4 in (0, 3)]
"""Each program for one of the targets."""


@pytest.mark.parametrize("way", cases(WAYS, QUICK_WAYS), ids="-".join)
def test_used(way: tuple[str, str]) -> None:
    name, target = way
    module = model(USED[name])
    exe = as_reference(
        module, floats(1, 32, 16, 16), rtol=2e-5, scaled=True, threads=1, target=target
    )
    assert "winograd_conv" in exe.ir("optimized")
    assert "graph.winograd_filter" not in exe.ir("optimized")


def optimized(module: sw.Module, **options: Any) -> str:
    return Compilation.of(Request(module, threads=1, **options)).text("optimized")


@pytest.mark.parametrize("name", NOT_USED)
def test_not_used(name: str) -> None:
    assert "winograd" not in optimized(model(NOT_USED[name]))


def test_kept_roundings() -> None:
    module = model(USED["one"])
    assert "winograd" not in optimized(module, rounding="kept")


def test_its_option_is_the_switch() -> None:
    module, name = model(USED["one"]), "graph-winograd-conv2d"

    def with_tiles(largest: int) -> str:
        pipeline = sw.pipeline(threads=1).replace(name, f"{name}{{largest={largest}}}")
        return optimized(module, pipeline=pipeline)

    assert "tile = 4" in with_tiles(4)
    assert "tile = 2" in with_tiles(2)
    assert "winograd" not in with_tiles(1)
    with pytest.raises(sw.CompileError, match=r"no tile of this size, expected largest=1, 2 or 4"):
        with_tiles(3)
