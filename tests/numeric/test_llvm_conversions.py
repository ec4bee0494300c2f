"""Programs of the standard dialects and of rt, converted to LLVM and run, against NumPy.

Every program goes down two ways: all conversions in one walk, and one after the other. The
order of the floating-point operations is that of NumPy or is named in the test; where it is
not, the tolerance is a few units in the last place of the largest term.
"""

from __future__ import annotations

import ctypes
import functools
import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser

from stepwell.backends.llvm.jit import CompiledModule, Effort, compile_module
from stepwell.core.boundary.indices import CsrFault
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host
from stepwell.dialects.rt import ops as rt

from ..harness import cases, tool

ONE_WALK = "rt-outline-tiles,convert-scf-to-cf,convert-rt-to-llvm,convert-to-llvm"
ONE_BY_ONE = (
    "rt-outline-tiles,convert-scf-to-cf,convert-rt-to-llvm,convert-memref-to-llvm,"
    "convert-vector-to-llvm,convert-math-to-llvm,convert-arith-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm"
)
OTHER_ORDER = (
    "rt-outline-tiles,convert-scf-to-cf,convert-rt-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-arith-to-llvm,convert-math-to-llvm,convert-vector-to-llvm,"
    "convert-memref-to-llvm"
)

Build = Callable[[str], CompiledModule]


@pytest.fixture(
    params=cases([ONE_WALK, ONE_BY_ONE, OTHER_ORDER], [ONE_WALK, ONE_BY_ONE]),
    ids=["one-walk", "each", "reversed"],
)
def build(request: pytest.FixtureRequest) -> Build:
    return functools.partial(built, request.param)


@functools.cache
def built(passes: str, text: str) -> CompiledModule:
    """The machine code of a program, one for all tests that call it."""
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    module.verify()
    run_passes(ctx, module, passes)
    leftover = {op.name for op in module.walk() if not op.name.startswith("llvm.")}
    assert leftover == {"builtin.module"}
    return compile_module(module, host())


def call(code: CompiledModule, name: str, *args: Any, result: Any = None) -> Any:
    """Call a function: an array is passed as its address, an int as i64, a float as f64."""
    values = [arg.ctypes.data if isinstance(arg, np.ndarray) else arg for arg in args]
    kinds = [
        ctypes.c_void_p
        if isinstance(arg, np.ndarray)
        else ctypes.c_double
        if isinstance(arg, float)
        else ctypes.c_int64
        for arg in args
    ]
    return ctypes.CFUNCTYPE(result, *kinds)(code.address(name))(*values)


ROW_SUMS = """
func.func @row_sums(%x: memref<?x7xf32> {llvm.noalias}, %y: memref<?xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x7xf32>
  scf.for %i = %c0 to %n step %c1 {
    %s = scf.for %k = %c0 to %c7 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i, %k] : memref<?x7xf32>
      %t = arith.addf %acc, %v : f32
      scf.yield %t : f32
    }
    memref.store %s, %y[%i] : memref<?xf32>
  }
  func.return
}
"""


@pytest.mark.parametrize("rows", [0, 1, 2, 13])
def test_loops_over_rows(build: Build, rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 7), np.float32)
    y = np.full(rows + 1, -1, np.float32)
    call(build(ROW_SUMS), "row_sums", x, rows, y, rows)
    expected = np.zeros(rows, np.float32)
    for column in x.T:
        expected += column
    np.testing.assert_array_equal(y[:rows], expected)
    assert y[rows] == -1


TRANSPOSE = """
func.func @transpose(%x: memref<?x?x?xf64>, %y: memref<?x?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.dim %x, %c0 : memref<?x?x?xf64>
  %b = memref.dim %x, %c1 : memref<?x?x?xf64>
  %c = memref.dim %x, %c2 : memref<?x?x?xf64>
  scf.for %i = %c0 to %a step %c1 {
    scf.for %j = %c0 to %b step %c1 {
      scf.for %k = %c0 to %c step %c1 {
        %v = memref.load %x[%i, %j, %k] : memref<?x?x?xf64>
        memref.store %v, %y[%k, %i, %j] : memref<?x?x?xf64>
      }
    }
  }
  func.return
}
"""


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (3, 0, 2), (4, 1, 7)])
def test_symbolic_strides(build: Build, shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    y = np.zeros((shape[2], shape[0], shape[1]))
    call(build(TRANSPOSE), "transpose", x, *x.shape, y, *y.shape)
    np.testing.assert_array_equal(y, x.transpose(2, 0, 1))


# Known offsets, products of sizes, negative offsets: what the address arithmetic takes apart.
STENCIL = """
func.func @stencil(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %d: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m1 = arith.constant -1 : index
  %c3 = arith.constant 3 : index
  %m = memref.dim %y, %c0 : memref<?x?xf32>
  %n = memref.dim %y, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %i3 = arith.muli %i, %c3 : index
      %i4 = arith.addi %i3, %c1 : index
      %jd = arith.addi %j, %d : index
      %je = arith.addi %jd, %m1 : index
      %a = memref.load %x[%i4, %je] : memref<?x?xf32>
      %b = memref.load %x[%i3, %jd] : memref<?x?xf32>
      %s = arith.subf %a, %b : f32
      memref.store %s, %y[%i, %j] : memref<?x?xf32>
    }
  }
  func.return
}
"""


def test_sums_of_indices(build: Build) -> None:
    x = np.random.default_rng(0).standard_normal((11, 9), np.float32)
    y = np.zeros((3, 4), np.float32)
    call(build(STENCIL), "stencil", x, 11, 9, y, 3, 4, 2)
    np.testing.assert_array_equal(y, x[1:10:3, 1:5] - x[0:9:3, 2:6])


HINTS = """
func.func @hints(%x: memref<4xf32>, %i: index) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  memref.prefetch %x[%i], read, locality<2>, data : memref<4xf32>
  memref.prefetch %x[%i], write, locality<3>, data : memref<4xf32>
  memref.store %one, %x[%c1] : memref<4xf32>
  func.return
}
"""


@pytest.mark.parametrize("place", [0, 4, -(2**40), 2**40])
def test_hints_read_nothing(build: Build, place: int) -> None:
    x = np.zeros(4, np.float32)
    call(build(HINTS), "hints", x, place)
    np.testing.assert_array_equal(x, [0, 1, 0, 0])


MASKS = """
func.func @masks(%x: memref<?xf32>, %y: memref<?xf32>, %b: memref<?xi1>, %n: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %m = vector.create_mask %n : vector<16xi1>
  %v = vector.maskedload %x[%c0], %m, %zero
      : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %neg = arith.cmpf olt, %v, %zero : vector<16xf32>
  %opp = arith.negf %v : vector<16xf32>
  %abs = arith.select %neg, %opp, %v : vector<16xi1>, vector<16xf32>
  vector.maskedstore %y[%c0], %m, %abs : memref<?xf32>, vector<16xi1>, vector<16xf32>
  vector.maskedstore %b[%c0], %m, %neg : memref<?xi1>, vector<16xi1>, vector<16xi1>
  func.return
}
"""


@pytest.mark.parametrize("n", [-3, 0, 1, 7, 15, 16, 17, 2**40])
def test_masked_lanes(build: Build, n: int) -> None:
    """Lanes that are not set are neither read nor written: they lie past the buffer's end."""
    size = min(max(n, 0), 16)
    x = np.random.default_rng(1).standard_normal(size, np.float32)
    y, b = np.full(20, 7, np.float32), np.full(20, 9, np.uint8)
    call(build(MASKS), "masks", x, size, y, 20, b, 20, n)
    np.testing.assert_array_equal(y[:size], np.abs(x))
    np.testing.assert_array_equal(b[:size], x < 0)
    assert (y[size:] == 7).all()
    assert (b[size:] == 9).all()


BOOLS = """
func.func @bools(%x: memref<?xi1>, %y: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  %trues = arith.constant dense<true> : vector<8xi1>
  %v = vector.load %x[%c0] : memref<?xi1>, vector<8xi1>
  %not = arith.xori %v, %trues : vector<8xi1>
  vector.store %not, %y[%c0] : memref<?xi1>, vector<8xi1>
  %s = memref.load %x[%c8] : memref<?xi1>
  %t = arith.xori %s, %true : i1
  memref.store %t, %y[%c8] : memref<?xi1>
  func.return
}
"""


def test_bool_is_a_byte(build: Build) -> None:
    """NumPy's True is 1; any other byte that is not 0 counts as true too."""
    x = np.array([0, 1, 1, 0, 255, 2, 0, 1, 1], np.uint8)
    y = np.full(10, 9, np.uint8)
    call(build(BOOLS), "bools", x, 9, y, 10)
    np.testing.assert_array_equal(y, [*(x == 0), 9])


HALVES = """
func.func @halves(%x: memref<?xf16>, %y: memref<?xf32>, %z: memref<?xf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %v = vector.load %x[%c0] : memref<?xf16>, vector<8xf16>
  %w = arith.extf %v : vector<8xf16> to vector<8xf32>
  %s = arith.mulf %w, %w : vector<8xf32>
  vector.store %s, %y[%c0] : memref<?xf32>, vector<8xf32>
  %t = arith.truncf %s : vector<8xf32> to vector<8xf16>
  vector.store %t, %z[%c0] : memref<?xf16>, vector<8xf16>
  %a = memref.load %x[%c8] : memref<?xf16>
  %b = arith.extf %a : f16 to f32
  memref.store %b, %y[%c8] : memref<?xf32>
  %c = arith.truncf %b : f32 to f16
  memref.store %c, %z[%c8] : memref<?xf16>
  func.return
}
"""


def test_half_precision_in_memory(build: Build) -> None:
    x = np.array([0, -1.5, 65504, 1e-7, np.inf, np.nan, 3, -0.0, 2.25], np.float16)
    y, z = np.zeros(9, np.float32), np.zeros(9, np.float16)
    call(build(HALVES), "halves", x, 9, y, 9, z, 9)
    wide = x.astype(np.float32)
    expected = np.append(wide[:8] * wide[:8], wide[8])
    np.testing.assert_array_equal(y, expected)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(z, expected.astype(np.float16))


DOUBLES = """
func.func @doubles(%x: memref<4xf64>, %y: memref<9x4xf64>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<4xf64>, vector<4xf64>
"""
DOUBLE_FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "floor": np.floor,
    "roundeven": np.round,
    "expm1": np.expm1,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def test_functions_of_double_precision(build: Build) -> None:
    """LLVM calls libm lane by lane; it and NumPy differ by an ulp or two."""
    body = "".join(
        f"%r{row} = math.{name} %v : vector<4xf64>\n%k{row} = arith.constant {row} : index\n"
        f"vector.store %r{row}, %y[%k{row}, %c0] : memref<9x4xf64>, vector<4xf64>\n"
        for row, name in enumerate(DOUBLE_FUNCTIONS)
    )
    x = np.array([0.5, 1.5, 2.5, 0.001])
    y = np.zeros((9, 4))
    call(build(DOUBLES + body + "func.return\n}"), "doubles", x, y)
    for row, function in zip(y, DOUBLE_FUNCTIONS.values(), strict=True):
        np.testing.assert_allclose(row, function(x), rtol=5e-16, atol=0)


INTEGERS = """
func.func @integers(%x: memref<?xi32>, %d: memref<?xi32>, %y: memref<9x?xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xi32>
    %b = memref.load %d[%i] : memref<?xi32>
    %0 = arith.floordivsi %a, %b : i32
    memref.store %0, %y[%c0, %i] : memref<9x?xi32>
    %1 = arith.ceildivsi %a, %b : i32
    memref.store %1, %y[%c1, %i] : memref<9x?xi32>
    %2 = arith.divsi %a, %b : i32
    memref.store %2, %y[%c2, %i] : memref<9x?xi32>
    %3 = math.absi %a : i32
    memref.store %3, %y[%c3, %i] : memref<9x?xi32>
    %4 = arith.ceildivui %3, %b : i32
    memref.store %4, %y[%c4, %i] : memref<9x?xi32>
    %5 = arith.maxsi %a, %b : i32
    memref.store %5, %y[%c5, %i] : memref<9x?xi32>
    %6 = arith.minsi %a, %b : i32
    memref.store %6, %y[%c6, %i] : memref<9x?xi32>
    %7 = arith.maxui %a, %b : i32
    memref.store %7, %y[%c7, %i] : memref<9x?xi32>
    %8 = arith.minui %a, %b : i32
    memref.store %8, %y[%c8, %i] : memref<9x?xi32>
  }
  func.return
}
"""


EXTREMA = (np.maximum, np.minimum)


def test_integers(build: Build) -> None:
    a, b = (v.ravel().astype(np.int32) for v in np.meshgrid(np.arange(-7, 8), [-3, -1, 1, 2, 5]))
    y = np.zeros((9, a.size), np.int32)
    call(build(INTEGERS), "integers", a, a.size, b, a.size, y, a.size, a.size)
    truncated = np.array([int(p / q) for p, q in zip(a, b, strict=True)])
    unsigned = -(-np.abs(a).astype(np.int64) // b.view(np.uint32).astype(np.int64))
    expected = [a // b, -(-a // b), truncated, np.abs(a), unsigned]
    expected += [np.maximum(a, b), np.minimum(a, b)]
    expected += [f(a.view(np.uint32), b.view(np.uint32)).view(np.int32) for f in EXTREMA]
    np.testing.assert_array_equal(y, expected)


REDUCTIONS = """
func.func @reductions(%x: memref<?xf32>, %i: memref<?xi32>, %y: memref<?xf32>, %z: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %hundred = arith.constant 100.0 : f32
  %v = vector.load %x[%c0] : memref<?xf32>, vector<8xf32>
  %w = vector.load %i[%c0] : memref<?xi32>, vector<8xi32>
  %a = vector.reduction <add>, %v, %hundred fastmath<reassoc> : vector<8xf32> into f32
  %b = vector.reduction <mul>, %v : vector<8xf32> into f32
  %c = vector.reduction <maximumf>, %v : vector<8xf32> into f32
  %d = vector.reduction <minnumf>, %v, %hundred : vector<8xf32> into f32
  memref.store %a, %y[%c0] : memref<?xf32>
  memref.store %b, %y[%c1] : memref<?xf32>
  memref.store %c, %y[%c2] : memref<?xf32>
  memref.store %d, %y[%c3] : memref<?xf32>
  %e = vector.reduction <add>, %w : vector<8xi32> into i32
  %f = vector.reduction <maxsi>, %w : vector<8xi32> into i32
  %g = vector.reduction <maxui>, %w : vector<8xi32> into i32
  memref.store %e, %z[%c0] : memref<?xi32>
  memref.store %f, %z[%c1] : memref<?xi32>
  memref.store %g, %z[%c2] : memref<?xi32>
  func.return
}
"""


def test_reductions_of_a_vector(build: Build) -> None:
    x = np.random.default_rng(2).standard_normal(8, np.float32)
    i = np.array([3, -1, 7, 0, 2, -9, 1, 1], np.int32)
    y, z = np.zeros(4, np.float32), np.zeros(3, np.int32)
    call(build(REDUCTIONS), "reductions", x, 8, i, 8, y, 4, z, 3)
    # The sum and the product may be taken in any order: 8 roundings of values near 100.
    np.testing.assert_allclose(y[:2], [100 + x.sum(), x.prod()], rtol=1e-6)
    np.testing.assert_array_equal(y[2:], [x.max(), x.min()])
    np.testing.assert_array_equal(z, [i.sum(), i.max(), i.view(np.uint32).max().view(np.int32)])


LANES = """
func.func @lanes(%x: memref<?xf32>, %at: memref<?xi32>, %y: memref<5x8xf32>, %lane: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = vector.load %x[%c0] : memref<?xf32>, vector<8xf32>
  %s = vector.extract %v[%lane] : f32 from vector<8xf32>
  %t = vector.extract %v[3] : f32 from vector<8xf32>
  %p = arith.addf %s, %t : f32
  %b = vector.broadcast %p : f32 to vector<8xf32>
  %c = vector.insert %t, %b [5] : f32 into vector<8xf32>
  vector.store %c, %y[%c0, %c0] : memref<5x8xf32>, vector<8xf32>
  %q = vector.load %x[%c0] : memref<?xf32>, vector<3xf32>
  %m = vector.shuffle %v, %q [10, 0, 9, 8, 7, 1, 2, 6] : vector<8xf32>, vector<3xf32>
  vector.store %m, %y[%c1, %c0] : memref<5x8xf32>, vector<8xf32>
  %f = vector.fma %v, %m, %c : vector<8xf32>
  vector.store %f, %y[%c2, %c0] : memref<5x8xf32>, vector<8xf32>
  %o = vector.load %at[%c0] : memref<?xi32>, vector<8xi32>
  %on = arith.constant dense<[true, true, false, true, true, false, true, true]> : vector<8xi1>
  %g = vector.gather %x[%c1] [%o], %on, %c
      : memref<?xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %g, %y[%c3, %c0] : memref<5x8xf32>, vector<8xf32>
  %h = vector.shuffle %q, %v [10, 0, 9, 3, 7, 1, 2, 6] : vector<3xf32>, vector<8xf32>
  %c4 = arith.constant 4 : index
  vector.store %h, %y[%c4, %c0] : memref<5x8xf32>, vector<8xf32>
  func.return
}
"""


@pytest.mark.parametrize("lane", [0, 7])
def test_lanes_move(build: Build, lane: int) -> None:
    x = np.random.default_rng(3).standard_normal(20, np.float32)
    at = np.array([0, 18, 10**6, 3, 3, -(10**6), 7, 1], np.int32)
    y = np.zeros((5, 8), np.float32)
    call(build(LANES), "lanes", x, 20, at, 8, y, lane)
    inserted = np.full(8, x[lane] + x[3], np.float32)
    inserted[5] = x[3]
    shuffled = np.concatenate([x[:8], x[:3]])[[10, 0, 9, 8, 7, 1, 2, 6]]
    fused = (x[:8].astype(np.float64) * shuffled + inserted).astype(np.float32)
    shorter_first = np.concatenate([x[:3], x[:8]])[[10, 0, 9, 3, 7, 1, 2, 6]]
    on = np.array([1, 1, 0, 1, 1, 0, 1, 1], bool)
    gathered = np.where(on, x[np.where(on, at, 0) + 1], inserted)
    np.testing.assert_array_equal(y[[0, 1, 3, 4]], [inserted, shuffled, gathered, shorter_first])
    # Double rounding in the reference, against one rounding of a fused operation.
    np.testing.assert_allclose(y[2], fused, rtol=1e-6, atol=1e-6)


BRANCHES = """
func.func @collatz(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  cf.br ^head(%n, %zero : i64, i64)
^head(%x: i64, %steps: i64):
  %one = arith.constant 1 : i64
  %done = arith.cmpi eq, %x, %one : i64
  cf.cond_br %done, ^end(%steps : i64), ^body
^body:
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %half = arith.divui %x, %two : i64
  %odd = arith.remui %x, %two : i64
  %triple = arith.muli %x, %three : i64
  %more = arith.addi %triple, %one : i64
  %is_odd = arith.trunci %odd : i64 to i1
  %up = arith.addi %steps, %one : i64
  cf.cond_br %is_odd, ^head(%more, %up : i64, i64), ^head(%half, %up : i64, i64)
^end(%result: i64):
  func.return %result : i64
}
"""


def test_both_branches_to_one_block(build: Build) -> None:
    code = build(BRANCHES)
    got = [call(code, "collatz", n, result=ctypes.c_int64) for n in (1, 2, 3, 27)]
    assert got == [0, 1, 7, 111]


SWITCH = """
func.func @switch(%f: i64) -> i64 {
  %a = arith.constant 10 : i64
  %b = arith.constant 20 : i64
  %c = arith.constant 30 : i64
  cf.switch %f : i64, [
    default: ^bb1(%a : i64),
    1: ^bb1(%b : i64),
    -7: ^bb2
  ]
^bb1(%x: i64):
  func.return %x : i64
^bb2:
  func.return %c : i64
}
"""


def test_switch(build: Build) -> None:
    code = build(SWITCH)
    assert [call(code, "switch", f, result=ctypes.c_int64) for f in (0, 1, -7)] == [10, 20, 30]


CALLS = """
func.func private @scale(%x: memref<?xf32> {llvm.noalias}, %by: f64) -> (f64, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %f = arith.truncf %by : f64 to f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.mulf %v, %f : f32
    memref.store %w, %x[%i] : memref<?xf32>
  }
  %m = arith.index_cast %n : index to i64
  func.return %by, %m : f64, i64
}
func.func @twice(%x: memref<?xf32>, %by: f64) -> f64 {
  %a, %n = func.call @scale(%x, %by) : (memref<?xf32>, f64) -> (f64, i64)
  %b, %m = func.call @scale(%x, %a) : (memref<?xf32>, f64) -> (f64, i64)
  %s = arith.addi %n, %m : i64
  %t = arith.sitofp %s : i64 to f64
  func.return %t : f64
}
"""


def test_calls_with_several_results(build: Build) -> None:
    code = build(CALLS)
    x = np.arange(5, dtype=np.float32)
    assert call(code, "twice", x, 5, 3.0, result=ctypes.c_double) == 10.0
    np.testing.assert_array_equal(x, 9 * np.arange(5))
    assert list(code.addresses) == ["twice"]


STACK = """
func.func @stack(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %n step %c3 {
    %t = memref.alloca() : memref<3xf32>
    scf.for %j = %c0 to %c3 step %c1 {
      %at = arith.addi %i, %j : index
      %v = memref.load %x[%at] : memref<?xf32>
      memref.store %v, %t[%j] : memref<3xf32>
    }
    %w = vector.load %t[%c0] : memref<3xf32>, vector<3xf32>
    %r = vector.shuffle %w, %w [2, 1, 0] : vector<3xf32>, vector<3xf32>
    vector.store %r, %x[%i] : memref<?xf32>, vector<3xf32>
  }
  func.return
}
"""


def test_stack_in_a_loop_does_not_grow(build: Build) -> None:
    x = np.arange(3 * 10**6, dtype=np.float32)
    call(build(STACK), "stack", x, x.size, x.size)
    np.testing.assert_array_equal(x.reshape(-1, 3)[:, ::-1].ravel(), np.arange(x.size))


# rt


MAIN = """
func.func private @double(%x: memref<?xf32> {llvm.noalias}, %w: memref<3xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  rt.parallel_tiles %n captures(%x, %w : memref<?xf32>, memref<3xf32>) {
  ^bb0(%t: index, %a: memref<?xf32>, %b: memref<3xf32>):
    %c1 = arith.constant 1 : index
    %v = memref.load %a[%t] : memref<?xf32>
    %f = memref.load %b[%c1] : memref<3xf32>
    %p = arith.mulf %v, %f : f32
    memref.store %p, %a[%t] : memref<?xf32>
    rt.yield
  }
  func.return
}
func.func @main(%ctx: !rt.context, %x: memref<?xf32>, %n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %w = rt.constant %ctx, 1 "w" : memref<3xf32>
  %size = memref.dim %x, %c0 : memref<?xf32>
  %same = arith.cmpi eq, %size, %n : index
  rt.check %ctx, %same, "x: sizes differ, expected {0}, got {1}"(%n, %size)
  %bytes = arith.muli %n, %c4 : index
  %arena = rt.arena %ctx, %bytes : memref<?xi8>
  %t = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?xf32>
  "memref.copy"(%x, %t) : (memref<?xf32>, memref<?xf32>) -> ()
  rt.call @double(%t, %w) : memref<?xf32>, memref<3xf32>
  rt.call_packed %ctx, 0 "env.f" ins(%t, %w : memref<?xf32>, memref<3xf32>) outs(%x : memref<?xf32>)
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
"""

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))


class Context:
    """The run time's side of a call."""

    def __init__(
        self,
        constants: Sequence[np.ndarray] = (),
        functions: Sequence[Any] = (),
        arena_bytes: int = 4096,
    ):
        self.arena = np.zeros(arena_bytes + 64, np.uint8)
        self.kept = (constants, functions)
        self.constants = np.array([array.ctypes.data for array in constants], np.int64)
        addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
        self.functions = np.array(addresses, np.int64)
        self.words = np.zeros(rt.WORDS, np.int64)
        self.words[rt.Word.CONSTANTS] = self.constants.ctypes.data
        self.words[rt.Word.FUNCTIONS] = self.functions.ctypes.data
        self.words[rt.Word.ARENA] = -(-self.arena.ctypes.data // 64) * 64
        self.words[rt.Word.ARENA_BYTES] = arena_bytes

    @property
    def details(self) -> list[int]:
        return self.words[rt.Word.DETAILS : rt.Word.ITERATIONS].tolist()


def test_main_calls_kernels_and_registered_functions(build: Build) -> None:
    seen: list[list[int]] = []

    def function(words: Any) -> int:
        seen.append([words[1], words[3], words[5]])
        source = np.frombuffer((ctypes.c_float * words[1]).from_address(words[0]), np.float32)
        target = np.frombuffer((ctypes.c_float * words[5]).from_address(words[4]), np.float32)
        target[:] = source + 1
        return 0

    w = np.array([0, 2, 0], np.float32)
    context = Context([w, w], [FUNCTION(function)])
    code = build(MAIN)
    x = np.arange(5, dtype=np.float32)
    assert call(code, "main", context.words, x, 5, 5, result=ctypes.c_int32) == 0
    np.testing.assert_array_equal(x, 2 * np.arange(5) + 1)
    assert seen == [[5, 3, 5]]


def test_main_returns_what_failed(build: Build) -> None:
    code = build(MAIN)
    x, w = np.zeros(5, np.float32), np.ones(3, np.float32)
    fails = FUNCTION(lambda words: 1)

    def run(n: int, **options: int) -> tuple[int, list[int]]:
        context = Context([w, w], [fails], **options)
        status = call(code, "main", context.words, x, 5, n, result=ctypes.c_int32)
        return status, context.details

    assert run(7) == (1, [7, 5, 0])
    assert run(5, arena_bytes=19) == (rt.ARENA_TOO_SMALL, [20, 0, 0])
    assert run(5, arena_bytes=20)[0] == 2


def csr_program(pointer: str, index: str) -> str:
    return f"""
    func.func @main(
        %ctx: !rt.context, %p: memref<?x{pointer}>, %i: memref<?x{index}>, %n: index) -> i32 {{
      rt.check_csr %ctx, %p, %i, %n "graph" : memref<?x{pointer}>, memref<?x{index}>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }}
    """


@pytest.mark.parametrize(("pointer", "index"), [("i32", "i32"), ("i64", "i32"), ("i32", "i64")])
def test_csr_is_checked(build: Build, pointer: str, index: str) -> None:
    code = build(csr_program(pointer, index))

    def run(indptr: Any, indices: Any, columns: int) -> tuple[int, list[int]]:
        p = np.array(indptr, "i4" if pointer == "i32" else "i8")
        i = np.array(indices, "i4" if index == "i32" else "i8")
        context = Context()
        args = (context.words, p, p.size, i, i.size, columns)
        return call(code, "main", *args, result=ctypes.c_int32), context.details

    def fault(kind: CsrFault, position: int, value: int) -> tuple[int, list[int]]:
        return 1, [kind, position, value]

    assert run([0, 1, 3], [4, 9, 0], 10)[0] == 0
    assert run([0], [], 0)[0] == 0
    assert run([0, 0, 0, 0], [], 5)[0] == 0
    assert run([], [], 5) == fault(CsrFault.START, 0, 0)
    assert run([1, 1, 3], [4, 9, 0], 10) == fault(CsrFault.START, 0, 1)
    assert run([0, 4, 3], [4, 9, 0], 10) == fault(CsrFault.ORDER, 1, 4)
    assert run([0, 1, 2], [4, 9, 0], 10) == fault(CsrFault.END, 3, 2)
    assert run([0, 1, 3], [4, 10, 0], 10) == fault(CsrFault.INDEX, 1, 10)
    assert run([0, 1, 3], [4, 9, -1], 10) == fault(CsrFault.INDEX, 2, -1)
    assert run([0, 1, 3], [4, 9, 0], 2**40)[0] == 0

    # Every place of the vector loop, of its borders and of the rest finds what is wrong.
    random = np.random.default_rng(0)
    entries = random.integers(0, 1000, 1003)
    for position in (0, 1, 15, 16, 63, 64, 511, 991, 992, 1002):
        wrong = entries.copy()
        wrong[position] = 1000
        assert run([0, 1003], wrong, 1000) == fault(CsrFault.INDEX, position, 1000)
    rows = np.sort(random.integers(0, 500, 1004))
    rows[0], rows[-1] = 0, 500
    assert run(rows, np.zeros(500), 1)[0] == 0
    for position in (1, 15, 16, 63, 64, 130, 992, 1002):
        wrong = rows.copy()
        wrong[position] = wrong[position + 1] + 1
        expected = fault(CsrFault.ORDER, position, wrong[position])
        assert run(wrong, np.zeros(500), 1) == expected


@pytest.mark.parametrize("element", ["i32", "i64"])
@pytest.mark.parametrize("least", [-20, 0])
def test_indices_are_checked(build: Build, element: str, least: int) -> None:
    form = "" if least else " from_front"
    code = build(f"""
    func.func @main(%ctx: !rt.context, %i: memref<?x3x{element}>, %n: index) -> i32 {{
      rt.check_index %ctx, %i, %n "ids"{form} : memref<?x3x{element}>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }}
    """)
    dtype = np.dtype("i4" if element == "i32" else "i8")

    def run(indices: np.ndarray, extent: int) -> tuple[int, list[int]]:
        context = Context()
        array = indices.astype(dtype).reshape(-1, 3)
        args = (context.words, array, len(array), extent)
        return call(code, "main", *args, result=ctypes.c_int32), context.details

    fine = np.random.default_rng(0).integers(least, 20, 300)
    assert run(fine, 20)[0] == 0
    assert run(fine[:0], 0)[0] == 0
    assert run(fine, 2**35)[0] == 0
    low = least - 1
    for position, value in ((0, 20), (63, low), (64, 20), (299, low), (255, 2**31 - 1)):
        wrong = fine.copy()
        wrong[position] = value
        assert run(wrong, 20) == (1, [position, value, 20])
    extreme = np.array([0, np.iinfo(dtype).min, 1])
    assert run(extreme, 20) == (1, [1, np.iinfo(dtype).min, 20])


@pytest.mark.parametrize("element", ["i32", "i64"])
def test_offsets_are_checked(build: Build, element: str) -> None:
    code = build(f"""
    func.func @main(%ctx: !rt.context, %i: memref<?x{element}>, %n: index) -> i32 {{
      rt.check_offsets %ctx, %i, %n "ids" : memref<?x{element}>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }}
    """)
    dtype = np.dtype("i4" if element == "i32" else "i8")

    def run(offsets: np.ndarray, extent: int) -> tuple[int, list[int]]:
        context = Context()
        array = offsets.astype(dtype)
        args = (context.words, array, len(array), extent)
        return call(code, "main", *args, result=ctypes.c_int32), context.details

    fine = np.sort(np.random.default_rng(0).integers(0, 901, 300))
    for offsets, extent in ((fine, 900), (fine, 2**35), (fine[:0], 0), (fine[:1] * 0, 0)):
        assert run(offsets, extent)[0] == 0
    for position, value in ((0, -1), (63, -5), (64, 901), (299, 901), (299, np.iinfo(dtype).min)):
        wrong = fine.copy()
        wrong[position] = value
        assert run(wrong, 900) == (1, [position, value, 900])
    for position in (0, 15, 63, 64, 298):
        wrong = fine.copy()
        wrong[position] = wrong[position + 1] + 1
        assert run(wrong, 2000) == (1, [position, wrong[position], 2000])


# Efforts and upstream


@pytest.mark.parametrize("effort", cases([*Effort], [Effort.NONE, Effort.O3]))
def test_passes_of_llvm_do_not_change_results(effort: Effort) -> None:
    ctx = make_context()
    module = Parser(ctx, STACK).parse_module()
    run_passes(ctx, module, ONE_WALK)
    x = np.arange(9, dtype=np.float32)
    call(compile_module(module, host(), effort), "stack", x, 9, 9)
    np.testing.assert_array_equal(x, [2, 1, 0, 5, 4, 3, 8, 7, 6])


def of_mlir(name: str) -> str:
    """The path of a tool of MLIR 22."""
    return shutil.which(f"{name}-22") or tool(name, "mlir-22-tools")


def piped(command: Sequence[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAMS = (ROW_SUMS, STENCIL, MASKS, HALVES, INTEGERS, REDUCTIONS, LANES, SWITCH, CALLS, STACK)


@pytest.mark.parametrize(
    "text", PROGRAMS, ids=lambda text: text.partition("@")[2].partition("(")[0]
)
def test_upstream_reads_the_loops_stage(text: str) -> None:
    module = Parser(make_context(), text).parse_module()
    piped([of_mlir("mlir-opt")], str(module))


@pytest.mark.parametrize("text", [ROW_SUMS, LANES, MAIN], ids=["row_sums", "lanes", "main"])
def test_upstream_translates_the_llvm_stage(text: str) -> None:
    """What mlir-translate makes of our LLVM dialect gives the same numbers."""
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    run_passes(ctx, module, ONE_WALK)
    checked = piped([of_mlir("mlir-opt")], str(module))
    theirs = piped([of_mlir("mlir-translate"), "--mlir-to-llvmir"], checked)
    codes = (CompiledModule(theirs, host(), Effort.NONE), compile_module(module, host()))
    results = [run_sample(code) for code in codes]
    np.testing.assert_array_equal(*results)
    assert np.any(results[0])


def run_sample(code: CompiledModule) -> np.ndarray:
    x = np.random.default_rng(4).standard_normal((6, 7), np.float32)
    if "row_sums" in code.addresses:
        y = np.zeros(6, np.float32)
        call(code, "row_sums", x, 6, y, 6)
        return y
    if "lanes" in code.addresses:
        y = np.zeros((5, 8), np.float32)
        call(code, "lanes", x, x.size, np.arange(8, dtype=np.int32), 8, y, 2)
        return y
    w = np.full(3, 2, np.float32)
    context = Context([w, w], [FUNCTION(lambda words: 0)])
    assert call(code, "main", context.words, x, x.size, x.size, result=ctypes.c_int32) == 0
    begin = context.words[rt.Word.ARENA] - context.arena.ctypes.data
    return context.arena[begin : begin + context.words[rt.Word.ARENA_BYTES]].view(np.float32).copy()
