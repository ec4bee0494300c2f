"""Inputs and results of a model as callers see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class TensorSpec:
    """A dense run-time input: shape (None or a name where symbolic) and element type."""

    shape: tuple[int | str | None, ...]
    dtype: str = "f32"


@dataclass(frozen=True)
class SparseSpec:
    """A CSR run-time input: shape, element type, and its number of stored entries if known.

    `indptr_dtype` is the type of its row pointers: "i64" for more than 2^31 - 1 entries.
    """

    shape: tuple[int | str | None, ...]
    dtype: str = "f32"
    nnz: int | str | None = None
    indptr_dtype: str = "i32"


Key: TypeAlias = str | int | tuple[str, ...]
"""Where a part of an argument is: a key of a dictionary, or a number in a sequence."""


@dataclass(frozen=True)
class ValueSpec:
    """An input or output of a model as a caller sees it.

    A dimension is an int, or a str where it is symbolic. `format` is None for a dense array
    and "csr" for a sparse one with `nnz` stored entries. An input that is a part of an argument of
    the model, a dictionary or a sequence, has a `path`: the name of the argument, then keys, such
    as ``("edge_index_dict", ("paper", "cites", "paper"))``. `of_example` is True where the sizes
    are those of an example that the model was exported with. Where there are `labels`, callers see
    strings, whose numbers in the table are the elements of the program.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    format: str | None = None
    nnz: int | str | None = None
    path: tuple[Key, ...] = field(default=(), repr=False)
    of_example: bool = field(default=False, repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        shape = "x".join(str(d) for d in self.shape)
        sparse = f", {self.format}, nnz={self.nnz}" if self.format else ""
        return f"{self.name}: {shape}{'x' if shape else ''}{self.dtype}{sparse}"
