"""`Value`: the operands and results of the operators of a `Builder`."""

from __future__ import annotations

import numbers
from typing import Any, NoReturn, Protocol

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from ..core.errors import InputError, explain
from ..dialects.graph.interfaces import tensor_type

Operand = Any
"""A `Value`, a NumPy array, a `scipy.sparse` array, or a number."""


class Operators(Protocol):
    """The part of `Builder` that values use."""

    def add(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def sub(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def mul(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def div(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def pow(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def neg(self, x: Operand, /) -> Value: ...

    def less(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def less_equal(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def greater(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def greater_equal(self, lhs: Operand, rhs: Operand, /) -> Value: ...

    def _product(self, left: Operand, right: Operand) -> Value: ...


class Value:
    """A tensor in a model under construction; created by a `Builder`.

    ``+ - * / @ ** < <= > >=`` and unary ``-`` append the respective operators. The other side may
    be a number or an array, which becomes a constant of this value's element type.
    """

    # NumPy must leave `array + value` to this class.
    __array_ufunc__ = None

    def __init__(self, builder: Operators, ssa: SSAValue) -> None:
        self.builder = builder
        self.ssa = ssa

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes; None for one that is only known at run time."""
        sizes = tensor_type(self.ssa).get_shape()
        return tuple(None if n == DYNAMIC_INDEX else n for n in sizes)

    @property
    def dtype(self) -> str:
        """The element type, such as "f32"."""
        return str(tensor_type(self.ssa).element_type)

    def __repr__(self) -> str:
        return f"Value({self.ssa.type})"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether this is the other value.

        Raises:
            InputError: for a number or an array, with whose elements it does not compare.
        """
        if isinstance(other, numbers.Number | np.ndarray):
            hint = "Builder.equal does"
            raise InputError(explain("Value", "== compares no elements", hint=hint))
        return self is other

    def __bool__(self) -> bool:
        fact, hint = "its elements are known in a call only", "Builder.where chooses by elements"
        raise InputError(explain("Value", fact, hint=hint))

    def __getitem__(self, index: object) -> NoReturn:
        """Refuses any index.

        Raises:
            InputError: always.
        """
        hint = "Builder.slice takes a range, Builder.gather what indices name"
        raise InputError(explain("Value", "it takes no index in brackets", hint=hint))

    def __lt__(self, other: Operand) -> Value:
        return self.builder.less(self, other)

    def __le__(self, other: Operand) -> Value:
        return self.builder.less_equal(self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.builder.greater(self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.builder.greater_equal(self, other)

    def __add__(self, other: Operand) -> Value:
        return self.builder.add(self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.builder.add(other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.builder.sub(self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.builder.sub(other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.builder.mul(self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.builder.mul(other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.builder.div(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.builder.div(other, self)

    def __pow__(self, other: Operand) -> Value:
        return self.builder.pow(self, other)

    def __rpow__(self, other: Operand) -> Value:
        return self.builder.pow(other, self)

    def __matmul__(self, other: Operand) -> Value:
        return self.builder._product(self, other)

    def __rmatmul__(self, other: Operand) -> Value:
        return self.builder._product(other, self)

    def __neg__(self) -> Value:
        return self.builder.neg(self)
