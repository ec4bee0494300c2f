"""Arrays that are not plain ones: what their memory holds counts, and nothing is dropped.

Calls that could leave a buffer run in a process of their own, where a crash is seen as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, coo_matrix, csc_array, csr_array

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.runtime.archives import read_archive, write_archive

from ..harness import close, same

Apart = Callable[[Callable[[], object]], str]
X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Lying(np.ndarray):
    """An array whose attributes are not those of its memory."""

    claims: dict[str, Any] = {}

    @property
    def shape(self) -> Any:
        return self.claims.get("shape", super().shape)

    @property
    def strides(self) -> Any:
        return self.claims.get("strides", super().strides)

    @property
    def dtype(self) -> Any:
        return self.claims.get("dtype", super().dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def ctypes(self) -> Any:
        return self.claims.get("ctypes", super().ctypes)

    @property
    def flags(self) -> Any:
        return np.zeros(1).flags

    def __len__(self) -> int:
        return self.shape[0]

    def copy(self, order: Any = "C") -> Any:
        return np.zeros((1, 1), np.float32)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise AssertionError("written to through Python")


class Nowhere:
    data = 8


CLAIMS: dict[str, dict[str, Any]] = {
    "shape": {"shape": (2**22, 3)},
    "strides": {"strides": (2**30, 4)},
    "address": {"ctypes": Nowhere},
}


def lying(array: np.ndarray, **claims: Any) -> Lying:
    result = array.view(Lying)
    result.claims = claims
    return result


def program() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 3), "f32") + np.float32(1), name="y")
    return b.module()


def product() -> sw.Module:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32"))
    b.output(b.spmm(a, b.input("x", ("m", 3), "f32")), name="y")
    return b.module()


def ways(module: sw.Module) -> dict[str, Callable[..., Any]]:
    """How a module is called: compiled, through Python, interpreted, and by the reference."""
    exe = sw.compile(module, threads=1)
    return {
        "compiled": exe,
        "python": lambda *inputs, **rest: sw.Executable.__call__(exe, *inputs, **rest),
        "buffers": lambda *inputs: exe.run_at("buffers", *inputs),
        "reference": module.run_reference,
    }


ADDED, MULTIPLIED = ways(program()), ways(product())


@pytest.mark.parametrize("claim", CLAIMS)
def test_only_the_memory_of_an_array_counts(claim: str, apart: Apart) -> None:
    def call_each_way() -> None:
        for call in ADDED.values():
            same(call(lying(X, **CLAIMS[claim])), X + 1)

    assert apart(call_each_way) == "works"


def test_a_dtype_that_is_only_claimed_is_refused(apart: Apart) -> None:
    claimed = lying(X.astype("i1"), dtype=np.dtype(np.float32))

    def call_each_way() -> None:
        for call in ADDED.values():
            message = '^input "x": wrong dtype, expected float32, got int8$'
            with pytest.raises(sw.InputError, match=message):
                call(claimed)

    assert apart(call_each_way) == "works"


@pytest.mark.parametrize("part", ["indptr", "indices", "data"])
def test_only_the_memory_of_the_arrays_of_a_matrix_counts(part: str, apart: Apart) -> None:
    matrix = csr_array(np.eye(4, dtype=np.float32))
    setattr(matrix, part, lying(getattr(matrix, part), shape=(2**22,), ctypes=Nowhere))

    def call_each_way() -> None:
        for call in MULTIPLIED.values():
            same(call(matrix, X), X)

    assert apart(call_each_way) == "works"


@pytest.mark.parametrize("way", ["compiled", "python"])
def test_only_the_memory_of_a_given_result_counts(way: str, apart: Apart) -> None:
    y = np.zeros((2, 3), np.float32)
    outcome = apart(lambda: ADDED[way](X, out=lying(y, shape=(4, 3))))
    assert outcome == 'InputError: output "y": wrong shape, expected [4, 3], got [2, 3]'
    z, x = np.zeros((4, 3), np.float32), X.copy()
    given = lying(z, shape=(2, 3), ctypes=Nowhere)
    assert ADDED[way](X, out=given) is given
    np.testing.assert_array_equal(z, X + 1)
    ADDED[way](x, out=lying(x))
    np.testing.assert_array_equal(x, X + 1)


def test_what_only_says_that_it_is_an_array() -> None:
    class Other:
        __class__ = np.ndarray  # type: ignore[assignment]

    for call in ADDED.values():
        with pytest.raises(sw.InputError, match='input "x": not an array'):
            call(Other())


# Masks.

MASKED = np.ma.array(X, mask=X > 5)
REFUSED = "elements cannot be masked, expected numpy.ndarray, got MaskedArray; filled() of it is an"


@pytest.mark.parametrize("way", ADDED)
@pytest.mark.parametrize("masked", [MASKED, np.ma.array(X)])
def test_a_masked_array_is_refused(masked: Any, way: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f'input "x": {REFUSED}')):
        ADDED[way](masked)
    np.testing.assert_array_equal(ADDED[way](masked.filled(0)), masked.filled(0) + 1)


@pytest.mark.parametrize("way", MULTIPLIED)
def test_masked_values_of_a_matrix_are_refused(way: str) -> None:
    matrix = csr_array(np.eye(4, dtype=np.float32))
    matrix.data = np.ma.array(matrix.data, mask=True)
    with pytest.raises(sw.InputError, match=re.escape(f'input "a": {REFUSED}')):
        MULTIPLIED[way](matrix, X)


@pytest.mark.parametrize("way", ["compiled", "python"])
def test_a_masked_array_for_a_result_is_refused(way: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f'output "y": {REFUSED}')):
        ADDED[way](X, out=MASKED.copy())


def test_masked_constants_and_weights_are_refused() -> None:
    masked_matrix = csr_array(X)
    masked_matrix.data = np.ma.array(masked_matrix.data, mask=True)
    edges = np.ma.array([[0, 1], [1, 0]], mask=[[0, 1], [0, 0]])
    weights = np.ma.array([1.0, 2.0], mask=[0, 1])
    for subject, action in (
        ("c", lambda: sw.Builder("main").constant(MASKED, name="c")),
        ("c", lambda: sw.Builder("main").constant(masked_matrix, name="c")),
        ("Graph", lambda: gnn.Graph.from_edge_index(edges, 2)),
        ("Graph", lambda: gnn.Graph.from_edge_index(edges.data, 2, weights)),
        ("GCNConv: weight", lambda: gnn.GCNConv(MASKED)),
        ("GlobalAddPool", lambda: gnn.GlobalAddPool(edges[0])),
    ):
        with pytest.raises(sw.InputError, match=re.escape(f"{subject}: {REFUSED}")):
            action()


# Coordinates.

ROWS, COLUMNS = np.array([2, 0, 2, 0, 2]), np.array([1, 3, 1, 0, 0])
VALUES = np.array([1, 2, -4, 3, 5], np.float32)
DOUBLED = coo_array((VALUES, (ROWS, COLUMNS)), shape=(3, 4))
AS_CSR = csr_array((VALUES[[1, 3, 0, 2, 4]], [3, 0, 1, 1, 0], [0, 2, 2, 5]), shape=(3, 4))


def entries_of() -> sw.Module:
    """A sum, a mean and a maximum over the entries of a row: a mean counts them."""
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec(("n", "m"), "f32", nnz="e")), b.input("x", ("m", 3), "f32")
    b.output(b.spmm(a, x), name="sum")
    b.output(b.aggregate(a, x, kind="mean"), name="mean")
    b.output(b.aggregate(a, x, kind="max"), name="max")
    return b.module()


COUNTED = ways(entries_of())


@pytest.mark.parametrize("way", COUNTED)
@pytest.mark.parametrize("form", [coo_array, coo_matrix])
def test_entries_of_one_place_are_the_same_in_both_forms(form: Any, way: str) -> None:
    got, wanted = COUNTED[way](form(DOUBLED), X), COUNTED[way](AS_CSR, X)
    same(got, wanted)
    np.testing.assert_allclose(got[0], DOUBLED @ X)


def test_a_known_number_of_entries_is_that_of_those_stored() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((3, 4), "f32", nnz=5))
    b.output(b.spmm(a, b.input("x", (4, 3), "f32")))
    for call in ways(b.module()).values():
        np.testing.assert_allclose(call(DOUBLED, X), DOUBLED @ X)


def test_constants_keep_entries_of_one_place_in_both_forms(tmp_path: Path) -> None:
    results = []
    for matrix in (DOUBLED, AS_CSR):
        b = sw.Builder("main")
        b.output(b.aggregate(b.constant(matrix), b.input("x", (4, 3), "f32"), kind="mean"))
        module = b.module()
        results += [sw.compile(module, threads=1)(X), module.run_reference(X)]
    for result in results[1:]:
        close(result, results[0], 1e-6, 0)
    path, specs = tmp_path / "inputs.npz", [product().inputs[0]]
    write_archive(path, specs, [DOUBLED])
    np.testing.assert_array_equal(read_archive(path, specs)[0][2], AS_CSR.data)


def test_a_graph_of_doubled_coordinates() -> None:
    square = coo_array((VALUES, (ROWS, COLUMNS)), shape=(4, 4))
    layer = gnn.GCNConv(np.eye(3, dtype=np.float32))
    module = gnn.Sequential(layer).to_module(gnn.GraphSpec(), sw.TensorSpec((None, 3), "f32"))
    positive = coo_array((np.abs(VALUES), (ROWS, COLUMNS)), shape=(4, 4))
    rows = csr_array((np.abs(AS_CSR.data), AS_CSR.indices, [0, 2, 2, 5, 5]), shape=(4, 4))
    for call in ways(module).values():
        close(call(positive, X), call(rows, X), 1e-6, 0)
    graph = gnn.Graph.from_scipy(square)
    assert graph.num_edges == 5
    np.testing.assert_array_equal(graph.to_csr().toarray(), square.T.toarray())


def refused_each_way(matrix: Any, message: str) -> None:
    for call in (*MULTIPLIED.values(), lambda m, _: sw.Builder("main").constant(m)):
        with pytest.raises(sw.InputError, match=message):
            call(matrix, X)


def test_coordinates_outside_of_the_matrix(apart: Apart) -> None:
    for name, index in (("row", 7), ("col", 4), ("col", -1), ("row", -1)):
        matrix = DOUBLED.copy()
        getattr(matrix, name)[1] = index
        assert apart(lambda matrix=matrix: refused_each_way(matrix, "index|indices")) == "works"


def test_columns_whose_indices_leave_the_matrix(apart: Apart) -> None:
    matrix = csc_array(DOUBLED)
    matrix.indices[1] = 2**30
    assert apart(lambda: refused_each_way(matrix, "indices")) == "works"


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_a_constant_matrix_that_is_written_after_compilation(part: str, apart: Apart) -> None:
    b = sw.Builder()
    a = b.constant(csr_array(np.eye(4, dtype=np.float32)[[0, 2, 1, 3]]), name="a")
    b.output(b.spmm(a, b.input("x", (4, 3))))
    module = b.module()
    matrix = module.weights["a"]
    setattr(matrix, part, at_a_cache_line(getattr(matrix, part)))
    exe = sw.compile(module, threads=1)

    def written() -> None:
        getattr(matrix, part)[:] = 1 << 30
        np.testing.assert_array_equal(exe(X), X[[0, 2, 1, 3]])

    assert apart(written) == "works"


def test_constant_indices_that_are_written_after_compilation(apart: Apart) -> None:
    i = at_a_cache_line(np.array([2, 0, 3], np.int64))
    b = sw.Builder()
    x = b.input("x", (4, 3))
    b.output(b.gather(x, b.constant(i, name="i"), axis=0))
    module = b.module()
    exe = sw.compile(module, threads=1)

    def written() -> None:
        module.weights["i"][:] = 1 << 30
        np.testing.assert_array_equal(exe(X), X[[2, 0, 3]])

    assert apart(written) == "works"


def at_a_cache_line(array: np.ndarray) -> np.ndarray:
    """A copy that begins where compiled code wants constants: it needs no other one."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    found = raw[start : start + array.nbytes].view(array.dtype)
    found[:] = array
    return found


class Exported:
    """Memory that another library exports by DLPack."""

    def __init__(self, array: np.ndarray, on_cpu: bool = True) -> None:
        self.array, self.on_cpu = array, on_cpu

    def __dlpack__(self, **options: Any) -> Any:
        if not self.on_cpu:
            raise BufferError("the memory of another device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__() if self.on_cpu else (2, 0)


def test_memory_that_others_export() -> None:
    """It is read and written in place; that of another device is refused."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 3), "f32")
    b.output(x + x, name="y")
    exe = sw.compile(b.module(), threads=1)
    target = np.zeros_like(X)
    out = Exported(target)
    assert exe(Exported(X), out=out) is out
    np.testing.assert_array_equal(target, 2 * X)
    elsewhere = Exported(X, on_cpu=False)
    with pytest.raises(sw.InputError, match=r'input "x": not an array \(.*\), expected numpy'):
        exe(elsewhere)
    with pytest.raises(sw.InputError, match=r'output "y": not an array, .* got Exported'):
        exe(X, out=elsewhere)
    with pytest.raises(sw.InputError, match='output "y": wrong dtype, expected float32'):
        exe(X, out=Exported(np.zeros(X.shape)))
