"""The element types of tensors: their names, NumPy dtypes, and sizes. This is the only table."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IntegerType,
    Signedness,
    bf16,
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

ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)

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
}

ELEMENT_TYPES: dict[str, Attribute] = {str(type): type for type in _NUMPY_NAMES}
"""The element types of tensors by their names: f16, bf16, f32, f64, i1, i8 to i64, ui8 to ui32."""

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
    if element_type == bf16:
        # The import registers the dtype with NumPy.
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


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float; unlike in NumPy, bfloat16 is one."""
    return dtype.kind == "f" or dtype.name == "bfloat16"
