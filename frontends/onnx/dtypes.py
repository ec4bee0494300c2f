"""Element types: ONNX's numbers, and NumPy's dtypes."""

from __future__ import annotations

from typing import cast

import numpy as np
from onnx import TensorProto, TypeProto
from onnx.helper import tensor_dtype_to_np_dtype
from xdsl.dialects.builtin import FixedBitwidthType

from ...core.dtypes import element_type_of
from ..importing.dtypes import no_element_type

_LOW_BIT_TYPES = (
    *(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E8M0),
    *(TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ),
    *(TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2, TensorProto.FLOAT4E2M1),
    *(TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2),
)
# The element types that the importer can read, and compute with while it folds constants. Not all
# of them are element types of the IR.
_READABLE = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16),
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    TensorProto.BOOL,
    *_LOW_BIT_TYPES,
)
_NUMPY: dict[int, np.dtype] = {
    number: np.dtype(tensor_dtype_to_np_dtype(number)) for number in _READABLE
}
LOW_BITS: dict[np.dtype, int] = {
    dtype: cast(FixedBitwidthType, element_type_of(dtype)).bitwidth
    for dtype in map(_NUMPY.__getitem__, _LOW_BIT_TYPES)
}
"""The number of bits of each low-bit dtype, of which NumPy has bytes."""


def is_text(kind: TypeProto) -> bool:
    """Whether a type is one of tensors of strings."""
    return kind.tensor_type.elem_type == TensorProto.STRING


def number_of_texts(number: int) -> int:
    """The element type of a tensor in the program, where strings are their numbers in a table."""
    return TensorProto.INT64 if number == TensorProto.STRING else number


def numpy_dtype(number: int) -> np.dtype:
    """The NumPy dtype of ONNX element type `number`.

    Raises:
        UnsupportedNodeError: for strings and complex numbers.
    """
    if number not in _NUMPY:
        named = number in TensorProto.DataType.values()
        # ONNX's name in lower case, such as ``bfloat16``.
        name = TensorProto.DataType.Name(number).lower() if named else f"element type {number}"
        raise no_element_type(name)
    return _NUMPY[number]
