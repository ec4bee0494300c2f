"""Element types: ONNX's numbers, NumPy's dtypes, and the types of the IR."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype
from xdsl.ir import Attribute

from ...core.dtypes import element_type_of
from ...core.errors import UnsupportedError
from .diagnostics import UnsupportedNodeError

# The element types that the importer can read, and compute with while it folds constants. Not all
# of them are element types of the IR.
_READABLE = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16),
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    TensorProto.BOOL,
)
_NUMPY: dict[int, np.dtype] = {
    number: np.dtype(tensor_dtype_to_np_dtype(number)) for number in _READABLE
}

_CLOSEST = {
    "uint64": "int64",
    "int2": "int8",
    "int4": "int8",
    "uint2": "int8",
    "uint4": "int8",
}


def type_name(number: int) -> str:
    """ONNX's name of an element type in lower case, such as ``bfloat16``; else its number."""
    if number not in TensorProto.DataType.values():
        return f"element type {number}"
    return TensorProto.DataType.Name(number).lower()


def numpy_dtype(number: int) -> np.dtype:
    """The NumPy dtype of ONNX element type `number`.

    Raises:
        UnsupportedNodeError: for strings, complex numbers, and floats and integers too narrow for
            NumPy.
    """
    if number not in _NUMPY:
        raise _no_element_type(type_name(number))
    return _NUMPY[number]


def element_type(dtype: np.dtype) -> Attribute:
    """The element type of the IR for a NumPy dtype.

    Raises:
        UnsupportedNodeError: for unsigned integers of 64 bits.
    """
    try:
        return element_type_of(dtype)
    except UnsupportedError:
        raise _no_element_type(dtype.name) from None


def _no_element_type(name: str) -> UnsupportedNodeError:
    closest = "float16" if name.startswith("float") else _CLOSEST.get(name)
    return UnsupportedNodeError(f"{name} is not an IR element type", closest)
