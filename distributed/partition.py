"""`Partition`: a graph in parts, each with its rows, its halo, and what it sends to the others.

Nodes are renumbered so that each part owns a contiguous range, `Partition.bounds`. Inside a part
the nodes whose rows need no other part come first, so that they can be computed while the halo
travels; otherwise the original order is kept. `Partition.order` is the renumbering. Where parts
are ranges of rows it only moves nodes inside their part, so the features of a part are still a
contiguous range of the original ones.

A part of n nodes numbers its own columns 0 to n - 1, and n + h is node ``halo[h]``. The halo is
sorted, and so grouped by the part that owns it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.boundary.arrays import csr_sharing
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain
from .errors import damaged, error, unwritten
from .storage.arrays import HEADER, ArrayFolder, read_folder

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VALUES = ("f32", "f64")


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """One part of a graph: n rows, and h nodes of other parts that its rows refer to.

    Attributes:
        index: the number of the part.
        rows: its range of nodes, in the partition's order.
        indptr: int64 (n + 1,), the row pointers.
        indices: int32 (E,), the columns, sorted in each row: own ones, then the halo.
        values: float32 or float64 (E,), or None where each is 1.
        inner: how many rows, the first ones, refer to no other part.
        halo: int64 (h,), nodes of other parts in the partition's order, ascending.
        owners: int64 (parts + 1,); ``halo[owners[q] : owners[q + 1]]`` belongs to part q.
        sends: for each part q, the int32 rows of this part that q has in its halo, in that order.
    """

    index: int
    rows: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None
    inner: int
    halo: np.ndarray
    owners: np.ndarray
    sends: Sequence[np.ndarray]
    _matrices: dict[Any, csr_array] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return _summary(self)

    @property
    def num_rows(self) -> int:
        """n, the number of nodes of the part."""
        return self.rows[1] - self.rows[0]

    @property
    def num_entries(self) -> int:
        """E, the number of stored entries of its rows."""
        return len(self.indices)

    @property
    def matrix(self) -> csr_array:
        """Its rows as a matrix of shape (n, n + h), with its values or float32 ones."""
        return self.to_csr("f32" if self.values is None else VALUES[self.values.itemsize == 8])

    def to_csr(self, dtype: str = "f32") -> csr_array:
        """Its rows as a matrix of shape (n, n + h), with int64 row pointers and int32 columns.

        It shares the arrays of the part. Calls use this where a part is a sparse argument.

        Raises:
            InputError: if `dtype` is neither "f32" nor "f64".
        """
        if dtype not in VALUES:
            raise InputError(explain("Part", "unknown dtype", expected="f32 or f64", got=dtype))
        return rows_to_csr(self, dtype, (0, self.num_rows), self.num_rows + len(self.halo))


def rows_to_csr(part: Part, dtype: str, rows: tuple[int, int], columns: int) -> csr_array:
    """Rows of a part as a matrix, which is made once.

    Args:
        part: the part.
        dtype: "f32" or "f64".
        rows: the first row, and the one after the last.
        columns: how many columns the matrix has: at least those that the rows refer to.
    """
    key = dtype, rows, columns
    if key not in part._matrices:
        first, end = rows
        stored = part.indptr, part.indices, part.values
        if rows != (0, part.num_rows):
            within = slice(int(part.indptr[first]), int(part.indptr[end]))
            indptr = part.indptr[first : end + 1] - part.indptr[first]
            stored = indptr, part.indices[within], part.to_csr(dtype).data[within]
        part._matrices[key] = csr_of_parts(*stored, columns, dtype_named(dtype))
    return part._matrices[key]


def ring_to_csr(part: Part, dtype: str, rows: int) -> csr_array:
    """A part as a matrix whose columns are its nodes, and then all others, which is made once.

    Column c is row ``(part.rows[0] + c) % rows`` of a ring.

    Args:
        part: the part.
        dtype: "f32" or "f64".
        rows: how many rows the ring has: at least all nodes.
    """
    key = dtype, rows
    if key not in part._matrices:
        others = (part.halo - part.rows[0]) % rows
        places = np.concatenate([np.arange(part.num_rows), others]).astype(np.int32)
        stored = part.indptr, places[part.indices], part.values
        part._matrices[key] = csr_of_parts(*stored, rows, dtype_named(dtype))
    return part._matrices[key]


def csr_of_parts(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray | None,
    columns: int,
    dtype: np.dtype[Any],
) -> csr_array:
    """The matrix of these arrays, which it shares; without values, each is 1."""
    data = np.ones(len(indices), dtype) if values is None else values.astype(dtype, copy=False)
    return csr_sharing(indptr, indices, data, (len(indptr) - 1, columns))


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """A graph of N nodes in parts, made by `stepwell.partition`.

    Attributes:
        bounds: int64 (parts + 1,); part p has nodes ``bounds[p]`` to ``bounds[p + 1] - 1`` of the
            partition's order.
        order: int64 (N,), the original number of each node, or None where they are the same.
    """

    bounds: np.ndarray
    order: np.ndarray | None
    _inner: Sequence[int] = field(repr=False)
    _arrays: Mapping[str, np.ndarray] = field(repr=False)

    def __repr__(self) -> str:
        return _summary(self)

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.bounds) - 1

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes."""
        return int(self.bounds[-1])

    @property
    def folder(self) -> Path | None:
        """Where it is stored, or None where it is in memory."""
        return self._arrays.path if isinstance(self._arrays, ArrayFolder) else None

    @property
    def key(self) -> str:
        """What tells it from others that its folder has had; empty where it is in memory."""
        return self._arrays.key if isinstance(self._arrays, ArrayFolder) else ""

    def nodes(self, index: int) -> np.ndarray:
        """int64 (n,): the original numbers of the nodes of a part, in the order of its rows."""
        first, end = self.bounds[index : index + 2]
        return np.arange(first, end) if self.order is None else self.order[first:end]

    def __len__(self) -> int:
        return self.parts

    def __iter__(self) -> Iterator[Part]:
        return (self[index] for index in range(self.parts))

    def __getitem__(self, index: int) -> Part:
        """A part. Its arrays are memory maps if the partition is in a folder.

        Raises:
            InputError: if a file is damaged.
            IndexError: if there is no such part.
        """
        if not 0 <= index < self.parts:
            raise IndexError(f"part {index} of {self.parts}")
        first, end = map(int, self.bounds[index : index + 2])
        bounds, sends = self._array(index, "receivers"), self._array(index, "sends")
        part = Part(
            index,
            (first, end),
            self._array(index, "indptr"),
            self._array(index, "indices"),
            self._arrays.get(array_name(index, "values")),
            self._inner[index],
            self._array(index, "halo"),
            self._array(index, "owners"),
            [sends[a:b] for a, b in pairwise(bounds.tolist())],
        )
        self._check(part, bounds)
        return part

    def _array(self, index: int, name: str) -> np.ndarray:
        return self._arrays[array_name(index, name)]

    def _check(self, part: Part, receivers: np.ndarray) -> None:
        """Raise `InputError` if the arrays of a part do not fit together."""
        rows, sent = part.num_rows, np.concatenate([*part.sends, np.zeros(0, np.int32)])
        values = part.values is None or len(part.values) == part.num_entries
        halo = part.halo
        inside = not len(halo) or (halo[0] >= 0 and halo[-1] < self.num_nodes)
        good = {
            "indptr": len(part.indptr) == rows + 1 and _divides(part.indptr, part.num_entries),
            "values": values,
            "owners": len(part.owners) == self.parts + 1 and _divides(part.owners, len(part.halo)),
            "halo": bool(np.all(halo[1:] > halo[:-1])) and inside,
            "receivers": len(receivers) == self.parts + 1 and _divides(receivers, len(sent)),
            "sends": not len(sent) or (0 <= int(sent.min()) and int(sent.max()) < rows),
        }
        for name, is_good in good.items():
            if not is_good:
                file = Path(self.folder or ".") / f"{array_name(part.index, name)}.npy"
                raise damaged(file, "the array does not fit the others")

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it to a folder, as `.npy` files and `partition.json`; the folder is created.

        Raises:
            InputError: if the folder cannot be written, or has a partition already.
        """
        store = new_folder(folder)
        try:
            for name, array in self._arrays.items():
                store.create(name, array.dtype, len(array)).append(array)
            store.finish(facts_of(self._inner))
        except OSError as reason:
            raise unwritten(folder, reason) from reason

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Partition:
        """Map a partition that `save` or `stepwell.partition` has written.

        Raises:
            InputError: if a file is missing, damaged or truncated.
        """
        arrays, facts = read_folder(folder)
        inner = facts.get("inner")
        if not isinstance(inner, list) or not all(type(n) is int for n in inner):
            raise damaged(arrays.path / HEADER, "no number of inner rows")
        return assembled(arrays, inner)


def assembled(arrays: Mapping[str, np.ndarray], inner: Sequence[int]) -> Partition:
    """The partition that consists of named arrays."""
    parts = len(inner)
    missing = [name for name in _names(parts) if name not in arrays]
    path = arrays.path / HEADER if isinstance(arrays, ArrayFolder) else Path()
    if missing:
        raise damaged(path, f'no array "{missing[0]}"')
    bounds, order = np.array(arrays["bounds"]), arrays.get("order")
    if len(bounds) != parts + 1 or not _divides(bounds, int(bounds[-1])):
        raise damaged(path.with_name("bounds.npy"), "the array does not fit the others")
    if order is not None and len(order) != bounds[-1]:
        raise damaged(path.with_name("order.npy"), "the array does not fit the others")
    if any(not 0 <= n <= rows for n, rows in zip(inner, np.diff(bounds), strict=True)):
        raise damaged(path, "wrong numbers of inner rows")
    return Partition(bounds, order, tuple(inner), arrays)


def _summary(of: Part | Partition) -> str:
    """The attributes, arrays as their element type and shape: ``indptr=int64[5]``."""

    def shown(value: object) -> str:
        if isinstance(value, np.ndarray):
            return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
        return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else repr(value)

    found = (f"{own.name}={shown(getattr(of, own.name))}" for own in fields(of) if own.repr)
    return f"{type(of).__name__}({', '.join(found)})"


def array_name(index: int, name: str) -> str:
    """What an array of a part is called."""
    return f"part{index}.{name}"


def facts_of(inner: Sequence[int]) -> dict[str, Any]:
    """What the header of a folder says beside the list of arrays."""
    return {"inner": list(map(int, inner))}


def _names(parts: int) -> Iterator[str]:
    yield "bounds"
    for index in range(parts):
        for name in ("indptr", "indices", "halo", "owners", "sends", "receivers"):
            yield array_name(index, name)


def _divides(bounds: np.ndarray, count: int) -> bool:
    """Whether numbers go from 0 to `count` and never decrease."""
    return bool(bounds[0] == 0 and bounds[-1] == count and np.all(bounds[1:] >= bounds[:-1]))


def new_folder(path: str | os.PathLike[str]) -> ArrayFolder:
    """A folder for a new partition.

    Raises:
        InputError: if it cannot be created, or has a partition already.
    """
    folder = Path(path)
    if (folder / HEADER).exists():
        raise error(f"{folder} has a partition already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise unwritten(folder, reason) from reason
    return ArrayFolder(folder, {}, uuid.uuid4().hex)
