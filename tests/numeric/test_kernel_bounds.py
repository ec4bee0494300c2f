"""Kernels of users never access memory outside of their buffers, whatever sizes they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

Shape = tuple[int | str, ...]


def compiled(
    kernel: Callable[..., None], *inputs: tuple[Shape, str], result: Shape
) -> sw.Executable:
    b = sw.Builder()
    values = [b.input(f"x{n}", shape, dtype) for n, (shape, dtype) in enumerate(inputs)]
    b.output(b.call_kernel(sw.kernel(kernel), *values, results=sw.TensorSpec(result)))
    return sw.compile(b.module(), threads=1, opt_level=0)


def checks(exe: sw.Executable) -> list[str]:
    """The conditions that are checked in each call."""
    return [line.split('"')[1] for line in exe.ir("buffers").splitlines() if "rt.check" in line]


def rows(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = 0
    with k.loops(x.shape[0]) as i:
        y[i] = x[i]


def vector(size: int) -> np.ndarray:
    return np.arange(size, dtype=np.float32)


def test_a_result_that_is_too_small_is_an_error_of_the_call() -> None:
    exe = compiled(rows, (("n",), "f32"), result=(3,))
    np.testing.assert_array_equal(exe(vector(3)), vector(3))
    message = (
        r"kernel rows: an access is outside of a buffer, expected n <= 3, got 100000 > 3 \(node"
    )
    with pytest.raises(sw.InputError, match=message):
        exe(vector(100000))


def test_sizes_of_operands_are_compared() -> None:
    def total(k: Any, x: Any, z: Any, y: Any) -> None:
        with k.loops(x.shape[0]) as i:
            y[i] = x[i] + z[i]

    exe = compiled(total, (("n",), "f32"), (("m",), "f32"), result=("n",))
    np.testing.assert_array_equal(exe(vector(3), vector(5)), 2 * vector(3))
    with pytest.raises(sw.InputError, match="expected n <= m, got 3 > 2"):
        exe(vector(3), vector(2))
    exe = compiled(total, (("n",), "f32"), (("n",), "f32"), result=("n",))
    assert not checks(exe), "the same symbol needs no check"


def window(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = 0
    with k.loops(x.shape[0] - 4) as i:
        y[i] = k.sum(5, lambda t: x[i + t])


def wide_window(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0] - 4) as i:
        y[i] = k.sum(6, lambda t: x[i + t])


def flat(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0], 4) as (i, j):
        y[i * 4 + j] = x[i, j]


def halves(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0]) as i:
        y[i] = x[i // 2] + x[i - (i + 1) // 2]


def backwards(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = x[x.shape[0] - 1 - i]


def triangle(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = k.sum(i + 1, lambda j: x[i - j])


def first(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = x[0]


def packed(k: Any, x: Any, y: Any, step: int = 1) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = 0

    def keep(i: Any, count: Any) -> tuple[Any]:
        y[k.index(count)] = x[i]
        return (k.where(x[i] > 0, count + step, count),)

    k.carry(x.shape[0], [k.cast(k.index(0), "i64")], keep)


def apart(k: Any, x: Any, y: Any) -> None:
    packed(k, x, y, step=2)


@pytest.mark.parametrize(
    ("kernel", "shape", "result", "expected"),
    [
        (window, ("n",), ("n",), []),
        (wide_window, ("n",), ("n",), None),
        (flat, ("n", 4), ("4*n",), []),
        (flat, ("n", 3), ("4*n",), None),
        (halves, ("n",), ("2*n",), []),
        (backwards, ("n",), ("n",), []),
        (triangle, ("n",), ("n",), []),
        (first, ("n",), ("n",), []),
        (packed, ("n",), ("n",), []),
        (apart, ("n",), ("n",), None),
    ],
)
def test_what_holds_for_all_sizes_is_not_checked(
    kernel: Callable[..., None], shape: Shape, result: Shape, expected: Sequence[str] | None
) -> None:
    if expected is None:
        with pytest.raises(sw.CompileError, match="an access"):
            compiled(kernel, (shape, "f32"), result=result)
        return
    assert checks(compiled(kernel, (shape, "f32"), result=result)) == expected


def before(k: Any, x: Any, ids: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i] = x[i - 1]


def taken(k: Any, x: Any, ids: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = x[ids[i]]


def half_clamped(k: Any, x: Any, ids: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = x[k.maximum(ids[i], 0)]


def wrapping(k: Any, x: Any, ids: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        above = k.cast(k.index(k.maximum(ids[i], 0)) + 1, "i64")
        y[i] = x[k.minimum(above, k.cast(x.shape[0] - 1, "i64"))]


def scaled(k: Any, x: Any, ids: Any, y: Any) -> None:
    """At 128 the product is above 2^63."""
    with k.loops(*y.shape) as i:
        y[i] = 0
    with k.serial(*x.shape) as i:
        y[0] = x[(i * (2**56 + 1)) // 2**56]


def bounded_by_too_much(k: Any, x: Any, ids: Any, y: Any) -> None:
    with k.loops(*y.shape) as i:
        y[i] = 0
    with k.serial(x.shape[0] * (2**56 + 1) // 2**56) as i:
        y[0] = x[i]


@pytest.mark.parametrize(
    ("kernel", "place"),
    [
        (scaled, r"x\["),
        (bounded_by_too_much, r"x\["),
        (before, r"x\[i - 1\]"),
        (taken, r"x\[\(computed\)\]"),
        (half_clamped, "x"),
        (wrapping, "x"),
    ],
)
def test_what_may_be_outside_is_refused(kernel: Callable[..., None], place: str) -> None:
    message = f"may be outside of dimension 0, expected 0 <= index < .*, got {place}.*; clamp the"
    with pytest.raises(sw.CompileError, match=message):
        compiled(kernel, (("n",), "f32"), (("m",), "i64"), result=("m",))


def test_a_check_takes_sizes_that_fit() -> None:
    def later(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            y[i] = x[i + 4]

    b = sw.Builder()
    x = b.input("x", ("n",))
    b.output(b.call_kernel(sw.kernel(later), x, results=sw.TensorSpec((4,))))
    module = b.module()
    exe = sw.compile(module, threads=1, check=True)
    np.testing.assert_array_equal(exe(vector(9)), [4, 5, 6, 7])
    for stage in ("kernels", "loops", "buffers", "llvm"):
        with pytest.raises(sw.InputError, match=r"kernel later: an access is outside .*got 8 > 7"):
            exe.run_at(stage, vector(7))


@pytest.mark.parametrize("offset", [2**63, -(2**64)])
def test_numbers_of_indices_have_64_bits(offset: int) -> None:
    def far(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            y[i] = x[i + offset]

    with pytest.raises(sw.CompileError, match=f"expected an integer of 64 bits, got {offset}"):
        compiled(far, (("n",), "f32"), result=("n",))


def test_an_index_is_clamped() -> None:
    def clamped(k: Any, x: Any, ids: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            last = k.cast(x.shape[0] - 1, "i64")
            y[i] = x[k.maximum(k.minimum(ids[i], last), 0)]

    exe = compiled(clamped, (("n",), "f32"), (("m",), "i64"), result=("m",))
    ids = np.array([-(2**63), -1, 2, 2**63 - 1])
    np.testing.assert_array_equal(exe(vector(3), ids), [0, 0, 2, 2])
    with pytest.raises(sw.InputError, match="expected 1 <= n, got 1 > 0"):
        exe(vector(0), ids)


def test_a_loop_does_not_run_a_negative_number_of_times() -> None:
    def negative(k: Any, x: Any, y: Any) -> None:
        with k.loops(-3) as i:
            y[i] = x[i]

    message = "wrong number of iterations, expected 0 or more, got -3"
    with pytest.raises(sw.CompileError, match=message):
        compiled(negative, ((3,), "f32"), result=(3,))


TEXT = """
func.func @main(%x: tensor<?xf32>) -> tensor<3xf32> {
  %y = graph.call_dps @k(%x) : (tensor<?xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
loop.kernel @k(%x: memref<?xf32>) -> (%y: memref<3xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  loop.for "f" %f to 3 {
    loop.store %zero, %y (d0) -> (d0)(%f) : f32, memref<3xf32>
  }
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (PLACE)(%i) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}
"""


def test_kernels_in_text() -> None:
    exe = sw.compile(sw.from_mlir(TEXT.replace("PLACE", "d0")), threads=1)
    np.testing.assert_array_equal(exe(vector(3)), vector(3))
    with pytest.raises(sw.InputError, match="kernel k: an access is outside of a buffer"):
        exe(vector(4))
    static = TEXT.replace("PLACE", "d0").replace("tensor<?xf32>", "tensor<5xf32>")
    with pytest.raises(sw.CompileError, match="expected 5 <= 3, got 5 > 3"):
        sw.compile(sw.from_mlir(static), threads=1)
    outside = "kernel k: an access may be outside of dimension 0"
    before = TEXT.replace("PLACE", "d0 - 1")
    scheduled = before.replace(") {\n  %c0", ') attributes {loop.schedule = "hoist(i)"} {\n  %c0')
    for text in (before, scheduled):
        with pytest.raises(sw.StepwellError, match=outside):
            sw.from_mlir(text)


BLOCKS = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = graph.call_dps @k(%x) dims [["_0"]] : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
loop.kernel @k(%x: memref<?xf32>) -> (%y: memref<?xf32>)
    attributes {loop.schedule = "split(i, 8); vectorize(i1)"} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  loop.for "f" %f to %n {
    loop.store %zero, %y (d0) -> (d0)(%f) : f32, memref<?xf32>
  }
  loop.for "i0" %i to min (d0) -> (BOUND)(%n) {
    %v = loop.load %x (d0)[s0] -> (d0 * 8 + s0 + OFFSET)(%i) : memref<?xf32>, vector<8xf32>
    loop.store %v, %y (d0)[s0] -> (d0 * 8 + s0)(%i) : vector<8xf32>, memref<?xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("bound", "offset", "fits"),
    [
        ("d0 floordiv 8", 0, True),
        ("(d0 + 5) floordiv 8 + d0 floordiv 8 - (d0 + 7) floordiv 8", 0, True),
        ("d0 ceildiv 8", 0, False),
        ("(d0 + 1) floordiv 8", 0, False),
        ("(d0 + 7) floordiv 8 + d0 floordiv 8 - (d0 + 5) floordiv 8", 0, False),
        ("d0 floordiv 8", 1, False),
        ("d0 floordiv 8", -1, False),
        ("d0 floordiv 8 - 1", 1, True),
        ("(d0 + 6) floordiv 8 - (d0 + 5) floordiv 8", -8, False),
    ],
)
def test_scheduled_kernels_in_text(bound: str, offset: int, fits: bool) -> None:
    text = BLOCKS.replace("BOUND", bound).replace("OFFSET", str(offset))
    if fits:
        assert not checks(sw.compile(sw.from_mlir(text), threads=1))
        return
    with pytest.raises(sw.StepwellError, match="kernel k: an access may be outside"):
        sw.from_mlir(text)


def test_lanes_that_are_in_quotients() -> None:
    """A flat buffer is read by rows of 6: the lanes after the last whole block are valid."""
    b = sw.Builder("main")
    b.output(b.relu(b.reshape(b.input("x", ("n", 6)), (-1,))))
    text = Compilation.of(Request(b.module(), threads=1)).text("scheduled")
    assert " floordiv 6" in text
    assert "valid(0" in text
    assert "loop.fits" not in sw.from_mlir(text).text()


def test_what_runs_for_some_remainders_only() -> None:
    """A nest for n mod 8 == 2 reads two elements from the end."""
    tail = """
  loop.for "i0" %i to min (d0) -> (1, (d0 + 6) floordiv 8 - (d0 + 5) floordiv 8)(%n) {
    %v = loop.load %x (d0)[s0] -> (d0 + s0 - OFFSET)(%n) : memref<?xf32>, vector<2xf32>
    loop.store %v, %y (d0)[s0] -> (d0 + s0 - 2)(%n) : vector<2xf32>, memref<?xf32>
  }
}
"""
    text = BLOCKS[: BLOCKS.index('\n  loop.for "i0"')] + tail
    assert "loop.fits" not in sw.from_mlir(text.replace("OFFSET", "2")).text()
    assert "3 <= x0.0" in sw.from_mlir(text.replace("OFFSET", "3")).text()
    with pytest.raises(sw.StepwellError, match="kernel k: an access may be outside"):
        sw.from_mlir(text.replace("OFFSET", "1"))


def test_a_loop_that_is_left_by_an_exception_is_not_in_the_kernel() -> None:
    def guarded(k: Any, x: Any, y: Any) -> None:
        for attempt in (
            lambda: k.sum(2, lambda i: x[i, 0]),
            lambda: k.carry(2, [x[0]], lambda i, total: 1 / 0),
        ):
            with suppress(sw.CompileError, ZeroDivisionError), k.loops(4, 2) as (i, _):
                y[i] = 7
                attempt()
        with k.loops(*y.shape) as i:
            y[i] = x[i] * 2

    exe = compiled(guarded, ((4,), "f32"), result=(4,))
    np.testing.assert_array_equal(exe(vector(4)), 2 * vector(4))
    kernel = exe.ir("kernels")
    assert kernel.count("loop.for") == kernel.count("loop.store") == 1


def test_a_term_that_fails_is_not_in_the_kernel() -> None:
    def guarded(k: Any, x: Any, y: Any) -> None:
        with suppress(ZeroDivisionError):
            k.sum(2, lambda i: x[i] * (1 / 0))
        with k.loops(*y.shape) as i:
            y[i] = x[i] * 2

    exe = compiled(guarded, ((4,), "f32"), result=(4,))
    np.testing.assert_array_equal(exe(vector(4)), 2 * vector(4))
    assert exe.ir("kernels").count("loop.load") == 1


def left_open(k: Any, x: Any, y: Any, loops: Any = ExitStack()) -> None:  # noqa: B008
    loops.enter_context(k.loops(4))
    y[0] = x[0]


def swallowed(k: Any, x: Any, y: Any) -> None:
    with suppress(ValueError), k.loops(4) as i:
        y[i] = x[i]
        raise ValueError


def escaped(k: Any, x: Any, y: Any) -> None:
    with k.loops(4) as i:
        y[i] = x[i]
    with k.loops(4) as j:
        y[j] = x[i]


def miscombined(k: Any, x: Any, y: Any) -> None:
    (y[0],) = k.reduce_several(4, ["foo"], [x[0]], lambda i, total: (total,))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (miscombined, '"miscombined": wrong combiner, expected .*add.*custom.*, got foo'),
        (left_open, "a loop is left open, expected `with k.loops"),
        (swallowed, 'nothing is written to "y"'),
        (escaped, "used before it is defined"),
    ],
)
def test_wrong_loops_are_errors(kernel: Callable[..., None], message: str) -> None:
    with pytest.raises(sw.CompileError, match=message):
        compiled(kernel, ((4,), "f32"), result=(4,))


def test_rows_of_matrices_are_there() -> None:
    def sums(k: Any, a: Any, y: Any, ahead: int = 0) -> None:
        with k.loops(y.shape[0]) as i:
            y[i] = k.sum(a.row(i + ahead), lambda column, value: value)

    def later(k: Any, a: Any, y: Any) -> None:
        sums(k, a, y, ahead=1)

    def program(kernel: Callable[..., None], rows: int | str) -> sw.Executable:
        b = sw.Builder("main")
        a = b.input("a", sw.SparseSpec(("n", 3)))
        b.output(b.call_kernel(sw.kernel(kernel), a, results=sw.TensorSpec((rows,))))
        return sw.compile(b.module(), threads=1, opt_level=0)

    matrix = csr_array(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(program(sums, "n")(matrix), [3, 12])
    assert len(checks(program(sums, "n"))) == 1, "that of the matrix"
    with pytest.raises(sw.CompileError, match=r"may be outside .*, got a.*\[i \+ 1\]"):
        program(later, "n")
    with pytest.raises(sw.InputError, match=r"kernel sums: .* expected 4 <= n, got 4 > 2"):
        program(sums, 4)(matrix)


def test_an_operator_knows_its_own_memory() -> None:
    """The product counts the rows that it keeps, which is no access of the kernel before it."""

    def doubled(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as (i, j):
            y[i, j] = x[i, j] + x[i, j]

    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec((4, 3))), b.input("x", (3, 2))
    twice = b.call_kernel(sw.kernel(doubled), x, results=sw.TensorSpec((3, 2)))
    b.output(b.aggregate_dense(a, twice, np.ones((2, 2, 5), np.float32), "var"))
    matrix, x = csr_array(np.eye(4, 3, dtype=np.float32)), vector(6).reshape(3, 2)
    got = sw.compile(b.module(), threads=1)(matrix, x)
    np.testing.assert_array_equal(got, b.module().run_reference(matrix, x))


@pytest.mark.parametrize("size", [0, 1, 3, 17])
def test_guards_that_bound_each_other(size: int) -> None:
    """No condition on sizes follows from them, such as one with ever larger factors."""

    def blurred(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            y[i] = 0.0
            with k.serial(5) as d:
                place = i + d - 2
                with k.only_if(place >= 0), k.only_if(place < x.shape[0]):
                    y.accumulate(i, x[place], "add")

    b = sw.Builder("main")
    x = b.input("x", ("n",))
    b.output(b.relu(b.call_kernel(sw.kernel(blurred), x, results=sw.TensorSpec(("n",)))))
    given = vector(size)
    want = [given[max(i - 2, 0) : i + 3].sum() for i in range(size)]
    np.testing.assert_array_equal(sw.compile(b.module(), threads=1)(given), want)
