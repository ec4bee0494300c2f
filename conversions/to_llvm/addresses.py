"""Accesses to elements of buffers.

The address of an element is `base + size * (i0 * stride0 + i1 * stride1 + ...)`. The sum is a
polynomial over LLVM values; each of its products is computed right after its last factor is
defined, and added to the base in the order in which they are defined, the constant last. So what
does not change in a loop is computed before it, once for all accesses, and accesses that differ by
a constant share everything but the displacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType, i1, i8
from xdsl.ir import Attribute, SSAValue

from ...core.algebra.polynomials import Polynomial
from ...core.building.arithmetic import multiplied
from ...core.building.creation import created
from ...core.ir.typed import memref_type
from ...dialects.upstream import ops as upstream
from .lowering import Lowering
from .types import (
    PTR,
    alignment,
    byte_size,
    element_of,
    int_attr,
    numbers_attr,
    stored,
    with_element_type,
)

_I32_MAX = 2**31 - 1
_PLAIN = int_attr(0, 64)


# Sizes and addresses.


def sizes_of(low: Lowering, buffer: SSAValue) -> list[SSAValue]:
    """The sizes of the dimensions of a buffer."""
    symbolic = iter(low.parts(buffer)[1:])
    shape = memref_type(buffer).get_shape()
    return [next(symbolic) if size == DYNAMIC_INDEX else low.integer(size) for size in shape]


def number_of_elements(low: Lowering, buffer: SSAValue) -> SSAValue:
    """How many elements a buffer has."""
    fixed = prod(size for size in memref_type(buffer).get_shape() if size != DYNAMIC_INDEX)
    return multiplied(low.parts(buffer)[1:], fixed, low.integer, low.times)


def bytes_of(low: Lowering, buffer: SSAValue) -> SSAValue:
    """How many bytes a buffer has."""
    count = number_of_elements(low, buffer)
    size = low.integer(byte_size(memref_type(buffer).element_type, low.index))
    return low.emit(llvm.MulOp, (count, size), low.index)


def element_address(low: Lowering, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """The address of the element of `buffer` at `indices`."""
    kind, (base, *sizes) = memref_type(buffer), low.parts(buffer)
    stride, strides = 1, list[int | Polynomial[int]]()
    for size in reversed(kind.get_shape()):
        strides.append(stride)
        stride = (low.atom(sizes.pop()) if size == DYNAMIC_INDEX else size) * stride
    total = Polynomial[int].of(sum(sum_of(low, index) * strides.pop() for index in indices))
    return offset_address(low, base, total, stored(kind.element_type, low.index))


def sum_of(low: Lowering, index: SSAValue) -> Polynomial[int]:
    """An index as a polynomial: the values that it is a sum of, and their factors."""
    return _sum(low, low.value(index))


def _sum(low: Lowering, value: SSAValue) -> Polynomial[int]:
    found = low.sums.get(value)
    if found is None:
        found = low.sums[value] = _taken_apart(low, value)
    return found


def _taken_apart(low: Lowering, value: SSAValue) -> Polynomial[int]:
    owner = value.owner
    if isinstance(owner, llvm.AddOp):
        return _sum(low, owner.lhs) + _sum(low, owner.rhs)
    if isinstance(owner, llvm.MulOp):
        for one, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            if (known := low.known_integer(one)) is not None:
                return _sum(low, other) * known
    known = low.known_integer(value)
    return low.atom(value) if known is None else Polynomial.of(known)


def offset_address(
    low: Lowering, base: SSAValue, offset: Polynomial[int], element: Attribute
) -> SSAValue:
    """`base` plus a number of elements of a type."""
    products: list[SSAValue] = []
    for monomial, coefficient in offset.terms:
        if monomial:
            factors = sorted([low.atoms[atom] for atom in monomial], key=low.time_of)
            products.append(multiplied(factors, coefficient, low.integer, low.times))
    for product in sorted(products, key=low.time_of):
        base = neighbour(low, base, product, element)
    constant = offset.constant
    if not constant:
        return base
    is_short = abs(constant) <= _I32_MAX
    return neighbour(low, base, constant if is_short else low.integer(constant), element)


def neighbour(low: Lowering, base: SSAValue, by: SSAValue | int, element: Attribute) -> SSAValue:
    """The address `by` elements of a type after another."""
    operands = (base,) if isinstance(by, int) else (base, by)
    properties = offset_properties(by if isinstance(by, int) else None, element)
    return low.hoist(("gep", base, by, element), upstream.GEPOp, operands, PTR, properties)


def offset_properties(by: int | None, element: Attribute) -> dict[str, Attribute]:
    """The properties of `llvm.getelementptr`; None is an operand."""
    return {
        "rawConstantIndices": numbers_attr(llvm.GEP_USE_SSA_VAL if by is None else by),
        "elem_type": element,
        "noWrapFlags": int_attr(0, 32),
    }


# Loads and stores of scalars and machine vectors.


def load(low: Lowering, buffer: SSAValue, indices: Sequence[SSAValue], type: Attribute) -> SSAValue:
    """A value of a type that is loaded from a buffer."""
    address = element_address(low, buffer, indices)
    loaded = low.emit(llvm.LoadOp, (address,), in_memory(low, type), _access(low, type))
    return from_memory(low, loaded, type)


def store(low: Lowering, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Store a value to a buffer."""
    operands = [to_memory(low, low.value(value)), element_address(low, buffer, indices)]
    properties = _access(low, value.type)
    low.perform(created(llvm.StoreOp, operands, properties=properties))


def store_lane(
    low: Lowering, value: SSAValue, lane: int, address: SSAValue, element: Attribute
) -> None:
    """Store a lane of a vector whose first lane belongs at an address."""
    kept = element_of(value.type)
    scalar = low.emit(upstream.ExtractElementOp, (value, low.integer(lane)), kept)
    place = neighbour(low, address, lane, kept) if lane else address
    properties = _access(low, element)
    low.perform(created(llvm.StoreOp, [scalar, place], properties=properties))


def _access(low: Lowering, type: Attribute) -> dict[str, Attribute]:
    """Properties of a load or a store: a vector is aligned like its elements."""
    return {"alignment": alignment(element_of(type), low.index), "ordering": _PLAIN}


def in_memory(low: Lowering, type: Attribute) -> Attribute:
    """The type of a value in memory, where an i1 is a byte."""
    kept = stored(element_of(type), low.index)
    return with_element_type(type, kept) if isinstance(type, VectorType) else kept


def from_memory(low: Lowering, value: SSAValue, type: Attribute) -> SSAValue:
    """A loaded value of a type; an i1 is a byte that is not 0."""
    if element_of(type) != i1:
        return value
    return low.compare("ne", value, low.number(0, value.type))


def to_memory(low: Lowering, value: SSAValue) -> SSAValue:
    """An LLVM value as it is stored."""
    if element_of(value.type) != i1:
        return value
    return low.emit(llvm.ZExtOp, (value,), with_element_type(value.type, i8))
