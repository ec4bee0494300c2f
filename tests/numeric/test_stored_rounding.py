"""f16 and bf16 are rounded in fused kernels where that shows, and everywhere under "kept".

`2048 + 1 > 2048` is false in f16, whose next number is 2050. Every operator that jumps gets a value
that a kernel computes in f32, for all numbers of f16; results are those of the reference, bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import RNG, floats, results, same

DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
FINER = {"f32": np.dtype(np.float32)}
Build = Callable[[sw.Builder, Value], Any]


def numbers(kind: str) -> np.ndarray:
    """All numbers of a type that are finite, in a random order, in rows of eight."""
    every = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[kind])
    finite = every[np.isfinite(every.astype(np.float32))]
    return RNG.permutation(finite).reshape(-1, 8)


def compare(
    builds: Mapping[str, Build], kind: str, rounding: str | None, x: np.ndarray | None = None
) -> None:
    """Compare programs of an argument each, as one module, with its reference, bit for bit."""
    x = numbers(kind) if x is None else x
    b, names = sw.Builder(), list[str]()
    for name, build in builds.items():
        found = build(b, b.input(f"x{len(names)}", x.shape, kind))
        for one in found if isinstance(found, tuple) else (found,):
            b.output(one)
            names.append(name)
    module, given = b.module(), [x] * len(builds)
    compiled = sw.compile(module, threads=1, rounding=rounding)(*given)
    expected = module.run_reference(*given)
    for name, got, want in zip(names, results(compiled), results(expected), strict=True):
        same(got, want, name)


def number(b: sw.Builder, like: Value, value: float) -> Value:
    return b.constant(np.asarray(value).astype((DTYPES | FINER)[str(like.dtype)]))


def inexact(b: sw.Builder, x: Value) -> Value:
    """A value with two roundings, the second one after an infinity."""
    return b.add(b.mul(x, number(b, x, 1.7)), number(b, x, 1.1))


def single(b: sw.Builder, y: Value) -> Value:
    """A value in a type that can be quantised."""
    return y if str(y.dtype) == "f16" else b.cast(y, "f32")


JUMPS: dict[str, Build] = {
    "greater": lambda b, y: b.greater(y, number(b, y, 100)),
    "less_equal": lambda b, y: b.less_equal(y, b.transpose(b.transpose(y, [1, 0]), [1, 0])),
    "equal": lambda b, y: b.equal(y, number(b, y, 1.1)),
    "is infinite": lambda b, y: b.equal(b.abs(y), number(b, y, np.inf)),
    "condition": lambda b, y: b.where(b.less(y, number(b, y, 3)), y, b.neg(y)),
    "cast to i32": lambda b, y: b.cast(y, "i32"),
    "cast to ui8": lambda b, y: b.cast(y, "ui8"),
    "cast to i1": lambda b, y: b.cast(y, "i1"),
    "cast to f8": lambda b, y: b.cast(y, "f8E4M3FN"),
    "bits": lambda b, y: b.bitcast(y, "i16"),
    "floor": lambda b, y: b.floor(y),
    "ceil": lambda b, y: b.ceil(y),
    "round": lambda b, y: b.round(y),
    "sign": lambda b, y: b.sign(b.sub(y, number(b, y, 2))),
    "remainder": lambda b, y: b.fmod(y, number(b, y, 0.7)),
    "exponent": lambda b, y: b.less(b.pow(number(b, y, -1), y), number(b, y, 0)),
    "argmax": lambda b, y: b.arg_reduce(y, "max", 1),
    "sort": lambda b, y: b.sort(y, axis=1),
    "top_k": lambda b, y: b.top_k(y, 3, axis=1),
    "quantize": lambda b, y: b.quantize(single(b, y), number(b, single(b, y), 0.7), np.int8(3)),
    "places": lambda b, y: b.searchsorted(b.sort(y, axis=1)[0], b.relu(y)),
    "after a reduction": lambda b, y: b.floor(b.reduce(y, "max", axes=[1])),
    "after a sum": lambda b, y: b.round(b.reduce(b.clip(y, -9.0, 9.0), "sum", axes=[1])),
    "after a move": lambda b, y: b.floor(b.transpose(b.concat([y, b.neg(y)], axis=0), [1, 0])),
    "after many": lambda b, y: b.floor(b.mul(b.relu(b.sub(y, number(b, y, 0.3))), y)),
    "after a wider type": lambda b, y: b.floor(b.mul(b.cast(y, "f32"), 3.0)),
    "after loops of its own": lambda b, y: b.floor(b.cumulative(b.clip(y, -9.0, 9.0), "sum", 1)),
    "in a returned value": lambda b, y: (y, b.greater(y, number(b, y, 100))),
}


def after_roundings(builds: Mapping[str, Build]) -> dict[str, Build]:
    return {n: lambda b, x, f=f: f(b, inexact(b, x)) for n, f in builds.items()}


@pytest.mark.parametrize("kind", DTYPES)
def test_what_jumps_gets_rounded_values(kind: str, all_tests: bool) -> None:
    names = [*JUMPS] if all_tests or kind == "f16" else [*JUMPS][::3]
    compare(after_roundings({name: JUMPS[name] for name in names}), kind, None)


def test_a_sum_is_not_larger_than_itself() -> None:
    x = np.array([2048, 2047, 2050, 1], np.float16)
    own: Build = lambda b, x: (b.greater(x + 1.0, number(b, x, 2048)), x + 1.0)  # noqa: E731
    compare({"sum": own}, "f16", None, x)


SMOOTH: dict[str, Build] = {
    "sum": lambda b, y: b.sub(y, number(b, y, 0.3)),
    "product": lambda b, y: b.mul(y, y),
    "quotient": lambda b, y: b.div(number(b, y, 1), y),
    "root": lambda b, y: b.sqrt(b.abs(y)),
    "choice": lambda b, y: b.max(b.neg(y), b.leaky_relu(y, 0.1)),
    "wider type": lambda b, y: b.cast(y, "f32"),
    "other type": lambda b, y: b.cast(y, "bf16" if str(y.dtype) == "f16" else "f16"),
    "reduction": lambda b, y: b.reduce(b.neg(y), "max", axes=[1]),
    "window": lambda b, y: b.reshape(b.concat([b.mul(y, y), y], axis=1), [-1]),
    "own loops": lambda b, y: b.mul(b.cumulative(b.clip(y, -9.0, 9.0), "max", 1), y),
}


@pytest.mark.parametrize("kind", DTYPES)
def test_kept_roundings_are_those_of_the_model(kind: str) -> None:
    compare(after_roundings(SMOOTH), kind, "kept")


@pytest.mark.parametrize(("rounding", "count"), [(None, 1), ("kept", 3), ("free", 1)])
def test_a_rounding_that_does_not_show_is_left_out(rounding: str | None, count: int) -> None:
    b = sw.Builder()
    x = b.input("x", (4,), "f16")
    b.output(b.mul(b.relu(inexact(b, x)), x))
    exe = sw.compile(b.module(), threads=1, rounding=rounding)
    assert exe.ir("kernels").count("arith.truncf") == count


def test_a_rounding_shows_in_another_kernel() -> None:
    b = sw.Builder()
    x = b.input("x", (64, 8), "f16")
    w = b.constant(np.eye(8, dtype=np.float16))
    b.output(b.floor(b.dense(inexact(b, x), w)))
    exe = sw.compile(b.module(), threads=1)
    x = floats(64, 8, dtype=np.float16)
    same(exe(x), b.module().run_reference(x))
