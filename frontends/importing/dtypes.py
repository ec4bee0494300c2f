"""Types of the IR for those of models."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from ...core.algebra.dims import Shape
from ...core.dtypes import element_type_of
from ...core.errors import UnsupportedError
from .diagnostics import UnsupportedNodeError


def element_type(dtype: np.dtype) -> Attribute:
    """The element type of the IR for a NumPy dtype.

    Raises:
        UnsupportedNodeError: for strings and complex numbers.
    """
    try:
        return element_type_of(dtype)
    except UnsupportedError:
        raise no_element_type(dtype.name) from None


def no_element_type(name: str) -> UnsupportedNodeError:
    """The error for an element type that the IR does not have."""
    closest = "float16" if name.startswith("float") else None
    return UnsupportedNodeError(f"{name} is not an IR element type", closest)


def tensor_type(dtype: np.dtype, shape: Shape) -> TensorType:
    """The type of a tensor with a symbolic shape.

    Raises:
        UnsupportedNodeError: if the IR has no such element type.
    """
    sizes = [dim.value if dim.is_static else DYNAMIC_INDEX for dim in shape]
    return TensorType(element_type(dtype), sizes)
