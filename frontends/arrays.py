"""Conversion of users' arrays and numbers to those that the weight store and the IR can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from ..core.boundary.arrays import csr_of, plain_array, refuse_mask
from ..core.dtypes import ELEMENT_TYPES, LOW_BIT_FLOATS, dtype_of, element_type_of
from ..core.errors import UnsupportedError
from ..dialects.graph.attrs import is_float
from ..dialects.graph.ops.sparse.matrices import with_sorted_rows, with_values
from .diagnostics import input_error

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

_INDEX_LIMIT = np.iinfo(np.int32).max


def element_type_named(subject: str, name: str) -> Attribute:
    """The element type called `name`.

    Raises:
        InputError: if there is none.
    """
    if not isinstance(name, str) or name not in ELEMENT_TYPES:
        expected, got = ", ".join(ELEMENT_TYPES), repr(name)
        try:
            hint = f'did you mean "{element_type_of(np.dtype(name))}"'
        except (UnsupportedError, TypeError):
            hint = None
        raise input_error(subject, "unknown dtype", expected, got, hint=hint)
    return ELEMENT_TYPES[name]


def is_scipy(array: object) -> bool:
    """Whether it is a `scipy.sparse` array or matrix, without importing SciPy."""
    return type(array).__module__.partition(".")[0] == "scipy" and hasattr(array, "tocsr")


def dense_array(values: Any, subject: str, element: Attribute | None = None) -> np.ndarray:
    """A contiguous copy of an array or number, converted to `element` if given.

    Otherwise a NumPy array keeps its dtype, Python floats become f32 and Python integers i64.

    Raises:
        InputError: if it is not an array, its dtype is not an element type of tensors, or it cannot
            be converted.
    """
    refuse_mask(subject, values)
    try:
        array = plain_array(values)
        own = element_type_of(array.dtype)
    except (UnsupportedError, TypeError, ValueError, OverflowError) as error:
        got = getattr(values, "dtype", type(values).__name__)
        raise input_error(subject, "unknown dtype", ", ".join(ELEMENT_TYPES), got) from error
    array = np.array(array, dtype=dtype_of(own), order="C", copy=True)
    if element is not None:
        return cast(np.ndarray, converted(array, element, subject))
    is_numpy = isinstance(values, (np.ndarray, np.generic))
    return array.astype(np.float32) if array.dtype == np.float64 and not is_numpy else array


def csr_matrix_of(matrix: Any, subject: str, element: Attribute | None = None) -> csr_array:
    """A copy of a `scipy.sparse` matrix in CSR format with int32 indices, each row sorted.

    Its values are f32 or f64, converted to `element` if given. All stored entries are kept,
    including zeros and duplicates (the edges of a multigraph).

    Raises:
        InputError: if it is not two-dimensional, inconsistent, too large for int32, or of a dtype
            that cannot be converted.
    """
    if len(matrix.shape) != 2:
        raise input_error(subject, "a sparse constant has two dimensions", got=matrix.shape)
    is_half = matrix.dtype.kind == "f" and matrix.dtype.itemsize < 4
    if matrix.dtype.kind not in "fiub" or matrix.dtype.itemsize > 8 or is_half:
        raise input_error(subject, "unknown dtype", "f32 or f64", matrix.dtype)
    if element is None and matrix.dtype.kind != "f":
        raise input_error(subject, "a sparse constant has floats", "f32 or f64", matrix.dtype)
    if element is not None and str(element) not in ("f32", "f64"):
        raise input_error(subject, "a sparse constant has floats", "f32 or f64", element)
    refuse_mask(subject, getattr(matrix, "data", None))
    try:
        result = csr_of(matrix).copy()
        result.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise input_error(subject, f"the matrix is inconsistent: {error}") from error
    if max(*result.shape, result.nnz) > _INDEX_LIMIT:
        raise input_error(subject, "too large for 32-bit indices", got=result.shape)
    result = with_sorted_rows(result)
    result.indptr = result.indptr.astype(np.int32)
    result.indices = result.indices.astype(np.int32)
    return result if element is None else cast("csr_array", converted(result, element, subject))


def _generality(element: Attribute) -> int:
    """0 for truth values, 1 for integers, 2 for floats."""
    if element == i1:
        return 0
    return 2 if is_float(element) or element in LOW_BIT_FLOATS else 1


def converted(array: Array, element: Attribute, subject: str) -> Array:
    """The array converted to an element type.

    Floats may lose precision; a float never becomes an integer, and integers must be in range.

    Raises:
        InputError: if the elements cannot be converted.
    """
    dtype = dtype_of(element)
    if array.dtype == dtype:
        return array
    data = array if isinstance(array, np.ndarray) else array.data
    if element == i1 or _generality(element) < _generality(element_type_of(array.dtype)):
        got = data.flat[0] if data.size == 1 else array.dtype
        raise input_error(subject, "the element types do not agree", element, got)
    if _generality(element) == 1 and data.size:
        limits = ml_dtypes.iinfo(dtype)
        low, high = int(data.min()), int(data.max())
        if low < limits.min or high > limits.max:
            got = low if low < limits.min else high
            raise input_error(subject, "an integer does not fit", element, got)
    # A float too large for the type becomes infinite, as it would in NumPy.
    with np.errstate(over="ignore"):
        data = data.astype(dtype)
    # Not by the matrix's own `astype`, which sums duplicate entries.
    return data if isinstance(array, np.ndarray) else with_values(array, data)


def equal(a: Array, b: Array) -> bool:
    """Whether two arrays have the same format, shape, dtype and bits."""
    if type(a) is not type(b) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.tobytes() == b.tobytes()
    parts = ((a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data))  # type: ignore[union-attr]
    return all(x.tobytes() == y.tobytes() for x, y in parts)
