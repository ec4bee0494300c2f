"""Elementwise operators on rows that are shorter than a vector, which may be one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import RNG, cases, close, floats, same

SHAPES = [("n", 3), ("n", 5), ("n", 7), ("n", 1, 3), ("n", 2, 3), ("n", 3, 1), ("n", 4, 3, 5)]
Operation = Callable[[sw.Builder, Any], Any]
OPERATIONS: dict[str, Operation] = {
    "tanh": lambda b, x: b.tanh(x),
    "sum": lambda b, x: b.relu(x) + x * x,
    "cast": lambda b, x: b.cast(b.exp(x), "f16"),
}


def program(operation: Operation, *shapes: tuple[Any, ...]) -> sw.Module:
    b = sw.Builder("main")
    for number, shape in enumerate(shapes):
        b.output(operation(b, b.input(f"x{number}", shape)))
    return b.module()


def steps_of(exe: sw.Executable) -> list[str]:
    """The steps of each kernel."""
    kernels = exe.ir("scheduled").split("loop.kernel")[1:]
    return [text.partition("loop.schedule")[2].partition("{")[0] for text in kernels]


WAYS = [(name, threads) for name in OPERATIONS for threads in (1, 2)]
USUAL = [("tanh", 2), ("cast", 1)]


@pytest.mark.parametrize("way", cases(WAYS, USUAL), ids=str)
def test_the_same_bits_as_without_rows(way: tuple[str, int]) -> None:
    name, threads = way
    flat = sw.compile(program(OPERATIONS[name], ("n",)), threads=threads)
    exe = sw.compile(program(OPERATIONS[name], *SHAPES), threads=threads)
    for shape, steps in zip(SHAPES, steps_of(exe), strict=True):
        assert "fuse(" in steps or shape == ("n", 3, 1)
    for n in (0, 1, 2, 17, 1000):
        xs = [floats(n, *shape[1:]) for shape in SHAPES]
        for shape, x, found in zip(SHAPES, xs, exe(*xs), strict=True):
            same(found.reshape(-1), flat(x.reshape(-1)), str(shape))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 11, 43, 1000])
def test_known_sizes(n: int) -> None:
    x = floats(n, 3)
    exe = sw.compile(program(OPERATIONS["tanh"], (n, 3)), threads=1)
    close(exe(x), np.tanh(x), 1e-6, atol=1e-7)


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_rows_that_are_told_apart(threads: int) -> None:
    b = sw.Builder("main")
    x, row, column = b.input("x", ("n", 3)), b.input("row", (3,)), b.input("column", ("n", 1))
    t, i = b.input("t", (3, "n")), b.input("i", ("n",), "i64")
    b.output(x + row)
    b.output(x * column)
    b.output(x + b.transpose(t, [1, 0]))
    b.output(b.gather(x, i, axis=0) + x)
    b.output(b.slice(x, [0, 0], [2**63 - 1, 2]) * 2.0)
    b.output(b.softmax(x, axis=1) + x)
    b.output(b.concat([x, x + 1.0], axis=1) * 2.0)
    exe = sw.compile(b.module(), threads=threads)
    for n in (0, 1, 2, 17, 333):
        x, row, column, t = floats(n, 3), floats(3), floats(n, 1), floats(3, n)
        i = RNG.integers(0, max(n, 1), n)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        expected = (
            x + row,
            x * column,
            x + t.T,
            x[i] + x,
            x[:, :2] * 2,
            e / e.sum(axis=1, keepdims=True) + x,
            np.concatenate([x, x + 1], axis=1) * 2,
        )
        close(exe(x, row, column, t, i), expected, atol=1e-6)


def test_a_batch_of_rows_with_a_part_of_its_own() -> None:
    """The last two dimensions are one, the first is not."""
    b = sw.Builder("main")
    x, z = b.input("x", ("m", 7, 3)), b.input("z", (7, 3))
    b.output(b.tanh(x) + z)
    exe = sw.compile(b.module(), threads=1)
    assert "fuse(j, l)" in steps_of(exe)[0]
    for m in (0, 1, 5):
        x, z = floats(m, 7, 3), floats(7, 3)
        close(exe(x, z), np.tanh(x) + z, 1e-6)


def test_rows_over_others() -> None:
    """A result over an operand that is not needed any more."""
    b = sw.Builder("main")
    h = b.dense(b.input("x", ("n", 4)), np.eye(3, 4, dtype=np.float32))
    b.output(b.dense(b.tanh(h), np.eye(5, 3, dtype=np.float32)))
    exe, x = sw.compile(b.module(), threads=2), floats(99, 4)
    close(exe(x)[:, :3], np.tanh(x[:, :3]), atol=1e-6)


@pytest.mark.parametrize("columns", [8, 16, 64, 100])
def test_rows_of_vectors_stay(columns: int) -> None:
    exe = sw.compile(program(OPERATIONS["tanh"], ("n", columns)), target="x86-64-v3")
    assert "fuse(" not in steps_of(exe)[0]
