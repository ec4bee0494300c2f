"""Addresses of elements of buffers.

An address is `base + size * (i0 * stride0 + i1 * stride1 + ...)`. The sum is taken apart into
terms `factor * value * size`, each term is multiplied out right after the value is defined, and
terms are added to the base in the order in which they are defined, constants last. So what does
not change in a loop is computed before it, once for all accesses, and accesses that differ by
a constant have everything but the displacement in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
)
from xdsl.ir import Attribute, SSAValue

from ...core.typed import memref_type
from ...dialects.upstream import ops as upstream
from .lowering import Lowering, Parts
from .types import PTR, int_attr, numbers_attr, stored

Factors: TypeAlias = tuple[SSAValue, ...]
"""Values that are multiplied with each other; none is 1."""

_NO_WRAP_FLAGS = int_attr(0, 32)
_SSA_INDEX = numbers_attr(llvm.GEP_USE_SSA_VAL)
_I32_MAX = 2**31 - 1


def strides_of(type: MemRefType, parts: Parts) -> list[tuple[int, Factors]]:
    """For each dimension, the distance of neighbours: a number times symbolic sizes."""
    sizes = iter(reversed(parts[1:]))
    number, factors = 1, ()
    strides: list[tuple[int, Factors]] = []
    for size in reversed(type.get_shape()):
        strides.append((number, factors))
        if size == DYNAMIC_INDEX:
            factors = (next(sizes), *factors)
        else:
            number *= size
    strides.reverse()
    return strides


def element_address(low: Lowering, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """The address of the element of `buffer` at `indices`."""
    type = memref_type(buffer)
    parts = low.parts(buffer)
    strides = strides_of(type, parts)
    terms = sum_of(low, [(i, *stride) for i, stride in zip(indices, strides, strict=True)])
    return offset_address(low, parts[0], terms, stored(type.element_type, low.index))


def sizes_of(low: Lowering, buffer: SSAValue) -> list[SSAValue]:
    """The sizes of the dimensions of a buffer."""
    symbolic = iter(low.parts(buffer)[1:])
    shape = memref_type(buffer).get_shape()
    return [next(symbolic) if size == DYNAMIC_INDEX else low.integer(size) for size in shape]


def number_of_elements(low: Lowering, buffer: SSAValue) -> SSAValue:
    """How many elements a buffer has."""
    parts = low.parts(buffer)
    fixed = prod(size for size in memref_type(buffer).get_shape() if size >= 0)
    return _product(low, parts[1:], fixed) if len(parts) > 1 else low.integer(fixed)


def sum_of(low: Lowering, terms: Sequence[tuple[SSAValue, int, Factors]]) -> dict[Factors, int]:
    """The sum of `value * number * factors`, taken apart: numbers by what they multiply."""
    result: dict[Factors, int] = {}
    for value, number, factors in terms:
        _add(low, result, low.value(value), number, factors)
    return result


def offset_address(
    low: Lowering, base: SSAValue, terms: dict[Factors, int], element: Attribute
) -> SSAValue:
    """`base` plus a sum of terms, in elements of a type."""
    constant = terms.pop((), 0)
    address = base
    products = [_product(low, factors, number) for factors, number in terms.items() if number]
    for product in sorted(products, key=low.time_of):
        address = _step(low, address, product, element)
    if not constant:
        return address
    if abs(constant) > _I32_MAX:
        return _step(low, address, low.integer(constant), element)
    return low.hoist(
        ("gep", address, constant, element),
        upstream.GEPOp,
        (address,),
        PTR,
        {
            "rawConstantIndices": numbers_attr(constant),
            "elem_type": element,
            "noWrapFlags": _NO_WRAP_FLAGS,
        },
    )


def _add(
    low: Lowering, terms: dict[Factors, int], value: SSAValue, number: int, factors: Factors
) -> None:
    """Add `value * number * factors` to a sum, looking through sums and known numbers."""
    owner = value.owner
    if isinstance(owner, llvm.ConstantOp):
        known = low.known_integer(value)
        assert known is not None
        terms[factors] = terms.get(factors, 0) + known * number
        return
    if isinstance(owner, llvm.AddOp):
        _add(low, terms, owner.lhs, number, factors)
        _add(low, terms, owner.rhs, number, factors)
        return
    if isinstance(owner, llvm.MulOp):
        for one, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            known = low.known_integer(one)
            if known is not None:
                _add(low, terms, other, number * known, factors)
                return
    key = (value, *factors)
    terms[key] = terms.get(key, 0) + number


def _product(low: Lowering, factors: Factors, number: int) -> SSAValue:
    """The product of values and a number, built once."""
    result = factors[0]
    for factor in factors[1:]:
        result = low.hoist(("mul", result, factor), llvm.MulOp, (result, factor), low.index)
    if number == 1:
        return result
    by = low.integer(number)
    return low.hoist(("mul", result, by), llvm.MulOp, (result, by), low.index)


def _step(low: Lowering, address: SSAValue, by: SSAValue, element: Attribute) -> SSAValue:
    return low.hoist(
        ("gep", address, by, element),
        upstream.GEPOp,
        (address, by),
        PTR,
        {
            "rawConstantIndices": _SSA_INDEX,
            "elem_type": element,
            "noWrapFlags": _NO_WRAP_FLAGS,
        },
    )
