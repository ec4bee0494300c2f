"""How values of the standard dialects are represented in the LLVM dialect.

An `index` is as wide as an address of the target, an i64 by default. A buffer is
its address followed by one index for each symbolic dimension: buffers are contiguous and
row-major, so nothing else is needed. An element of i1 is stored in a byte, as in NumPy. A bf16 is
represented by its bits, an i16: not every processor has instructions for it.
"""

from __future__ import annotations

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

from ...core.bounded_cache import bounded_cache
from ...dialects.rt.attrs import ContextType
from ...dialects.upstream.element_types import with_element_type

PTR = LLVMPointerType()


class NotLowerableError(Exception):
    """A type has no representation in the LLVM dialect; the walk adds the operation."""

    def __init__(self, fact: str, expected: str, got: Attribute):
        super().__init__(fact, expected, got)
        self.fact, self.expected, self.got = fact, expected, got


NO_FLAGS = FastMathAttr(None)
NO_FASTMATH: dict[str, Attribute] = {"fastmathFlags": NO_FLAGS}


@bounded_cache
def parts_of(type: Attribute, index: IntegerType = i64) -> tuple[Attribute, ...]:
    """The LLVM types that represent a type; an LLVM type represents itself.

    `index` is the integer type of an index.

    Raises:
        NotLowerableError: for a tensor, a buffer that is not contiguous, or a vector without
            exactly one fixed dimension.
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


@bounded_cache
def stored(element: Attribute, index: IntegerType = i64) -> Attribute:
    """The type in which an element is stored: a byte for i1."""
    return i8 if element == i1 else parts_of(element, index)[0]


@bounded_cache
def byte_size(element: Attribute, index: IntegerType = i64) -> int:
    """The size of a stored element in bytes, which is also its alignment.

    Raises:
        NotLowerableError: for a type that has no size in whole bytes.
    """
    kept = stored(element, index)
    bits = kept.bitwidth if isinstance(kept, FixedBitwidthType) else 0
    if bits % 8 or bits & (bits - 1) or not bits:
        raise NotLowerableError("element type cannot be stored", "8 to 64 bits", element)
    return bits // 8


def words_of(type: Attribute) -> int:
    """The size of a value of an LLVM type in 8-byte words."""
    if isinstance(type, LLVMPointerType):
        return 1
    return -(-byte_size(element_of(type)) * (lanes_of(type) or 1) // 8)


@bounded_cache
def int_attr(value: int, width: int) -> IntegerAttr:
    """An integer attribute, cached."""
    return IntegerAttr(value, IntegerType(width))


@bounded_cache
def numbers_attr(*values: int) -> DenseArrayBase:
    """32-bit numbers as an attribute, cached."""
    return DenseArrayBase.from_list(i32, values)


@bounded_cache
def alignment(element: Attribute, index: IntegerType = i64, width: int = 64) -> IntegerAttr:
    """The `alignment` of an access to elements of this type, an attribute of `width` bits."""
    return int_attr(byte_size(element, index), width)


@bounded_cache
def vector_of(element: Attribute, lanes: int) -> VectorType:
    """A one-dimensional vector type, cached."""
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
    """The fast-math flags of an operation, as a property of its replacement."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, FastMathAttrBase) or not flags.data:
        return NO_FASTMATH
    return {"fastmathFlags": FastMathAttr(flags.data)}


def element_of(type: Attribute) -> Attribute:
    """The element type of a vector, or the scalar type itself."""
    return cast(Attribute, type.element_type) if isinstance(type, VectorType) else type


def dense(type: Attribute, numbers: Sequence[int | float]) -> DenseIntOrFPElementsAttr:
    """The elements of a vector; one number is a splat."""
    shape, data = cast(VectorType[IntegerType], type), cast(Sequence[int], numbers)
    return DenseIntOrFPElementsAttr.from_list(shape, data)
