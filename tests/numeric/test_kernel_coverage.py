"""Every element of a result is stored by a kernel of a user, or the kernel is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

Body = Callable[..., None]


def called(body: Body, x: tuple[Any, ...], y: tuple[Any, ...], *more: tuple[Any, ...]) -> Any:
    """A program that calls a kernel."""
    b = sw.Builder("main")
    given = [b.input(f"x{n}", shape, "f32") for n, shape in enumerate((x, *more))]
    b.output(b.call_kernel(sw.kernel(body), *given, results=sw.TensorSpec(y)))
    return b.module()


def whole(k: Any, x: Any, y: Any) -> None:
    with k.loops(*x.shape) as (i, j):
        y[x.shape[0] - 1 - i, j] = x[i, j]


def parts(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0]) as i:
        y[i, 0] = 0.0
        with k.serial(y.shape[1] - 1) as j:
            y[i, j + 1] = y[i, j] + x[i, j]


def in_lines(k: Any, x: Any, y: Any) -> None:
    with k.loops(*x.shape) as (i, j):
        y[6 * i + j] = x[i, j]


def folded(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0] * 6) as i:
        y[i // 6, i % 6] = x[i // 6, i % 6]


def products(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = 1.0


def filled(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = 0.0
    with k.serial(y.shape[0]) as i:
        y[k.minimum(k.maximum(k.cast(x[i, 0], "i32"), 0), 0), 0] = 1.0


def first(k: Any, x: Any, y: Any) -> None:
    y[()] = k.sum(x.shape, lambda i, j: x[i, j])


@pytest.mark.parametrize(
    ("body", "result"),
    [
        *((whole, ("n", 6)), (parts, ("n", 6)), (in_lines, ("6*n",)), (folded, ("n", 6))),
        *((products, ("n*n",)), (filled, ("n", 6)), (first, ())),
    ],
)
def test_kernels_that_store_all(body: Body, result: tuple[Any, ...]) -> None:
    called(body, ("n", 6), result)
    called(body, (4, 6), tuple(eval(str(size), {"n": 4}) for size in result))


def test_sizes_that_are_equal() -> None:
    def other(k: Any, x: Any, z: Any, y: Any) -> None:
        with k.loops(z.shape[0]) as i:
            y[i] = z[i]

    called(other, ("n",), ("n",), ("n",))
    with pytest.raises(sw.CompileError, match=re.escape("cover [x0.0], got [0:x1.0]")):
        called(other, ("n",), ("n",), ("m",))


def first_rows(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0] - 1, 6) as (i, j):
        y[i, j] = 0.0


def even(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0], 3) as (i, j):
        y[i, 2 * j] = 0.0


def computed(k: Any, x: Any, y: Any) -> None:
    with k.serial(*y.shape) as (i, j):
        y[i, k.minimum(k.maximum(k.cast(j, "i32"), 0), 5)] = x[i, j]


def in_a_loop_that_may_not_run(k: Any, x: Any, y: Any) -> None:
    with k.serial(x.shape[0] - 1), k.loops(*y.shape) as (i, j):
        y[i, j] = 0.0


def remainders(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0] * 5) as i:
        y[i // 5, i % 5] = 0.0


@pytest.mark.parametrize(
    ("body", "got"),
    [
        (first_rows, "[0:x0.0-1, 0:6]"),
        *((even, "none with a known place"), (computed, "none with a known place")),
        (in_a_loop_that_may_not_run, "none with a known place"),
        (remainders, "[0:x0.0, 0:5]"),
    ],
)
def test_kernels_that_may_not(body: Body, got: str) -> None:
    message = (
        f'kernel "{body.__name__}": not all elements of "y" are proved to be stored, expected '
        f"stores that cover [x0.0, 6], got {got}; store a first value to each, in loops over "
        "y.shape"
    )
    with pytest.raises(sw.CompileError, match=re.escape(message)):
        called(body, ("n", 6), ("n", 6))


def test_a_kernel_in_place_of_an_operator() -> None:
    b = sw.Builder("main")
    x, z = b.input("x", ("n", 6), "f32"), b.input("z", ("m", 6), "f32")
    b.output(b.add(x, z, name="sum"))
    module = b.module()

    @sw.kernel
    def added(k: Any, x: Any, z: Any, y: Any) -> None:
        with k.loops(*z.shape) as (i, j):
            y[i, j] = x[i, j] + z[i, j]

    @sw.kernel
    def first_column(k: Any, x: Any, z: Any, y: Any) -> None:
        with k.loops(x.shape[0]) as i:
            y[i, 0] = x[i, 0]

    exe = sw.compile(module, threads=1, legalize={"graph.add": added})
    ones = np.ones((3, 6), np.float32)
    assert (exe(ones, ones) == 2).all()
    message = (
        r'kernel "first_column": not all elements of "y" .*\(node "sum"\); store a first value'
    )
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(module, threads=1, legalize={"graph.add": first_column})
