"""The element types of tensors: their names, NumPy dtypes, and sizes. This is the only table."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IntegerType,
    Signedness,
    bf16,
    f4E2M1FN,
    f6E2M3FN,
    f6E3M2FN,
    f8E4M3FN,
    f8E4M3FNUZ,
    f8E5M2,
    f8E5M2FNUZ,
    f8E8M0FNU,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from .errors import CompileError, UnsupportedError, explain

if TYPE_CHECKING:
    import numpy as np

i2, i4 = IntegerType(2), IntegerType(4)
ui2 = IntegerType(2, Signedness.UNSIGNED)
ui4 = IntegerType(4, Signedness.UNSIGNED)
ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)

LOW_BIT_FLOATS: dict[Attribute, str] = {
    f8E4M3FN: "float8_e4m3fn",
    f8E4M3FNUZ: "float8_e4m3fnuz",
    f8E5M2: "float8_e5m2",
    f8E5M2FNUZ: "float8_e5m2fnuz",
    f8E8M0FNU: "float8_e8m0fnu",
    f6E2M3FN: "float6_e2m3fn",
    f6E3M2FN: "float6_e3m2fn",
    f4E2M1FN: "float4_e2m1fn",
}
"""Floats of 8 bits and fewer, and their dtypes, which are those of ml_dtypes."""
LOW_BIT_INTEGERS: dict[Attribute, str] = {i4: "int4", ui4: "uint4", i2: "int2", ui2: "uint2"}
"""Integers of fewer than 8 bits, and their dtypes, which are those of ml_dtypes."""

_NUMPY_NAMES: dict[Attribute, str] = {
    f16: "float16",
    bf16: "bfloat16",
    f32: "float32",
    f64: "float64",
    i1: "bool",
    i8: "int8",
    i16: "int16",
    i32: "int32",
    i64: "int64",
    ui8: "uint8",
    ui16: "uint16",
    ui32: "uint32",
    **LOW_BIT_FLOATS,
    **LOW_BIT_INTEGERS,
}

ELEMENT_TYPES: dict[str, Attribute] = {str(type): type for type in _NUMPY_NAMES}
"""The element types of tensors by their names.

f16, bf16, f32, f64, i1, i8 to i64, ui8 to ui32, and the low-bit types, which are stored in a byte
for each element and converted to compute with them: f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ,
f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN, i4, i2, ui4 and ui2.
"""

_NUMPY: dict[Attribute, np.dtype[Any]] = {}
"""The dtypes used so far: `import stepwell` does not load NumPy."""
_BY_NAME = {name: type for type, name in _NUMPY_NAMES.items()}


def dtype_of(element_type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype in which elements of this type are stored.

    Raises:
        CompileError: if it is not an element type of a tensor (see `ELEMENT_TYPES`).
    """
    known = _NUMPY.get(element_type)
    if known is not None:
        return known
    import numpy as np

    if element_type not in _NUMPY_NAMES:
        expected = ", ".join(ELEMENT_TYPES)
        raise CompileError(
            explain("type", "unknown element type", expected=expected, got=element_type)
        )
    if element_type == bf16 or is_low_bit(element_type):
        # The import registers the dtypes with NumPy.
        import ml_dtypes  # noqa: F401
    dtype = _NUMPY[element_type] = np.dtype(_NUMPY_NAMES[element_type])
    return dtype


@functools.cache
def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type given by name, such as "f32"."""
    if name not in ELEMENT_TYPES:
        expected = ", ".join(ELEMENT_TYPES)
        raise CompileError(explain("type", "unknown element type", expected=expected, got=name))
    return dtype_of(ELEMENT_TYPES[name])


def element_type_of(dtype: np.dtype[Any]) -> Attribute:
    """The element type that stores values of this NumPy dtype.

    Raises:
        UnsupportedError: if there is none.
    """
    import numpy as np

    native = np.dtype(dtype).newbyteorder("=")
    if native.name not in _BY_NAME:
        fact, known = "no element type for this dtype", ", ".join(_BY_NAME)
        raise UnsupportedError(explain("graph", fact, expected=known, got=native))
    return _BY_NAME[native.name]


def byte_size(element_type: Attribute) -> int:
    """The size of a stored element in bytes: a boolean takes one, an index eight."""
    bits = element_type.bitwidth if isinstance(element_type, FixedBitwidthType) else 64
    return max(1, bits // 8)


def is_low_bit(element_type: Attribute) -> bool:
    """Whether elements of a type are only stored: a float of up to 8 bits, or i4, i2, ui4, ui2."""
    return element_type in LOW_BIT_FLOATS or element_type in LOW_BIT_INTEGERS


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float that is computed with; unlike in NumPy, bfloat16 is one."""
    return (dtype.kind == "f" and dtype.itemsize > 1) or dtype.name == "bfloat16"


def as_buffer(array: np.ndarray) -> np.ndarray:
    """The memory of an array as kernels see it: all but floats are signed integers.

    Booleans and low-bit types take a byte, and integers have no sign.
    """
    if array.dtype.kind == "i" or is_real(array.dtype):
        return array
    return array.view(f"i{array.dtype.itemsize}")


def integer_range(type: IntegerType) -> tuple[int, int]:
    """The least and the largest value of a type of integers; those of i1 are 0 and 1."""
    width = type.width.data
    if width == 1 or type.signedness.data == Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1
