"""Low-bit types: every bit pattern converts as in ml_dtypes, and is moved unchanged."""

from __future__ import annotations

import itertools
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
from stepwell.core.dtype_names import dtype_named
from stepwell.core.dtypes import LOW_BIT_FLOATS, LOW_BIT_INTEGERS

from ..harness import RNG, cases, same

FLOATS = [str(kind) for kind in LOW_BIT_FLOATS]
INTEGERS = [str(kind) for kind in LOW_BIT_INTEGERS]
LOW_BITS = [*FLOATS, *INTEGERS]
USUAL = ["f4E2M1FN", "f8E4M3FN"]


NUMBERS = ["f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64", "ui8", "ui32"]
LEVELS = (0, 3)


def patterns(name: str) -> np.ndarray:
    """Every bit pattern of a type, some of them several times."""
    width = {"f4": 4, "f6": 6, "f8": 8}.get(name[:2]) or int(name.lstrip("ui"))
    return (np.arange(257) % (1 << width)).astype(np.uint8).view(dtype_named(name))


def codes(array: np.ndarray) -> np.ndarray:
    return np.atleast_1d(array).view(np.uint8)


def critical(name: str) -> np.ndarray:
    """Numbers of a float type, the middles between them, and what is beside these in f32."""
    with np.errstate(all="ignore"):
        known = patterns(name).astype(np.float32)
    known = np.unique(np.abs(known[np.isfinite(known)]))
    if known[-1] < 1e30:
        known = np.append(known, known[-1] * np.array([1.125, 1.25, 2.0], np.float32))
    middles = ((known[1:].astype(np.float64) + known[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(side)) for side in (0, np.inf)]
    special = np.array([np.nan, np.inf, 1e-30, 1e-40, 3e38, 0.0], np.float32)
    found = np.concatenate([known, middles, *beside, special])
    return np.concatenate([found, -found])


PAIRS = [*itertools.product(LOW_BITS, LEVELS)]


@pytest.mark.parametrize(
    "pair", cases(PAIRS, [("f4E2M1FN", 3), ("f8E4M3FN", 0), ("i4", 0)]), ids=str
)
def test_every_pattern_to_other_types(pair: tuple[str, int], all_tests: bool) -> None:
    name, level = pair
    b = sw.Builder("main")
    x = b.input("x", ("n",), name)
    others = [other for other in (*NUMBERS, *LOW_BITS) if other != name]
    if level and not all_tests:
        others = [other for other in others if other not in LOW_BITS or other in USUAL]
    for other in others:
        b.output(b.cast(x, other))
    module = b.module()
    values = patterns(name)
    wide = values.astype(np.float32 if name in FLOATS else np.int32)
    with np.errstate(all="ignore"):
        for other, wanted in zip(others, module.run_reference(values), strict=True):
            if other in ("f32", "f64", "f16", "bf16", "i1"):
                same(wanted, wide.astype(dtype_named(other)))
    same(sw.compile(module, threads=1, opt_level=level)(values), module.run_reference(values))


@pytest.mark.parametrize("name", cases(FLOATS, USUAL))
def test_numbers_around_every_pattern(name: str) -> None:
    b = sw.Builder("main")
    for source in ("f32", "f64", "f16", "bf16"):
        b.output(b.cast(b.input(f"x_{source}", ("n",), source), name))
    module = b.module()
    numbers = critical(name)
    with np.errstate(all="ignore"):
        inputs = [numbers.astype(dtype_named(s)) for s in ("f32", "f64", "f16", "bf16")]
        for given, wanted in zip(inputs, module.run_reference(*inputs), strict=True):
            known = given.astype(dtype_named(name))
            if name == "f8E8M0FNU":  # ml_dtypes differs where f32 is subnormal
                normal = ~(np.abs(given.astype(np.float64)) < 2.0**-126)
                known, wanted = known[normal], wanted[normal]
            np.testing.assert_array_equal(known.astype(np.float32), wanted.astype(np.float32))
    for level in LEVELS:
        exe = sw.compile(module, threads=1, opt_level=level)
        same(exe(*inputs), module.run_reference(*inputs))


def test_powers_of_two_below_the_normal_numbers() -> None:
    b = sw.Builder("main")
    x = b.input("x", (6,), "f32")
    b.output(b.cast(x, "f8E8M0FNU"))
    numbers = np.array([2.0**-127, 1.49 * 2.0**-127, 1.5 * 2.0**-127, 0.74 * 2.0**-127, 0, -1])
    wanted = [0, 0, 1, 255, 255, 255]
    numbers = numbers.astype(np.float32)
    np.testing.assert_array_equal(codes(b.module().run_reference(numbers)), wanted)
    np.testing.assert_array_equal(codes(sw.compile(b.module())(numbers)), wanted)


@pytest.mark.parametrize("name", cases(INTEGERS, ["i4", "ui2"]))
def test_integers_keep_their_low_bits(name: str) -> None:
    b = sw.Builder("main")
    for source in ("i8", "i64", "ui32", "f32", "i1"):
        b.output(b.cast(b.input(f"x_{source}", ("n",), source), name))
    module = b.module()
    numbers = np.arange(-130, 140)
    wide = [numbers.astype(np.int8), numbers * 2**33 + numbers, numbers.astype(np.uint32)]
    inputs = [*wide, numbers + np.float32(0.75), numbers > 0]
    inputs[3][:3] = np.nan, np.inf, -1e20
    inputs[3] = inputs[3].astype(np.float32)
    dtype = dtype_named(name)
    with np.errstate(all="ignore"):
        expected = [x.astype(np.int64).astype(dtype) for x in (*wide, np.trunc(inputs[3]))]
        expected[3][:3] = 0
    expected.append(inputs[4].astype(np.int8).astype(dtype))
    for level in LEVELS:
        same(sw.compile(module, opt_level=level)(*inputs), expected)


@pytest.mark.parametrize("name", cases(LOW_BITS, ["f8E4M3FN"]))
def test_movement_keeps_every_pattern(name: str) -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 8), name)
    c = b.input("c", ("n", 8), "i1")
    i = b.input("i", (5,), "i64")
    weights = patterns(name)[:256].reshape(32, 8)
    held = b.constant(weights)
    moved = b.transpose(b.concat([x, held], axis=0), permutation=[1, 0])
    joined = b.concat([x, x], axis=1)
    results = [
        moved,
        b.reshape(joined, shape=[-1, 4, 4]),
        b.slice(x, starts=[0, 7], ends=[2**63 - 1, -1], steps=[1, -2]),
        b.gather(x, i, axis=0),
        b.pad(x, low=[1, 0], high=[0, 2], value=1),
        b.where(c, x, b.gather(held, b.constant(np.array([3])), axis=0)),
        b.scatter_nd(x, b.gather(held, i, axis=0), [i]),
        b.broadcast_to(b.slice(held, starts=[5, 0], ends=[6, 8]), shape=[3, 8]),
    ]
    for number, result in enumerate(results):
        b.output(result, name=f"r{number}")
    module = b.module()
    compiled = [sw.compile(module, threads=1, opt_level=level) for level in LEVELS]
    for rows in (6, 32):
        values = patterns(name)[: rows * 8][::-1].reshape(rows, 8)
        chosen = RNG.random((rows, 8)) < 0.5
        index = np.array([0, 5, 3, 3, 1])
        expected = module.run_reference(values, chosen, index)
        np.testing.assert_array_equal(
            codes(expected[0]), codes(np.concatenate([values, weights]).T.copy())
        )
        for exe in compiled:
            got = exe(values, chosen, index)
            for own, wanted in zip(got, expected, strict=True):
                assert own.dtype == wanted.dtype
                np.testing.assert_array_equal(codes(own), codes(wanted))


@pytest.mark.parametrize("name", LOW_BITS)
def test_constants_keep_their_bits(name: str, tmp_path: Path, all_tests: bool) -> None:
    b = sw.Builder("main")
    b.output(b.constant(patterns(name)), name="all")
    for code in (*range(4), -1):
        b.output(b.constant(patterns(name)[:256][code]), name=f"one{code}")
    b.output(b.reshape(b.input("x", (3,), name), shape=[3, 1]))
    module, x = b.module(), patterns(name)[1:4]
    module.save(tmp_path / "m.mlir")
    read = sw.from_mlir(tmp_path / "m.mlir")
    for each in (module, read) if all_tests else (read,):
        same(sw.compile(each, threads=1)(x), module.run_reference(x))


def test_bits_above_those_of_the_type_are_ignored() -> None:
    b = sw.Builder("main")
    for name in ("ui4", "i4", "ui2", "i2", "f4E2M1FN", "f6E2M3FN"):
        b.output(b.cast(b.input(name, (256,), name), "f32"))
    every = np.arange(256, dtype=np.uint8)
    kinds = ("uint4", "int4", "uint2", "int2", "float4_e2m1fn", "float6_e2m3fn")
    got = sw.compile(b.module())(*(every.view(kind) for kind in kinds))
    for kind, found in zip(kinds, got, strict=True):
        width = int("".join(filter(str.isdigit, kind))[0])
        own = (every % (1 << width)).view(kind)
        np.testing.assert_array_equal(found, own.astype(np.float32))


def test_what_computes_refuses_them() -> None:
    b = sw.Builder("main")
    x = b.input("x", (3,), "f8E5M2")
    hint = "; graph.cast converts from and to low-bit types"
    for build in (b.relu, b.sort, b.nonzero, lambda v: b.add(v, v), lambda v: b.equal(v, v)):
        with pytest.raises(sw.StepwellError, match=f"got tensor<3xf8E5M2>{hint}"):
            build(x)
    with pytest.raises(sw.StepwellError, match="elements of f8E5M2 cannot be combined, expected"):
        b.scatter_nd(x, x, [b.constant(np.arange(3))], kind="add")


def test_another_low_bit_type_is_refused_by_a_call() -> None:
    b = sw.Builder("main")
    b.output(b.cast(b.input("x", (3,), "f8E4M3FN"), "f32"))
    exe = sw.compile(b.module())
    for wrong in ("float8_e4m3fnuz", "float8_e8m0fnu", "int4", "uint8"):
        message = f"wrong dtype, expected float8_e4m3fn, got {wrong}"
        with pytest.raises(sw.StepwellError, match=message):
            exe(np.zeros(3, np.uint8).view(wrong))


def test_kernels_in_python_convert_them() -> None:
    @sw.kernel
    def halved(k, x, q, y, p):  # type: ignore[no-untyped-def]
        with k.loops(x.shape[0]) as i:
            y[i] = x[i] * 0.5
            p[i] = k.cast(k.cast(x[i], "i32") + q[i], "i32")

    specs = sw.TensorSpec((16,), "f4E2M1FN"), sw.TensorSpec((16,), "i4")
    b = sw.Builder("main")
    x, q = b.input("x", (16,), "f4E2M1FN"), b.input("q", (16,), "i4")
    for result in b.call_kernel(halved, x, q, results=specs):
        b.output(result)
    values, numbers = patterns("f4E2M1FN")[:16], patterns("i4")[:16]
    y, p = sw.compile(b.module())(values, numbers)
    wide = values.astype(np.float32)
    same(y, (wide * 0.5).astype(ml_dtypes.float4_e2m1fn))
    total = wide.astype(np.int32) + numbers.astype(np.int32)
    same(p, total.astype(ml_dtypes.int4))
