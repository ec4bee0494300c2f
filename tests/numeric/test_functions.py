"""Modules that mix operators, kernels written by hand and functions that are registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.core.dtypes import dtype_of
from stepwell.core.registry import make_context
from stepwell.frontends.arrays import element_type_named
from stepwell.passes.graph.bind_params import GraphBindParamsPass

from ..harness import RNG, cases, close, floats, same

KERNELS = """
loop.kernel @double(%x: memref<?x4xf32>) -> (%y: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 4 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x4xf32>, f32
      %w = arith.addf %v, %v : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x4xf32>
    }
  }
}
"""

MIXED = """
func.func @main(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]})
    -> (tensor<?x4xf32>, tensor<?xf32>) {
  %h = graph.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %k = graph.call_dps @double(%h) dims [["n", ""]] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %p, %s = graph.call_packed "functions.split"(%k) dims [["n", ""], ["n"]]
      : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?xf32>)
  %y = graph.add %p, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = graph.neg %s : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y, %t : tensor<?x4xf32>, tensor<?xf32>
}
"""


@pytest.fixture
def split() -> None:
    @sw.register_function("functions.split")
    def split(x: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        np.negative(x, out=y)
        x.sum(axis=1, out=s)


@pytest.mark.usefixtures("split")
@pytest.mark.parametrize("level", cases([0, 1, 3], [0, 3]))
def test_operators_kernels_and_functions_in_one_module(level: int) -> None:
    module = sw.from_mlir(MIXED + KERNELS)
    exe = sw.compile(module, threads=1, opt_level=level)
    for n in (0, 1, 7):
        x = floats(n, 4)
        doubled = 2 * np.exp(x)
        for found in (exe(x), module.run_reference(x)):
            close(found, (x - doubled, -doubled.sum(1)))


@pytest.mark.usefixtures("split")
def test_the_stages_of_a_mixed_module_can_be_read_back(all_tests: bool) -> None:
    exe = sw.compile(sw.from_mlir(MIXED + KERNELS), threads=1)
    x = floats(5, 4)
    stages = ("optimized", "fused", "kernels", "scheduled", "buffers", "loops")
    for stage in stages if all_tests else ("fused", "loops"):
        same(sw.compile(sw.from_mlir(exe.ir(stage)), threads=1)(x), exe(x))


def identity(name: str, shape: tuple[int | str, ...], dtype: str) -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", shape, dtype)
    b.output(b.call_packed(name, x, results=sw.TensorSpec(shape, dtype)), name="y")
    return b.module()


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i1", "i8", "i64", "ui8", "ui32"])
@pytest.mark.parametrize("rank", [2, 0])
def test_elements_of_all_types_and_empty_arrays(dtype: str, rank: int) -> None:
    seen: list[tuple[Any, ...]] = []

    @sw.register_function("functions.copy")
    def copy(x: np.ndarray, y: np.ndarray) -> None:
        seen.append((x.dtype, y.dtype, x.shape, y.shape, x.flags.writeable))
        y[...] = x

    kind = dtype_of(element_type_named("x", dtype))
    module = identity("functions.copy", tuple("mn"[:rank]), dtype)
    exe = sw.compile(module, threads=1)
    for shape in [(3, 5), (0, 5), (2, 0)] if rank else [()]:
        x = RNG.integers(0, 2 if dtype == "i1" else 100, shape).astype(kind)
        seen.clear()
        for run in (exe, module.run_reference):
            same(run(x), x)
        assert seen == [(kind, kind, shape, shape, False)] * 2


def test_a_function_is_given_the_very_buffers() -> None:
    places: list[int] = []

    @sw.register_function("functions.places")
    def copy(x: np.ndarray, y: np.ndarray) -> None:
        places.extend([x.ctypes.data, memoryview(x).nbytes, np.from_dlpack(y).ctypes.data])
        assert not x.flags.owndata
        np.from_dlpack(y)[...] = x

    x = floats(6, 3)
    result = sw.compile(identity("functions.places", ("n", 3), "f32"), threads=1)(x)
    assert places == [x.ctypes.data, x.nbytes, result.ctypes.data]
    np.testing.assert_array_equal(result, x)


def test_a_function_cannot_make_its_inputs_writable() -> None:
    """Other kernels rely on indices that the call has checked."""
    refused: list[str] = []

    @sw.register_function("functions.writes")
    def write(a: csr_array, y: np.ndarray) -> None:
        for part in (a.indptr, a.indices, a.data):
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag") as caught:
                part.flags.writeable = True
            refused.append(str(caught.value))
        y[...] = 0

    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", 9), "f32"))
    b.output(b.call_packed("functions.writes", a, results=sw.TensorSpec(("n",))))
    matrix = csr_array(random_array((11, 9), density=0.3, rng=RNG, dtype=np.float32))
    np.testing.assert_array_equal(sw.compile(b.module(), threads=1)(matrix), np.zeros(11))
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("columns", "index"),
    [
        *((9, np.int64), ("k", np.int32)),
        pytest.param(9, np.int32, marks=pytest.mark.slow),
        pytest.param("k", np.int64, marks=pytest.mark.slow),
    ],
)
def test_a_sparse_argument_is_a_view_of_its_three_arrays(columns: int | str, index: type) -> None:
    seen: list[csr_array] = []

    @sw.register_function("functions.rows")
    def rows(a: csr_array, y: np.ndarray) -> None:
        seen.append((a.shape, a.indptr.ctypes.data, a.data.ctypes.data, a.data.flags.writeable))
        y[...] = a @ np.ones(a.shape[1], np.float32)

    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", columns), "f32"))
    b.output(b.relu(b.call_packed("functions.rows", a, results=sw.TensorSpec(("n",)))))
    module = b.module()
    exe = sw.compile(module, threads=1)
    for density in (0.3, 0.0):
        matrix = csr_array(random_array((11, 9), density=density, rng=RNG, dtype=np.float32))
        matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
        expected = np.maximum(matrix.sum(axis=1), 0)
        np.testing.assert_allclose(module.run_reference(matrix), expected, rtol=1e-5)
        seen.clear()
        np.testing.assert_allclose(exe(matrix), expected, rtol=1e-5)
        shape, _, values, writeable = seen[0]
        assert shape == (11, 9)
        assert not writeable
        if matrix.nnz:
            assert values == matrix.data.ctypes.data


def test_a_constant_sparse_argument() -> None:
    @sw.register_function("functions.product")
    def product(a: csr_array, x: np.ndarray, y: np.ndarray) -> None:
        y[...] = a @ x

    matrix = csr_array(random_array((6, 4), density=0.5, rng=RNG, dtype=np.float32))
    b = sw.Builder("main")
    x = b.input("x", (4, 2), "f32")
    b.output(b.call_packed("functions.product", matrix, x, results=sw.TensorSpec((6, 2))))
    x = floats(4, 2)
    np.testing.assert_allclose(sw.compile(b.module(), threads=1)(x), matrix @ x, rtol=1e-5)


@pytest.mark.parametrize("constant", [False, True])
def test_a_sparse_argument_of_16_bits(constant: bool) -> None:
    """The constructor of SciPy refuses its dtype."""

    @sw.register_function("functions.sums")
    def sums(a: csr_array, y: np.ndarray) -> None:
        y[...] = 0
        np.add.at(y, np.repeat(np.arange(6), np.diff(a.indptr)), a.data.astype(np.float32))

    wide = csr_array(random_array((6, 4), density=0.5, rng=RNG, dtype=np.float32))
    parts = wide.data.astype(np.float16), wide.indices, wide.indptr
    matrix = csr_array(parts, shape=(6, 4))
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((6, 4), "f16"))
    b.output(b.call_packed("functions.sums", a, results=sw.TensorSpec((6,))))
    module = b.module()
    if constant:
        GraphBindParamsPass().bind(make_context(module.weights), module.op, {"a": matrix})
    got = sw.compile(module, threads=1)(*(() if constant else (matrix,)))
    wide.data = parts[0].astype(np.float32)
    np.testing.assert_allclose(got, wide.sum(axis=1), rtol=1e-6)  # sums of up to four terms


def failing(function: Callable[..., object]) -> str:
    sw.register_function("functions.failing")(function)
    module = identity("functions.failing", ("n",), "f32")
    texts: list[str] = []
    for run in (sw.compile(module, threads=1), module.run_reference):
        with pytest.raises(sw.StepwellError) as caught:
            run(np.ones(3, np.float32))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    return texts[0]


def test_what_goes_wrong_in_a_function_is_told_with_its_name() -> None:
    def raises(x: np.ndarray, y: np.ndarray) -> None:
        raise ValueError("two\nlines")

    assert failing(raises) == 'function "functions.failing": raised ValueError: two lines'

    def has_another_shape(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = np.zeros((2, 2))

    assert 'function "functions.failing": raised ValueError: could not' in failing(
        has_another_shape
    )

    def takes_too_little(x: np.ndarray) -> None:
        raise AssertionError

    assert "positional argument" in failing(takes_too_little)

    assert failing(lambda x, y: x + 1) == (
        'function "functions.failing": returned a value, expected None, got ndarray; '
        "results are written into the last arguments, y[...] = value"
    )


def test_a_function_may_return_what_it_filled() -> None:
    sw.register_function("functions.out")(lambda x, y: np.negative(x, out=y))
    x = floats(3)
    np.testing.assert_array_equal(sw.compile(identity("functions.out", ("n",), "f32"))(x), -x)


def test_a_name_that_is_registered_again() -> None:
    def scale(factor: float) -> Callable[..., None]:
        def function(x: np.ndarray, y: np.ndarray) -> None:
            np.multiply(x, factor, out=y)

        return sw.register_function("functions.again")(function)

    scale(2)
    x, module = np.ones(3, np.float32), identity("functions.again", ("n",), "f32")
    before = sw.compile(module, threads=1)
    scale(3)
    np.testing.assert_array_equal(before(x), 2 * x)
    np.testing.assert_array_equal(sw.compile(module, threads=1)(x), 3 * x)


def test_what_cannot_be_registered() -> None:
    with pytest.raises(sw.InputError, match=r"register_function: wrong name .* got ''"):
        sw.register_function("")
    with pytest.raises(sw.InputError, match=r'function "f": cannot be called, .* got int'):
        sw.register_function("f")(3)  # type: ignore[arg-type]


def test_a_result_of_a_call_needs_a_size() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "f32")
    with pytest.raises(sw.InputError, match=r'call of "f": bad size of a result, .* got None'):
        b.call_packed("f", x, results=sw.TensorSpec((None,)))
    with pytest.raises(sw.InputError, match=r'text that is not a size, .* got "n/2"'):
        b.call_packed("f", x, results=sw.TensorSpec(("n/2",)))


def test_sizes_of_results_may_be_computed() -> None:
    @sw.register_function("functions.twice")
    def twice(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        y[...] = np.concatenate([x, x])
        z[...] = len(x)

    b = sw.Builder("main")
    x = b.input("x", ("n",), "f32")
    specs = [sw.TensorSpec(("2*n",)), sw.TensorSpec((), "i64")]
    results = b.call_packed("functions.twice", x, results=specs)
    assert isinstance(results, tuple)
    y, z = results
    b.output(b.neg(y))
    b.output(z)
    x = floats(5)
    first, second = sw.compile(b.module(), threads=1)(x)
    np.testing.assert_array_equal(first, -np.concatenate([x, x]))
    assert second == 5


@pytest.mark.parametrize("rows", [2, "n", None])
def test_a_result_like_a_value(rows: int | str | None) -> None:
    @sw.kernel
    def doubled(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as (i, j):
            y[i, j] = x[i, j] * 2

    b = sw.Builder("main")
    x = b.input("x", (rows, 3), "f32")
    y, z = b.call_packed("split", x, results=(x, sw.TensorSpec((5, 2))))
    b.output(b.call_kernel(doubled, y, results=x), name="y")
    b.output(z, name="z")

    @sw.register_function("split")
    def split(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        y[...], z[...] = x + 1, x[0, :2]

    exe = sw.compile(b.module(), threads=1)
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    first, second = exe(given)
    np.testing.assert_array_equal(first, 2 * given + 2)
    np.testing.assert_array_equal(second, np.tile(given[:1, :2], (5, 1)))
