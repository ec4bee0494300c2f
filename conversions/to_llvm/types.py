"""How values of the standard dialects are represented in the LLVM dialect.

An `index` is as wide as an address of the target, an i64 by default. A buffer is
its address followed by one index for each symbolic dimension: buffers are contiguous and
row-major, so nothing else is needed. Elements of i1 are stored one in a byte, as NumPy does. A
bf16 is its bits, an i16: not every processor has instructions for it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    TensorType,
    VectorType,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType
from xdsl.dialects.utils import FastMathAttrBase
from xdsl.ir import Attribute, Operation

from ...dialects.rt.attrs import ContextType
from ...dialects.upstream.element_types import with_element_type

PTR = LLVMPointerType()


class NotLowerableError(Exception):
    """A type has no form in the LLVM dialect; the walk says for which operation."""

    def __init__(self, fact: str, expected: str, got: Attribute):
        super().__init__(fact, expected, got)
        self.fact, self.expected, self.got = fact, expected, got


NO_FLAGS = FastMathAttr(None)
NO_FASTMATH: dict[str, Attribute] = {"fastmathFlags": NO_FLAGS}


@functools.cache
def parts_of(type: Attribute, index: IntegerType = i64) -> tuple[Attribute, ...]:
    """The LLVM types that a value of this type becomes; a type LLVM has is itself.

    `index` is what an index is.

    Raises:
        NotLowerableError: for a tensor, a buffer that is not contiguous, or a vector that has
            not one fixed dimension.
    """
    if isinstance(type, IndexType):
        return (index,)
    if isinstance(type, BFloat16Type):
        return (i16,)
    if isinstance(type, ContextType):
        return (PTR,)
    if isinstance(type, TensorType):
        fact, expected = "a tensor has no place in memory", "buffers, as convert-graph-to-rt makes"
        raise NotLowerableError(fact, expected, type)
    if isinstance(type, MemRefType):
        check_contiguous(type)
        return (PTR, *(index for size in type.get_shape() if size == DYNAMIC_INDEX))
    if not isinstance(type, VectorType):
        return (type,)
    lanes_of(type)
    return (with_element_type(type, parts_of(type.element_type, index)[0]),)


def check_contiguous(type: MemRefType) -> None:
    """Refuse a buffer with a layout or a memory space."""
    if isinstance(type.layout, NoneAttr) and isinstance(type.memory_space, NoneAttr):
        return
    raise NotLowerableError("buffer is not contiguous", "no layout", type)


@functools.cache
def stored(element: Attribute, index: IntegerType = i64) -> Attribute:
    """The type in which an element is stored: a byte for i1."""
    return i8 if element == i1 else parts_of(element, index)[0]


@functools.cache
def byte_size(element: Attribute, index: IntegerType = i64) -> int:
    """Bytes that one stored element takes, which is also its alignment.

    Raises:
        NotLowerableError: for a type that has no size in whole bytes.
    """
    kept = stored(element, index)
    bits = kept.bitwidth if isinstance(kept, FixedBitwidthType) else 0
    if bits % 8 or bits & (bits - 1) or not bits:
        raise NotLowerableError("element type cannot be stored", "8 to 64 bits", element)
    return bits // 8


def words_of(type: Attribute) -> int:
    """How many 8-byte words a value of an LLVM type takes."""
    if isinstance(type, LLVMPointerType):
        return 1
    return -(-byte_size(element_of(type)) * (lanes_of(type) or 1) // 8)


@functools.cache
def int_attr(value: int, width: int) -> IntegerAttr:
    """An integer attribute, made once."""
    return IntegerAttr(value, IntegerType(width))


@functools.cache
def numbers_attr(*values: int) -> DenseArrayBase:
    """Numbers of 32 bits as an attribute, made once."""
    return DenseArrayBase.from_list(i32, values)


@functools.cache
def alignment(element: Attribute, index: IntegerType = i64, width: int = 64) -> IntegerAttr:
    """The `alignment` of an access to elements of this type, as an attribute so wide."""
    return int_attr(byte_size(element, index), width)


@functools.cache
def vector_of(element: Attribute, lanes: int) -> VectorType:
    """A one-dimensional vector type, made once."""
    return VectorType(element, [lanes])


def lanes_of(type: Attribute) -> int | None:
    """Lanes of a machine vector, None for a scalar.

    Raises:
        NotLowerableError: for a vector that is not one-dimensional.
    """
    if not isinstance(type, VectorType):
        return None
    if type.get_num_dims() != 1 or type.get_num_scalable_dims():
        raise NotLowerableError("not a machine vector", "one fixed dimension", type)
    return type.get_shape()[0]


def fastmath_of(op: Operation) -> dict[str, Attribute]:
    """The fast-math flags of an operation, as a property of what replaces it."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, FastMathAttrBase) or not flags.data:
        return NO_FASTMATH
    return {"fastmathFlags": FastMathAttr(flags.data)}


def element_of(type: Attribute) -> Attribute:
    """The element type of a vector, or the scalar type itself."""
    return cast(Attribute, type.element_type) if isinstance(type, VectorType) else type


def dense(type: Attribute, numbers: Sequence[int | float]) -> DenseIntOrFPElementsAttr:
    """Elements of a vector; one number fills it."""
    shape, data = cast(VectorType[IntegerType], type), cast(Sequence[int], numbers)
    return DenseIntOrFPElementsAttr.from_list(shape, data)
