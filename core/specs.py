"""Inputs and results of a model as callers see them."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True)
class ValueSpec:
    """An input or output of a model as a caller sees it.

    A dimension is an int, or a str where it is symbolic. `format` is None for a dense array
    and "csr" for a sparse one with `nnz` stored entries.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    format: str | None = None
    nnz: int | str | None = None

    def __str__(self) -> str:
        shape = "x".join(str(d) for d in self.shape)
        sparse = f", {self.format}, nnz={self.nnz}" if self.format else ""
        return f"{self.name}: {shape}{'x' if shape else ''}{self.dtype}{sparse}"
