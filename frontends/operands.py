"""The arguments of operators' constructors: which ones are tensors, and their element types."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from ..core.boundary.arrays import is_integer
from ..dialects.graph.attrs import accumulator_type
from ..dialects.graph.interfaces import FusionKind, GraphOp
from ..dialects.graph.ops.elementwise.quantize import ScaledOp
from ..dialects.graph.ops.products.quantized import QuantizedContractionOp
from .values import Operand, Value

_OF_MIXED_TYPES = (ScaledOp, QuantizedContractionOp)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "int": (is_integer, "an integer"),
    "Sequence[int]": (
        lambda value: isinstance(value, Iterable) and all(map(is_integer, value)),
        "a sequence of integers",
    ),
    "float": (lambda value: isinstance(value, numbers.Real), "a number"),
    "float | int": (lambda value: isinstance(value, numbers.Real), "a number"),
    "Attribute": (lambda value: isinstance(value, Attribute), 'a dtype such as "f32"'),
}
"""What arguments of a kind have to be, by the annotations of constructors."""


def check_kinds(signature: inspect.Signature, arguments: Mapping[str, object]) -> None:
    """Check numbers, lists of integers, and element types, which attributes are made of.

    Raises:
        TypeError: if an argument is of another kind.
    """
    for name, value in arguments.items():
        kind = str(signature.parameters[name].annotation).removesuffix(" | None")
        fits, expected = _KINDS.get(kind, (lambda _: True, ""))
        if value is not None and not fits(value):
            raise TypeError(f"wrong {name}, expected {expected}, got {value!r}")


def only_value(argument: Operand) -> Operand:
    """The value in a list of one, such as the result of a call; another argument itself."""
    if (
        isinstance(argument, (list, tuple))
        and len(argument) == 1
        and isinstance(argument[0], Value)
    ):
        return argument[0]
    return argument


def has_own_type(operator: type[GraphOp], argument: Operand, like: Attribute | None) -> bool:
    """Whether an array keeps its element type for an operand that depends on the others."""
    if issubclass(operator, _OF_MIXED_TYPES):
        return True
    # Narrow integers are multiplied with narrow integers, and accumulated in i32.
    narrow = like is not None and accumulator_type(like) != like
    return narrow and operator.FUSION == FusionKind.CONTRACTION and isinstance(argument, np.ndarray)
