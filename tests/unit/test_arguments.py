"""The call boundary: what is taken, and what each refusal says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import stepwell as sw
from stepwell.core.boundary import arguments
from stepwell.core.boundary.specs import ValueSpec

X = ValueSpec("x", ("n", 3), "f32")
A = ValueSpec("a", ("n", 4), "f32", "csr", "e")
I32 = arguments.IndexDtypes(np.dtype(np.int32), np.dtype(np.int32))


def matrix() -> csr_array:
    return csr_array(np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0]], np.float32))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((2, 3)), 'input "x": wrong dtype, expected float32, got float64'),
        (np.zeros((2, 3), ">f4"), 'input "x": wrong dtype, expected float32, got >f4'),
        (np.zeros(3, np.float32), 'input "x": wrong rank, expected 2 [n, 3], got 1'),
        (np.zeros((2, 4), np.float32), 'input "x": wrong shape, expected [n, 3], got [2, 4]'),
        ([[1.0, 2.0, 3.0]], 'input "x": not an array, expected numpy.ndarray, got list'),
        ("text", 'input "x": wrong dtype, expected float32, got <U4'),
        (None, 'input "x": not an array, expected numpy.ndarray, got NoneType'),
        (matrix(), 'input "x": a dense array is needed, expected numpy.ndarray, got csr_array'),
    ],
)
def test_dense_refusals(value: object, message: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(message)):
        arguments.dense(X, value)


def test_dense_arrays_that_are_taken() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert arguments.dense(X, x) is x or np.shares_memory(arguments.dense(X, x), x)
    np.testing.assert_array_equal(arguments.dense(X, np.asfortranarray(x)), x)
    np.testing.assert_array_equal(arguments.dense(X, x[::2]), x[::2])
    x.flags.writeable = False
    np.testing.assert_array_equal(arguments.dense(X, x), x)
    assert arguments.dense(X, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert arguments.dense(ValueSpec("s", (), "f32"), np.float32(3)).shape == ()
    np.testing.assert_array_equal(arguments.dense(X, memoryview(np.array(x))), x)


@pytest.mark.parametrize("convert", [csr_array, csc_array, coo_array])
def test_sparse_formats_that_are_taken(convert: Any) -> None:
    got = arguments.sparse(A, convert(matrix()), I32)
    assert got.shape == (3, 4)
    assert got.indptr.dtype == got.indices.dtype == I32
    back = csr_array((got.values, got.indices, got.indptr), shape=got.shape)
    np.testing.assert_array_equal(back.toarray(), matrix().toarray())


def test_three_arrays_and_wide_indices() -> None:
    m = matrix()
    parts = (m.indptr.astype(np.int64), m.indices.astype(np.int64), m.data)
    got = arguments.sparse(A, parts, I32)
    assert got.shape == (3, 4)
    assert got.indices.dtype == I32


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.zeros((3, 4), np.float32),
            "a sparse matrix is needed, expected scipy.sparse CSR, got ndarray",
        ),
        (csr_array((3, 4), dtype=np.float64), "wrong dtype, expected float32, got float64"),
        (csr_array((3, 5), dtype=np.float32), "wrong shape, expected [n, 4], got [3, 5]"),
    ],
)
def test_sparse_refusals(value: object, message: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f'input "a": {message}')):
        arguments.sparse(A, value, I32)


def parts(**change: Any) -> tuple[Any, Any, Any]:
    m = matrix()
    values = {"indptr": m.indptr, "indices": m.indices, "values": m.data, **change}
    return values["indptr"], values["indices"], values["values"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"values": np.ones(2, np.float32)},
            "indices and values differ in length, expected 2, got 3",
        ),
        ({"indptr": np.zeros((2, 2), np.int32)}, "indptr has the wrong rank, expected 1, got 2"),
        ({"indices": np.zeros(3)}, "indices has the wrong dtype, expected int32, got float64"),
        (
            {"indices": np.array([0, 1 << 40, 2])},
            "indices does not fit int32, expected at most 2147483647, got 1099511627776",
        ),
        ({"indptr": [0, 1]}, "not an array, expected numpy.ndarray, got list"),
    ],
)
def test_refusals_of_three_arrays(change: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.InputError, match=re.escape(f'input "a": {message}')):
        arguments.sparse(A, parts(**change), I32)


def test_an_entry_count_that_is_known() -> None:
    spec = ValueSpec("a", (3, 4), "f32", "csr", 5)
    with pytest.raises(sw.InputError, match="wrong number of stored entries, expected 5, got 3"):
        arguments.sparse(spec, matrix(), I32)


def test_columns_that_nobody_says() -> None:
    spec = ValueSpec("a", ("n", "m"), "f32", "csr", "e")
    with pytest.raises(sw.InputError, match="three arrays do not determine the number of columns"):
        arguments.sparse(spec, parts(), I32)
    square = ValueSpec("a", ("n", "n"), "f32", "csr", "e")
    assert arguments.sparse(square, parts(), I32).shape == (3, 3)


def test_empty_arrays_point_somewhere() -> None:
    assert arguments.address(np.zeros((0, 3), np.float32)) != 0
