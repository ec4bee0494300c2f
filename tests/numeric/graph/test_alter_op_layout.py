"""Channels in blocks: where layouts are made, and that programs mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Builder, Value

from ...harness import RNG, as_reference, cases, close, floats

PASSES = (
    "graph-alter-op-layout{target=x86-64-v4},graph-simplify,graph-fold-constant,canonicalize,dce"
)
Program = Callable[[Builder, Value], Value]
LARGER = [n // 2 for n in range(16)]


def conv(b: Builder, x: Value, filters: int, stride: int = 2, bias: bool = True) -> Value:
    """A convolution whose strides leave gaps without blocks, so that blocks always pay."""
    channels = x.shape[1]
    assert isinstance(channels, int)
    w = floats(filters, channels, 3, 3) / np.float32(3 * channels**0.5)
    return b.conv(x, w, *([floats(filters)] if bias else []), strides=[stride, stride])


def grouped(b: Builder, x: Value, filters: int, groups: int, bias: bool = True) -> Value:
    channels = x.shape[1]
    assert isinstance(channels, int)
    w = floats(filters, channels // groups, 3, 3) / np.float32(3 * (channels // groups) ** 0.5)
    return b.conv(x, w, *([floats(filters)] if bias else []), groups=groups)


def of_each(b: Builder, x: Value, window: int, stride: int = 1, bias: bool = True) -> Value:
    """A convolution of each channel by itself."""
    channels = x.shape[1]
    assert isinstance(channels, int)
    w = floats(channels, 1, window, window) / np.float32(window)
    given = [floats(channels)] if bias else []
    return b.conv(x, w, *given, strides=[stride, stride], groups=channels)


def around(b: Builder, x: Value) -> Value:
    return b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1])


def squeezed(b: Builder, x: Value) -> Value:
    """Channels weighed by a function of their means."""
    means = b.reduce(x, "mean", [2, 3], True)
    return x * b.sigmoid(b.conv(means, floats(32, 32, 1, 1)))


# Each with the numbers of transposes and of convolutions on blocks that are left.
BLOCKED: dict[str, tuple[Program, int, int]] = {
    "one": (lambda b, x: conv(b, x, 32), 2, 1),
    "without bias": (lambda b, x: conv(b, x, 48, bias=False), 2, 1),
    "a block that is no vector": (lambda b, x: conv(b, x, 20), 2, 1),
    "few filters": (lambda b, x: conv(b, x, 5), 2, 1),
    "two blocks": (lambda b, x: conv(b, conv(b, x, 64), 96), 2, 2),
    "activations": (
        lambda b, x: conv(b, b.clip(b.relu(conv(b, x, 32)), maximum=1.0), 32),
        2,
        2,
    ),
    "a scale and a shift of channels": (
        lambda b, x: conv(b, b.tanh(conv(b, x, 32) * floats(32, 1, 1)) + floats(1, 32, 1, 1), 8),
        2,
        2,
    ),
    "a row beside the channels": (lambda b, x: conv(b, conv(b, x, 32) * floats(8), 32), 2, 2),
    "a picture beside the channels": (
        lambda b, x: conv(b, b.where(b.less(conv(b, x, 32), floats(8, 8)), 0.0, 1.0), 32),
        2,
        2,
    ),
    "numbers": (lambda b, x: conv(b, conv(b, x, 32) * 2.0 + 1.0, 32), 2, 2),
    "pads and pools": (
        lambda b, x: conv(b, b.pool(around(b, conv(b, x, 32)), "max", [2, 3], [2, 1]), 32, 1),
        2,
        2,
    ),
    "a pool of rows": (lambda b, x: conv(b, b.pool(conv(b, x, 32), "mean", [2]), 32), 2, 2),
    "a residual": (
        lambda b, x: b.relu(conv(b, around(b, y := conv(b, x, 32)), 32, 1) + y),
        2,
        2,
    ),
    # The input is laid out for the sum and, padded, for the convolution.
    "a residual of the input": (
        lambda b, x: conv(b, b.relu(conv(b, around(b, conv(b, around(b, x), 6)), 6, 1)), 6),
        2,
        3,
    ),
    "branches": (
        lambda b, x: conv(b, b.concat([conv(b, x, 32), conv(b, x, 64)], axis=1), 32),
        2,
        3,
    ),
    "rows of branches": (
        lambda b, x: conv(b, b.concat([conv(b, x, 32), conv(b, x, 32)], axis=2), 32),
        2,
        3,
    ),
    "parts": (
        lambda b, x: b.concat(
            [
                conv(b, b.slice(y := conv(b, x, 96), [0, 0, 0, 0], [2, 64, 8, 8]), 32),
                conv(b, b.slice(y, [0, 64, 1, 1], [2, 96, 8, 8]), 32),
            ],
            axis=1,
        ),
        2,
        3,
    ),
    "a part of a block": (
        lambda b, x: conv(b, b.slice(conv(b, x, 64), [0, 16, 0, 0], [2, 48, 8, 8]), 32),
        4,
        2,
    ),
    "larger images": (
        lambda b, x: conv(
            b, b.gather(b.gather(conv(b, x, 32), LARGER, 2) * floats(16, 1), LARGER, 3), 32
        ),
        2,
        2,
    ),
    "parts of rows": (lambda b, x: b.gather(conv(b, x, 32), [[1, 2], [0, -1]], 3), 2, 1),
    "some channels": (lambda b, x: conv(b, b.gather(conv(b, x, 64), range(0, 64, 2), 1), 32), 4, 2),
    "other images": (lambda b, x: conv(b, b.gather(conv(b, x, 32), [1, 0, 1], 0), 32), 4, 2),
    "a head": (lambda b, x: b.reduce(conv(b, x, 64), "mean", [2, 3]), 1, 1),
    "a sum of rows": (lambda b, x: b.reduce(conv(b, x, 64), "sum", [2], True), 2, 1),
    "a sum of rows that goes": (lambda b, x: b.reduce(conv(b, x, 64), "sum", [2]), 2, 1),
    "a sum of channels": (lambda b, x: b.reduce(conv(b, x, 64), "sum", [1], True), 2, 1),
    "each channel by itself": (
        lambda b, x: conv(b, b.relu(of_each(b, around(b, conv(b, x, 40)), 3)), 32),
        2,
        3,
    ),
    "each channel with strides": (
        lambda b, x: conv(b, of_each(b, around(b, conv(b, x, 64)), 5, 2, bias=False), 24, 1),
        1,
        3,
    ),
    "each channel alone": (lambda b, x: of_each(b, x, 3, 2), 2, 1),
    "weighed channels": (lambda b, x: conv(b, squeezed(b, conv(b, x, 32)), 32), 2, 3),
    "other readers": (
        lambda b, x: (
            b.softmax(y := conv(b, x, 32), axis=1) * b.pad(conv(b, y, 32), [0] * 4, [0, 0, 5, 5])
        ),
        4,
        2,
    ),
    "softmax of channels": (lambda b, x: b.softmax(conv(b, x, 64), axis=1), 2, 1),
    # 96 channels have blocks of 48 because of the groups.
    "groups": (
        lambda b, x: grouped(b, grouped(b, conv(b, x, 96), 192, 2), 64, 4, bias=False),
        2,
        3,
    ),
    "points of groups": (
        lambda b, x: b.relu(
            b.conv(y := conv(b, x, 64), floats(64, 16, 1, 1), floats(64), groups=4) + y
        ),
        2,
        2,
    ),
}

KEPT: dict[str, Program] = {
    "small groups": lambda b, x: b.conv(x, floats(6, 3, 3, 3), strides=[2, 2], groups=2),
    "groups of one channel": lambda b, x: b.conv(x, floats(96, 1, 3, 3), groups=6),
    "groups of computed filters": lambda b, x: b.conv(
        b.concat([x] * 16, axis=1),
        b.slice(x, [0] * 4, [1, 1, 1, 1]) * floats(96, 48, 3, 3),
        groups=2,
    ),
    "computed filters": lambda b, x: b.conv(x, b.slice(x, [0] * 4, [2, 6, 3, 3]), strides=[2, 2]),
    "several filters for each channel": lambda b, x: b.conv(
        x, floats(12, 1, 3, 3), strides=[2, 2], groups=6
    ),
    "one filter": lambda b, x: conv(b, x, 1),
    "layouts that cost more": lambda b, x: b.conv(x, floats(7, 6, 1, 1)),
}


def program(
    build: Program, images: int | str = 2, channels: int = 6, dtype: str = "f32"
) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", (images, channels, 17, 17), dtype)), name="y")
    return b.module()


def count(module: sw.Module, name: str) -> int:
    return sum(op.name == f"graph.{name}" for op in module.main.walk())


@pytest.mark.parametrize("name", BLOCKED)
def test_blocked(name: str, assert_same: Callable[..., sw.Module]) -> None:
    build, transposes, convs = BLOCKED[name]
    after = assert_same(program(build), PASSES, floats(2, 6, 17, 17), tolerance=1e-5)
    assert count(after, "conv") == 0
    assert count(after, "blocked_conv") == convs
    assert count(after, "transpose") == transposes


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(KEPT[name])
    x = floats(2, 6, 17, 17)
    after = assert_same(module, "graph-alter-op-layout{target=x86-64-v4}", x, tolerance=0)
    assert count(after, "blocked_conv") == count(after, "transpose") == 0


# 53 channels have blocks of 1, which are parts of any groups.
def test_groups_of_one_channel_stay_beside_others(assert_same: Callable[..., sw.Module]) -> None:
    module = program(
        lambda b, x: conv(b, b.conv(x, floats(53, 1, 3, 3), groups=53), 32), channels=53
    )
    after = assert_same(module, PASSES, floats(2, 53, 17, 17), tolerance=1e-5)
    assert (count(after, "conv"), count(after, "blocked_conv")) == (1, 1)


COMPILED = [
    (name, target)
    for name in (
        *("a residual", "pads and pools", "branches", "weighed channels", "few filters"),
        *("groups", "points of groups", "each channel by itself", "larger images"),
    )
    for target in ("host", "x86-64-v2", "x86-64-v3")
]
OTHERS = [("pads and pools", "x86-64-v2"), ("branches", "x86-64-v3")]


@pytest.mark.parametrize(
    "case", cases(COMPILED, [c for c in COMPILED if "host" in c or c in OTHERS])
)
def test_compiled(case: tuple[str, str]) -> None:
    name, target = case
    module = program(BLOCKED[name][0])
    x = floats(2, 6, 17, 17)
    exe = as_reference(module, x, rtol=2e-5, threads=1, target=target)
    assert "blocked_conv" in exe.ir("optimized")


ANY_BATCH = ["a residual", "branches", "a head", "softmax of channels", "groups"]


@pytest.mark.parametrize("name", cases(ANY_BATCH, ["a head", "groups"]))
def test_any_batch(name: str) -> None:
    module = program(BLOCKED[name][0], images="n")
    exe = sw.compile(module, threads=1)
    assert "blocked_conv" in exe.ir("optimized")
    for images in (0, 1, 3):
        x = floats(images, 6, 17, 17)
        close(exe(x), module.run_reference(x), 2e-5)


CHANNELS = [(1, 16), (2, 7), (3, 24), (17, 2), (37, 50), (100, 37)]


@pytest.mark.parametrize("sizes", cases(CHANNELS, [(1, 16), (2, 7), (17, 2), (37, 50)]))
def test_any_channels(sizes: tuple[int, int]) -> None:
    channels, filters = sizes
    module = program(lambda b, x: conv(b, x, filters), images=1, channels=channels)
    assert "blocked_conv" in Compilation.of(Request(module, "x86-64-v4")).text("optimized")
    as_reference(module, floats(1, channels, 17, 17), rtol=2e-5, threads=1)


@pytest.mark.parametrize(
    ("machine", "channels", "block", "columns"),
    [
        ("x86-64-v4", 72, 24, 32),
        ("x86-64-v4", 120, 30, 32),
        # A vector of half the width takes half the time.
        ("znver4", 72, 24, 24),
        ("znver4", 120, 40, 40),
        ("znver4", 144, 48, 48),
    ],
)
def test_blocks_of_half_vectors(machine: str, channels: int, block: int, columns: int) -> None:
    compilation = Compilation.of(Request(program(lambda b, x: conv(b, x, channels)), machine))
    assert f"block = {block} " in compilation.text("optimized")
    assert re.search(rf"vector<\d+x{columns}xf32> add\)", compilation.text("scheduled"))


def test_double_precision(assert_same: Callable[..., sw.Module]) -> None:
    w = RNG.standard_normal((24, 6, 3, 3))
    module = program(lambda b, x: b.relu(b.conv(x, w, strides=[2, 2])), dtype="f64")
    x = RNG.standard_normal((2, 6, 17, 17))
    after = assert_same(module, PASSES, x, tolerance=1e-14)
    assert "block = 24" in str(after)
    as_reference(module, x, rtol=1e-13, threads=1)


def test_sequences_and_volumes(assert_same: Callable[..., sw.Module]) -> None:
    for sizes in ((41,), (9, 11, 9)):
        w = floats(32, 4, *[3] * len(sizes))
        b = sw.Builder()
        x = b.input("x", (2, 4, *sizes))
        b.output(b.relu(b.conv(x, w, strides=[2] * len(sizes))))
        after = assert_same(b.module(), PASSES, floats(2, 4, *sizes), tolerance=1e-5)
        assert count(after, "blocked_conv") == 1
        as_reference(b.module(), floats(2, 4, *sizes), rtol=2e-5, atol=5e-5, threads=1)


def test_it_says_what_it_decided_and_at_which_cost(transformed: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (1, 8, 64, 64))
    b.output(b.conv(x, floats(32, 8, 3, 3), strides=[2, 2], name="stem"))
    b.output(b.conv(x, floats(8, 8, 1, 1), name="points"))
    _, ctx = transformed(b.module(), "graph-alter-op-layout{target=x86-64-v4}")
    told = [str(decision) for decision in ctx.decisions]
    assert told[0].startswith(
        'node "stem": channels in blocks of 32, '
        "because a vector then holds channels of one position"
    )
    assert told[1].startswith(
        'node "points": channels are not blocked, because layout changes would cost more [about '
    )
    assert [decision.kind for decision in ctx.decisions[:2]] == ["passed", "missed"]


def test_it_says_what_filters_cost_that_are_not_constant(transformed: Callable) -> None:
    b = sw.Builder()
    x, w = b.input("x", (1, 8, 64, 64)), b.input("w", (32, 8, 3, 3))
    b.output(b.conv(x, w, strides=[2, 2], name="stem"))
    _, ctx = transformed(b.module(), "graph-alter-op-layout{target=x86-64-v4}")
    (told,) = map(str, ctx.decisions)
    assert told.startswith(
        'node "stem": channels are not blocked, because its filters are not constant, so they '
        "cannot be packed in advance [blocks would save about "
    )


@pytest.mark.parametrize("rows", [64, 3, "n"])
@pytest.mark.parametrize("bias", [True, False])
def test_computed_weights(rows: int | str, bias: bool, assert_same: Callable) -> None:
    b = sw.Builder()
    x, w = b.input("x", (rows, 8)), b.input("w", (5, 8))
    b.output(b.dense(x, w, *([floats(5)] if bias else [])))
    values = floats(3 if rows == "n" else int(rows), 8), floats(5, 8)
    after = assert_same(b.module(), PASSES, *values, tolerance=1e-6)
    assert count(after, "matmul") == (rows == 64)


def test_computed_weights_whose_number_the_bias_says() -> None:
    """The product would have another type without the bias: nothing is left of it."""
    b = sw.Builder("main")
    x, w = b.input("x", ("n", "n", "n", "n")), b.input("w", ("n", "n"))
    b.output(b.dense(b.tanh(x), b.tanh(w), b.input("bias", (5,))), name="y")
    as_reference(b.module(), floats(5, 5, 5, 5), floats(5, 5), floats(5))
