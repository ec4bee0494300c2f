"""The arguments of a call: their requirements, and the checks of them.

An `Argument` holds the requirements of an input. Calls in Python and the reference use `taken` and
`sizes`; compiled code uses a plan made of the same `Argument`s, and falls back to `taken` for
arguments that it rejects, so each error is worded once. `core.boundary.indices` checks the contents
of the arrays of a sparse matrix.

A dense argument may be anything that NumPy sees as an array without converting its elements,
except a masked array. It is copied only if it is not contiguous. Only NumPy's description of its
memory counts, which is read once: the checks are made on a private view. A sparse argument is a
`scipy.sparse` matrix, an object with `to_csr()` (a graph), an edge list of shape (2, E), or the
three arrays ``(indptr, indices, values)``. Sizes are checked here; that indices stay within the
matrix is checked by compiled code on every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..algebra.dims import Dim, Shape
from ..dtype_names import dtype_named
from ..errors import InputError, explain
from .argument_order import graph_first
from .arrays import array_of_tensor, csr_of, is_tensor, plain_array, refuse_mask, row_pointers
from .edge_index import csr_of_edges, is_edge_index
from .labels import numbers_of
from .nested_arguments import flattened
from .specs import ValueSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_NOWHERE = np.zeros(64, np.uint8)
"""The address of an empty array: readable memory."""


class IndexDtypes(NamedTuple):
    """The integers of a CSR matrix: of its row pointers, and of its columns."""

    indptr: np.dtype[Any]
    indices: np.dtype[Any]


@dataclass(frozen=True)
class Argument:
    """The requirements of an input: its specification, with sizes as expressions.

    `entries` is the number of stored entries of a sparse input, whose indices are converted to
    `index_dtypes`; both are None for a dense one. A symbol has one value in a call.
    """

    spec: ValueSpec
    shape: Shape
    entries: Dim | None
    index_dtypes: IndexDtypes | None


@dataclass(frozen=True)
class Csr:
    """A CSR matrix at the boundary: its shape and three contiguous arrays."""

    shape: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def taken(
    arguments: Sequence[Argument], inputs: Sequence[object], subject: str = "call"
) -> list[np.ndarray | Csr]:
    """The inputs, each checked on its own, as contiguous arrays and CSR matrices.

    Raises:
        InputError: if one is missing, too many, or does not fit its argument.
    """
    specs = [argument.spec for argument in arguments]
    inputs = flattened(specs, inputs) or inputs
    if len(inputs) != len(arguments):
        names = ", ".join(argument.spec.name for argument in arguments) or "none"
        expected = f"{len(arguments)} ({names})"
        fact = "wrong number of inputs"
        raise InputError(explain(subject, fact, expected=expected, got=len(inputs)))
    ordered = graph_first(specs, inputs)
    given = _with_matrices(arguments, inputs if ordered is None else ordered)
    return [
        dense(argument.spec, value)
        if argument.index_dtypes is None
        else sparse(argument.spec, value, argument.index_dtypes)
        for argument, value in zip(arguments, given, strict=True)
    ]


def _with_matrices(arguments: Sequence[Argument], inputs: Sequence[object]) -> list[object]:
    """The inputs, with matrices in the place of edge lists."""
    given = list(inputs)
    lists = [
        number
        for number, argument in enumerate(arguments)
        if argument.index_dtypes is not None and is_edge_index(given[number])
    ]
    if not lists:
        return given
    known: dict[str, int] = {}
    for argument, value in zip(arguments, given, strict=True):
        shape = getattr(value, "shape", ())
        if not is_edge_index(value) and len(shape) == len(argument.shape):
            pairs = zip(argument.shape, shape, strict=True)
            known |= {dim.symbols[0]: size for dim, size in pairs if len(dim.symbols) == 1}
    for number in lists:
        argument = arguments[number]
        edges = cast("np.ndarray", given[number])
        parts = csr_of_edges(argument.spec, argument.shape, edges, known)
        indptr, indices, values, shape = parts
        given[number] = _Matrix(shape, indptr, indices, values)
    return given


@dataclass(frozen=True)
class _Matrix:
    """A CSR matrix, with the attributes of those of SciPy."""

    shape: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    format: str = "csr"


def sizes(arguments: Sequence[Argument], values: Sequence[np.ndarray | Csr]) -> dict[str, int]:
    """The sizes of the symbols, from the arrays that `taken` returned.

    Raises:
        InputError: if two sizes of one symbol differ.
    """
    found: dict[str, int] = {}
    owner: dict[str, str] = {}
    for argument, value in zip(arguments, values, strict=True):
        facts = list(zip(argument.shape, value.shape, strict=True))
        if argument.entries is not None and isinstance(value, Csr):
            facts.append((argument.entries, len(value.values)))
        for dim, size in facts:
            if dim.is_static:
                continue
            name = dim.symbols[0]
            if found.setdefault(name, size) != size:
                fact = f'dimension "{name}" differs from that of "{owner[name]}"'
                raise _wrong(argument.spec, fact, found[name], size)
            owner.setdefault(name, argument.spec.name)
    return found


def parts(value: np.ndarray | Csr) -> tuple[np.ndarray, ...]:
    """The arrays that a checked argument consists of."""
    if isinstance(value, Csr):
        return value.indptr, value.indices, value.values
    return (value,)


def address(array: np.ndarray) -> int:
    """The address of the elements of an array; never null."""
    return (array if array.size else _NOWHERE).ctypes.data


def arrays_of_tensors(inputs: Sequence[object]) -> list[object] | None:
    """The arguments of a call with arrays in the place of tensors of torch, in their memory.

    None if there are no such tensors. Those that NumPy cannot show stay, and are refused later.
    """
    found = list(map(array_of_tensor, inputs))
    return None if all(a is b for a, b in zip(found, inputs, strict=True)) else found


def dense(spec: ValueSpec, value: object) -> np.ndarray:
    """Check a dense argument; returns a contiguous array of the dtype of `spec`.

    Raises:
        InputError: if it is not an array, or has another dtype, rank or fixed dimension.
    """
    if hasattr(value, "tocsr"):
        raise _wrong(spec, "a dense array is needed", "numpy.ndarray", type(value).__name__)
    if spec.labels:
        value = numbers_of(spec, value)
    array = _as_array(spec, value)
    want = dtype_named(spec.dtype)
    if array.dtype != want:
        raise _wrong(spec, "wrong dtype", want, array.dtype)
    _check_shape(spec, array.shape)
    return _contiguous(spec, array)


def _contiguous(spec: ValueSpec, array: np.ndarray) -> np.ndarray:
    """The array itself where it is contiguous and its elements are aligned, else a copy."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    try:
        return array.copy("C")
    except MemoryError as error:
        fact = f"not enough memory for a contiguous copy of {_shape(array.shape)}"
        raise InputError(explain(f'input "{spec.name}"', fact)) from error


def _as_array(spec: ValueSpec, value: object) -> np.ndarray:
    if isinstance(value, list | tuple):
        raise _wrong(spec, "not an array", "numpy.ndarray", type(value).__name__)
    refuse_mask(f'input "{spec.name}"', value)
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            # A tensor of torch that requires a gradient gives its memory once it is detached.
            detach = getattr(value, "detach", None)
            return np.from_dlpack(cast(Any, value if detach is None else detach()))
        array = plain_array(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise _wrong(spec, f"not an array ({error})", "numpy.ndarray", _name(value)) from error
    if array.dtype == object and not issubclass(type(value), np.ndarray):
        raise _wrong(spec, "not an array", "numpy.ndarray", _name(value))
    return array


def _check_shape(spec: ValueSpec, shape: Sequence[int]) -> None:
    if len(shape) != len(spec.shape):
        raise _wrong(spec, "wrong rank", f"{len(spec.shape)} {_shape(spec.shape)}", len(shape))
    for want, got in zip(spec.shape, shape, strict=True):
        if isinstance(want, int) and want != got:
            hint = _OF_EXAMPLE if spec.of_example else None
            raise _wrong(spec, "wrong shape", _shape(spec.shape), _shape(shape), hint)


def sparse(spec: ValueSpec, value: object, index_dtypes: IndexDtypes) -> Csr:
    """Check a sparse argument; returns its CSR arrays with indices of `index_dtypes`.

    Raises:
        InputError: if it is not sparse, has another dtype, shape or entry count, or the lengths
            of its arrays are inconsistent.
    """
    shape, arrays = _csr_parts(spec, value)
    _check_ranks(spec, arrays)
    indptr, indices, values = arrays
    want = dtype_named(spec.dtype)
    if values.dtype != want:
        raise _wrong(spec, "wrong dtype", want, values.dtype)
    if len(indptr) != shape[0] + 1:
        raise _wrong(spec, "indptr has the wrong length", shape[0] + 1, len(indptr))
    if len(indices) != len(values):
        raise _wrong(spec, "indices and values differ in length", len(values), len(indices))
    _check_shape(spec, shape)
    if isinstance(spec.nnz, int) and spec.nnz != len(values):
        raise _wrong(spec, "wrong number of stored entries", spec.nnz, len(values))
    return Csr(
        shape,
        _integers(spec, "indptr", indptr, index_dtypes.indptr),
        _integers(spec, "indices", indices, index_dtypes.indices),
        _contiguous(spec, values),
    )


_Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def _csr_parts(spec: ValueSpec, value: object) -> tuple[tuple[int, int], _Arrays]:
    """The shape of a sparse argument and its three arrays, whose lengths are not checked yet."""
    if isinstance(value, tuple) and len(value) == 3:
        indptr, indices, values = (_as_array(spec, part) for part in value)
        _check_ranks(spec, (indptr, indices, values))
        if not len(indptr):
            raise _wrong(spec, "indptr has the wrong length", "1 or more", 0)
        rows, columns = len(indptr) - 1, spec.shape[1]
        if columns == spec.shape[0] != "?":
            columns = rows
        if not isinstance(columns, int):
            raise _wrong(
                spec,
                "three arrays do not determine the number of columns",
                "a scipy.sparse matrix",
                "a tuple",
            )
        return (rows, columns), (indptr, indices, values)
    if is_tensor(value):
        return _tensor_parts(spec, value)
    if hasattr(value, "to_csr"):
        value = cast(Any, value).to_csr(spec.dtype)
    elif hasattr(value, "tocsr") and getattr(value, "format", None) != "csr":
        value = _converted(spec, value)
    if getattr(value, "format", None) != "csr":
        raise _wrong(spec, "a sparse matrix is needed", "scipy.sparse CSR", _name(value))
    matrix = cast("csr_array", value)
    rows, columns = _two(spec, matrix.shape)
    indptr, indices, values = (
        _as_array(spec, part) for part in (matrix.indptr, matrix.indices, matrix.data)
    )
    return (int(rows), int(columns)), (indptr, indices, values)


def _tensor_parts(spec: ValueSpec, tensor: Any) -> tuple[tuple[int, int], _Arrays]:
    """A sparse tensor of torch, in CSR or of sorted coordinates without duplicates."""
    layout = str(tensor.layout).removeprefix("torch.")
    expected = "a tensor in CSR, or of coalesced coordinates"
    rows, columns = _two(spec, tensor.shape)
    if layout == "sparse_csr":
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        indptr, indices, values = (_as_array(spec, array_of_tensor(part)) for part in parts)
        return (rows, columns), (indptr, indices, values)
    if layout != "sparse_coo":
        raise _wrong(spec, "a sparse matrix is needed", expected, f"layout {layout}")
    parts = tensor._indices(), tensor._values()
    places, values = (_as_array(spec, array_of_tensor(part)) for part in parts)
    row = places[0]
    if not tensor.is_coalesced() or np.any(row[1:] < row[:-1]):
        raise _wrong(spec, "coordinates are not coalesced", expected, "others")
    if row.size and (row[0] < 0 or row[-1] >= rows):
        wrong = row[0] if row[0] < 0 else row[-1]
        raise _wrong(spec, "row index out of range", f"0 to {rows - 1}", wrong)
    return (rows, columns), (row_pointers(row, rows), places[1], values)


def _converted(spec: ValueSpec, matrix: Any) -> Any:
    """A matrix of another format, converted to CSR."""
    _two(spec, matrix.shape)
    try:
        return csr_of(matrix)
    except (ValueError, TypeError, IndexError) as error:
        raise _wrong(
            spec, f"not a sparse matrix ({error})", "scipy.sparse", _name(matrix)
        ) from error


def _two(spec: ValueSpec, shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise _wrong(spec, "wrong rank", f"2 {_shape(spec.shape)}", len(shape))
    return shape[0], shape[1]


def _check_ranks(spec: ValueSpec, arrays: _Arrays) -> None:
    for name, array in zip(("indptr", "indices", "values"), arrays, strict=True):
        if array.ndim != 1:
            raise _wrong(spec, f"{name} has the wrong rank", 1, array.ndim)


def _integers(spec: ValueSpec, name: str, array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The array converted to the integers of `dtype`; values out of its range are refused."""
    if array.dtype == dtype:
        return _contiguous(spec, array)
    if array.dtype.kind not in "iu":
        raise _wrong(spec, f"{name} has the wrong dtype", dtype, array.dtype)
    # Check and convert the same copy: other threads may write to the caller's array.
    array = array.copy()
    if array.size and not np.can_cast(array.dtype, dtype):
        limits = np.iinfo(dtype)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise _wrong(
                spec,
                f"{name} does not fit {dtype}",
                f"at most {limits.max}",
                high if high > limits.max else low,
            )
    return np.ascontiguousarray(array.astype(dtype))


def _shape(shape: Sequence[int | str]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _name(value: object) -> str:
    return type(value).__name__


_OF_EXAMPLE = "the sizes are those of the example: see dynamic and dynamic_shapes of from_torch"


def _wrong(
    spec: ValueSpec, fact: str, expected: object, got: object, hint: str | None = None
) -> InputError:
    subject = f'input "{spec.name}"'
    return InputError(explain(subject, fact, expected=expected, got=got, hint=hint))
