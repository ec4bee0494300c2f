"""Operators on transposed operands: programs mean the same, and no more elements move."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.graph import ops as graph
from stepwell.frontends.builder import Builder, Value

from .conftest import compare

PASSES = "graph-cancel-transposes"
ORDERS = ([0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2], [3, 2, 1, 0])


def transposed_elements(module: sw.Module) -> int:
    """The elements that transposes of computed values move."""
    found = [op for op in module.op.walk() if isinstance(op, graph.TransposeOp)]
    computed = [
        op for op in found if not isinstance(op.x.owner, graph.ConstantOp | graph.ReshapeOp)
    ]
    return sum(math.prod(map(abs, op.result.type.get_shape())) for op in computed)


def shape_of(x: Value) -> list[int]:
    return [1 if size is None else size for size in x.shape]


class Grown:
    """A program of transposes and of operators that may move past them."""

    def __init__(self, seed: int) -> None:
        self.random, self.b = random.Random(seed), Builder("main")
        shape = self.random.sample([1, 2, 3, 4], 4)
        self.values: list[Value] = [self.b.input(name, shape, "f32") for name in ("x", "z")]

    def number(self, limit: int) -> int:
        return self.random.randrange(limit)

    def grow(self) -> None:
        x = self.values[self.number(len(self.values))]
        moves = (self.moved, self.moved, self.joined, self.padded, self.cut, self.reduced)
        more = (self.elementwise, self.normalised, self.shifted)
        self.values.append((moves + more)[self.number(9)](x))

    def moved(self, x: Value) -> Value:
        return self.b.transpose(x, ORDERS[self.number(len(ORDERS))])

    def elementwise(self, x: Value) -> Value:
        return self.b.tanh(x)

    def shifted(self, x: Value) -> Value:
        rank = self.number(4)
        sizes = shape_of(x)[rank:]
        return x * np.arange(1, 1 + math.prod(sizes), dtype=np.float32).reshape(sizes)

    def joined(self, x: Value) -> Value:
        same = [v for v in self.values if v.shape == x.shape]
        other = same[self.number(len(same))]
        return self.b.concat([x, other], axis=self.number(4)) if self.number(2) else x + other

    def padded(self, x: Value) -> Value:
        low, high = ([self.number(2) for _ in range(4)] for _ in range(2))
        return self.b.pad(x, low, high, value=0.5)

    def cut(self, x: Value) -> Value:
        starts = [self.number(size) for size in shape_of(x)]
        return self.b.slice(x, starts=starts, ends=shape_of(x), steps=[1, 2, 1, 2])

    def reduced(self, x: Value) -> Value:
        kind = ("sum", "max", "mean")[self.number(3)]
        axes = sorted({self.number(4), self.number(4)})
        if self.number(2):
            return x - self.b.reduce(x, kind, axes=axes, keepdims=True)
        self.b.output(self.b.reduce(x, kind, axes=axes))
        return x

    def normalised(self, x: Value) -> Value:
        return self.b.softmax(x, axis=self.number(4))


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 20):
        program = Grown(seed)
        for _ in range(4 + seed % 5):
            program.grow()
        for value in program.values[-2:]:
            program.b.output(value)
        module = program.b.module()
        sizes = shape_of(program.values[0])
        x, z = np.random.default_rng(seed).standard_normal((2, *sizes), np.float32)
        after = compare(module, PASSES, x, z)
        assert transposed_elements(after) <= transposed_elements(module)


def test_another_order_follows() -> None:
    """Two orders of which each is another one after the other than before it."""
    b = sw.Builder("main")
    x = b.input("x", (2, 3, 3, 3), "f32")
    y = b.tanh(b.transpose(x, [0, 2, 3, 1]))
    b.output(b.transpose(y, [0, 3, 1, 2]))
    b.output(b.transpose(y, [0, 2, 1, 3]))
    module, numbers = b.module(), np.random.default_rng(0).standard_normal((2, 3, 3, 3))
    after = compare(module, PASSES, numbers.astype(np.float32))
    assert transposed_elements(after) == 2 * 27


def channels_last(b: Builder, x: Value, filters: int, strides: Sequence[int]) -> Value:
    """A convolution between transposes, scaled and shifted with channels last."""
    inputs, ahead, back = x.shape[-1], [0, 3, 1, 2], [0, 2, 3, 1]
    w = np.random.default_rng(filters).standard_normal((filters, inputs, 3, 3), np.float32)
    y = b.transpose(b.conv(b.transpose(x, ahead), w, strides=strides), back)
    return y * np.linspace(0.5, 1, filters, dtype=np.float32) + np.ones(filters, np.float32)


def test_networks_with_channels_last() -> None:
    """Only the image is transposed: scales are folded into filters, shifts into biases."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 17, 13, 3), "f32")
    y = b.relu(channels_last(b, b.pad(x, [0, 1, 1, 0], [0, 1, 1, 0]), 8, [2, 2]))
    around = [0, 1, 1, 0]
    y = b.relu(y + channels_last(b, b.pad(y, around, around), 8, [1, 1]))
    b.output(b.reduce(y, "mean", axes=[1, 2]))
    module = b.module()
    exe = sw.compile(module, threads=1)
    text = exe.ir("optimized")
    assert text.count("graph.mul") == 0
    for batch in (1, 2):
        image = np.random.default_rng(batch).standard_normal((batch, 17, 13, 3), np.float32)
        expected = module.run_reference(image)
        np.testing.assert_allclose(exe(image), expected, rtol=1e-4, atol=1e-4)
    compare(module, PASSES, image)
    (after,) = [
        compare(module, f"{PASSES},canonicalize,graph-simplify,graph-fold-constant,dce", image)
    ]
    assert str(after.op).count("graph.transpose") == 1
