"""Programs whose arguments were bound to arrays compute what they computed with arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.errors import CompileError
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context

from ...harness import floats

ARRAYS: dict[str, Any] = {
    "w": floats(3, 7),
    "b": floats(3),
    "a": sp.csr_array(np.eye(5, k=1, dtype=np.float32)),
}


def program(entries: int | None = None) -> sw.Module:
    b = sw.Builder()
    a = b.input("a", sw.SparseSpec((5, 5), nnz=entries))
    x, w, bias = b.input("x", ("n", 7)), b.input("w", (3, 7)), b.input("b", (3,))
    b.output(b.spmm(a, b.dense(x, w, bias)), name="y")
    return b.module()


def bound(module: sw.Module, options: str, weights: WeightStore | None = None) -> sw.Module:
    copy = module.clone()
    ctx = make_context(weights or copy.weights)
    run_passes(ctx, copy.op, f"graph-bind-params{options}")
    return sw.Module(copy.op, ctx.weights)


def stored(names: str) -> WeightStore:
    store = WeightStore()
    for name in names:
        store.add(name, ARRAYS[name])
    return store


def write_npz(path: Path) -> None:
    a = ARRAYS["a"]
    parts = {"a.indptr": a.indptr, "a.indices": a.indices, "a.values": a.data, "a.shape": a.shape}
    np.savez(path, w=ARRAYS["w"], b=ARRAYS["b"], **parts)


@pytest.mark.parametrize("names", ["", "w", "wb", "wba"])
def test_arrays_beside_the_module(names: str) -> None:
    module, x = program(), floats(5, 7)
    after = bound(module, "", stored(names))
    left = [n for n in "axwb" if n not in names]
    assert [spec.name for spec in after.inputs] == left
    inputs = {**ARRAYS, "x": x}
    expected = module.run_reference(*(inputs[n] for n in "axwb"))
    np.testing.assert_array_equal(after.run_reference(*(inputs[n] for n in left)), expected)
    got = sw.compile(after, threads=1)(*(inputs[n] for n in left))
    # Sums of seven products in another order.
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_arrays_of_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"arrays.{suffix}"
    write_npz(path) if suffix == "npz" else stored("wba").save(path)
    module, x = program(), floats(5, 7)
    after = bound(module, f'{{path="{path}"}}')
    assert [spec.name for spec in after.inputs] == ["x"]
    expected = module.run_reference(ARRAYS["a"], x, ARRAYS["w"], ARRAYS["b"])
    np.testing.assert_array_equal(after.run_reference(x), expected)
    chosen = bound(module, f'{{path="{path}" names=w}}')
    assert [spec.name for spec in chosen.inputs] == ["a", "x", "b"]


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        (
            "w",
            ARRAYS["w"].T.copy(),
            r'argument "w": wrong shape of the array, expected \[3, 7\]',
        ),
        (
            "w",
            ARRAYS["w"].astype(np.float64),
            "wrong dtype of the array, expected float32, got float64",
        ),
        ("w", ARRAYS["a"], "wrong kind of array, expected a dense array, got a CSR matrix"),
        ("a", np.eye(5, dtype=np.float32), "wrong kind of array, expected a CSR matrix"),
        (
            "x",
            np.zeros((5, 6), np.float32),
            r"wrong shape of the array, expected \[n, 7\], got \[5, 6\]",
        ),
        ("x", np.zeros(7, np.float32), r"wrong shape of the array, expected \[n, 7\], got \[7\]"),
        (
            "a",
            sp.csr_array(np.ones((5, 5), np.float32)),
            "wrong number of entries of the matrix, expected 4, got 25",
        ),
    ],
)
def test_arrays_that_do_not_fit(name: str, array: Any, message: str) -> None:
    module, store = program(entries=4), WeightStore()
    store.add(name, array)
    before = str(module)
    with pytest.raises(CompileError, match=message):
        bound(module, "", store)
    assert str(module) == before


def test_inconsistent_matrix() -> None:
    matrix = sp.csr_array(ARRAYS["a"])
    matrix.indices = np.array([1, 2, 3, 9], dtype=np.int32)
    store = WeightStore()
    store.add("a", matrix)
    with pytest.raises(CompileError, match='argument "a": the matrix is inconsistent'):
        bound(program(), "", store)


def test_names_without_arrays() -> None:
    assert "dense_resource<w> : tensor<3x7xf32>" in str(bound(program(), "{names=w}"))
    with pytest.raises(CompileError, match='argument "x": a constant cannot have symbolic sizes'):
        bound(program(), "{names=x}")


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match='no argument "v", expected a, b, w, x'):
        bound(program(), "{names=v}")
    stored("b").save(tmp_path / "b.safetensors")
    with pytest.raises(CompileError, match='has no array "w", expected b'):
        bound(program(), f'{{path="{tmp_path}/b.safetensors" names=w}}')


@pytest.mark.parametrize("content", [b"", b"PK nothing"])
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "arrays.npz"
    path.write_bytes(content)
    with pytest.raises(sw.StepwellError, match=r"weights: cannot read .*arrays\.npz"):
        bound(program(), f'{{path="{path}"}}')


def test_an_incomplete_matrix_of_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{"a.indptr": ARRAYS["a"].indptr})
    with pytest.raises(
        sw.StepwellError, match='CSR matrix "a": one of its three arrays is missing'
    ):
        bound(program(), f'{{path="{tmp_path}/a.npz"}}')


def test_decisions_name_the_arrays(transformed: Callable) -> None:
    module = program()
    module.weights.add("w", ARRAYS["w"])
    _, ctx = transformed(module, "graph-bind-params")
    assert 'argument "w": bind to the array "w"' in str(ctx.decisions[0])
