"""The arithmetic of kernels that users wrote is counted from their loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.graph.ops_call import CallDpsOp
from stepwell.dialects.graph.shapes import SymbolicShapes


def dense(k: Any, x: Any, w: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.exp(k.sum(x.shape[1], lambda t: x[i, t] * w[j, t])) + 1.0


def spmm(k: Any, a: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.sum(a.row(i), lambda column, value: value * x[column, j])


def relu(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.where(x[i, j] > 0, x[i, j], 0)


def histogram(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = 0.0
    with k.serial(*x.shape) as (i, j):
        y.accumulate((0, k.minimum(k.maximum(k.cast(x[i, j], "i32"), 0), 2)), 1.0)


def triangle(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.sum(i + 1, lambda t: x[t, 0])


X, W = ((("n", 7), "f32"), ((3, 7), "f32"))
CASES: dict[Callable[..., Any], tuple[list[Any], tuple[Any, Any], str | None]] = {
    dense: ([X, W], ("n", 3), "48*n"),
    relu: ([X], ("n", 7), "0"),
    histogram: ([X], (1, 3), "21*n"),
    triangle: ([X], ("n", 7), None),
}


def flops(b: sw.Builder) -> str | None:
    main = b.module().main
    (call,) = [op for op in main.walk() if isinstance(op, CallDpsOp)]
    found = call.flops(SymbolicShapes(main))
    return None if found is None else str(found)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_flops_of_a_kernel(function: Callable[..., Any]) -> None:
    inputs, shape, expected = CASES[function]
    b = sw.Builder("main")
    given = [b.input(f"x{n}", *one) for n, one in enumerate(inputs)]
    b.output(b.call_kernel(sw.kernel(function), *given, results=sw.TensorSpec(shape, "f32")))
    assert flops(b) == expected


def test_flops_of_the_entries_of_a_matrix() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", 5), "f32"))
    x = b.input("x", (5, 6), "f32")
    b.output(b.call_kernel(sw.kernel(spmm), a, x, results=sw.TensorSpec(("n", 6), "f32")))
    found = flops(b)
    assert found is not None
    assert found.startswith("12*")
    assert "nnz" in found


def test_they_are_explained_and_profiled() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 7), "f32")
    w = np.ones((3, 7), np.float32)
    h = b.call_kernel(sw.kernel(dense), x, w, results=sw.TensorSpec(("n", 3), "f32"), name="own")
    b.output(
        b.call_kernel(sw.kernel(histogram), h, results=sw.TensorSpec((1, 3), "f32"), name="of")
    )
    profile = sw.compile(b.module(), threads=1).profile(np.zeros((5, 7), np.float32), repeat=2)
    counted = {row.name: row.flops for row in profile.nodes}
    assert counted == {"own": 5 * 48, "of": 9 * 5}
    assert {row.flops for row in profile.kernels} == {5 * 48, 9 * 5}
