"""Running modules on NumPy and SciPy, and what is said about inputs that do not fit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from xdsl.parser import Parser

import stepwell as sw
from stepwell.core.registry import make_context

CSR = (
    "#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), "
    "posWidth = 32, crdWidth = 32 }>\n"
)


def module(text: str, **weights: Any) -> sw.Module:
    store = sw.WeightStore()
    for name, array in weights.items():
        store.add(name, array)
    result = sw.Module(Parser(make_context(), CSR + text).parse_module(), store)
    result.verify()
    return result


MLP = """
func.func @main(%x: tensor<?x3xf32> {graph.name = "x", graph.dims = ["batch", ""]})
    -> (tensor<?x2xf32>, tensor<?xf32>) {
  %w = graph.constant dense_resource<w> : tensor<2x3xf32>
  %y = func.call @layer(%x, %w) : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x2xf32>
  %m = graph.reduce max %y axes = [1] keepdims = false : (tensor<?x2xf32>) -> tensor<?xf32>
  func.return %y, %m : tensor<?x2xf32>, tensor<?xf32>
}
func.func private @layer(%x: tensor<?x3xf32>, %w: tensor<2x3xf32>) -> tensor<?x2xf32>
    attributes {graph.primitive} {
  %y = graph.dense %x, %w : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x2xf32>
  %z = graph.relu %y : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %z : tensor<?x2xf32>
}
"""
W = np.array([[1, 0, -1], [0, 2, 0]], np.float32)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_calls_constants_and_several_results(batch: int) -> None:
    x = np.random.default_rng(0).normal(size=(batch, 3)).astype(np.float32)
    y, m = module(MLP, w=W).run_reference(x)
    np.testing.assert_allclose(y, np.maximum(x @ W.T, 0), rtol=1e-6)
    np.testing.assert_array_equal(m, y.max(axis=1, initial=0))


GCN = """
func.func @main(
    %a: tensor<?x?xf32, #csr> {graph.name = "a", graph.dims = ["N", "N"], graph.nnz = "E"},
    %x: tensor<?x2xf32> {graph.name = "x", graph.dims = ["N", ""]}) -> tensor<?x2xf32> {
  %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}
"""
A = csr_array(np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3]], np.float32))
X = np.arange(6, dtype=np.float32).reshape(3, 2)


class Graph:
    """What has `to_csr`, as graphs of the frontend have."""

    def to_csr(self, dtype: str) -> csr_array:
        assert dtype == "f32"
        return A


@pytest.mark.parametrize(
    "a", [A, coo_array(A), (A.indptr, A.indices, A.data), Graph()], ids=["csr", "coo", "3", "graph"]
)
def test_sparse_inputs(a: object) -> None:
    np.testing.assert_array_equal(module(GCN).run_reference(a, X), A.toarray() @ X)


def test_inputs_are_not_changed() -> None:
    a = coo_array((np.ones(2, "f"), ([0, 0], [1, 1])), shape=(3, 3))
    module(GCN).run_reference(a, X)
    assert a.nnz == 2


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((A,), "call: wrong number of inputs, expected 2 (a, x), got 1"),
        ((A, X[:2]), 'input "x": dimension "N" differs from that of "a", expected 3, got 2'),
        ((A, X[0]), 'input "x": wrong rank, expected 2 [N, 2], got 1'),
        ((A, X[:, :1]), 'input "x": wrong shape, expected [N, 2], got [3, 1]'),
        ((A, X.astype("f8")), 'input "x": wrong dtype, expected float32, got float64'),
        ((A, X.tolist()), 'input "x": not an array, expected numpy.ndarray, got list'),
        ((A, A), 'input "x": a dense array is needed, expected numpy.ndarray, got csr_array'),
        ((A, None), 'input "x": not an array, expected numpy.ndarray, got NoneType'),
        ((X, X), 'input "a": a sparse matrix is needed, expected scipy.sparse CSR, got ndarray'),
        ((A[:2], X), 'input "a": dimension "N" differs from that of "a", expected 2, got 3'),
        ((A.astype("f8"), X), 'input "a": wrong dtype, expected float32, got float64'),
        (
            ((A.indptr, A.indices, A.data[:1]), X),
            'input "a": indices and values differ in length, expected 1, got 3',
        ),
        (
            ((A.indptr, A.indices + 2, A.data), X),
            'input "a": column index out of range at entry 0, got 3',
        ),
        (
            ((A.indptr, A.indices - 1, A.data), X),
            'input "a": column index out of range at entry 1, got -1',
        ),
        (
            ((A.indptr[::-1].copy(), A.indices, A.data), X),
            'input "a": indptr does not start at 0, got 3',
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs: tuple[object, ...], message: str) -> None:
    with pytest.raises(sw.InputError, match=f"^{re.escape(message)}"):
        module(GCN).run_reference(*inputs)


def test_a_fixed_number_of_entries() -> None:
    text = GCN.replace('graph.nnz = "E"', "graph.nnz = 4")
    message = 'input "a": wrong number of stored entries, expected 4, got 3'
    with pytest.raises(sw.InputError, match=message):
        module(text).run_reference(A, X)


def test_sizes_that_have_to_agree() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %z = graph.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("sum")
      func.return %z : tensor<?xf32>
    }"""
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(module(text).run_reference(x, x), [2, 2, 2])
    # A size that is not known to be 1 does not broadcast.
    message = 'graph.add: sizes _0 and _1 differ, expected 3, got 1 (node "sum")'
    with pytest.raises(sw.InputError, match=f"^{re.escape(message)}$"):
        module(text).run_reference(x, x[:1])


def test_registered_functions() -> None:
    @sw.register_function("test.outer")
    def outer(x: np.ndarray, product: np.ndarray, total: np.ndarray) -> None:
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 0
        np.multiply.outer(x, x, out=product)
        total[...] = x.sum()

    text = """func.func @main(%x: tensor<?xf32> {graph.dims = ["n"]})
        -> (tensor<?x?xf32>, tensor<f32>) {
      %y, %z = graph.call_packed "test.outer"(%x) dims [["n", "n"], []]
          : (tensor<?xf32>) -> (tensor<?x?xf32>, tensor<f32>)
      func.return %y, %z : tensor<?x?xf32>, tensor<f32>
    }"""
    x = np.arange(4, dtype=np.float32)
    product, total = module(text).run_reference(x)
    np.testing.assert_array_equal(product, np.outer(x, x))
    assert total == 6

    with pytest.raises(sw.CompileError, match="the size of a result is unknown; give it in dims"):
        module(text.replace(' dims [["n", "n"], []]', "")).run_reference(x)


PACKED = 'graph.call_packed "test.nowhere"(%x) : (tensor<2xf32>) -> tensor<2xf32>'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (PACKED, 'function "test.nowhere": is not registered'),
        ("func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>", "there is no function @f"),
        ("arith.negf %x : tensor<2xf32>", "arith.negf: the reference runs the graph level only"),
        ("graph.constant dense_resource<w> : tensor<2xf32>", 'the weight store has no array "w"'),
    ],
)
def test_what_cannot_run(line: str, message: str) -> None:
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %y = {line}
      func.return %y : tensor<2xf32>
    }}
    func.func private @f(tensor<2xf32>) -> tensor<2xf32>"""
    with pytest.raises(sw.CompileError, match=re.escape(message)):
        module(text).run_reference(np.ones(2, np.float32))
