"""Bodies of loops and conditions: what functions take and return, and the blocks they build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i64
from xdsl.ir import Attribute, Block, SSAValue

from ..core.boundary.arrays import is_integer
from ..core.ir.typed import tensor_type
from ..dialects.graph.interfaces import rank
from .diagnostics import input_error
from .values import Operand, Value


class Structure:
    """A value, a tuple of values, or nothing: how a function takes and returns them."""

    def __init__(self, values: Sequence[Operand], is_tuple: bool) -> None:
        self.values, self._is_tuple = values, is_tuple

    @staticmethod
    def of(given: Any) -> Structure:
        """The structure of what a function is given or returns, which may be None."""
        if given is None:
            return Structure((), True)
        is_tuple = isinstance(given, (tuple, list))
        return Structure(list(given) if is_tuple else [given], is_tuple)

    def like(self, values: Sequence[Value]) -> Any:
        """Other values in the same form."""
        return tuple(values) if self._is_tuple else values[0]


def single(values: Sequence[Value]) -> Any:
    """A value by itself, several as a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def rows_of(count: object, sliced: Sequence[SSAValue]) -> int:
    """How many outputs a scan has, if it is a number."""
    if sliced:
        return tensor_type(sliced[0]).get_shape()[0]
    return count if is_integer(count) else DYNAMIC_INDEX


def elements_of(values: Sequence[SSAValue]) -> list[Attribute | None]:
    """The element types of tensors."""
    return [tensor_type(value).element_type for value in values]


def bound_texts(
    subject: str, carried: Sequence[SSAValue], given: Mapping[int, Sequence[int | str | None]]
) -> list[list[str]]:
    """The upper bounds of carried values as texts, "" for sizes that stay the same."""
    for number, row in given.items():
        if number not in range(len(carried)):
            expected = f"the number of a carried value, below {len(carried)}"
            raise input_error(subject, "wrong bounds", expected, number)
        if len(row) != rank(carried[number]):
            fact = f"wrong bounds of carried value {number}"
            raise input_error(subject, fact, f"{rank(carried[number])} sizes", row)
    rows = [given.get(number, [None] * rank(value)) for number, value in enumerate(carried)]
    return [["" if size is None else str(size) for size in row] for row in rows]


def block_for(
    carried: Sequence[SSAValue], sliced: Sequence[SSAValue], bounds: Sequence[Sequence[str]]
) -> Block:
    """The block of a loop, without arguments for captures."""
    types = list[Attribute]()
    for value, row in zip(carried, bounds, strict=True):
        kind = tensor_type(value)
        pairs = zip(kind.get_shape(), row, strict=True)
        sizes = [DYNAMIC_INDEX if bound else size for size, bound in pairs]
        types.append(TensorType(kind.element_type, sizes, kind.encoding))
    slices = list[Attribute]()
    for value in sliced:
        kind = tensor_type(value)
        if kind.get_num_dims() == 0:
            raise input_error("scan", "a scalar has no slices", "a tensor of rank 1 or more", kind)
        slices.append(TensorType(kind.element_type, kind.get_shape()[1:], kind.encoding))
    return Block(arg_types=[TensorType(i64, []), *types, *slices])
