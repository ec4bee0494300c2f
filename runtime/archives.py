"""Inputs of a program in one `.npz` file, by name.

A sparse input `a` is `a.indptr`, `a.indices` and `a.values`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any
from zipfile import ZipFile

import numpy as np

from ..core.boundary.arrays import csr_of
from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.dtypes import ELEMENT_TYPES, is_low_bit
from ..core.errors import InputError, explain
from ..core.files.reading import ReadingError, read_npz
from ..core.files.writing import write_atomically

_PARTS = (".indptr", ".indices", ".values")


def read_archive(
    path: str | os.PathLike[str], specs: Sequence[ValueSpec], subject: str = "--check"
) -> list[Any]:
    """The arrays of a file that `specs` name, in the order of `specs`.

    Args:
        path: the file.
        specs: the inputs, or the results, of a program.
        subject: the beginning of error messages.

    Raises:
        InputError: if the file is not an archive, or lacks one of the arrays.
    """
    try:
        arrays = read_npz(path)
    except ReadingError as error:
        raise InputError(explain(subject, f"cannot read {path} as .npz: {error}")) from error
    result: list[Any] = []
    for spec in specs:
        names = [spec.name] if spec.format is None else [spec.name + part for part in _PARTS]
        missing = [name for name in names if name not in arrays]
        if missing:
            fact = f'{path} has no array "{missing[0]}"'
            raise InputError(explain(subject, fact, got=", ".join(arrays) or "no array"))
        found = [_typed(arrays[name], spec) for name in names]
        result.append(found[0] if spec.format is None else tuple(found))
    return result


def write_archive(
    path: str | os.PathLike[str], specs: Sequence[ValueSpec], arrays: Sequence[Any]
) -> None:
    """Write arrays for `read_archive`; the file appears complete or not at all.

    Raises:
        OSError: if the folder cannot be written.
    """
    named: dict[str, np.ndarray] = {}
    for spec, array in zip(specs, arrays, strict=True):
        if spec.format is None:
            # NumPy's format has no low-bit elements: they are bytes there.
            dense = np.asarray(array)
            named[spec.name] = dense.view(np.uint8) if _is_low_bit(dense.dtype, spec) else dense
            continue
        if isinstance(array, tuple):
            parts = array
        else:
            matrix = array.to_csr() if hasattr(array, "to_csr") else csr_of(array)
            parts = (matrix.indptr, matrix.indices, matrix.data)
        named |= {spec.name + part: a for part, a in zip(_PARTS, parts, strict=True)}
    # Not `np.savez`, for which an array must not be called "file".
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        for name, array in named.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    write_atomically(path, data.getvalue())


def _typed(array: np.ndarray, spec: ValueSpec) -> np.ndarray:
    """An array with its dtype: NumPy's format has no bfloat16 and no low-bit types."""
    if array.dtype.kind == "V" and spec.dtype == "bf16" and array.dtype.itemsize == 2:
        return array.view(dtype_named(spec.dtype))
    is_bytes = array.dtype == np.uint8 or array.dtype.str == "|V1"
    if is_bytes and is_low_bit(ELEMENT_TYPES[spec.dtype]):
        return array.view(dtype_named(spec.dtype))
    return array


def _is_low_bit(dtype: np.dtype[Any], spec: ValueSpec) -> bool:
    return is_low_bit(ELEMENT_TYPES[spec.dtype]) and dtype == dtype_named(spec.dtype)
