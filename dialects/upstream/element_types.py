"""The types of elements, and the shapes, that the operations here relate."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import have_compatible_shape

FLOAT_TYPES = (BFloat16Type, Float16Type, Float32Type, Float64Type)
"""The classes of the types of floats."""


def with_element_type(like: Attribute, element_type: Attribute) -> Attribute:
    """The type shaped as `like`, with another element type; scalars give `element_type`."""
    if isinstance(like, VectorType):
        return VectorType(element_type, like.shape, like.scalable_dims)
    if isinstance(like, TensorType):
        return TensorType(element_type, like.shape, like.encoding)
    return element_type


def check_shapes(op: Operation, left: Attribute, right: Attribute) -> None:
    """Raise where two types have different shapes."""
    if not have_compatible_shape(left, right):
        raise VerifyException(f"{op.name}: shapes differ, expected that of {left}, got {right}")
