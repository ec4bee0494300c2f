"""What reads several parts of a product's columns is one kernel with it, and so are its results."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import RNG, cases, close

DEPTH = 7


def below_one(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def kernels(exe: sw.Executable) -> list[str]:
    """The names of the kernels that are called."""
    return re.findall(r"call_dps @(\w+)", exe.ir("kernels"))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def parts_of(b: sw.Builder, x: Any, starts: list[int], size: int) -> list[Any]:
    """Columns of a matrix of any number of rows."""
    return [b.slice(x, starts=[0, n], ends=[2**63 - 1, n + size]) for n in starts]


PARTS = [(1, [0, 1]), (5, [10, 0, 5]), (33, [99, 0, 66, 33])]
WAYS = list(itertools.product([1, 2, 13, "n"], PARTS))
USUAL = [(1, PARTS[0]), (2, PARTS[1]), (13, PARTS[2]), ("n", PARTS[1])]


@pytest.mark.parametrize("way", cases(WAYS, USUAL), ids=str)
def test_parts_are_computed_together(
    way: tuple[int | str, tuple[int, list[int]]], all_tests: bool
) -> None:
    """Some of the columns may be needed by no part, and the parts are in any order."""
    rows, (size, starts) = way
    w, bias = below_one(DEPTH, 4 * size + 3), below_one(4 * size + 3)
    b = sw.Builder("main")
    x = b.input("x", (rows, DEPTH), "f32")
    first, *others = parts_of(b, b.matmul(x, w) + bias, starts, size)
    for part in others:
        first = b.tanh(first) * b.sigmoid(part)
    b.output(first)
    module = b.module()
    calls = [(1, 1), (2, 30)] if rows == "n" else [(1, rows), (2, rows)]
    for threads, count in calls if all_tests or rows == "n" else calls[rows == 13 :][:1]:
        exe = sw.compile(module, threads=threads)
        assert len(kernels(exe)) == 1
        array = below_one(int(count), DEPTH)
        product = array @ w + bias
        expected, *rest = [product[:, n : n + size] for n in starts]
        for part in rest:
            expected = np.tanh(expected) * sigmoid(part)
        close(exe(array), expected, atol=1e-6)


def test_weights_may_be_inputs_and_biases_columns() -> None:
    """Weights that change from call to call are not packed, and a part may be read twice."""
    b = sw.Builder("main")
    x, w = b.input("x", (3, 9, DEPTH), "f64"), b.input("w", (DEPTH, 22), "f64")
    one, other = (b.slice(b.matmul(x, w), starts=[0, 0, n], ends=[3, 9, n + 11]) for n in (0, 11))
    b.output(b.exp(one) * other + one)
    exe = sw.compile(b.module())
    assert len(kernels(exe)) == 1
    x, w = below_one(3, 9, DEPTH).astype(float), below_one(DEPTH, 22).astype(float)
    product = x @ w
    expected = np.exp(product[..., :11]) * product[..., 11:] + product[..., :11]
    close(exe(x, w), expected, 1e-12, atol=0)


@pytest.mark.parametrize("shape", [(3, 5), (1, 37), (1, 1), ("n", 4)])
def test_several_results_of_one_kernel(shape: tuple[int | str, ...]) -> None:
    """What is stored is read on, whether it is the first or the last of the results."""
    b = sw.Builder("main")
    x = b.input("x", shape, "f32")
    c = b.exp(x)
    for result in (b.tanh(c) * x, c, b.where(b.less(c, 1.0), c, 0.0)):
        b.output(result)
    exe = sw.compile(b.module())
    assert len(kernels(exe)) == 1
    (kernel,) = exe.ir("kernels").split("loop.kernel")[1:]
    assert kernel.count("math.exp") == 1
    array = below_one(*(6 if n == "n" else int(n) for n in shape))
    c = np.exp(array)
    expected = np.tanh(c) * array, c, np.where(c < 1, c, 0)
    close(exe(array), expected, atol=1e-6)
