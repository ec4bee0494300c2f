"""Kernels called one after another in a group become one nest, or keep a buffer in between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context

from ..harness import RNG, floats

EXP = """
loop.kernel @exponential(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to %m {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x?xf32>, f32
      %w = math.exp %v : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
    }
  }
}
"""

SUMS = """
loop.kernel @sums(%x: memref<?x?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  loop.for "i" %i to %n {
    %s = loop.for "k" %k to %m reduction carry(%acc = %zero : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
"""

SPREAD = """
loop.kernel @spread(%x: memref<?xf32>, %z: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %z, %c0 : memref<?x?xf32>
  %m = memref.dim %z, %c1 : memref<?x?xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to %m {
      %v = loop.load %x (d0) -> (d0)(AT) : memref<?xf32>, f32
      %u = loop.load %z (d0, d1) -> (d0, d1)(%i, %j) : memref<?x?xf32>, f32
      %w = arith.divf %u, %v : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
    }
  }
}
"""

GROUP = """
func.func @main(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["n", "m"]})
    -> tensor<?x?xf32> {
  %y = func.call @group(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
func.func private @group(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {graph.primitive} {
  %e = graph.call_dps @exponential(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = graph.call_dps @sums(%e) : (tensor<?x?xf32>) -> tensor<?xf32>
  %y = graph.call_dps @spread(%s, %e) : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
"""


NAMES = '{graph.dims = ["rows", "columns"]}'


def text(at: str) -> str:
    return GROUP + EXP + SUMS + SPREAD.replace("AT", at)


def both() -> str:
    """What `text` is for %i, divided by the sums of the columns' rows as well."""
    kinds = "(tensor<?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    more = f"  %t = graph.call_dps @turned(%s, %y) : {kinds}"
    head, tail = GROUP.rsplit("  func.return %y", 1)
    turned = SPREAD.replace("@spread", "@turned").replace("AT", "%j")
    group = f"{head}{more}\n  func.return %t{tail}"
    return group + EXP + SUMS + SPREAD.replace("AT", "%i") + turned


def kernels(module: sw.Module) -> str:
    work = module.clone()
    run_passes(make_context(work.weights), work.op, "graph-fuse-ops,convert-graph-to-loop")
    return work.text()


def test_a_softmax_of_three_kernels_is_one_nest() -> None:
    module = sw.from_mlir(text("%i"))
    merged = kernels(module)
    assert merged.count("loop.kernel") == merged.count("graph.call_dps") == 1
    assert "loop.local" not in merged
    exe = sw.compile(module, threads=1)
    for shape in ((3, 5), (1, 1), (0, 4), (2, 0), (17, 33)):
        x = floats(*shape)
        e = np.exp(x)
        expected = e / e.sum(axis=1, keepdims=True)
        for result in (exe(x), module.run_reference(x)):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_another_order_of_the_loops_computes_each_sum_once() -> None:
    # The sum of row j is wanted at column j: where j is the outer loop, it is there once.
    module = sw.from_mlir(text("%j"))
    merged = kernels(module)
    assert merged.count("loop.kernel") == merged.count("graph.call_dps") == 1
    assert "loop.local" not in merged
    exe = sw.compile(module, threads=1)
    for n in (1, 7, 0):
        x = floats(n, n)
        e = np.exp(x)
        np.testing.assert_allclose(exe(x), e / e.sum(axis=1), rtol=1e-5, atol=1e-6)


def test_a_reduction_that_would_be_computed_again_keeps_its_buffer() -> None:
    # The sums of row i and of row j are wanted: in either order one of them would be there n times.
    module = sw.from_mlir(both())
    split = kernels(module)
    assert split.count("loop.kernel") == split.count("graph.call_dps") > 1
    exe = sw.compile(module, threads=1)
    told = exe.explain()
    assert 'a reduction would be computed again in each iteration of loop "i"' in told
    for n in (1, 7, 0):
        x = floats(n, n)
        e = np.exp(x)
        sums = e.sum(axis=1)
        np.testing.assert_allclose(exe(x), e / sums[:, None] / sums, rtol=1e-5, atol=1e-6)


def test_a_function_that_cannot_be_one_kernel_is_grouped_anew() -> None:
    work = sw.from_mlir(both())
    ctx = make_context(work.weights)
    run_passes(ctx, work.op, "graph-fuse-ops")
    (told,) = [d for d in ctx.decisions if d.what == "its operators are grouped again"]
    assert told.why == 'a reduction would be computed again in each iteration of loop "i"'
    assert "@group" not in work.text()


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [("tiles", "it is scheduled"), ("serial", "it has a loop that keeps its order")],
)
def test_a_kernel_without_a_value_runs_as_it_is(level: int, kind: str, reason: str) -> None:
    apart = EXP.replace('loop.for "i" %i to %n {', f'loop.for "i" %i to %n {kind} {{')
    named = GROUP.replace("@group(%x: tensor<?x?xf32>)", f"@group(%x: tensor<?x?xf32> {NAMES})")
    named = named.replace("@exponential(%x)", '@exponential(%x) dims [["rows", "columns"]]')
    module = sw.from_mlir(named + apart + SUMS + SPREAD.replace("AT", "%i"))
    exe = sw.compile(module, threads=1, opt_level=level)
    assert f"@exponential has no value at an index: {reason}" in exe.explain()
    assert "loop.kernel @exponential" in exe.ir("kernels")
    x = floats(6, 9)
    e = np.exp(x)
    np.testing.assert_allclose(exe(x), e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_a_function_in_a_group_gets_its_buffers() -> None:
    @sw.register_function("merge.scale")
    def scale(x: np.ndarray, y: np.ndarray) -> None:
        np.multiply(x, 3, out=y)

    module = sw.from_mlir(
        """
        func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
          %y = func.call @group(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
          func.return %y : tensor<4x3xf32>
        }
        func.func private @group(%x: tensor<4x3xf32>) -> tensor<4x3xf32>
            attributes {graph.primitive} {
          %a = graph.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
          %b = graph.call_packed "merge.scale"(%a) : (tensor<4x3xf32>) -> tensor<4x3xf32>
          %y = graph.add %a, %b : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
          func.return %y : tensor<4x3xf32>
        }
        """
    )
    x = floats(4, 3)
    np.testing.assert_allclose(sw.compile(module, threads=1)(x), 4 * np.exp(x), rtol=1e-5)


PRODUCT = """
func.func @main(%a: tensor<?x?xf32, #csr> {graph.name = "a", graph.dims = ["n", "k"]},
    %x: tensor<?x3xf16> {graph.name = "x", graph.dims = ["k", ""]}, %m: tensor<3xi1>)
    -> tensor<?x3xf16> {
  %r = graph.relu %x : (tensor<?x3xf16>) -> tensor<?x3xf16>
  %p = graph.call_dps @product(%a, %r, %m) dims [["n", ""]]
      : (tensor<?x?xf32, #csr>, tensor<?x3xf16>, tensor<3xi1>) -> tensor<?x3xf16>
  %y = graph.neg %p : (tensor<?x3xf16>) -> tensor<?x3xf16>
  func.return %y : tensor<?x3xf16>
}
loop.kernel @product(%indptr: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf32>,
    %columns: index, %x: memref<?x3xf16>, %m: memref<3xi8>) -> (%y: memref<?x3xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %off = arith.constant 0 : i8
  %zero = arith.constant 0.0 : f32
  %ends = memref.dim %indptr, %c0 : memref<?xi32>
  %n = arith.subi %ends, %c1 : index
  loop.for "i" %i to %n {
    loop.for "j" %j to 3 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i)
          reduction carry(%acc = %zero : f32 add) : memref<?xi32>, memref<?xi32> {
        %v = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %h = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x3xf16>, f16
        %w = arith.extf %h : f16 to f32
        %t = math.fma %v, %w, %acc : f32
        loop.yield %t : f32
      }
      %b = loop.load %m (d0) -> (d0)(%j) : memref<3xi8>, i8
      %on = arith.cmpi ne, %b, %off : i8
      %o = arith.select %on, %s, %zero : f32
      %r = arith.truncf %o : f32 to f16
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f16, memref<?x3xf16>
    }
  }
}
"""


@pytest.mark.parametrize("level", [0, 3])
def test_a_sparse_product_in_half_precision_takes_its_epilogue(level: int) -> None:
    csr = (
        "#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), "
        "posWidth = 32, crdWidth = 32 }>\n"
    )
    module = sw.from_mlir(csr + PRODUCT)
    exe = sw.compile(module, threads=1, opt_level=level)
    if level:
        merged = exe.ir("kernels")
        assert merged.count("loop.kernel") == 2
        assert "@fused_product_neg" in merged
    for rows, columns, density in ((9, 7, 0.3), (1, 1, 1.0), (5, 4, 0.0)):
        a = csr_array(random_array((rows, columns), density=density, rng=RNG, dtype=np.float32))
        x = floats(columns, 3, dtype=np.float16)
        mask = np.array([True, False, True])
        expected = -(a @ np.maximum(x, 0).astype(np.float32)) * mask
        for result in (exe(a, x, mask), module.run_reference(a, x, mask)):
            np.testing.assert_allclose(result, expected.astype(np.float16), rtol=2e-3, atol=1e-3)


def test_a_kernel_for_each_operator_is_merged_afterwards() -> None:
    """A product and its epilogue, a sparse product, and operators that move elements."""
    b = sw.Builder("main")
    x, a = b.input("x", ("n", 8)), b.input("a", sw.SparseSpec(("n", "n"), "f32"))
    h = b.relu(b.add(b.dense(x, floats(4, 8)), floats(4)))
    b.output(b.transpose(b.exp(b.concat([b.spmm(a, h), b.neg(h)], axis=1)), [1, 0]), name="y")
    apart = sw.run_passes(b.module(), "graph-fuse-ops{max-ops=1},convert-graph-to-loop")
    merged = sw.run_passes(apart, "graph-fuse-ops,convert-graph-to-loop")
    assert "loop.kernel @fused_dense_add_relu(" in merged.text()
    counts = [module.text().count("loop.kernel") for module in (apart, merged)]
    assert counts[1] <= counts[0] - 3
    exe, call = sw.compile(merged, threads=1), (floats(5, 8), random_array((5, 5), density=0.4))
    matrix = csr_array(call[1].astype(np.float32))
    expected = b.module().run_reference(call[0], matrix)
    for run in (exe, apart.run, merged.run):
        np.testing.assert_allclose(run(call[0], matrix), expected, rtol=1e-5, atol=1e-6)
