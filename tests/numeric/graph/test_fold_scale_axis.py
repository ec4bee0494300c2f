"""Scales that go into weights: what is left of a program, and that it means the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

from ...harness import RNG, floats

PASSES = "graph-canonicalize-ops,graph-fold-scale-axis,graph-fold-constant"


W, BIAS, V = floats(5, 4), floats(5), floats(6, 5)
PLUS, MIXED = RNG.uniform(0.5, 2, 5).astype(np.float32), floats(5)
PLUS4 = RNG.uniform(0.5, 2, 4).astype(np.float32)
CSR = sp.csr_array(sp.random_array((3, 3), density=0.6, rng=1)).astype(np.float32)
COLUMN = floats(3, 1)


def norm(b: Builder, x: Value) -> Value:
    n = x.shape[-1]
    assert isinstance(n, int)
    vectors = (floats(n), floats(n), floats(n), RNG.uniform(0.5, 2, n).astype(np.float32))
    return b.batch_norm(x, *vectors, axis=1)


def channel_norm(b: Builder, x: Value) -> Value:
    n = x.shape[1]
    assert isinstance(n, int)
    vectors = (floats(n), floats(n), floats(n), RNG.uniform(0.5, 2, n).astype(np.float32))
    return b.batch_norm(x, *vectors, axis=1)


FOLDED: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "after dense": (lambda b, x: b.dense(x, W, BIAS) * MIXED, ["dense"]),
    "one factor": (lambda b, x: b.dense(x, W, BIAS) * -3.0, ["dense"]),
    "after matmul": (lambda b, x: b.matmul(x, W.T.copy()) * MIXED, ["matmul"]),
    "zero": (lambda b, x: b.dense(x, W, BIAS) * np.zeros(5, np.float32), ["dense"]),
    "through relu": (lambda b, x: b.relu(b.dense(x, W)) * PLUS, ["dense", "relu"]),
    "through leaky relu": (
        lambda b, x: b.leaky_relu(b.dense(x, W), 0.1) * PLUS,
        ["dense", "leaky_relu"],
    ),
    "through a sum of products": (
        lambda b, x: (b.dense(x, W) + b.matmul(x, W.T.copy())) * MIXED,
        ["dense", "matmul", "add"],
    ),
    "through a sum": (
        lambda b, x: (b.matmul(x, W.T.copy()) + BIAS) * MIXED,
        ["matmul", "add"],
    ),
    "through a difference": (lambda b, x: b.sub(2.0, b.dense(x, W)) * MIXED, ["dense", "sub"]),
    "in front of dense": (lambda b, x: b.dense(x * PLUS4, W, BIAS), ["dense"]),
    "in front of matmul": (lambda b, x: b.matmul(x * -PLUS4, W.T.copy()), ["matmul"]),
    "in front, through relu": (lambda b, x: b.dense(b.relu(x * PLUS4), W), ["relu", "dense"]),
    "in front, through a shift": (
        lambda b, x: b.dense(b.relu(x * PLUS4 + PLUS4[::-1].copy()), W),
        ["add", "relu", "dense"],
    ),
    "in front, one factor": (lambda b, x: b.dense(x * 0.25, W), ["dense"]),
    "batch norm after": (lambda b, x: norm(b, b.dense(x, W, BIAS)), ["dense"]),
    "batch norm in front": (lambda b, x: b.dense(norm(b, x), W, BIAS), ["add", "dense"]),
    "between": (lambda b, x: b.dense(b.dense(x, W) * MIXED, V), ["dense", "dense"]),
}

KERNEL, DEEP = floats(6, 4, 3, 3), floats(4, 1, 3, 3)
FILTERS = (RNG.uniform(0.5, 2, (6, 1, 1)).astype(np.float32), floats(1, 6, 1, 1))
CHANNELS = RNG.uniform(0.5, 2, (4, 1, 1)).astype(np.float32)


def padded(b: Builder, x: Value, mode: str = "constant", value: float = 0.0) -> Value:
    return b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1], value, mode)


CONVOLVED: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "after": (lambda b, x: b.conv(x, KERNEL, floats(6)) * FILTERS[1], ["conv"]),
    "after, one factor": (lambda b, x: b.conv(x, KERNEL) * -2.0, ["conv"]),
    "after, with strides and groups": (
        lambda b, x: b.conv(x, floats(6, 2, 3, 3), None, [2, 1], [1, 2], 2) * FILTERS[1],
        ["conv"],
    ),
    "after, of each channel": (
        lambda b, x: b.conv(x, DEEP, groups=4) * -CHANNELS,
        ["conv"],
    ),
    "through relu": (lambda b, x: b.relu(b.conv(x, KERNEL)) * FILTERS[0], ["conv", "relu"]),
    "through a pad": (lambda b, x: padded(b, b.conv(x, KERNEL)) * FILTERS[1], ["conv", "pad"]),
    "through a sum": (
        lambda b, x: (b.conv(x, KERNEL) + b.conv(x, -KERNEL)) * FILTERS[1],
        ["conv", "conv", "add"],
    ),
    "in front": (lambda b, x: b.conv(x * -CHANNELS, KERNEL, floats(6)), ["conv"]),
    "in front, one factor": (lambda b, x: b.conv(x * 3.0, KERNEL), ["conv"]),
    "in front of groups": (
        lambda b, x: b.conv(x * CHANNELS, floats(6, 2, 3, 3), None, [2, 2], None, 2),
        ["conv"],
    ),
    "in front of each channel": (lambda b, x: b.conv(x * CHANNELS, DEEP, groups=4), ["conv"]),
    "in front, through relu and a pad": (
        lambda b, x: b.conv(padded(b, b.relu(x * CHANNELS + CHANNELS[::-1].copy())), KERNEL),
        ["add", "relu", "pad", "conv"],
    ),
    "in front, through a mirror": (
        lambda b, x: b.conv(padded(b, x * -CHANNELS, "reflect"), KERNEL),
        ["pad", "conv"],
    ),
    "batch norm after": (lambda b, x: channel_norm(b, b.conv(x, KERNEL, floats(6))), ["conv"]),
    "batch norm and relu after": (
        lambda b, x: b.relu(channel_norm(b, b.conv(x, KERNEL))),
        ["conv", "relu"],
    ),
    "batch norm in front": (
        lambda b, x: b.conv(channel_norm(b, x), KERNEL, floats(6)),
        ["add", "conv"],
    ),
    "between": (
        lambda b, x: b.conv(b.conv(x, KERNEL) * FILTERS[1], floats(2, 6, 1, 1)),
        ["conv", "conv"],
    ),
}

CONVOLUTIONS_KEPT: dict[str, Callable[[Builder, Value], Value]] = {
    "a factor below 0 and relu": lambda b, x: b.relu(b.conv(x, KERNEL)) * -FILTERS[0],
    "a factor below 0, relu, conv": lambda b, x: b.conv(b.relu(x * -CHANNELS), KERNEL),
    "a product with two users": lambda b, x: (y := b.conv(x, KERNEL)) * FILTERS[0] + y,
    "an operand with two users": lambda b, x: b.conv(s := x * CHANNELS, KERNEL[:4, :, :1, :1]) + s,
    "a scale of columns": lambda b, x: b.conv(x, KERNEL) * floats(5),
    "a scale of columns in front": lambda b, x: b.conv(x * floats(7), KERNEL),
    "a border that is not 0": lambda b, x: b.conv(padded(b, x * CHANNELS, value=1.0), KERNEL),
    "a pad of the channels": lambda b, x: (
        b.pad(b.conv(x, KERNEL), [0, 1, 0, 0], [0, 1, 0, 0]) * floats(8, 1, 1)
    ),
    "a summand that would grow": lambda b, x: (b.conv(x, KERNEL) + floats(5, 5)) * FILTERS[0],
    "computed filters": lambda b, x: b.conv(x, b.slice(x, [0] * 4, [1, 4, 3, 3])) * 2.0,
}

SPARSE: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "columns": (lambda b, x: b.spmm(CSR, b.dense(x, W)) * MIXED, ["dense", "spmm"]),
    "rows": (lambda b, x: b.spmm(CSR, x) * COLUMN, ["spmm"]),
    "rows of the operand": (lambda b, x: b.spmm(CSR, x * COLUMN), ["spmm"]),
    "both": (lambda b, x: b.spmm(CSR, x * COLUMN) * COLUMN, ["spmm"]),
}

KEPT: dict[str, Callable[[Builder, Value], Value]] = {
    "a factor below 0 and relu": lambda b, x: b.relu(b.dense(x, W)) * -PLUS,
    "a factor of 0 and relu": lambda b, x: b.relu(b.dense(x, W)) * 0.0,
    "an infinite factor": lambda b, x: b.dense(x, W) * float("inf"),
    "a product with two users": lambda b, x: (d := b.dense(x, W)) * PLUS + d,
    "an operand with two users": lambda b, x: b.dense(s := x * PLUS4, W[:4]) + s,
    "a shift by 0 * x": lambda b, x: b.dense(x * np.array([1, 0, 1, 1], np.float32) + 1.0, W),
    "another activation": lambda b, x: b.tanh(b.dense(x, W)) * PLUS,
    "a sum with the input": lambda b, x: (b.dense(x, W[:4]) + x) * PLUS4,
    "a scale of rows of dense": lambda b, x: b.dense(x, W) * COLUMN,
}


def program(
    build: Callable[[Builder, Value], Value], rows: int | str = 3, sizes: tuple[int, ...] = ()
) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", (rows, 4, *sizes))))
    return b.module()


def operators(module: sw.Module) -> list[str]:
    names = [op.name.removeprefix("graph.") for op in module.main.body.block.ops]
    return [name for name in names if name not in ("constant", "func.return")]


def lengths(b: Builder, x: Value) -> Value:
    """One factor for each row."""
    return b.sqrt(b.reduce(x * x, "sum", [1], True))


ROWS: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "dense": (lambda b, x: b.dense(x * lengths(b, x), W), ["dense", "mul"]),
    "the factors first": (lambda b, x: b.dense(lengths(b, x) * x, W), ["dense", "mul"]),
    "a bias": (lambda b, x: b.dense(x * lengths(b, x), W, BIAS), ["dense", "mul", "add"]),
    "matmul": (lambda b, x: b.matmul(x * lengths(b, x), W.T.copy()), ["matmul", "mul"]),
    "a wide result": (lambda b, x: b.dense(x * lengths(b, x), floats(8, 4)), ["dense", "mul"]),
    "a wider result": (lambda b, x: b.dense(x * lengths(b, x), floats(9, 4)), ["mul", "dense"]),
    "what is computed": (lambda b, x: b.dense(b.tanh(x) * lengths(b, x), W), ["mul", "dense"]),
    "what is used again": (
        lambda b, x: b.add(b.dense(s := x * lengths(b, x), W[:4]), s),
        ["mul", "dense", "add"],
    ),
    "a number": (
        lambda b, x: b.add(b.dense(b.dense(x, w := b.constant(W[:4])) * 0.25, w), x),
        ["dense", "mul", "dense", "add"],
    ),
    "factors of elements": (lambda b, x: b.dense(x * b.tanh(x), W), ["mul", "dense"]),
}


@pytest.mark.parametrize("rows", [3, 1, "n"])
@pytest.mark.parametrize("name", ROWS)
def test_scales_of_rows_of_arguments(
    name: str, rows: int | str, assert_same: Callable[..., sw.Module]
) -> None:
    build, expected = ROWS[name]
    x = floats(3 if rows == "n" else int(rows), 4)
    after = assert_same(program(build, rows), "graph-fold-scale-axis", x, tolerance=1e-5)
    assert operators(after)[-len(expected) :] == expected


def test_a_scale_of_rows_in_16_bits_is_kept(assert_same: Callable[..., sw.Module]) -> None:
    b = sw.Builder()
    x, scale = b.input("x", (3, 4), "f16"), b.input("scale", (3, 1), "f16")
    b.output(b.dense(x * scale, W.astype(np.float16)))
    inputs = [floats(3, 4).astype(np.float16), COLUMN.astype(np.float16)]
    after = assert_same(b.module(), "graph-fold-scale-axis", *inputs, tolerance=0)
    assert operators(after) == ["mul", "dense"]


@pytest.mark.parametrize("rows", [3, 1, "n"])
@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str, rows: int | str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = FOLDED[name]
    x = floats(3 if rows == "n" else int(rows), 4)
    # Weights are rounded once more, and sums of five products cancel.
    passes = f"graph-open-composites,graph-fold-constant,{PASSES},{PASSES}"
    after = assert_same(program(build, rows), passes, x, tolerance=1e-5)
    assert operators(after) == expected


@pytest.mark.parametrize("images", [3, 1, "n"])
@pytest.mark.parametrize("name", CONVOLVED)
def test_folded_into_filters(
    name: str, images: int | str, assert_same: Callable[..., sw.Module]
) -> None:
    build, expected = CONVOLVED[name]
    x = floats(3 if images == "n" else int(images), 4, 7, 7)
    # Weights are rounded once more, and sums of 36 products cancel.
    passes = f"graph-open-composites,graph-fold-constant,{PASSES},{PASSES}"
    after = assert_same(program(build, images, (7, 7)), passes, x, tolerance=2e-5)
    assert operators(after) == expected


@pytest.mark.parametrize("name", CONVOLUTIONS_KEPT)
def test_convolutions_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(CONVOLUTIONS_KEPT[name], sizes=(7, 7))
    after = assert_same(module, "graph-fold-scale-axis", floats(3, 4, 7, 7), tolerance=0)
    assert operators(after) == operators(module)


def test_sequences_and_volumes(assert_same: Callable[..., sw.Module]) -> None:
    for sizes, scale in (((9,), floats(5, 1)), ((5, 4, 6), floats(5, 1, 1, 1))):
        window = [2] * len(sizes)
        w = floats(5, 4, *window)
        module = program(lambda b, x, w=w, s=scale: b.conv(x, w) * s, sizes=sizes)
        after = assert_same(module, PASSES, floats(3, 4, *sizes), tolerance=1e-5)
        assert operators(after) == ["conv"]


@pytest.mark.parametrize("name", SPARSE)
def test_folded_into_sparse(name: str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = SPARSE[name]
    after = assert_same(program(build), PASSES, floats(3, 4), tolerance=1e-5)
    assert operators(after) == expected


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(KEPT[name])
    after = assert_same(module, "graph-fold-scale-axis", floats(3, 4), tolerance=0)
    assert operators(after) == operators(module)


def test_weights_with_two_users_stay_one(transformed: Callable) -> None:
    b = sw.Builder()
    x, w = b.input("x", (3, 4)), b.constant(W)
    b.output(b.dense(x, w) * PLUS)
    b.output(b.dense(x, w))
    module = b.module()
    after, ctx = transformed(module, "graph-fold-scale-axis")
    assert operators(after) == operators(module)
    assert not ctx.decisions


def test_it_says_what_it_folded(transformed: Callable) -> None:
    b = sw.Builder()
    b.output(b.mul(b.dense(b.input("x", (3, 4)), W, name="fc1"), PLUS, name="scale"))
    after, ctx = transformed(b.module(), "graph-fold-scale-axis")
    assert str(ctx.decisions[0]).startswith('node "scale": fold its scale into the weights')
    dense = next(op for op in after.op.walk() if op.name == "graph.dense")
    assert "fc1" in str(dense.location)
