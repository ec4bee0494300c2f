"""The buffers that stand for tensors."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerType,
    MemRefType,
    TensorType,
    i1,
    i8,
)
from xdsl.ir import Attribute

from ...core.bounded_cache import bounded_cache
from ...core.dtypes import is_low_bit
from ...core.ir.typed import bits
from ..sparse_tensor import index_type, is_sparse, position_type
from .attrs import is_unsigned


def storage_type(element_type: Attribute) -> Attribute:
    """The element type of a buffer: integers have no sign, and i1 and low-bit types take a byte."""
    if element_type == i1 or is_low_bit(element_type):
        return i8
    if is_unsigned(element_type):
        return IntegerType(bits(element_type))
    return element_type


def buffer_types(kind: TensorType) -> list[Attribute]:
    """The arguments that stand for a tensor.

    A dense tensor is one buffer. A CSR matrix is its row pointers, its column indices and its
    values, and the number of columns where that is symbolic.
    """
    return list(_buffers_of(kind))


@bounded_cache
def _buffers_of(kind: TensorType) -> tuple[Attribute, ...]:
    """The same, made once."""
    element = storage_type(kind.element_type)
    if not is_sparse(kind):
        return (MemRefType(element, kind.get_shape()),)
    rows, columns = kind.get_shape()
    pointers = DYNAMIC_INDEX if rows == DYNAMIC_INDEX else rows + 1
    result = (
        MemRefType(position_type(kind), [pointers]),
        MemRefType(index_type(kind), [DYNAMIC_INDEX]),
        MemRefType(element, [DYNAMIC_INDEX]),
    )
    return (*result, IndexType()) if columns == DYNAMIC_INDEX else result
