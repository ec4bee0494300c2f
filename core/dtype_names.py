"""The element types of tensors by name, and their NumPy dtypes. This is the only table.

What a call needs of types is here, without xDSL, whose types are in `core.dtypes`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .errors import CompileError, UnsupportedError, explain

if TYPE_CHECKING:
    import numpy as np

LOW_BIT_NAMES = {
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
    "i4": "int4",
    "ui4": "uint4",
    "i2": "int2",
    "ui2": "uint2",
}
"""Types that are only stored, a byte for each element, and their dtypes: those of ml_dtypes."""

NUMPY_NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    **LOW_BIT_NAMES,
}
"""The dtypes of all element types."""


@functools.cache
def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type given by name, such as "f32".

    Raises:
        CompileError: if there is no such element type.
        UnsupportedError: if it is one of `ml_dtypes`, which is not installed.
    """
    if name not in NUMPY_NAMES:
        expected = ", ".join(NUMPY_NAMES)
        raise CompileError(explain("type", "unknown element type", expected=expected, got=name))
    import numpy as np

    if name == "bf16" or name in LOW_BIT_NAMES:
        register_dtypes(name)
    return np.dtype(NUMPY_NAMES[name])


def register_dtypes(name: str) -> None:
    """Register the dtypes of `ml_dtypes` with NumPy, of which one is needed.

    Raises:
        UnsupportedError: if the package is not installed, as beside the run time alone.
    """
    try:
        import ml_dtypes  # noqa: F401
    except ModuleNotFoundError as error:
        fact = f"{name} needs the package ml_dtypes, which is not installed"
        raise UnsupportedError(explain("type", fact)) from error


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float that is computed with; unlike in NumPy, bfloat16 is one."""
    return (dtype.kind == "f" and dtype.itemsize > 1) or dtype.name == "bfloat16"


def is_cut(number: float, dtype: np.dtype[Any]) -> bool:
    """Whether a number has a fraction that a dtype cannot hold."""
    return not is_real(dtype) and not float(number).is_integer()


def as_buffer(array: np.ndarray) -> np.ndarray:
    """The memory of an array as kernels see it: all but floats are signed integers.

    Booleans and low-bit types take a byte, and integers have no sign.
    """
    if array.dtype.kind == "i" or is_real(array.dtype):
        return array
    return array.view(f"i{array.dtype.itemsize}")
