"""Convolutions of one operand: which are combined, and that they mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

from ...harness import floats

PASSES = "graph-combine-parallel-conv2d,graph-simplify,graph-fold-constant,canonicalize"


def convs(b: Builder, x: Value, *filters: int, bias: bool = True, window: int = 1) -> list[Value]:
    weights = [floats(n, 9, window, window) for n in filters]
    return [b.conv(x, w, *([floats(len(w))] if bias else [])) for w in weights]


COMBINED: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "put together again": (
        lambda b, x: b.concat(convs(b, x, 2, 1, 4), axis=1),
        ["conv"],
    ),
    "with epilogues": (
        lambda b, x: b.concat(
            [b.relu(y * floats(2, 1, 1) + floats(2, 1, 1)) for y in convs(b, x, 2, 2)], axis=1
        ),
        ["conv", "mul", "add", "relu"],
    ),
    "with strides and dilations": (
        lambda b, x: b.concat(
            [b.conv(x, floats(n, 9, 2, 3), None, [2, 1], [1, 2]) for n in (3, 1)], axis=1
        ),
        ["conv"],
    ),
    "read by pads": (
        lambda b, x: b.concat(
            [
                b.conv(b.pad(b.relu(y), [0, 0, 1, 1], [0, 0, 1, 1]), floats(2, 3, 3, 3))
                for y in convs(b, x, 3, 3)
            ],
            axis=1,
        ),
        ["conv", "relu", "slice", "pad", "conv", "slice", "pad", "conv", "concat"],
    ),
    "other functions after": (
        lambda b, x: b.tanh((p := convs(b, x, 3, 3, bias=False))[0]) * b.relu(p[1]),
        ["conv", "slice", "slice", "tanh", "relu", "mul"],
    ),
    "other slopes after": (
        lambda b, x: b.mul(
            *(b.leaky_relu(y, a) for y, a in zip(convs(b, x, 3, 3), (0.1, 0.2), strict=True))
        ),
        ["conv", "slice", "slice", "leaky_relu", "leaky_relu", "mul"],
    ),
    "a row beside the channels": (
        lambda b, x: b.mul(*(y * floats(5) for y in convs(b, x, 3, 3))),
        ["conv", "slice", "mul", "slice", "mul", "mul"],
    ),
}

KEPT: dict[str, Callable[[Builder, Value], Value]] = {
    "other windows": lambda b, x: (
        b.pad(b.conv(x, floats(3, 9, 1, 2)), [0] * 4, [0, 0, 0, 1]) * b.conv(x, floats(3, 9, 1, 1))
    ),
    "other strides": lambda b, x: (
        b.conv(x, floats(3, 9, 1, 1), None, [3, 3]) * b.conv(x, floats(3, 9, 1, 1), None, [4, 4])
    ),
    "other dilations": lambda b, x: (
        b.conv(x, floats(3, 9, 2, 1), None, None, [2, 1])
        * b.slice(b.conv(x, floats(3, 9, 2, 1)), [0] * 4, [3, 3, 3, 5])
    ),
    "groups": lambda b, x: (
        b.conv(x, floats(3, 3, 1, 1), groups=3) * b.conv(x, floats(3, 3, 1, 1), groups=3)
    ),
    "one without bias": lambda b, x: b.mul(*convs(b, x, 3), *convs(b, x, 3, bias=False)),
    "different operands": lambda b, x: b.mul(*convs(b, x, 3), *convs(b, b.relu(x), 3)),
    "computed filters": lambda b, x: (
        b.conv(x, b.slice(x, [0] * 4, [1, 9, 1, 1])) * b.conv(x, floats(1, 9, 1, 1))
    ),
    "one after the other": lambda b, x: b.conv(b.conv(x, floats(9, 9, 1, 1)), floats(9, 9, 1, 1)),
    "copies that cost more": lambda b, x: (
        b.conv(convs(b, x, 9)[0], floats(1, 9, 1, 1))
        * b.conv(convs(b, x, 9)[0], floats(1, 9, 1, 1))
    ),
}


def program(build: Callable[[Builder, Value], Value], images: int | str) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", (images, 9, 5, 5))))
    return b.module()


def operators(module: sw.Module) -> list[str]:
    names = [op.name.removeprefix("graph.") for op in module.main.body.block.ops]
    return [name for name in names if name not in ("constant", "func.return")]


@pytest.mark.parametrize("images", [3, 1, "n"])
@pytest.mark.parametrize("name", COMBINED)
def test_combined(name: str, images: int | str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = COMBINED[name]
    x = floats(3 if images == "n" else int(images), 9, 5, 5)
    # The wide product may sum in another order.
    after = assert_same(program(build, images), PASSES, x, tolerance=5e-6)
    assert sorted(operators(after)) == sorted(expected)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(KEPT[name], 3)
    after = assert_same(module, "graph-combine-parallel-conv2d", floats(3, 9, 5, 5), tolerance=0)
    assert operators(after) == operators(module)


def test_three_or_more(transformed: Callable) -> None:
    module = program(lambda b, x: b.concat(convs(b, x, 2, 2), axis=1), 3)
    after, _ = transformed(module, "graph-combine-parallel-conv2d{min-convolutions=3}")
    assert operators(after) == operators(module)


def test_sequences(assert_same: Callable[..., sw.Module]) -> None:
    b = sw.Builder()
    x = b.input("x", (2, 9, 6))
    b.output(b.concat([b.relu(b.conv(x, floats(n, 9, 3))) for n in (2, 5)], axis=1))
    after = assert_same(b.module(), PASSES, floats(2, 9, 6), tolerance=5e-6)
    assert operators(after) == ["conv", "relu"]


def test_it_says_what_it_decided_and_at_which_cost(transformed: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (3, 9, 5, 5))
    for name in ("q", "k"):
        b.output(b.conv(x, floats(8, 9, 1, 1), name=name))
    _, ctx = transformed(b.module(), "graph-combine-parallel-conv2d")
    assert str(ctx.decisions[0]) == (
        'nodes "q", "k": keep the products separate, because slices would cost more '
        "[for each image 225 fewer elements to read, 800 to copy]"
    )
    assert ctx.decisions[0].kind == "missed"


def residual(wide: int, narrow: int) -> sw.Module:
    """A residual block whose two branches begin with convolutions of one operand."""
    b = sw.Builder()
    x = b.relu(b.input("x", (1, 9, 12, 32)))
    a = b.conv(x, floats(wide, 9, 1, 1), None, [2, 2], name="a")
    c = b.relu(b.conv(x, floats(narrow, 9, 1, 1), None, [2, 2], name="c"))
    b.output(b.relu(b.add(a, b.conv(c, floats(wide, narrow, 1, 1)))))
    return b.module()


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [(128, 32, ["blocked_conv"] * 2 + ["slice"] * 2), (60, 20, ["blocked_conv"] * 3)],
)
def test_blocks_of_channels_are_kept(wide: int, narrow: int, expected: list[str]) -> None:
    module = residual(wide, narrow)
    exe = sw.compile(module, threads=1)
    assert sorted(re.findall(r"graph\.(conv|blocked_conv|slice) ", exe.ir("optimized"))) == expected
    x = floats(1, 9, 12, 32)
    # Sums of 128 terms in another order.
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5, atol=1e-4)


def test_it_says_which_blocks_would_be_lost(transformed: Callable) -> None:
    _, ctx = transformed(residual(60, 20), "graph-combine-parallel-conv2d{target=x86-64-v4}")
    assert str(ctx.decisions[0]) == (
        'nodes "a", "c": keep the products separate, because their channels are in blocks of '
        "30, 20, combined ones in blocks of 16 "
        "[for each image 3456 fewer elements to read, 0 to copy]"
    )
    assert ctx.decisions[0].kind == "missed"
