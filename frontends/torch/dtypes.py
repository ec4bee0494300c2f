"""Element types: torch's, and NumPy's dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..importing.diagnostics import UnsupportedNodeError
from ..importing.dtypes import element_type, no_element_type
from .library import library

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")


def numpy_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype of a `torch.dtype`.

    Raises:
        UnsupportedNodeError: if the IR has no such element type.
    """
    name = str(dtype).removeprefix("torch.")
    if name == "bfloat16":
        return BFLOAT16
    if name not in (*_NAMES, *_FLOATS):
        raise no_element_type(name)
    found = np.dtype(name)
    element_type(found)
    return found


def array_of(tensor: Any, what: str) -> np.ndarray:
    """The elements of a dense tensor in the memory of the CPU, without a copy where it is there.

    Raises:
        UnsupportedNodeError: if it is sparse, quantised, without elements in memory, or has an
            element type that the IR does not have.
    """
    dtype = numpy_dtype(tensor.dtype)
    if tensor.is_quantized or not str(tensor.layout).endswith("strided"):
        raise UnsupportedNodeError(f"{what} is no dense tensor", "a dense tensor")
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        raise UnsupportedNodeError(f"{what} has no elements", "a tensor with elements")
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    if dtype != BFLOAT16:
        return held.numpy()
    return held.view(library().int16).numpy().view(BFLOAT16)


_CATEGORIES = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2}
"""Booleans, integers and floats in the order of type promotion; NumPy's kind of bfloat16 is V."""


def promoted(tensors: list[np.dtype], scalars: list[np.dtype], numbers: list[object]) -> np.dtype:
    """The type in which torch computes with tensors, tensors without dimensions, and numbers.

    A scalar or a number only counts where it is of a higher category than all before it.
    """
    found = _common(tensors)
    for others in (scalars, [_dtype_of_number(number) for number in numbers]):
        other = _common(others)
        if found is None or (other is not None and _category(other) > _category(found)):
            found = other if other is not None else found
    assert found is not None
    return found


def _dtype_of_number(number: object) -> np.dtype:
    if isinstance(number, bool):
        return np.dtype(np.bool_)
    return np.dtype(np.int64 if isinstance(number, int) else np.float32)


def _category(dtype: np.dtype) -> int:
    return _CATEGORIES[dtype.kind]


def _common(dtypes: list[np.dtype]) -> np.dtype | None:
    if not dtypes:
        return None
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = _pair(found, dtype)
    return found


def _pair(a: np.dtype, b: np.dtype) -> np.dtype:
    """torch's common type of two tensors with dimensions."""
    if a == b:
        return a
    one, other = _category(a), _category(b)
    if one != other:
        return a if one > other else b
    if BFLOAT16 in (a, b) and a.itemsize == b.itemsize == 2:
        return np.dtype(np.float32)
    return np.promote_types(a, b)
