"""Which values are small enough to be staged in a local buffer of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType

from ...sparse_tensor import is_sparse
from ..attrs import compute_type
from ..buffers import storage_type

LOCAL_BYTES = 1 << 15
"""A larger buffer is not made: it would not stay in the first-level cache."""


def is_local(kind: TensorType, depth: int) -> bool:
    """Whether what a tensor has after its first `depth` dimensions is small, and its size known."""
    shape: Sequence[int] = kind.get_shape()[depth:]
    size = 8
    for extent in shape:
        size *= extent
    return DYNAMIC_INDEX not in shape and 0 < size <= LOCAL_BYTES and not is_sparse(kind)


def local_type(kind: TensorType, depth: int) -> MemRefType | None:
    """The buffer for what a tensor has after its first `depth` dimensions; None if not local."""
    if not is_local(kind, depth):
        return None
    return MemRefType(storage_type(compute_type(kind.element_type)), kind.get_shape()[depth:])
