"""Arrays as callers pass them: the contents of their memory, not their Python attributes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from ..errors import InputError, explain

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer of Python or NumPy; a boolean is not one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def plain_array(value: object) -> np.ndarray:
    """A view of the memory of an array, as a plain `numpy.ndarray`; a number has no dimensions.

    Shape, strides and dtype are those that NumPy keeps in C, or that the exporter of a buffer
    states: a subclass may override the Python attributes of these names. The view is new, so no
    other thread can reshape it.

    Raises:
        TypeError, ValueError: if NumPy cannot convert it to an array.
    """
    return np.asarray(value).view()


def array_of_tensor(value: object) -> object:
    """A dense tensor of torch as an array in its memory; other values as they are.

    Tensors that NumPy cannot show, such as sparse ones and those on other devices, stay.
    """
    if not is_tensor(value):
        return value
    tensor = cast(Any, value).detach()
    try:
        if str(tensor.dtype) == "torch.bfloat16":
            return tensor.view(sys.modules["torch"].int16).numpy().view("bfloat16")
        return tensor.numpy()
    except (RuntimeError, TypeError):
        return value


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of torch, which has been imported where there are tensors."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def refuse_mask(subject: str, value: object) -> None:
    """Raise `InputError` if `value` is a masked array, with or without masked elements."""
    # Where nobody has imported `numpy.ma`, which takes a while, there are no such arrays.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    if isinstance(value, masked):
        fact, got = "elements cannot be masked", type(value).__name__
        hint = "filled() of it is an array without a mask"
        raise InputError(explain(subject, fact, expected="numpy.ndarray", got=got, hint=hint))


def row_pointers(rows: np.ndarray, count: int, dtype: Any = np.int64) -> np.ndarray:
    """Where each of `count` rows begins among sorted entries that have these rows, and the end."""
    pointers = np.zeros(count + 1, dtype)
    np.cumsum(np.bincount(rows, minlength=count), out=pointers[1:])
    return pointers


def csr_of(matrix: Any) -> csr_array:
    """A `scipy.sparse` matrix of two dimensions in CSR format, with all stored entries.

    Duplicate entries stay separate and in order, whatever the format: in a matrix product they add
    up, but a mean, a softmax or a neighbour count visits each. `tocsr()` of a COO matrix would sum
    them. The result shares the arrays of a CSR matrix; its indices are not checked.

    Raises:
        ValueError, TypeError, IndexError: if the matrix is inconsistent.
    """
    from scipy.sparse import csr_array

    if matrix.format == "csr":
        parts = [plain_array(part) for part in (matrix.data, matrix.indices, matrix.indptr)]
        return csr_array(tuple(parts), shape=matrix.shape)
    if matrix.format != "coo":
        if hasattr(matrix, "check_format"):
            # SciPy does not check indices before it converts. A copy cannot change concurrently.
            matrix = matrix.copy()
            matrix.check_format(full_check=True)
        return csr_array(matrix)
    rows = plain_array(matrix.row).copy()
    if rows.size and not (0 <= rows.min() and rows.max() < matrix.shape[0]):
        raise ValueError(f"row index out of range, expected 0 to {matrix.shape[0] - 1}")
    order = np.argsort(rows, kind="stable")
    parts = (matrix.data[order], matrix.col[order], row_pointers(rows, matrix.shape[0]))
    return csr_array(parts, shape=matrix.shape)


def csr_sharing(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]
) -> csr_array:
    """The CSR matrix of these arrays, which it shares; they keep their dtypes, and are not checked.

    The constructor would give offsets and column indices one dtype, and refuses 16-bit floats.
    """
    from scipy.sparse import csr_array

    matrix = cast("csr_array", csr_array(shape))
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, values
    return matrix
