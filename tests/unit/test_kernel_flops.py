"""The arithmetic of kernels that users wrote is counted from their loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, f32

import stepwell as sw
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.registry import make_context
from stepwell.dialects.graph.nests.sizes import KernelSizes, NoValueError
from stepwell.dialects.graph.ops.control.call import CallDpsOp
from stepwell.dialects.graph.sizes.shapes import SymbolicShapes
from stepwell.dialects.loop.loops import loops_in
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.sparse_tensor import csr


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


SIZES = """loop.kernel @k(%p: memref<?xi32>, %j: memref<?xi32>, %v: memref<?xf32>, %m: index,
    %x: memref<?x6xf32>) -> (%y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pointers = memref.dim %p, %c0 : memref<?xi32>
  %entries = memref.dim %v, %c0 : memref<?xf32>
  %n = memref.dim %x, %c0 : memref<?x6xf32>
  %own = memref.dim %y, %c0 : memref<?xf32>
  %rows = arith.subi %pointers, %c1 : index
  %area = arith.muli %n, %m : index
  loop.for "i" %i to min {bound} serial {{
  }}
}}"""


def bound_of(bound: str) -> str:
    """The number of iterations of a loop, or why it is not known."""
    (kernel,) = MlirParser(make_context(), SIZES.format(bound=bound), "text").parse_module().ops
    assert isinstance(kernel, KernelOp)
    matrix = TensorType(f32, (DYNAMIC_INDEX, DYNAMIC_INDEX), csr())
    sizes = KernelSizes(kernel, [matrix, TensorType(f32, (DYNAMIC_INDEX, 6))])
    (loop,) = loops_in(kernel.body.block)
    try:
        return str(sizes.extent(loop))
    except NoValueError as error:
        return str(error).removeprefix("the end of a loop is ")


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("() -> (4)()", "4"),
        ("(d0) -> (d0)(%rows)", "x0.0"),
        ("(d0, d1) -> (d0 * 3 + d1)(%area, %pointers)", "3*x0.1*x1.0+x0.0+1"),
        ("(d0) -> (d0, 4)(%n)", "a minimum"),
        ("(d0) -> (d0 floordiv 2)(%n)", "not known from the sizes of its operands"),
        ("(d0) -> (d0)(%own)", "not known from the sizes of its operands"),
        ("(d0) -> (d0)(%entries)", "a number of stored entries"),
    ],
)
def test_sizes_of_loops(bound: str, expected: str) -> None:
    assert bound_of(bound) == expected
