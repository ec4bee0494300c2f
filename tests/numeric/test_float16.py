"""f16 on machines with and without instructions that convert it: every value, every rounding."""

from __future__ import annotations

import ctypes
import dataclasses

import numpy as np
import pytest
from xdsl.parser import Parser

import stepwell as sw
from stepwell.backends.llvm.jit import compile_module
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host, named

from ..harness import as_reference, floats

TARGETS, NAMES = [host()], ["host"]
if host().triple.startswith("x86_64"):
    # AVX-512 has conversions of its own.
    features = f"{host().features},-f16c,-avx512f"
    TARGETS += [dataclasses.replace(host(), features=features), named("x86-64"), named("x86-64-v2")]
    NAMES += ["without", "x86-64", "x86-64-v2"]
NAMED_TARGETS = [
    pytest.param(target, id=name, marks=pytest.mark.slow if name == "x86-64-v2" else ())
    for target, name in zip(TARGETS, NAMES, strict=True)
]

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def cast(source: str, target: str) -> sw.Module:
    b = sw.Builder("main")
    b.output(b.cast(b.input("x", ("n",), source), target), name="y")
    return b.module()


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def near_ties(dtype: type[np.floating]) -> np.ndarray:
    """All middles between neighbouring f16, their neighbours in `dtype`, and what is beyond."""
    finite = np.sort(EVERY[np.isfinite(EVERY)]).astype(dtype)
    middles = (finite[1:] + finite[:-1]) / 2
    edges = np.array([65519.996, 65520.0, 65536.0, 1e30, 1e-30, 2**-25, 0.0, np.inf], dtype)
    exact = np.concatenate([finite, middles, edges, -edges])
    up, down = (np.nextafter(exact, dtype(d), dtype=dtype) for d in (np.inf, -np.inf))
    return np.concatenate([exact, up, down])


@pytest.mark.parametrize("target", NAMED_TARGETS)
@pytest.mark.parametrize("level", [0, 3])
def test_every_f16_as_f32(level: int, target: sw.Target) -> None:
    found = sw.compile(cast("f16", "f32"), target, threads=1, opt_level=level)(EVERY)
    with np.errstate(invalid="ignore"):
        expected = bits(EVERY.astype(np.float32))
    # A signalling NaN becomes a quiet one, as by the instruction.
    expected = np.where(np.isnan(EVERY), expected | 0x400000, expected)
    np.testing.assert_array_equal(bits(found), expected)


@pytest.mark.parametrize("target", NAMED_TARGETS)
@pytest.mark.parametrize("level", [0, 3])
def test_f32_rounds_to_nearest_even(level: int, target: sw.Target, all_tests: bool) -> None:
    count = 1 << (20 if all_tests else 16)
    random = np.random.default_rng(0).integers(0, 1 << 32, count, np.uint32).view(np.float32)
    x = np.concatenate([near_ties(np.float32), random])
    found = sw.compile(cast("f32", "f16"), target, threads=1, opt_level=level)(x)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(bits(found)[number], bits(expected)[number])
    of_nan = bits(x)[~number] >> 13
    quiet = (of_nan >> 3 & 0x8000) | 0x7E00 | (of_nan & 0x3FF)
    np.testing.assert_array_equal(bits(found)[~number], quiet)


@pytest.mark.parametrize("target", NAMED_TARGETS)
@pytest.mark.parametrize("level", [0, 3])
def test_f64_is_rounded_once(level: int, target: sw.Target, all_tests: bool) -> None:
    count = 1 << (18 if all_tests else 14)
    random = np.random.default_rng(0).integers(0, 1 << 63, count).view(np.float64)
    scaled = np.random.default_rng(1).standard_normal(count) * 100
    x = np.concatenate([near_ties(np.float64), random[~np.isnan(random)], scaled])
    exe = sw.compile(cast("f64", "f16"), target, threads=1, opt_level=level)
    found = exe(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(found), bits(x.astype(np.float16)))
    assert np.isnan(exe(np.full(3, np.nan))).all()


USUAL_PROGRAMS = {("host", "n"), ("without", 7)}


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        pytest.param(
            *(rows, target),
            marks=() if (name, rows) in USUAL_PROGRAMS else pytest.mark.slow,
            id=f"{rows}-{name}",
        )
        for rows in (1, 7, "n")
        for target, name in zip(TARGETS, NAMES, strict=True)
    ],
)
def test_programs_on_f16(rows: int | str, target: sw.Target) -> None:
    w, bias = (floats(*shape, dtype=np.float16) for shape in ((33, 19), (33,)))
    b = sw.Builder("main")
    h = b.gelu(b.dense(b.input("x", (rows, 19), "f16"), w, bias))
    b.output(b.softmax(h), name="y")
    b.output(b.cast(b.reduce(h, "max", [1]), "i32"), name="z")
    module = b.module()
    x = floats(7 if rows == "n" else int(rows), 19, dtype=np.float16)
    # Each value is rounded to f16 where it is stored: 11 bits.
    as_reference(module, x, rtol=2e-3, target=target, threads=1)


ARITHMETIC = """
func.func @f(%x: memref<?x{0}>, %y: memref<?x{0}>, %z: memref<?x{0}>, %t: memref<?xi32>, %n: index)
    {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %half = arith.constant 0.5 : {0}
  scf.for %i = %zero to %n step %one {{
    %a = memref.load %x[%i] : memref<?x{0}>
    %b = memref.load %y[%i] : memref<?x{0}>
    %q = arith.divf %a, %b : {0}
    %m = arith.mulf %q, %half : {0}
    %s = arith.subf %a, %m : {0}
    %w = math.sqrt %s : {0}
    memref.store %w, %z[%i] : memref<?x{0}>
    %c = arith.cmpf olt, %a, %b : {0}
    %d = arith.select %c, %a, %b : {0}
    %k = arith.fptosi %d : {0} to i32
    memref.store %k, %t[%i] : memref<?xi32>
  }}
  func.return
}}
"""


@pytest.mark.parametrize("target", NAMED_TARGETS)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_arithmetic_on_16_bits(kind: str, target: sw.Target) -> None:
    """Kernels written by hand may compute with them: in f32, each result rounded."""
    import ml_dtypes

    dtype = np.dtype(np.float16 if kind == "f16" else ml_dtypes.bfloat16)
    ctx = make_context(target=target)
    module = Parser(ctx, ARITHMETIC.format(kind)).parse_module()
    run_passes(ctx, module, "convert-math-to-arith,convert-scf-to-cf,convert-to-llvm")
    code = compile_module(module, target)
    random = np.random.default_rng(0)
    x, y = (random.uniform(-90, 90, 1000).astype(dtype) for _ in range(2))
    z, t = np.zeros(1000, dtype), np.zeros(1000, np.int32)
    arguments = [v for a in (x, y, z, t) for v in (a.ctypes.data, 1000)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)(code.address("f"))(*arguments, 1000)
    with np.errstate(all="ignore"):
        scaled = (x / y * dtype.type(0.5)).astype(dtype)
        expected = np.sqrt((x - scaled).astype(dtype))
    np.testing.assert_array_equal(z.astype(np.float32), expected.astype(np.float32))
    np.testing.assert_array_equal(t, np.where(x < y, x, y).astype(np.float32).astype(np.int32))
