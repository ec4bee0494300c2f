"""Unsigned integers: wrap around, never negative, the same at every level and boundary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.dtype_names import dtype_named

from ..harness import RNG, cases, same

TYPES = {"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}
KINDS = ("sum", "mean", "max", "maxnum", "min", "prod")
LEVELS = (0, 3)


def numbers(dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the whole range, its ends among them."""
    limit = np.iinfo(dtype).max
    array = RNG.integers(0, limit, shape, dtype, endpoint=True)
    array.flat[:3] = limit, 0, limit // 2 + 1
    return array


def every_operator(name: str) -> sw.Module:
    b = sw.Builder("main")
    x, y = b.input("x", ("n", 37), name), b.input("y", (37,), name)
    total = b.add(x, y)
    places = b.cast(b.shift_right(x, b.constant(np.array(3, TYPES[name]))), "i64")
    places = b.clip(places, 0, 36)
    rows = b.constant(np.array([0, 0, 1]))
    results = [
        total,
        b.max(b.mul(x, y), b.sub(x, y)),
        b.min(b.neg(x), total),
        b.div(total, y),
        b.clip(total, 3, 77),
        b.relu(b.sub(y, x)),
        b.pow(x, y),
        b.where(b.less(total, b.mul(x, x)), x, y),
        b.less_equal(b.sub(x, y), x),
        b.transpose(total, permutation=[1, 0]),
        b.pad(x, low=[1, 0], high=[0, 2], value=200),
        b.pool(x, "max", window=[3]),
        b.concat([total, x], axis=0),
        *(b.reduce(b.add(x, x), kind=k, axes=[1]) for k in KINDS),
        b.greater(total, y),
        b.greater_equal(b.sub(x, y), y),
        b.abs(total),
        b.sign(b.sub(x, x)),
        b.sign(total),
        b.shift_right(total, b.constant(np.arange(37).astype(TYPES[name]))),
        b.pool(x, "min", window=[3]),
        b.pool(x, "mean", window=[2]),
        *(b.arg_reduce(total, kind=k, axis=1) for k in ("max", "min")),
        *(b.cumulative(x, kind=k, axis=1, exclusive=e) for k in ("max", "min") for e in (0, 1)),
        *(b.segment_reduce(x, rows, kind=k) for k in ("max", "maxnum", "min", "mean")),
        *(b.scatter_elements(x, places, x, axis=1, kind=k) for k in ("max", "min", "add")),
        *b.top_k(total, k=5, axis=1),
        *b.sort(total, axis=1, descending=True),
        b.searchsorted(b.constant(numbers(TYPES[name], (9,))[[1, 2, 0]]), x),
    ]
    for number, result in enumerate(results):
        b.output(result, name=f"r{number}")
    return b.module()


@pytest.mark.parametrize("name", cases(list(TYPES), ["ui8"]))
def test_operators(name: str, all_tests: bool) -> None:
    module, dtype = every_operator(name), TYPES[name]
    levels = (*LEVELS, 1) if all_tests else (3,)
    compiled = [sw.compile(module, threads=1, opt_level=level) for level in levels]
    for rows in (1, 13):
        x, y = numbers(dtype, (rows, 37)), numbers(dtype, (37,))
        expected = module.run_reference(x, y)
        with np.errstate(all="ignore"):
            quotient = np.where(y == 0, 0, (x + y) // np.maximum(y, 1))
            np.testing.assert_array_equal(expected[0], x + y)
            np.testing.assert_array_equal(expected[1], np.maximum(x * y, x - y))
            np.testing.assert_array_equal(expected[3], quotient)
        for exe in compiled:
            same(exe(x, y), expected)


SOURCES = ["f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", *TYPES]


@pytest.mark.parametrize("target", cases(list(TYPES), ["ui8", "ui64"]))
def test_casts(target: str, all_tests: bool) -> None:
    b, arrays = sw.Builder("main"), list[np.ndarray]()
    for source in SOURCES:
        there = b.cast(b.input(f"x_{source}", (23,), source), target)
        b.output(there)
        b.output(b.cast(there, source))
        b.output(b.mul(b.cast(there, "f64"), 0.5))
        dtype = dtype_named(source)
        if dtype.kind == "f":
            values = np.linspace(-300, 65000, 23).astype(dtype)
        else:
            values = numbers(np.uint8, (23,)).astype(dtype)
            values[5:9] = np.array([-1, -128, -129, 1 << 20]).astype(dtype)
        arrays.append(values)
    module = b.module()
    expected = module.run_reference(*arrays)
    for source, values, found in zip(SOURCES, arrays, expected[::3], strict=True):
        if values.dtype.kind != "f":
            same(found, values.astype(TYPES[target]), source)
    for level in LEVELS if all_tests else (0 if target == "ui8" else 3,):
        same(sw.compile(module, threads=1, opt_level=level)(*arrays), expected, f"level {level}")


@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_beyond_signed_integers(source: str) -> None:
    b = sw.Builder("main")
    b.output(b.cast(b.input("x", (9,), source), "ui64"))
    large = [2.0**63, 2.0**63 + 2.0**40, 2.0**64 - 2.0**40, 2.0**62, -1.5, -(2.0**62)]
    exact = [int(x) % 2**64 for x in large]
    values = np.array([*large, 2.0**64, np.nan, -np.inf], dtype_named(source))
    wanted = np.array([*exact, 0, 2**63, 2**63], np.uint64)
    np.testing.assert_array_equal(b.module().run_reference(values), wanted)
    np.testing.assert_array_equal(sw.compile(b.module())(values), wanted)


def test_large_numbers_in_the_compiled_call() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "ui64")
    b.output(b.max(x, 2**63 + 1))
    b.output(b.cast(x, "f64"))
    b.output(b.bitcast(x, "i64"))
    b.output(b.pad(x, low=[0], high=[1], value=2**64 - 1))
    values = np.array([2**64 - 1, 0, 2**63, 5], np.uint64)
    largest, floats, bits, padded = sw.compile(b.module())(values)
    np.testing.assert_array_equal(padded, np.append(values, np.uint64(2**64 - 1)))
    np.testing.assert_array_equal(largest, np.maximum(values, np.uint64(2**63 + 1)))
    np.testing.assert_array_equal(floats, values.astype(np.float64))
    np.testing.assert_array_equal(bits, values.view(np.int64))


@pytest.mark.parametrize("name", TYPES)
def test_constants_keep_their_values(name: str, tmp_path: Path) -> None:
    weights, x = numbers(TYPES[name], (40, 3)), numbers(TYPES[name], (40, 3))
    b = sw.Builder("main")
    b.output(b.max(b.input("x", (40, 3), name), b.constant(weights)))
    module = b.module()
    module.save(tmp_path / "m.mlir")
    again = sw.from_mlir(tmp_path / "m.mlir")
    for each in (module, again):
        np.testing.assert_array_equal(sw.compile(each)(x), np.maximum(x, weights))


def test_registered_function_sees_the_element_types_of_tensors() -> None:
    seen: list[np.dtype] = []

    @sw.register_function("test.unsigned")
    def halves(x: np.ndarray, chosen: np.ndarray, y: np.ndarray) -> None:
        seen.extend(array.dtype for array in (x, chosen, y))
        y[...] = np.where(chosen, x // 2, x)

    b = sw.Builder("main")
    x, chosen = b.input("x", (5,), "ui8"), b.input("chosen", (5,), "i1")
    b.output(b.call_packed("test.unsigned", x, chosen, results=sw.TensorSpec((5,), "ui8")))
    values, mask = np.array([0, 7, 128, 254, 255], np.uint8), np.array([1, 1, 1, 1, 0], bool)
    got = sw.compile(b.module())(values, mask)
    np.testing.assert_array_equal(got, [0, 3, 64, 127, 255])
    assert seen == [np.uint8, np.bool_, np.uint8]


def test_another_signedness_is_refused() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (3,), "ui8")))
    with pytest.raises(sw.StepwellError, match="wrong dtype, expected uint8, got int8"):
        sw.compile(b.module())(np.zeros(3, np.int8))


def test_an_integer_goes_into_an_unsigned_operand_if_it_fits() -> None:
    b = sw.Builder("main")
    x = b.input("x", (3,), "ui8")
    b.output(x + 250)
    with pytest.raises(sw.StepwellError, match="an integer does not fit, expected ui8, got -1"):
        _ = x + -1
    got = sw.compile(b.module())(np.array([1, 5, 6], np.uint8))
    np.testing.assert_array_equal(got, [251, 255, 0])


CUTS: list[tuple[float | None, float | None]] = [
    (None, None),
    (-5.0, None),
    (None, 9.0),
    (-5.0, 9.0),
    (-3e9, 3e9),
    (float("nan"), 9.0),
]


@pytest.mark.parametrize("target", ["i8", "ui8", "i32", "i64"])
def test_casts_of_numbers_that_are_cut_are_checked_where_one_may_be_outside(target: str) -> None:
    values = np.array([-0.6, 7.5, 300, -300, 3e9, -3e9, 1e20, np.inf, -np.inf, np.nan], np.float32)
    b = sw.Builder("main")
    for low, high in CUTS:
        x = b.input(f"x_{low}_{high}", values.shape)
        if low is not None:
            x = b.where(b.less(low, x), x, low)
        if high is not None:
            x = b.where(b.less(x, high), x, high)
        b.output(b.cast(x, target))
    module, inputs = b.module(), [values] * len(CUTS)
    exe = sw.compile(module, threads=1)
    same(exe(*inputs), module.run_reference(*inputs))
    kernels = exe.ir("kernels").split("loop.kernel @")[1:]
    for (low, high), kernel in zip(CUTS, kernels, strict=True):
        whole = (-5.0, 9.0) == (low, high) or (target == "i64" and low == -3e9)
        # The comparison with the smallest number of the integers.
        assert ("arith.cmpf oge" in kernel) == (not whole), f"{low} {high}"
