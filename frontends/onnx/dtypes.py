"""Element types: ONNX's numbers, and NumPy's dtypes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from ..importing.dtypes import no_element_type

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
        raise no_element_type(type_name(number))
    return _NUMPY[number]
