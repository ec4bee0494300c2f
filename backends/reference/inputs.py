"""Checks what is passed to a reference run against the arguments of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from ...core.arrays import csr_of, plain_array, refuse_mask
from ...core.dtypes import dtype_named
from ...core.errors import InputError, explain
from ...core.module import ValueSpec

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


def check_inputs(specs: Sequence[ValueSpec], values: Sequence[object]) -> list[Array]:
    """The inputs as arrays and CSR matrices.

    Raises:
        InputError: if their number, or the kind, dtype, rank or size of one is wrong, if two
            dimensions with the same name differ, or if a CSR matrix is inconsistent.
    """
    if len(specs) != len(values):
        names = ", ".join(spec.name for spec in specs) or "none"
        fact = f"wrong number of inputs ({names})"
        raise InputError(explain("run", fact, expected=len(specs), got=len(values)))
    sizes: dict[str, int] = {}
    arrays: list[Array] = []
    for spec, value in zip(specs, values, strict=True):
        array = _dense(spec, value) if spec.format is None else _sparse(spec, value)
        if array.dtype != dtype_named(spec.dtype):
            _fail(spec, "wrong dtype", dtype_named(spec.dtype), array.dtype)
        _check_sizes(spec, cast(tuple[int, ...], array.shape), sizes)
        if spec.format is not None:
            entries = int(cast("csr_array", array).nnz)
            _check_size(spec, "number of stored entries", spec.nnz, entries, sizes)
        arrays.append(array)
    return arrays


def _dense(spec: ValueSpec, value: object) -> np.ndarray:
    if hasattr(value, "tocsr"):
        _fail(spec, "a dense array is needed", "numpy.ndarray", type(value).__name__)
    if isinstance(value, list | tuple):
        _fail(spec, "not an array", "numpy.ndarray", type(value).__name__)
    refuse_mask(f'input "{spec.name}"', value)
    try:
        array = plain_array(value)
    except (TypeError, ValueError) as error:
        _fail(spec, f"not an array ({error})", "numpy.ndarray", type(value).__name__)
    if array.dtype == object:
        _fail(spec, "not an array", "numpy.ndarray", type(value).__name__)
    return array


def _sparse(spec: ValueSpec, value: object) -> csr_array:
    from scipy.sparse import csr_array, issparse

    if hasattr(value, "to_csr"):
        value = cast(Any, value).to_csr(spec.dtype)
    try:
        if issparse(value):
            matrix = _csr(spec, cast(Any, value))
        elif isinstance(value, tuple) and len(value) == 3:
            indptr, indices, data = (_part(spec, part) for part in value)
            matrix = csr_array((data, indices, indptr), shape=_three_array_shape(spec, indptr))
        else:
            _fail(spec, "a sparse matrix is needed", "scipy.sparse CSR", type(value).__name__)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        _fail(spec, f"not a CSR matrix ({error})")
    return matrix


def _csr(spec: ValueSpec, matrix: Any) -> csr_array:
    for part in ("data", "indices", "indptr"):
        refuse_mask(f'input "{spec.name}"', getattr(matrix, part, None))
    return csr_of(matrix)


def _part(spec: ValueSpec, part: object) -> np.ndarray:
    refuse_mask(f'input "{spec.name}"', part)
    return plain_array(part)


def _three_array_shape(spec: ValueSpec, indptr: np.ndarray) -> tuple[int, int]:
    rows = len(indptr) - 1
    columns = spec.shape[1]
    if isinstance(columns, int):
        return rows, columns
    if columns != spec.shape[0] or columns == "?":
        fact = "three arrays do not say how many columns there are"
        _fail(spec, fact, "a scipy.sparse matrix", "a tuple")
    return rows, rows


def _check_sizes(spec: ValueSpec, shape: Sequence[int], sizes: dict[str, int]) -> None:
    if len(shape) != len(spec.shape):
        _fail(spec, "wrong rank", f"{len(spec.shape)} {_text(spec.shape)}", len(shape))
    for want, got in zip(spec.shape, shape, strict=True):
        if isinstance(want, int) and want != got:
            _fail(spec, "wrong shape", _text(spec.shape), _text(shape))
    for axis, (want, got) in enumerate(zip(spec.shape, shape, strict=True)):
        _check_size(spec, f"size of dimension {axis}", want, got, sizes)


def _check_size(
    spec: ValueSpec, what: str, want: int | str | None, got: int, sizes: dict[str, int]
) -> None:
    """A number has to be met; the first size that a name stands for holds for all others."""
    if want is None or want == "?":
        return
    expected = want if isinstance(want, int) else sizes.setdefault(want, got)
    if expected != got:
        name = "" if isinstance(want, int) else f' "{want}"'
        _fail(spec, f"wrong {what}{name}", expected, got)


def _text(shape: Sequence[int | str]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _fail(spec: ValueSpec, fact: str, expected: object = None, got: object = None) -> NoReturn:
    raise InputError(explain(f'input "{spec.name}"', fact, expected=expected, got=got))
