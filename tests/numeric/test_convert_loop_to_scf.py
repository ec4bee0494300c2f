"""Kernels of the loop dialect, converted and run as machine code, against NumPy.

Tolerances: sums are in another order than NumPy's, and products are fused into them.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.parser import Parser

from stepwell.backends.llvm.jit import Effort, check_runs_here, compile_module
from stepwell.core.errors import TargetError
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import named

from ..harness import cases

F32 = np.float32
Kernel = Callable[..., None]


@functools.cache
def compiled(text: str, schedule: str = "", machine: str = "host") -> Kernel:
    """A function that takes the arguments of the one kernel in `text`."""
    target = named(machine)
    try:
        check_runs_here(target)
    except TargetError as error:
        pytest.skip(str(error))
    ctx = make_context(target=target)
    module = Parser(ctx, text).parse_module()
    module.verify()
    (kernel,) = module.ops
    types = [arg.type for arg in kernel.regions[0].block.args]
    if schedule:
        run_passes(ctx, module, schedule)
    run_passes(ctx, module, pipeline()["loops"])
    for function in module.ops:
        assert isinstance(function, func.FuncOp)
        del function.properties["sym_visibility"]
        name = function.sym_name.data
    run_passes(ctx, module, pipeline()["llvm"])
    machine_code = compile_module(module, target, Effort.NONE)

    def call(*args: Any) -> None:
        words: list[int] = []
        for arg, kind in zip(args, types, strict=True):
            if isinstance(arg, tuple):
                words += arg
                continue
            if not isinstance(kind, MemRefType):
                words.append(arg)
                continue
            assert isinstance(arg, np.ndarray)
            assert arg.flags.c_contiguous
            words.append(arg.ctypes.data)
            sizes = zip(arg.shape, kind.get_shape(), strict=True)
            words += [size for size, known in sizes if known < 0]
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))
        kind(machine_code.address(name))(*words)

    return call


def guarded(shape: tuple[int, ...], dtype: Any = F32) -> tuple[np.ndarray, np.ndarray]:
    """An output buffer, and the whole of which it is the middle: its ends must stay as they are."""
    size = int(np.prod(shape))
    whole = np.full(size + 128, 77, dtype)
    return whole[64 : 64 + size].reshape(shape), whole


def untouched(whole: np.ndarray) -> bool:
    """Whether nothing was written beside the middle of a guarded buffer."""
    return bool((whole[:64] == 77).all() and (whole[-64:] == 77).all())


@pytest.fixture(scope="module")
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=F32)


DENSE = """
loop.kernel @dense(%x: memref<?x37xf32>, %w: memref<21x37xf32>, %b: memref<21xf32>)
    -> (%y: memref<?x21xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x37xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 21 {
      %b0 = loop.load %b (d0) -> (d0)(%j) : memref<21xf32>, f32
      %s = loop.for "k" %k to 37 reduction carry(%acc = %b0 : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x37xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<21x37xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %r = arith.maximumf %s, %zero : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x21xf32>
    }
  }
}
"""


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "loop-unroll{loop=k factor=4}",
        "loop-unroll{loop=k factor=64}",
        "loop-unroll{loop=j}",
        "loop-vectorize{loops=j}",
        "loop-split{loop=i factor=4 tail=mask},loop-vectorize{loops=i1,j}",
        (
            "loop-split{loop=i factor=4 tail=split},loop-vectorize{loops=i1,j},"
            "loop-vectorize{loops=i1t,jt}"
        ),
        "loop-split{loop=j factor=16 tail=mask},loop-vectorize{loops=j1}",
        "loop-split{loop=j factor=16},loop-vectorize{loops=j1},loop-vectorize{loops=j1t}",
        (
            "loop-split{loop=i factor=3 tail=mask},loop-split{loop=j factor=16 tail=mask},"
            "loop-reorder{loops=i0,j0,i1,j1},loop-vectorize{loops=i1,j1}"
        ),
        "loop-split{loop=k factor=16},loop-vectorize{loops=k1}",
        (
            "loop-split{loop=k factor=8},loop-split{loop=i factor=2 tail=mask},"
            "loop-reorder{loops=i0,j,i1},loop-vectorize{loops=i1,k1}"
        ),
    ],
)
@pytest.mark.parametrize("machine", cases(["host", "x86-64-v3", "x86-64"], ["host", "x86-64"]))
def test_dense(schedule: str, machine: str, rng: np.random.Generator) -> None:
    kernel = compiled(DENSE, schedule, machine)
    w, b = normal(rng, 21, 37), normal(rng, 21)
    for n in (0, 1, 2, 5, 12, 13):
        x = normal(rng, n, 37)
        y, whole = guarded((n, 21))
        kernel(x, w, b, y)
        np.testing.assert_allclose(y, np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-5)
        assert untouched(whole), n


MERGED = """
loop.kernel @small(%x: memref<?x16xf32>, %w: memref<16x8xf32>) -> (%y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : vector<2x8xf32>
  %n = memref.dim %x, %c0 : memref<?x16xf32>
  loop.for "i" %i to %n {
    %s = loop.for "k" %k to 8 reduction carry(%acc = %z : vector<2x8xf32> add) {
      %p = loop.load %x (d0, d1)[s0, s1] -> (d0, d1 * 2 + s0)(%i, %k)
        : memref<?x16xf32>, vector<2x1xf32>
      %q = loop.load %w (d0)[s0, s1] -> (d0 * 2 + s0, s1)(%k) : memref<16x8xf32>, vector<2x8xf32>
      %pb = vector.broadcast %p : vector<2x1xf32> to vector<2x8xf32>
      %t = math.fma %pb, %q, %acc : vector<2x8xf32>
      loop.yield %t : vector<2x8xf32>
    }
    %f = loop.fold %s axis 0 add : vector<2x8xf32> -> vector<1x8xf32>
    loop.store %f, %y (d0)[s0, s1] -> (d0 + s0, s1)(%i) : vector<1x8xf32>, memref<?x8xf32>
  }
}
"""


def test_two_axes_in_one_vector(rng: np.random.Generator) -> None:
    kernel = compiled(MERGED)
    w = normal(rng, 16, 8)
    for n in (0, 1, 7):
        x = normal(rng, n, 16)
        y, whole = guarded((n, 8))
        kernel(x, w, y)
        np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-5)
        assert untouched(whole)


LIMITED = """
loop.kernel @limited(%x: memref<?x?xf32>, %m: index, %n: index) -> (%y: memref<?x?xf32>) {
  %v = loop.load %x ()[s0, s1] -> (s0, s1)() valid(0 : %m, 1 : %n)
    : memref<?x?xf32>, vector<3x20xf32>
  %w = arith.addf %v, %v : vector<3x20xf32>
  loop.store %w, %y ()[s0, s1] -> (s0, s1)() valid(0 : %m, 1 : %n)
    : vector<3x20xf32>, memref<?x?xf32>
}
"""


def test_limits_that_may_be_zero(rng: np.random.Generator) -> None:
    kernel = compiled(LIMITED)
    for m in range(4):
        for n in (0, 1, 15, 16, 17, 20):
            x = normal(rng, m, n)
            y, whole = guarded((m, n))
            kernel(x, m, n, y)
            np.testing.assert_array_equal(y, x + x)
            assert untouched(whole)


def test_nothing_is_read_where_nothing_is_valid() -> None:
    kernel = compiled(LIMITED)
    # The buffers are at address 0: to read or write there would end the process.
    for m, n in ((0, 0), (0, 20), (3, 0)):
        kernel((0, m, n), m, n, (0, m, n))


SOFTMAX = """
loop.kernel @softmax(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  loop.for "i" %i to %n {
    %a = loop.for "k" %k to %m reduction carry(%acc = %low : f32 max) {
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x?xf32>, f32
      %t = arith.maximumf %p, %acc : f32
      loop.yield %t : f32
    }
    %s = loop.for "l" %l to %m reduction carry(%acc = %zero : f32 add) {
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %l) : memref<?x?xf32>, f32
      %q = arith.subf %p, %a : f32
      %e = math.exp %q : f32
      %t = arith.addf %e, %acc : f32
      loop.yield %t : f32
    }
    loop.for "j" %j to %m {
      %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x?xf32>, f32
      %q = arith.subf %p, %a : f32
      %e = math.exp %q : f32
      %r = arith.divf %e, %s : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
    }
  }
}
"""


SCHEDULES = [
    "",
    "loop-unroll{loop=k factor=3},loop-unroll{loop=l factor=2}",
    (
        "loop-split{loop=k factor=16},loop-vectorize{loops=k1},"
        "loop-split{loop=l factor=16},loop-vectorize{loops=l1},"
        "loop-split{loop=j factor=16 tail=mask},loop-vectorize{loops=j1}"
    ),
    (
        "loop-split{loop=k factor=40},loop-vectorize{loops=k1},"
        "loop-split{loop=l factor=7},loop-vectorize{loops=l1},"
        "loop-split{loop=j factor=23 tail=split},loop-vectorize{loops=j1},"
        "loop-vectorize{loops=j1t}"
    ),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_softmax(schedule: str, rng: np.random.Generator) -> None:
    kernel = compiled(SOFTMAX, schedule)
    for shape in ((0, 5), (3, 0), (1, 1), (2, 16), (3, 37), (2, 100)):
        x = normal(rng, *shape) * 4
        y, whole = guarded(shape)
        kernel(x, y)
        if x.size:
            e = np.exp(x - x.max(axis=1, keepdims=True))
            np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=2e-6, atol=1e-9)
        assert untouched(whole)


# The maximum as graph.softmax computes it: it passes over NaN, which the sum does not.
PASSING_OVER_NAN = SOFTMAX.replace("f32 max)", "f32 maxnum)").replace(
    "%t = arith.maximumf %p, %acc : f32",
    "%c = arith.cmpf ogt, %p, %acc : f32\n      %t = arith.select %c, %p, %acc : f32",
)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_softmax_of_nan(schedule: str, rng: np.random.Generator) -> None:
    """A row with a NaN in any place, or of nothing else, is NaN throughout; others are not."""
    kernel = compiled(PASSING_OVER_NAN, schedule)
    for columns in (1, 5, 37, 100):
        x = normal(rng, columns + 2, columns)
        x[np.arange(columns), np.arange(columns)] = np.nan
        x[columns] = np.nan
        y, whole = guarded(x.shape)
        kernel(x, y)
        assert np.isnan(y[:-1]).all()
        np.testing.assert_allclose(y[-1].sum(), 1, rtol=1e-5)
        assert untouched(whole)


FOLDED = """
loop.kernel @folded(%x: memref<?x13xf32>) -> (%y: memref<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x13xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<?x13xf32>, vector<13xf32>
    %f = loop.fold %v axis 0 maxnum : vector<13xf32> -> vector<1xf32>
    loop.store %f, %y (d0)[s0] -> (d0, s0)(%i) : vector<1xf32>, memref<?x1xf32>
  }
}
"""


def test_lanes_that_are_nan(rng: np.random.Generator) -> None:
    """The largest lane that is not NaN; NaN where all are, whatever is in lanes to spare."""
    x = normal(rng, 200, 13)
    x[rng.random(x.shape) < 0.8] = np.nan
    x[0] = np.nan
    y, whole = guarded((200, 1))
    compiled(FOLDED)(x, y)
    np.testing.assert_array_equal(y[:, 0], np.fmax.reduce(x, axis=1))
    assert untouched(whole)


SPMM = """
loop.kernel @spmm(%ip: memref<?xINT>, %ix: memref<?xINT>, %v: memref<?xf32>, %x: memref<?x24xf32>)
    -> (%y: memref<?x24xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : memref<?x24xf32>
  loop.for "i" %i to %n {
    loop.for "f" %f to 24 {
      %s = loop.for "e" %p, %j of %ip, %ix row (d0) -> (d0)(%i) reduction
          carry(%acc = %zero : f32 add) : memref<?xINT>, memref<?xINT> {
        %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = loop.load %x (d0, d1) -> (d0, d1)(%j, %f) : memref<?x24xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %f) : f32, memref<?x24xf32>
    }
  }
}
"""


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "loop-vectorize{loops=f}",
        "loop-unroll{loop=e factor=4},loop-vectorize{loops=f}",
        "loop-unroll{loop=e factor=3},loop-vectorize{loops=f}",
        "loop-unroll{loop=e factor=2}",
    ],
)
@pytest.mark.parametrize("integer", ["i32", "i64"])
@pytest.mark.parametrize("real", ["f32", "f64"])
def test_spmm(schedule: str, integer: str, real: str, rng: np.random.Generator) -> None:
    kernel = compiled(SPMM.replace("INT", integer).replace("f32", real), schedule)
    dtype, real_dtype = np.dtype(integer.replace("i", "int")), np.dtype(real.replace("f", "float"))
    for rows, columns, density in ((0, 3, 0.5), (1, 1, 1.0), (40, 13, 0.0), (40, 13, 0.35)):
        shape, kind = (rows, columns), real_dtype
        stored = scipy.sparse.random_array(shape, density=density, dtype=kind, rng=rng)
        a = scipy.sparse.csr_array(stored)
        x = normal(rng, columns, 24).astype(real_dtype)
        y, whole = guarded((rows, 24), real_dtype)
        kernel(a.indptr.astype(dtype), a.indices.astype(dtype), a.data, x, y)
        np.testing.assert_allclose(y, a @ x, rtol=1e-5, atol=1e-5)
        assert untouched(whole)


LOCAL = """
loop.kernel @hidden(%x: memref<?x9xf32>, %w: memref<16x9xf32>, %v: memref<16x7xf32>)
    -> (%y: memref<?x7xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x9xf32>
  loop.for "i" %i to %n {
    %h = loop.local : memref<16xf32>
    loop.for "h" %u to 16 {
      %s = loop.for "k" %k to 9 reduction carry(%acc = %zero : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%u, %k) : memref<16x9xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %r = arith.maximumf %s, %zero : f32
      loop.store %r, %h (d0) -> (d0)(%u) : f32, memref<16xf32>
    }
    loop.for "j" %j to 7 {
      %s = loop.for "l" %l to 16 reduction carry(%acc = %zero : f32 add) {
        %p = loop.load %h (d0) -> (d0)(%l) : memref<16xf32>, f32
        %q = loop.load %v (d0, d1) -> (d0, d1)(%l, %j) : memref<16x7xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x7xf32>
    }
  }
}
"""


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "loop-vectorize{loops=h},loop-unroll{loop=l factor=16},loop-vectorize{loops=j}",
        "loop-vectorize{loops=h},loop-split{loop=l factor=2},loop-vectorize{loops=l1,j}",
        "loop-tiles{loop=i},loop-vectorize{loops=h},loop-vectorize{loops=j}",
    ],
)
def test_local(schedule: str, rng: np.random.Generator) -> None:
    kernel = compiled(LOCAL, schedule)
    w, v = normal(rng, 16, 9), normal(rng, 16, 7)
    for n in (0, 1, 11):
        x = normal(rng, n, 9)
        y, whole = guarded((n, 7))
        kernel(x, w, v, y)
        np.testing.assert_allclose(y, np.maximum(x @ w.T, 0) @ v, rtol=1e-5, atol=1e-5)
        assert untouched(whole)


def test_what_iterations_leave_in_a_local_buffer() -> None:
    kernel = compiled("""
loop.kernel @powers(%x: memref<4xf32>) -> (%y: memref<?x4xf32>, %z: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x4xf32>
  %h = loop.local : memref<2x4xf32>
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  loop.store %v, %h ()[s0] -> (0, s0)() : vector<4xf32>, memref<2x4xf32>
  loop.for "i" %i to %n serial {
    %a = loop.load %h ()[s0] -> (0, s0)() : memref<2x4xf32>, vector<4xf32>
    loop.store %a, %y (d0)[s0] -> (d0, s0)(%i) : vector<4xf32>, memref<?x4xf32>
    %b = arith.mulf %a, %v : vector<4xf32>
    loop.store %b, %h ()[s0] -> (0, s0)() : vector<4xf32>, memref<2x4xf32>
  }
  %last = loop.load %h ()[s0] -> (0, s0)() : memref<2x4xf32>, vector<4xf32>
  loop.store %last, %z ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32>
}
""")
    x, z = np.array([1, 2, 3, 4], F32), np.zeros(4, F32)
    y, whole = guarded((3, 4))
    kernel(x, y, z)
    np.testing.assert_array_equal(y, [x, x**2, x**3])
    np.testing.assert_array_equal(z, x**4)
    assert untouched(whole)


def test_a_store_to_a_place_in_a_local_buffer_that_is_not_known() -> None:
    kernel = compiled("""
loop.kernel @changed(%x: memref<4xf32>, %p: memref<1xi32>) -> (%y: memref<4xf32>) {
  %h = loop.local : memref<4xf32>
  %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  loop.store %v, %h ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32>
  %at = loop.load %p () -> (0)() : memref<1xi32>, i32
  %i = arith.index_cast %at : i32 to index
  %nine = arith.constant 9.0 : f32
  loop.store %nine, %h (d0) -> (d0)(%i) : f32, memref<4xf32>
  %w = loop.load %h ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
  loop.store %w, %y ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32>
}
""")
    x, y = np.array([1, 2, 3, 4], F32), np.zeros(4, F32)
    kernel(x, np.array([2], np.int32), y)
    np.testing.assert_array_equal(y, [1, 2, 9, 4])


def test_a_load_stays_before_the_store_that_follows_it() -> None:
    kernel = compiled("""
loop.kernel @swap(%x: memref<2x16xf32>) -> (%y: memref<2x16xf32>) {
  %x0 = loop.load %x ()[s0] -> (0, s0)() : memref<2x16xf32>, vector<16xf32>
  %x1 = loop.load %x ()[s0] -> (1, s0)() : memref<2x16xf32>, vector<16xf32>
  loop.store %x0, %y ()[s0] -> (0, s0)() : vector<16xf32>, memref<2x16xf32>
  loop.store %x1, %y ()[s0] -> (1, s0)() : vector<16xf32>, memref<2x16xf32>
  %a = loop.load %y ()[s0] -> (0, s0)() : memref<2x16xf32>, vector<16xf32>
  %b = loop.load %y ()[s0] -> (1, s0)() : memref<2x16xf32>, vector<16xf32>
  loop.store %b, %y ()[s0] -> (0, s0)() : vector<16xf32>, memref<2x16xf32>
  loop.for "i" %i to 1 {
    loop.store %a, %y (d0)[s0] -> (d0 + 1, s0)(%i) : vector<16xf32>, memref<2x16xf32>
  }
}
""")
    x = np.arange(32, dtype=F32).reshape(2, 16)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, x[::-1])


ELEMENTWISE = """
loop.kernel @shuffled(%a: memref<?x30xf32>) -> (%y: memref<30x?xf32>) {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %n = memref.dim %a, %c0 : memref<?x30xf32>
  loop.for "j" %j to 30 {
    loop.for "i" %i to %n {
      %v = loop.load %a (d0, d1) -> (d0, MAP)(%i, %j) : memref<?x30xf32>, f32
      %p = arith.cmpf olt, %v, %half : f32
      %m = arith.mulf %v, %half : f32
      %r = arith.select %p, %m, %v : f32
      loop.store %r, %y (d0, d1) -> (d1, d0)(%i, %j) : f32, memref<30x?xf32>
    }
  }
}
"""


@pytest.mark.parametrize(
    ("map", "columns"),
    [
        ("d1", lambda j: j),
        ("29 - d1", lambda j: 29 - j),
        (
            "(d1 floordiv 4) * 4 + (3 - d1 mod 4) floordiv 2",
            lambda j: j // 4 * 4 + (3 - j % 4) // 2,
        ),
        ("(d1 - 3) mod 30", lambda j: (j - 3) % 30),
        ("d1 ceildiv 2", lambda j: -(-j // 2)),
    ],
)
@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "loop-split{loop=i factor=16 tail=mask},loop-vectorize{loops=i1}",
        (
            "loop-split{loop=j factor=8 tail=mask},loop-reorder{loops=i,j0,j1},"
            "loop-vectorize{loops=j1}"
        ),
        (
            "loop-split{loop=j factor=8 tail=mask},loop-split{loop=i factor=4 tail=mask},"
            "loop-reorder{loops=i0,j0,i1,j1},loop-vectorize{loops=i1,j1}"
        ),
    ],
)
def test_index_maps(
    map: str, columns: Callable[[np.ndarray], np.ndarray], schedule: str, rng: np.random.Generator
) -> None:
    kernel = compiled(ELEMENTWISE.replace("MAP", map), schedule)
    for n in (0, 1, 5, 16, 21):
        a = normal(rng, n, 30)
        y, whole = guarded((30, n))
        kernel(a, y)
        source = a[:, columns(np.arange(30))].T
        np.testing.assert_array_equal(y, np.where(source < 0.5, source * F32(0.5), source))
        assert untouched(whole)


TYPED = """
loop.kernel @typed(%x: memref<?xTYPE>, %m: memref<?xi8>) -> (%y: memref<?xTYPE>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %n = memref.dim %x, %c0 : memref<?xTYPE>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xTYPE>, TYPE
    %k = loop.load %m (d0) -> (d0)(%i) : memref<?xi8>, i8
    %b = arith.cmpi ne, %k, %zero : i8
    COMPUTE
    loop.store %r, %y (d0) -> (d0)(%i) : TYPE, memref<?xTYPE>
  }
}
"""
FLOAT = "%w = arith.addf %v, %v : TYPE\n%r = arith.select %b, %w, %v : TYPE"
INTEGER = "%w = arith.muli %v, %v : TYPE\n%r = arith.select %b, %w, %v : TYPE"
HALF = """%e = arith.extf %v : f16 to f32
%w = arith.mulf %e, %e : f32
%t = arith.truncf %w : f32 to f16
%r = arith.select %b, %t, %v : f16"""


@pytest.mark.parametrize(
    ("kind", "compute", "expected"),
    [
        ("f32", FLOAT, lambda v: v + v),
        ("f64", FLOAT, lambda v: v + v),
        ("i64", INTEGER, lambda v: v * v),
        ("i8", INTEGER, lambda v: v * v),
        ("f16", HALF, lambda v: (v.astype(F32) * v.astype(F32)).astype(np.float16)),
    ],
)
@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "loop-split{loop=i factor=16 tail=mask},loop-vectorize{loops=i1}",
        "loop-split{loop=i factor=24},loop-vectorize{loops=i1}",
    ],
)
def test_element_types(
    kind: str,
    compute: str,
    expected: Callable[[np.ndarray], np.ndarray],
    schedule: str,
    rng: np.random.Generator,
) -> None:
    text = TYPED.replace("COMPUTE", compute).replace("TYPE", kind)
    kernel = compiled(text, schedule)
    dtype = np.dtype(kind.replace("f", "float").replace("i", "int"))
    for n in (0, 1, 16, 53):
        x = (rng.standard_normal(n) * 9).astype(dtype)
        mask = rng.integers(0, 2, n, dtype=np.int8)
        y, whole = guarded((n,), dtype)
        kernel(x, mask, y)
        np.testing.assert_array_equal(y, np.where(mask != 0, expected(x), x))
        assert untouched(whole)


FOLD = """
loop.kernel @fold(%x: memref<3xLANESxTYPE>) -> (%r: memref<3x1xTYPE>, %c: memref<1xLANESxTYPE>) {
  %v = loop.load %x ()[s0, s1] -> (s0, LAST)() : memref<3xLANESxTYPE>, vector<3xLANESxTYPE>
  %f = loop.fold %v axis 1 COMBINE : vector<3xLANESxTYPE> -> vector<3x1xTYPE>
  %g = loop.fold %v axis 0 COMBINE : vector<3xLANESxTYPE> -> vector<1xLANESxTYPE>
  loop.store %f, %r ()[s0, s1] -> (s0, s1)() : vector<3x1xTYPE>, memref<3x1xTYPE>
  loop.store %g, %c ()[s0, s1] -> (s0, s1)() : vector<1xLANESxTYPE>, memref<1xLANESxTYPE>
}
"""


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", cases(["f32", "f64", "i32"], ["f32", "i32"]))
@pytest.mark.parametrize("lanes", cases([1, 2, 7, 8, 24, 45], [1, 7, 24]))
def test_fold(combine: str, kind: str, lanes: int, rng: np.random.Generator) -> None:
    text = FOLD.replace("LANES", str(lanes)).replace("TYPE", kind).replace("COMBINE", combine)
    kernel = compiled(text.replace("LAST", "s1" if lanes > 1 else "0"))
    dtype = np.dtype(kind.replace("f", "float").replace("i", "int"))
    x = rng.uniform(0.9, 1.1, (3, lanes)) if kind != "i32" else rng.integers(-3, 4, (3, lanes))
    x = x.astype(dtype)
    rows, rows_whole = guarded((3, 1), dtype)
    columns, columns_whole = guarded((1, lanes), dtype)
    kernel(x, rows, columns)
    join = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[combine]
    np.testing.assert_allclose(rows, join.reduce(x, axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(columns, join.reduce(x, axis=0, keepdims=True), rtol=1e-5)
    assert untouched(rows_whole)
    assert untouched(columns_whole)


def test_nested_tiles_are_one_range(rng: np.random.Generator) -> None:
    kernel = compiled("""
loop.kernel @add(%x: memref<?x?x5xf32>) -> (%y: memref<?x?x5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : vector<5xf32>
  %n = memref.dim %x, %c0 : memref<?x?x5xf32>
  %m = memref.dim %x, %c1 : memref<?x?x5xf32>
  loop.for "i" %i to %n tiles {
    loop.for "j" %j to %m tiles {
      %v = loop.load %x (d0, d1)[s0] -> (d0, d1, s0)(%i, %j) : memref<?x?x5xf32>, vector<5xf32>
      %r = arith.addf %v, %one : vector<5xf32>
      loop.store %r, %y (d0, d1)[s0] -> (d0, d1, s0)(%i, %j) : vector<5xf32>, memref<?x?x5xf32>
    }
  }
}
""")
    for shape in ((0, 3, 5), (3, 0, 5), (1, 1, 5), (4, 7, 5)):
        x = normal(rng, *shape)
        y, whole = guarded(shape)
        kernel(x, y)
        np.testing.assert_array_equal(y, x + F32(1))
        assert untouched(whole)


@pytest.mark.parametrize("lanes", ["0.0, -0.0, 0.0", "-0.0, 0.0, 0.0"])
def test_zeros_of_a_vector_keep_their_signs(lanes: str) -> None:
    kernel = compiled(f"""
loop.kernel @add(%x: memref<3xf32>) -> (%y: memref<3xf32>) {{
  %c = arith.constant dense<[{lanes}]> : vector<3xf32>
  %v = loop.load %x ()[s0] -> (s0)() : memref<3xf32>, vector<3xf32>
  %r = arith.addf %v, %c : vector<3xf32>
  loop.store %r, %y ()[s0] -> (s0)() : vector<3xf32>, memref<3xf32>
}}
""")
    y, _ = guarded((3,))
    kernel(np.full(3, -0.0, F32), y)
    assert np.signbit(y).tolist() == [lane.strip() == "-0.0" for lane in lanes.split(",")]


def test_three_nested_tiles(rng: np.random.Generator) -> None:
    kernel = compiled("""
loop.kernel @add(%x: memref<2x3x5xf32>) -> (%y: memref<2x3x5xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "i" %i to 2 tiles {
    loop.for "j" %j to 3 tiles {
      loop.for "k" %k to 5 tiles {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : memref<2x3x5xf32>, f32
        %r = arith.addf %v, %one : f32
        loop.store %r, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : f32, memref<2x3x5xf32>
      }
    }
  }
}
""")
    x = normal(rng, 2, 3, 5)
    y, whole = guarded(x.shape)
    kernel(x, y)
    np.testing.assert_array_equal(y, x + F32(1))
    assert untouched(whole)


def test_tiles_share_what_was_made_before_them(rng: np.random.Generator) -> None:
    tiles = """
  loop.for "NAME" %i to %n tiles {
    %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<?x32xf32>, vector<32xf32>
    %p = arith.addf %v, %tb : vector<32xf32>
    %q = arith.mulf %p, %bb : vector<32xf32>
    loop.store %q, %NAME (d0)[s0] -> (d0, s0)(%i) : vector<32xf32>, memref<?x32xf32>
  }
"""
    kernel = compiled(
        """
loop.kernel @twice(%x: memref<?x32xf32>, %b: memref<32xf32>)
    -> (%y: memref<?x32xf32>, %z: memref<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x32xf32>
  %w = loop.load %b ()[s0] -> (s0)() : memref<32xf32>, vector<32xf32>
  %t = loop.fold %w axis 0 add : vector<32xf32> -> vector<1xf32>
  %tb = vector.broadcast %t : vector<1xf32> to vector<32xf32>
  %s = loop.load %b () -> (3)() : memref<32xf32>, f32
  %bb = vector.broadcast %s : f32 to vector<32xf32>
"""
        + tiles.replace("NAME", "y")
        + tiles.replace("NAME", "z")
        + "}"
    )
    b = normal(rng, 32)
    for n in (0, 1, 6):
        x = normal(rng, n, 32)
        y, whole_y = guarded((n, 32))
        z, whole_z = guarded((n, 32))
        kernel(x, b, y, z)
        np.testing.assert_allclose(y, (x + b.sum()) * b[3], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(y, z)
        assert untouched(whole_y)
        assert untouched(whole_z)
