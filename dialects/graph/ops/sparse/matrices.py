"""Sparse matrices in NumPy: building blocks of the references of sparse operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def rows_of(matrix: csr_array) -> np.ndarray:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def with_sorted_rows(matrix: csr_array) -> csr_array:
    """The matrix with rising columns in each row; entries of one place stay in their order."""
    from scipy.sparse import csr_array

    # SciPy's own sorting is not a stable one.
    if matrix.has_sorted_indices:
        return matrix
    order = np.lexsort((matrix.indices, rows_of(matrix)))
    parts = (matrix.data[order], matrix.indices[order], matrix.indptr)
    return csr_array(parts, shape=matrix.shape)


def widened_csr(matrix: csr_array) -> csr_array:
    """A CSR matrix in the type in which it is computed: f32 for f16, itself otherwise."""
    if matrix.dtype != np.float16:
        return matrix
    return with_values(matrix, matrix.data.astype(np.float32))


def stored_diagonal(matrix: csr_array) -> np.ndarray:
    """For each row of a CSR matrix, whether its diagonal entry is stored (even as 0)."""
    rows = rows_of(matrix)
    present = np.zeros(matrix.shape[0], dtype=np.bool_)
    present[rows[rows == matrix.indices]] = True
    return present


def with_values(matrix: csr_array, values: np.ndarray) -> csr_array:
    """The matrix with the same pattern and these values."""
    from scipy.sparse import csr_array

    return csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def with_remaining_self_loops(matrix: csr_array) -> csr_array:
    """A square CSR matrix with one entry on the diagonal of each row.

    That is 1 where the row stores none there, and the last one where it stores several.
    """
    from scipy.sparse import csr_array

    matrix = with_sorted_rows(matrix)
    size, columns = matrix.shape[0], matrix.indices
    rows = rows_of(matrix)
    edges = rows != columns
    diagonal = np.ones(size, dtype=matrix.dtype)
    diagonal[rows[~edges]] = matrix.data[~edges]
    counts = np.bincount(rows[edges], minlength=size)
    places = np.cumsum(counts) - counts + np.bincount(rows[columns < rows], minlength=size)
    indptr = np.zeros(size + 1, dtype=matrix.indptr.dtype)
    np.cumsum(counts + 1, out=indptr[1:])
    values = np.insert(matrix.data[edges], places, diagonal)
    return csr_array(
        (values, np.insert(columns[edges], places, np.arange(size)), indptr), matrix.shape
    )


def remaining_self_loops(matrix: csr_array) -> np.ndarray:
    """What each row lacks to one self loop; see `MissingSelfLoopsOp`."""
    rows = rows_of(matrix)
    places = np.flatnonzero(rows == matrix.indices)
    last = np.ones(len(places), dtype=np.bool_)
    last[:-1] = rows[places][1:] != rows[places][:-1]
    result = (~stored_diagonal(matrix)).astype(matrix.dtype)
    np.subtract.at(result, rows[places[~last]], matrix.data[places[~last]])
    return result


def degrees(matrix: csr_array, self_loops: bool, power: float) -> np.ndarray:
    """The degree of each row to a power; 0 where the degree is 0. See `DegreeOp`."""
    degree = np.asarray(matrix @ np.ones(matrix.shape[1], matrix.dtype))
    if self_loops:
        degree = degree + remaining_self_loops(matrix)
    with np.errstate(all="ignore"):
        if power == -0.5:  # np.power(-inf, -0.5) is 0, but the root of a negative sum is NaN
            return np.where(degree == 0, degree, 1 / np.sqrt(degree))
        return np.where(degree == 0, degree, np.power(degree, degree.dtype.type(power)))
