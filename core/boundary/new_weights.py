"""New weights for a compiled program: the arrays that callers give in the place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import InputError, explain
from ..ir.weights import WeightStore
from .arrays import array_of_tensor, csr_of, plain_array, refuse_mask

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

_SHOWN = 4


def replaced(weights: WeightStore, given: Mapping[str, object]) -> WeightStore:
    """A store with copies of new arrays for all names that callers know.

    Raises:
        InputError: if a name is unknown or missing, an array has another shape, dtype or format, or
            two names of one array are given different ones.
    """
    if not isinstance(given, Mapping):
        got = type(given).__name__
        raise _error("weights are not given by name", "a mapping, such as a state_dict", got)
    keys = weights.names
    _check_names("unknown", [name for name in given if name not in keys], list(keys))
    _check_names("missing", [name for name in keys if name not in given], None)
    arrays: dict[str, Array] = {}
    owners: dict[str, str] = {}
    for name, key in keys.items():
        array = _checked(name, given[name], weights[key])
        if key in arrays and not _same(array, arrays[key]):
            fact = f'weights "{owners[key]}" and "{name}" are one array of the program'
            raise _error(fact, "equal elements", "different ones")
        arrays.setdefault(key, array)
        owners.setdefault(key, name)
    return weights.with_arrays(arrays)


def _check_names(what: str, names: list[str], known: list[str] | None) -> None:
    if not names:
        return
    plural = "weight" if len(names) == 1 else "weights"
    expected = None if known is None else _listed(known) or "none"
    raise _error(f"{what} {plural} {_listed(names)}", expected)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _checked(name: str, value: object, old: Array) -> Array:
    """A copy of a new array, which is of the same kind as the old one."""
    if isinstance(old, np.ndarray):
        refuse_mask(f'weight "{name}"', value)
        found = array_of_tensor(value)
        if isinstance(found, (list, tuple)) or hasattr(found, "tocsr"):
            raise _wrong(name, "not an array", "numpy.ndarray", type(value).__name__)
        try:
            array = plain_array(found).copy("C")
        except (TypeError, ValueError, RuntimeError) as error:
            got = type(value).__name__
            raise _wrong(name, f"not an array ({error})", "numpy.ndarray", got) from error
        _check_facts(name, array, old)
        return array
    if not hasattr(value, "tocsr"):
        raise _wrong(name, "not a sparse matrix", "scipy.sparse", type(value).__name__)
    try:
        matrix = csr_of(value).copy()
    except (ValueError, TypeError, IndexError) as error:
        raise _wrong(name, f"not a sparse matrix ({error})", "scipy.sparse", value) from error
    _check_facts(name, matrix, old)
    if matrix.nnz != old.nnz:
        raise _wrong(name, "wrong number of stored entries", old.nnz, matrix.nnz)
    matrix.indptr = matrix.indptr.astype(old.indptr.dtype, copy=False)
    matrix.indices = matrix.indices.astype(old.indices.dtype, copy=False)
    return matrix


def _check_facts(name: str, array: Array, old: Array) -> None:
    if array.dtype != old.dtype:
        raise _wrong(name, "wrong dtype", old.dtype, array.dtype)
    if array.shape != old.shape:
        raise _wrong(name, "wrong shape", list(old.shape), list(array.shape))


def _same(a: Array, b: Array) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.tobytes() == b.tobytes()
    parts = zip(_parts(cast("csr_array", a)), _parts(cast("csr_array", b)), strict=True)
    return all(np.array_equal(one, other) for one, other in parts)


def _parts(matrix: csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return matrix.indptr, matrix.indices, matrix.data


def _wrong(name: str, fact: str, expected: object, got: object) -> InputError:
    return InputError(explain(f'weight "{name}"', fact, expected=expected, got=got))


def _error(fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain("update", fact, expected=expected, got=got))
