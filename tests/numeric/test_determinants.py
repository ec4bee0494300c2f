"""`graph.det` against its reference and NumPy, and Det of ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from scipy.sparse import csr_array

import stepwell as sw

from ..harness import RNG, cases


def program(shape: tuple[int | str, ...], dtype: str = "f64") -> sw.Module:
    b = sw.Builder("main")
    b.output(b.det(b.input("x", shape, dtype) * 1.0) + 1.0)
    return b.module()


@pytest.mark.parametrize("size", [0, 2])
def test_matrices_at_entries(size: int) -> None:
    """The loops of the determinant do not visit entries, whose rows are looked up before."""
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec((3, 3), "f64")), b.input("x", (3, size, size), "f64")
    b.output(b.det(b.at_entries(a, x, 0)))
    given = csr_array(np.array([[1.0, 0, 1], [0, 0, 0], [0, 1, 0]]))
    x = RNG.standard_normal((3, size, size))
    got = sw.compile(b.module(), threads=1)(given, x)
    np.testing.assert_allclose(got, np.linalg.det(x)[[0, 0, 2]], rtol=1e-9)


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_any_size(threads: int) -> None:
    exe = sw.compile(program(("b", "n", "n")), threads=threads)
    for batch, size in ((3, 1), (2, 2), (5, 7), (1, 19), (0, 3), (2, 0)):
        x = RNG.standard_normal((batch, size, size))
        np.testing.assert_allclose(exe(x), np.linalg.det(x) + 1, rtol=1e-9)
    with pytest.raises(sw.InputError):
        exe(np.zeros((1, 2, 3)))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_one_matrix(dtype: str) -> None:
    x = RNG.standard_normal((4, 4)).astype("float" + dtype[1:])
    module = program((4, 4), dtype)
    want = np.linalg.det(x.astype(np.float64)) + 1
    tolerance = 1e-5 if dtype == "f32" else 2e-3
    for run in (module.run_reference, sw.compile(module, threads=1)):
        np.testing.assert_allclose(run(x), want, rtol=tolerance)
        assert run(x).dtype == x.dtype


def test_pivots() -> None:
    """Rows are exchanged, a singular matrix gives 0, and a NaN stays."""
    exe = sw.compile(program((6, 3, 3)), threads=1)
    x = np.stack(
        [
            [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
            [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
            [[1, 2, 3], [2, 4, 6], [1, 0, 5]],
            [[0, 0, 0], [0, 2, 1], [0, 1, 3]],
            [[1, 2, 3], [np.nan, 4, 6], [1, 0, 5]],
            [[1e-30, 1, 0], [1, 1, 0], [0, 0, 1]],
        ]
    ).astype(np.float64)
    np.testing.assert_allclose(exe(x) - 1, [-1, 1, 0, 0, np.nan, -1], atol=1e-12)


def test_infinities() -> None:
    """Elimination leaves the rows above as they are: 0 times an infinity would be NaN."""
    module = program((3, 2, 2))
    inf = np.inf
    x = np.array([[[0.7, -inf], [0.4, 1.8]], [[0.4, 1.8], [0.7, -inf]], [[inf, 1], [1, 1]]])
    np.testing.assert_array_equal(module.run_reference(x), [inf, -inf, inf])
    np.testing.assert_array_equal(sw.compile(module, threads=1)(x), [inf, -inf, inf])


def test_infinite_pivots() -> None:
    """The reference too divides infinities and NaNs by an infinity, which LAPACK may not."""
    module = program((5, 2, 2))
    inf, nan = np.inf, np.nan
    x = [
        [[-inf, -0.0], [nan, 1]],
        [[inf, 1], [inf, 1]],
        [[0, 0], [0, nan]],
        [[0, inf], [0, inf]],
        [[inf, 0], [1, 0]],
    ]
    want = [nan, nan, nan, nan, 1]
    np.testing.assert_array_equal(module.run_reference(np.array(x)), want)
    np.testing.assert_array_equal(sw.compile(module, threads=1)(np.array(x)), want)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_singular_beyond_the_range(order: tuple[int, ...]) -> None:
    """A singular matrix gives 0, also where the product of its other pivots overflows."""
    module = program((1, 3, 3), "f32")
    x = np.diag(np.array([1e30, -1e30, 0], np.float32)[list(order)])[None]
    for run in (module.run_reference, sw.compile(module, threads=1)):
        np.testing.assert_array_equal(run(x), [1])


def test_products_overflow() -> None:
    """The pivots are multiplied in their order: the reference does not add their logarithms."""
    module = program((2, 3, 3), "f32")
    x = np.stack([np.diag([1e30, 1e30, 1e-30]), np.diag([1e-30, 1e-30, 1e30])])
    for run in (module.run_reference, sw.compile(module, threads=1)):
        np.testing.assert_array_equal(run(x.astype(np.float32)), [np.inf, 1])


def test_reference_of_no_elements() -> None:
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0, 0)):
        got = program(("b", "n", "n")).run_reference(np.zeros(shape))
        np.testing.assert_array_equal(got, np.full(shape[0], 2.0))


def test_onnx() -> None:
    x = make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 3])
    y = make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = make_graph([make_node("Det", ["x"], ["y"], "n")], "g", [x], [y])
    exe = sw.compile(
        sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 22)])), threads=1
    )
    given = RNG.standard_normal((4, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(exe(given), np.linalg.det(given), rtol=1e-4)
