"""Denormal numbers are like any others, but in `graph.attention` and far below in `sigmoid`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw

from ..harness import RNG, cases

TINY = 2.0**-149
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
ONES = np.ones((5, 12), np.float32)

PROGRAMS: dict[str, Callable[[sw.Builder, Any, Any], Any]] = {
    "add": lambda b, x, a: x + x,
    "sub": lambda b, x, a: x - b.max(x, 0.0),
    "mul": lambda b, x, a: x * 0.5,
    "div": lambda b, x, a: x / 0.25,
    "fma": lambda b, x, a: b.fma(x, 2.0, x),
    "relu": lambda b, x, a: b.relu(x),
    "clip": lambda b, x, a: b.clip(x, 0.0, 1.0),
    "sqrt": lambda b, x, a: b.sqrt(b.abs(x)) * b.sqrt(b.abs(x)),
    "tanh": lambda b, x, a: b.tanh(x),
    "sin": lambda b, x, a: b.sin(x),
    "sum": lambda b, x, a: b.reduce(x, "sum", axes=[1]),
    "max": lambda b, x, a: b.reduce(x, "max", axes=[0]),
    "cumulative": lambda b, x, a: b.cumulative(x, "sum", axis=1),
    "dense": lambda b, x, a: b.dense(x, ONES),
    "matmul": lambda b, x, a: b.matmul(x, ONES.T),
    "conv": lambda b, x, a: b.conv(b.reshape(x, (1, 1, 4, 12)), np.ones((3, 1, 2, 2), np.float32)),
    "pool": lambda b, x, a: b.pool(b.reshape(x, (1, 1, 4, 12)), "sum", window=[2, 2]),
    "concat": lambda b, x, a: b.concat([x, x], axis=1),
    "spmm": lambda b, x, a: b.spmm(a, x),
    "aggregate": lambda b, x, a: b.aggregate(a, x),
    "scatter": lambda b, x, a: b.scatter_nd(
        np.zeros((2, 12), np.float32), x, [b.constant(np.array([0, 1, 0, 1]))], kind="add"
    ),
    "exp": lambda b, x, a: b.exp(x * 0.0 - 95.0),
    "wider": lambda b, x, a: b.cast(b.cast(x, "f64") * 0.5, "f32"),
}
"""Programs on multiples of the least number, whose results are multiples of it too."""


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_nothing_is_flushed(threads: int) -> None:
    x = RNG.integers(-(2**20), 2**20, (4, 12)) * TINY
    x = x.astype(np.float32)
    assert (np.abs(x) < np.finfo(np.float32).tiny).all()
    a = csr_array(np.ones((4, 4), np.float32))
    b = sw.Builder("main")
    given = b.input("x", (4, 12), "f32"), b.input("a", sw.SparseSpec((4, 4), "f32"))
    for name, program in PROGRAMS.items():
        b.output(program(b, *given), name=name)
    module = b.module()
    found = sw.compile(module, threads=threads)(x, a)
    for name, have, want in zip(PROGRAMS, found, module.run_reference(x, a), strict=True):
        assert np.abs(want).max() > 0, name
        # e^-95 is rounded to 23 - 11 bits: the functions are within 2 ulp of what is exact.
        np.testing.assert_allclose(
            have, want, rtol=0, atol=2 * TINY * (name == "exp"), err_msg=name
        )


@pytest.mark.parametrize("kind", DTYPES)
def test_denormals_of_each_type(kind: str) -> None:
    dtype = np.dtype(DTYPES[kind])
    least = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    x = (np.arange(-40, 41) * least).astype(dtype)
    b = sw.Builder("main")
    given = b.input("x", (81,), kind)
    b.output(given + given)
    b.output(given * 1.0)
    b.output(b.reduce(b.abs(given), "sum", axes=[0]))
    twice, same, total = sw.compile(b.module(), threads=1)(x)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(twice.astype(np.float64), 2 * wide)
    np.testing.assert_array_equal(same.astype(np.float64), wide)
    assert float(total) == float(np.asarray(np.abs(wide / least).sum()).astype(dtype)) * least


def test_exponentials_of_attention_end_at_the_least_normal_number() -> None:
    """Weights of e^-86 and e^-89, beside one of 1: the second one would be denormal."""
    q, k = np.ones((1, 1, 1), np.float32), np.array([0.0, -86.0, -89.0], np.float32)
    b = sw.Builder("main")
    k, v = k.reshape(1, 3, 1), np.eye(3, dtype=np.float32)[None]
    values = [b.input(name, x.shape, "f32") for name, x in (("q", q), ("k", k), ("v", v))]
    b.output(b.attention(*values, scale=1.0))
    (weights,) = sw.compile(b.module(), threads=1)(q, k, v)[0]
    assert weights[0] == 1
    np.testing.assert_allclose(weights[1], np.exp(-86.0), rtol=1e-6)
    assert weights[2] == 0


@pytest.mark.parametrize(("kind", "last"), [("f32", -88.7), ("f64", -709.7)])
def test_sigmoid_is_zero_where_its_exponential_overflows(kind: str, last: float) -> None:
    b = sw.Builder("main")
    b.output(b.sigmoid(b.input("x", (2,), kind)), name="y")
    x = np.array([last, last - 0.1], DTYPES[kind])
    for run in (b.module().run_reference, sw.compile(b.module(), threads=1)):
        (above, below) = np.asarray(run(x))
        assert 0 < above < np.finfo(x.dtype).tiny
        assert below == 0
