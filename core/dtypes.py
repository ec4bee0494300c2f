"""The element types of tensors in IR: their NumPy dtypes, and sizes; see `core.dtype_names`."""

from __future__ import annotations

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

from .dtype_names import NUMPY_NAMES, dtype_named
from .errors import CompileError, UnsupportedError, explain

if TYPE_CHECKING:
    import numpy as np

i2, i4 = IntegerType(2), IntegerType(4)
ui2 = IntegerType(2, Signedness.UNSIGNED)
ui4 = IntegerType(4, Signedness.UNSIGNED)
ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)
ui64 = IntegerType(64, Signedness.UNSIGNED)


def _named(*types: Attribute) -> dict[Attribute, str]:
    """Element types with the names of their dtypes."""
    return {type: NUMPY_NAMES[str(type)] for type in types}


LOW_BIT_FLOATS = _named(
    f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN
)
"""Floats of 8 bits and fewer, and their dtypes, which are those of ml_dtypes."""
LOW_BIT_INTEGERS = _named(i4, ui4, i2, ui2)
"""Integers of fewer than 8 bits, and their dtypes, which are those of ml_dtypes."""

_NUMPY_NAMES = {
    **_named(f16, bf16, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64),
    **LOW_BIT_FLOATS,
    **LOW_BIT_INTEGERS,
}

ELEMENT_TYPES: dict[str, Attribute] = {str(type): type for type in _NUMPY_NAMES}
"""The element types of tensors by their names.

f16, bf16, f32, f64, i1, i8 to i64, ui8 to ui64, and the low-bit types, which are stored in a byte
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
    if element_type not in _NUMPY_NAMES:
        expected = ", ".join(ELEMENT_TYPES)
        raise CompileError(
            explain("type", "unknown element type", expected=expected, got=element_type)
        )
    dtype = _NUMPY[element_type] = dtype_named(str(element_type))
    return dtype


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


def integer_range(type: IntegerType) -> tuple[int, int]:
    """The least and the largest value of a type of integers; those of i1 are 0 and 1."""
    width = type.width.data
    if width == 1 or type.signedness.data == Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1
