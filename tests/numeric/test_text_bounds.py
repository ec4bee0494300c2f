"""Kernels in text stay inside of their buffers at indices that they compute, or are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

REFUSED = "kernel k: an access may be outside of dimension 0, .*; clamp the index.* trusted=True"

GATHER = """
func.func @main(%x: tensor<8xf32>, %p: tensor<5xi32>) -> tensor<5xf32> {
  %y = graph.call_dps @k(%x, %p) : (tensor<8xf32>, tensor<5xi32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}
loop.kernel @k(%x: memref<8xf32>, %p: memref<5xi32>) -> (%y: memref<5xf32>) {
  %zero = arith.constant 0 : i32
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %last = arith.constant 7 : index
  %size = arith.constant 8 : index
  %on = arith.constant true
  loop.for "i" %i to 5 {
    %a = loop.load %p (d0) -> (d0)(%i) : memref<5xi32>, i32
    INDEX
    %v = loop.load %x (d0) -> (d0)(%q) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<5xf32>
  }
}
"""
CLAMPED = """
    %b = arith.maxsi %a, %zero : i32
    %c = arith.minsi %b, %seven : i32
    %q = arith.index_cast %c : i32 to index"""
LONGER = CLAMPED.replace("%q = ", "%r = arith.extsi %c : i32 to i64\n    %q = ").replace(
    "%c : i32 to index", "%r : i64 to index"
)
GUARDED = """
    %b = arith.index_cast %a : i32 to index
    %c = arith.cmpi ult, %b, %size : index
    %q = arith.select %c, %b, %last : index"""
# 2 ** 31 as an i32 is below 0.
NARROWED = """
    %b = affine.apply affine_map<(d0) -> (d0 * 2147483648)>(%i)
    %c = arith.index_cast %b : index to i32
    %d = arith.minsi %c, %seven : i32
    %q = arith.index_cast %d : i32 to index"""
SHORT = NARROWED.replace("2147483648", "536870911")
# An extended true is -1.
EXTENDED = "%q = arith.index_cast %on : i1 to index"
FROM_DATA = "%q = arith.index_cast %a : i32 to index"


def test_names_that_do_not_fit_are_refused_before_kernels_are_looked_at() -> None:
    wrong = GATHER.replace("%x: tensor<8xf32>,", '%x: tensor<8xf32> {graph.dims = ["n", "m"]},', 1)
    message = "text:2:1: func.func @main: graph.dims does not fit the type, expected 1 names, got"
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_mlir(wrong.replace("INDEX", CLAMPED))


@pytest.mark.parametrize("index", [CLAMPED, LONGER, GUARDED, SHORT])
def test_indices_that_are_proved(index: str) -> None:
    exe = sw.compile(sw.from_mlir(GATHER.replace("INDEX", index)), threads=1)
    x, p = np.arange(8, dtype=np.float32), np.array([3, -5, 0, 9, 7], np.int32)
    wanted = {CLAMPED: [3, 0, 0, 7, 7], LONGER: [3, 0, 0, 7, 7], GUARDED: [3, 7, 0, 7, 7]}
    assert exe(x, p).tolist() == wanted.get(index, [0, 7, 7, 7, 7])


@pytest.mark.parametrize("index", [FROM_DATA, NARROWED, EXTENDED])
def test_indices_that_are_not(index: str) -> None:
    text = GATHER.replace("INDEX", index)
    scheduled = text.replace(") {\n  %zero", ') attributes {loop.schedule = ""} {\n  %zero')
    for refused in (text, scheduled):
        with pytest.raises(sw.ImportModelError, match=REFUSED):
            sw.from_mlir(refused)
    assert sw.from_mlir(scheduled, trusted=True).op.ops


def test_text_that_is_trusted() -> None:
    exe = sw.compile(sw.from_mlir(GATHER.replace("INDEX", FROM_DATA), trusted=True), threads=1)
    x, p = np.arange(8, dtype=np.float32), np.array([3, 1, 0, 7, 7], np.int32)
    assert exe(x, p).tolist() == p.tolist()
    # What is not computed is proved there as well.
    text = GATHER.replace("8xf32", "?xf32").replace("(d0)(%q)", "(d0, d1) -> (d0 + d1)(%i, %n)")
    text = text.replace("(d0) -> (d0, d1)", "(d0, d1)")
    text = text.replace("INDEX", "%n = memref.dim %x, %first : memref<?xf32>")
    with pytest.raises(sw.ImportModelError, match=r"got x\[i \+ n\]; clamp .* the access$"):
        sw.from_mlir(text, trusted=True)


def test_trusted_kernels_are_merged_with_operators() -> None:
    text = GATHER.replace("INDEX", FROM_DATA)
    relu = "%z = graph.relu %y : (tensor<5xf32>) -> tensor<5xf32>\n  func.return %z"
    module = sw.from_mlir(text.replace("func.return %y", relu), trusted=True)
    exe = sw.compile(module, threads=1)
    x, p = np.arange(-4, 4, dtype=np.float32), np.array([3, 1, 0, 7, 7], np.int32)
    assert exe(x, p).tolist() == [0, 0, 0, 3, 3]
    assert "fused_k_relu" in exe.ir("kernels")
    # The text of a module does not trust itself.
    again = text.replace(") {\n  %zero", ") attributes {loop.trusted} {\n  %zero")
    with pytest.raises(sw.ImportModelError, match=REFUSED):
        sw.from_mlir(again)


COUNTED = """
func.func @main(%x: tensor<?xf32>) -> tensor<99xf32> {
  %y = graph.call_dps @k(%x) : (tensor<?xf32>) -> tensor<99xf32>
  func.return %y : tensor<99xf32>
}
loop.kernel @k(%x: memref<?xf32>) -> (%y: memref<99xf32>) {
  %zero = arith.constant 0 : KIND
  %one = arith.constant 1 : KIND
  %last = arith.constant 9 : index
  %f = arith.constant 0.0 : f32
  loop.for "i" %i to 99 {
    loop.store %f, %y (d0) -> (d0)(%i) : f32, memref<99xf32>
  }
  %n = loop.for "k" %k to 999 serial carry(%m = %zero : KIND) {
    %a = arith.index_cast %m : KIND to index
    %q = arith.minsi %a, %last : index
    loop.store %f, %y (d0) -> (d0)(%q) : f32, memref<99xf32>
    %next = arith.addi %m, %one : KIND
    loop.yield %next : KIND
  }
}
"""


def test_a_counter_does_not_wrap_around() -> None:
    assert sw.from_mlir(COUNTED.replace("KIND", "i64")).op.ops
    with pytest.raises(sw.ImportModelError, match=REFUSED):
        sw.from_mlir(COUNTED.replace("KIND", "i8"))


@sw.kernel
def histogram(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = 0.0
    with k.serial(*x.shape) as i:
        y.accumulate(k.minimum(k.maximum(x[i], 0), 9), 1.0)


def test_a_clamp_of_a_kernel_in_python_is_proved_in_its_text() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "i32")
    b.output(b.call_kernel(histogram, x, results=sw.TensorSpec((10,), "f32")))
    exe, given = sw.compile(b.module(), threads=2), np.array([3, 3, -1, 12], np.int32)
    for stage in ("kernels", "scheduled"):
        again = sw.compile(sw.from_mlir(exe.ir(stage)), threads=1)
        assert again(given).tolist() == exe(given).tolist() == [1, 0, 0, 2, *[0] * 5, 1]


@pytest.mark.parametrize("stage", ["kernels", "scheduled"])
def test_a_permutation_has_to_be_trusted(stage: str) -> None:
    b = sw.Builder("main")
    x, order = b.input("x", (6,)), b.input("p", (6,), "i64")
    b.output(b.scatter_nd(x, b.relu(x), [order]))
    b.output(b.top_k(x, 3)[0])
    exe = sw.compile(b.module(), threads=2)
    text, weights = exe.ir(stage), exe.weights(stage)
    with pytest.raises(sw.ImportModelError, match=r"an access may be outside .* trusted=True"):
        sw.from_mlir(text, weights)
    again = sw.compile(sw.from_mlir(text, weights, trusted=True), threads=1)
    given = np.array([3, -1, 2, 5, 4, 0], np.float32), np.arange(6)[::-1].copy()
    for got, wanted in zip(again(*given), exe(*given), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_rows_that_threads_own_are_read_back() -> None:
    """The rows are counted by a sum of zeros and ones, which is below the number of rows."""
    b = sw.Builder("main")
    x, updates = b.input("x", (1000, 64)), b.input("u", (100_000, 64))
    b.output(b.scatter_nd(x, updates, [b.input("p", (100_000,), "i64")], kind="add"))
    text = Compilation.of(Request(b.module(), threads=2)).text("scheduled")
    assert "own(" in text
    assert sw.from_mlir(text, trusted=True).op.ops


OVER = """
func.func @main(%d: tensor<4xi64>, %x: tensor<10xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %i = graph.call_dps @copy(%d) : (tensor<4xi64>) -> tensor<4xi64>
  %j, %y = graph.call_dps @k(%i, %x) : (tensor<4xi64>, tensor<10xf32>)
    -> (tensor<4xi64>, tensor<4xf32>)
  %z = graph.call_dps @copy(%j) : (tensor<4xi64>) -> tensor<4xi64>
  func.return %y, %z : tensor<4xf32>, tensor<4xi64>
}
loop.kernel @copy(%d: memref<4xi64>) -> (%y: memref<4xi64>) {
  loop.for "i" %i to 4 serial {
    %v = loop.load %d (d0) -> (d0)(%i) : memref<4xi64>, i64
    loop.store %v, %y (d0) -> (d0)(%i) : i64, memref<4xi64>
  }
}
loop.kernel @k(%i: memref<4xi64> {loop.offsets = ["x1.0-1"]}, %x: memref<10xf32>)
    -> (%j: memref<4xi64> {IN_PLACE}, %y: memref<4xf32>) {
  %big = arith.constant 100000000000 : i64
  loop.for "i" %n to 4 serial {
    loop.store %big, %j (d0) -> (d0)(%n) : i64, memref<4xi64>
  }
  loop.for "k" %k to 4 serial {
    %q = loop.load %i (d0) -> (d0)(%k) : memref<4xi64>, i64
    %p = arith.index_cast %q : i64 to index
    %v = loop.load %x (d0) -> (d0)(%p) : memref<10xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%k) : f32, memref<4xf32>
  }
}
"""


def test_indices_that_are_written_over_are_not_those_that_were_checked() -> None:
    exe = sw.compile(sw.from_mlir(OVER.replace("IN_PLACE", "")), threads=1)
    y, z = exe(np.array([0, 3, 3, 9]), np.arange(10, dtype=np.float32))
    assert y.tolist() == [0, 3, 3, 9]
    assert (z == 100000000000).all()
    with pytest.raises(sw.ImportModelError, match=REFUSED):
        sw.from_mlir(OVER.replace("IN_PLACE", "loop.in_place = [0]"))


def test_indices_may_be_written_over_where_they_are_read() -> None:
    """Each index is read before what it names takes its place."""
    once = (
        OVER.partition("  %big")[0].replace(", %y: memref<4xf32>", "").replace("10xf32", "10xi64")
    )
    once = once.replace("%j, %y = graph", "%j = graph").replace(
        "(tensor<4xi64>, tensor<4xf32>)\n", "tensor<4xi64>\n"
    )
    once = once.replace("-> (tensor<4xf32>, tensor<4xi64>)", "-> tensor<4xi64>")
    once = once.replace("return %y, %z : tensor<4xf32>, ", "return %z : ")
    once = once.replace("IN_PLACE", "loop.in_place = [0]")
    once += """
  loop.for "k" %k to 4 serial {
    %q = loop.load %i (d0) -> (d0)(%k) : memref<4xi64>, i64
    %p = arith.index_cast %q : i64 to index
    %v = loop.load %x (d0) -> (d0)(%p) : memref<10xi64>, i64
    loop.store %v, %j (d0) -> (d0)(%k) : i64, memref<4xi64>
  }
}
"""
    exe = sw.compile(sw.from_mlir(once), threads=1)
    assert exe(np.array([0, 3, 3, 9]), 7 * np.arange(10)).tolist() == [0, 21, 21, 63]


MATRIX = """
#csr = #sparse_tensor.encoding<{
  map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32
}>
func.func @main(%a: tensor<4x60xf32, #csr> {graph.nnz = "e"},
    %x: tensor<?xf32> {graph.dims = ["m"]}) -> (tensor<?xf32> {graph.dims = ["DIM"]}) {
  %y = graph.call_dps @k(%a, %x) dims [["DIM"]] : (tensor<4x60xf32, #csr>, tensor<?xf32>)
    -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
loop.kernel @k(%p: memref<5xi32> {ROWS}, %i: memref<?xi32> {COLUMNS}, %v: memref<?xf32>,
    %x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %m = memref.dim %y, %c0 : memref<?xf32>
  FIRST
  loop.for "r" %r to 4 serial {
    loop.for "e" %e, %j of %p, %i row (d0) -> (d0)(%r) serial : memref<5xi32>, memref<?xi32> {
      loop.store %f, %y (d0) -> (d0)(PLACE) : f32, memref<?xf32>
    }
  }
}
"""
EACH = """loop.for "z" %z to min (d0) -> (d0)(%m) serial {
    loop.store %f, %y (d0) -> (d0)(%z) : f32, memref<?xf32>
  }"""


def matrix(dim: str, place: str, first: str = "", rows: str = "", columns: str = "") -> str:
    """A kernel that stores by the entries of a matrix, with attributes of two of its parts."""
    text = MATRIX.replace("DIM", dim).replace("PLACE", place).replace("FIRST", first)
    return text.replace("ROWS", rows).replace("COLUMNS", columns)


def test_no_attribute_limits_the_parts_of_a_matrix() -> None:
    # The columns are below 60, and so each call has to have as many elements.
    for name in ("offsets", "bounds"):
        columns = matrix("m", "%j", EACH, columns=f'loop.{name} = ["x1.0"]')
        assert "60 <= y0.0" in sw.from_mlir(columns).text()
    # The rows end at the last entry.
    assert sw.from_mlir(matrix("e", "%e")).op.ops
    rows = matrix("m", "%e", rows='loop.offsets = ["x1.0"]')
    with pytest.raises(sw.ImportModelError, match="not all elements of"):
        sw.from_mlir(rows)
    message = r"argument (0|1) of @k has loop.offsets, expected a dense operand for it, got a part"
    for attribute in ({"rows": 'loop.offsets = ["x1.0"]'}, {"columns": 'loop.offsets = ["x1.0"]'}):
        module = sw.from_mlir(matrix("e", "%e", **attribute))
        with pytest.raises(sw.CompileError, match=message):
            sw.compile(module, threads=1)


def test_what_has_another_name_is_not_written_over() -> None:
    """The indices that were checked are in the buffer that the first operand has."""
    types = "(tensor<4xi64>, tensor<10xf32>)"
    checked = f"%c = graph.check_indices %i of %x axis = 0 : {types} -> tensor<4xi64>"
    text = OVER.replace("IN_PLACE", "loop.in_place = [0]")
    text = text.replace("  %j, %y = graph", f"  {checked}\n  %j, %y = graph")
    text = text.replace("@k(%i, ", "@k(%i, %c, ")
    text = text.replace(f"{types}\n", "(tensor<4xi64>, tensor<4xi64>, tensor<10xf32>)\n")
    given = '%i: memref<4xi64> {loop.offsets = ["x1.0-1"]}'
    text = text.replace(given, '%o: memref<4xi64>, %i: memref<4xi64> {loop.offsets = ["x2.0-1"]}')
    exe = sw.compile(sw.from_mlir(text), threads=1)
    y, z = exe(np.array([0, 3, 3, 9]), np.arange(10, dtype=np.float32))
    assert y.tolist() == [0, 3, 3, 9]
    assert (z == 100000000000).all()


# The integers of %d are any of 64 bits.
WRAPPED = """
func.func @main(%x: tensor<?x6xf32> {graph.dims = ["n", ""]}, %d: tensor<1xi64>)
    -> (tensor<?x6xf32> {graph.dims = ["n", ""]}) {
  %y = graph.call_dps @k(%x, %d) dims [["n", ""]] : (tensor<?x6xf32>, tensor<1xi64>)
    -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}
loop.kernel @k(%x: memref<?x6xf32>, %d: memref<1xi64>) -> (%y: memref<?x6xf32>) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  %n = memref.dim %x, %c0 : memref<?x6xf32>
  %q = loop.load %d (d0) -> (d0)(%c0) : memref<1xi64>, i64
  %k = arith.index_cast %q : i64 to index
  %not_positive = arith.minsi %k, %c0 : index
  %large = arith.maxsi %k, %n : index
  loop.for "i" %i to min (d0, d1) -> (FIRST)(%n, %large) serial {
    loop.for "j" %j to 6 serial {
      loop.store %f, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x6xf32>
    }
  }
  REST
}
"""
ROW = """loop.for "o" %o to min (d0) -> (BOUND)(%VALUE) serial {
    %v = loop.load %x (d0, d1) -> (PLACE)(%o, %k) : memref<?x6xf32>, f32
    loop.store %v, %y () -> (0, 0)() : f32, memref<?x6xf32>
  }"""


def wrapped(bound: str, value: str, place: str) -> str:
    """A kernel that reads where a loop to a computed bound does not run, unless that wraps."""
    row = ROW.replace("BOUND", bound).replace("VALUE", value).replace("PLACE", place)
    return WRAPPED.replace("FIRST", "d0").replace("REST", row)


def test_bounds_that_wrap_around() -> None:
    """(-2 ** 59 + 100_000) * 32 is above 0."""
    for text in (
        wrapped("d0", "not_positive", "d0 * 1000, 0"),
        WRAPPED.replace("FIRST", "d0, d1").replace("REST", ""),
    ):
        exe = sw.compile(sw.from_mlir(text), threads=1)
        assert (exe(np.ones((4, 6), np.float32), np.array([-(1 << 59) + 100_000])) == 1).all()
    for text in (
        wrapped("d0 * 32", "not_positive", "d0 * 1000, 0"),
        # A multiple of 60000 is none when it has wrapped around.
        wrapped("1", "k", "0, (d1 * 60000) mod 60000"),
    ):
        with pytest.raises(sw.ImportModelError, match="an access may be outside of dimension"):
            sw.from_mlir(text)
    for bounds in ("d0, d1 * 32768", "d0, d1 + 1"):
        with pytest.raises(sw.ImportModelError):
            sw.from_mlir(WRAPPED.replace("FIRST", bounds).replace("REST", ""))
