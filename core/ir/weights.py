"""The store of named arrays beside a module: weights are never inside the IR text.

The IR names an array (`dense_resource<w0>`), the store holds it. Dense arrays are NumPy's, sparse
ones `scipy.sparse.csr_array`. On disk the store is one safetensors file, which holds a CSR matrix
as three arrays: ``name.indptr``, ``name.indices`` and ``name.values``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import LOW_BIT_FLOATS, LOW_BIT_INTEGERS
from ..errors import ImportModelError, StepwellError, explain, first_line
from ..files.reading import ReadingError, check_size, memory, opened, read_json, read_npz, size_of
from ..files.versions import KEY, WEIGHTS
from ..files.writing import write_atomically

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

_CSR_PARTS = ("indptr", "indices", "values")
_DTYPE = ".dtype"
_LOW_BITS = frozenset((*LOW_BIT_FLOATS.values(), *LOW_BIT_INTEGERS.values()))
"""Dtypes that the format lacks: their bytes are stored, and `name.dtype` is in the metadata."""


class WeightStore:
    """Named arrays in the order in which they were added. They must not be modified."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}  # id of an array, which is kept alive here -> name
        self._callers: Mapping[str, str] | None = None

    def add(self, name: str, array: Array) -> str:
        """Store `array` and return its name: `name`, or `name_1`, ... if that is taken.

        An array that is already stored (the same object) keeps its name.
        """
        if id(array) in self._names:
            return self._names[id(array)]
        base = re.sub(r"[^\w.$-]", "_", name) or "weight"
        if base[0].isdigit() or base[0] in ".-":
            base = f"w_{base}"
        unique, count = base, 0
        while unique in self._arrays:
            count += 1
            unique = f"{base}_{count}"
        self._arrays[unique] = array
        self._names[id(array)] = unique
        return unique

    def name_of(self, array: Array) -> str | None:
        """The name of an array that is stored (the same object); None for another one."""
        return self._names.get(id(array))

    @property
    def names(self) -> Mapping[str, str]:
        """Names by which callers know arrays, each with that in the store; their own by default.

        Arrays without such a name keep their elements when a program gets new weights.
        """
        return {name: name for name in self._arrays} if self._callers is None else self._callers

    @names.setter
    def names(self, names: Mapping[str, str]) -> None:
        self._callers = dict(names)

    def with_arrays(self, arrays: Mapping[str, Array]) -> WeightStore:
        """A copy with other arrays under some of its names."""
        result = self.copy()
        result._arrays.update(arrays)
        result._names = {id(array): name for name, array in result._arrays.items()}
        return result

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def copy(self) -> WeightStore:
        """A new store with the same arrays."""
        result = WeightStore()
        result._arrays = dict(self._arrays)
        result._names = dict(self._names)
        result._callers = self._callers
        return result

    def only(self, names: Iterable[str]) -> WeightStore:
        """A store of the arrays with these names, in the order of this store."""
        wanted, result = set(names), WeightStore()
        result._arrays = {name: array for name, array in self._arrays.items() if name in wanted}
        result._names = {id(array): name for name, array in result._arrays.items()}
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all arrays to one safetensors file; the file appears complete or not at all.

        Raises:
            OSError: if it cannot be written.
            StepwellError: if an array has the name under which a part of a CSR matrix is stored.
        """
        from safetensors.numpy import save

        tensors: dict[str, np.ndarray] = {}
        metadata: dict[str, str] = {}
        for name, array in self._arrays.items():
            if isinstance(array, np.ndarray):
                tensors[name] = np.ascontiguousarray(array)
                if array.dtype.name in _LOW_BITS:
                    metadata[name + _DTYPE] = array.dtype.name
                    tensors[name] = tensors[name].view(np.uint8)
                continue
            metadata[name] = json.dumps(list(array.shape))
            for part, data in zip(
                _CSR_PARTS, (array.indptr, array.indices, array.data), strict=True
            ):
                stored = f"{name}.{part}"
                if stored in self._arrays:
                    fact = f'matrix "{name}" and array "{stored}" have the same name in a file'
                    raise StepwellError(explain("weights", fact))
                tensors[stored] = np.ascontiguousarray(data)
        write_atomically(path, save(tensors, {KEY: str(WEIGHTS.version), **metadata}))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> WeightStore:
        """Read a file that `save` wrote, or the arrays of an `.npz` file of NumPy.

        In an `.npz` a CSR matrix is four arrays: the three parts and ``name.shape``.

        Raises:
            ImportModelError: if the file has neither format, or a CSR matrix in it is incomplete
                or inconsistent.
        """
        result = WeightStore()
        read = _read_npz if Path(path).suffix == ".npz" else _read_safetensors
        try:
            arrays, sparse = read(path)
        except ReadingError as error:
            raise ImportModelError(explain("weights", f"cannot read {path}: {error}")) from error
        for name, shape in sparse.items():
            result._arrays[name] = _csr(name, shape, arrays)
        result._arrays.update(arrays)
        result._names = {id(array): name for name, array in result._arrays.items()}
        return result


def _read_safetensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """The arrays of a file, and the shapes of the CSR matrices among them."""
    import ml_dtypes  # noqa: F401  (registers its dtypes with NumPy)
    from safetensors import SafetensorError, safe_open

    with opened(path) as file:
        check_size(size_of(file), memory())
        try:
            with safe_open(path, framework="np") as store:
                arrays = {name: store.get_tensor(name) for name in store.keys()}  # noqa: SIM118
                metadata = store.metadata() or {}
                version = metadata.pop(KEY, None)
        except (SafetensorError, ValueError, TypeError, AttributeError) as error:
            raise ReadingError(f"not in the format of safetensors: {first_line(error)}") from error
    if version is not None:
        arrays = WEIGHTS.upgraded(arrays, _number(version))
    for name, array in arrays.items():
        dtype = metadata.get(name + _DTYPE)
        if dtype in _LOW_BITS and array.dtype == np.uint8:
            arrays[name] = array.view(dtype)
    # Files of other tools have other metadata.
    named = {n: t for n, t in metadata.items() if any(f"{n}.{p}" in arrays for p in _CSR_PARTS)}
    return arrays, {name: read_json(text) for name, text in named.items()}


def _number(version: str) -> int:
    """The version that a file states."""
    if not re.fullmatch(r"\d{1,18}", version):
        raise ReadingError(f'{KEY} is not a number, got "{version}"')
    return int(version)


def _read_npz(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """The arrays of a file, and the shapes of the CSR matrices among them."""
    arrays = read_npz(path)
    matrices = [n.removesuffix(".indptr") for n in arrays if n.endswith(".indptr")]
    return arrays, {n: arrays.pop(f"{n}.shape", None) for n in matrices}


def _csr(name: str, shape: object, arrays: dict[str, np.ndarray]) -> csr_array:
    """Take the three parts of the CSR matrix `name` out of `arrays`."""
    from scipy.sparse import csr_array

    parts = [arrays.pop(f"{name}.{part}", None) for part in _CSR_PARTS]
    indptr, indices, values = parts
    try:
        if indptr is None or indices is None or values is None:
            raise ValueError("one of its three arrays is missing")
        rows, columns = (int(n) for n in shape)  # type: ignore[attr-defined]
        matrix = csr_array((values, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise ImportModelError(explain("weights", f'CSR matrix "{name}": {error}')) from error
    return matrix
