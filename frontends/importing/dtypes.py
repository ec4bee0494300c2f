"""Element types of the IR for those of models."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute

from ...core.dtype_names import is_real
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


def is_float(dtype: np.dtype) -> bool:
    """Whether it is a float that is computed with: f16, bf16, f32 or f64."""
    return is_real(dtype)
