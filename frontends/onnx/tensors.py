"""`TensorProto` to NumPy: every size is checked before allocation."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from onnx import TensorProto

from ...core.reading import ReadingError, check_size, memory, opened, size_of
from ..importing.diagnostics import UnsupportedNodeError
from ..importing.sizes import LARGEST_TENSOR, check_shape, shown
from .diagnostics import broken
from .dtypes import LOW_BITS, numpy_dtype

_BITS_IN_INT32 = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
}


def array_of(tensor: TensorProto, folder: Path | None, subject: str) -> np.ndarray:
    """The contents of a tensor.

    Args:
        tensor: an initialiser or an attribute of a model.
        folder: the folder of external data; None if there can be none.
        subject: the name of the tensor in errors.

    Raises:
        ImportModelError: if data does not fill the dimensions, or external data cannot be read.
        UnsupportedNodeError: if the element type or the segmentation is not supported.
    """
    dtype = numpy_dtype(tensor.data_type)
    shape = tuple(tensor.dims)
    check_shape(shape, dtype.itemsize, subject)
    if tensor.HasField("segment"):
        raise UnsupportedNodeError("tensors in segments are not supported")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _from_bytes(_external(tensor, shape, dtype, folder, subject), shape, dtype)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        _check_length(len(raw), shape, dtype, subject)
        return _from_bytes(raw, shape, dtype)
    return _from_field(tensor, shape, dtype, subject)


def _check_length(length: int, shape: tuple[int, ...], dtype: np.dtype, subject: str) -> None:
    expected = _byte_count(shape, dtype)
    if length != expected:
        raise broken(
            f"data does not fill shape {shown(shape) or '()'} of {dtype.name}",
            subject=subject,
            expected=f"{expected} bytes",
            got=length,
        )


def _bits(dtype: np.dtype) -> int:
    """The bits of an element in the data of a model; those of low-bit types are packed."""
    return LOW_BITS.get(dtype, 8 * dtype.itemsize)


def _byte_count(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """The number of bytes of packed data."""
    return -(-math.prod(shape) * _bits(dtype) // 8)


def _unpacked(raw: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Elements of a low-bit type, from bytes whose lowest bits are those of the first elements."""
    width, count = LOW_BITS[dtype], math.prod(shape)
    if 8 % width:
        digits = np.unpackbits(raw, count=count * width, bitorder="little").reshape(count, width)
        codes = np.packbits(digits, axis=1, bitorder="little")
    else:
        places = np.arange(0, 8, width, dtype=np.uint8)
        codes = (raw[:, None] >> places) & np.uint8((1 << width) - 1)
    return codes.reshape(-1)[:count].view(dtype).reshape(shape)


def _from_bytes(raw: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype in LOW_BITS:
        return _unpacked(np.frombuffer(raw, np.uint8), shape, dtype)
    if dtype == np.bool_:
        return (np.frombuffer(raw, np.uint8) != 0).reshape(shape)
    little = np.frombuffer(raw, dtype if dtype.itemsize == 1 else dtype.newbyteorder("<"))
    return little.astype(dtype, copy=False).reshape(shape)


def _from_field(
    tensor: TensorProto, shape: tuple[int, ...], dtype: np.dtype, subject: str
) -> np.ndarray:
    field = _FIELDS.get(tensor.data_type, "int32_data")
    numbers = getattr(tensor, field)
    # Where several elements fit into a byte, a number is a byte.
    packed = dtype in LOW_BITS and 8 % LOW_BITS[dtype] == 0
    expected = _byte_count(shape, dtype) if packed else math.prod(shape)
    if len(numbers) != expected:
        raise broken(
            f"data does not fill shape {shown(shape) or '()'}",
            subject=subject,
            expected=f"{expected} numbers in {field}",
            got=len(numbers),
        )
    if tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return np.array(numbers, dtype).reshape(shape)
    wide = np.array(numbers, np.uint64 if field == "uint64_data" else np.int64)
    wide = wide if packed else wide.reshape(shape)
    if tensor.data_type == TensorProto.BOOL:
        return wide != 0
    store = np.dtype(np.uint16) if tensor.data_type in _BITS_IN_INT32 else dtype
    if dtype in LOW_BITS:
        store = np.dtype(np.uint8)
    limits = np.iinfo(store)
    if wide.size and (wide.min() < limits.min or wide.max() > limits.max):
        raise broken(f"numbers in {field} do not fit {store.name}", subject=subject)
    narrow = wide.astype(store)
    if dtype in LOW_BITS:
        return _unpacked(narrow, shape, dtype) if packed else narrow.view(dtype)
    return narrow.view(dtype) if tensor.data_type in _BITS_IN_INT32 else narrow


def _external(
    tensor: TensorProto,
    shape: tuple[int, ...],
    dtype: np.dtype,
    folder: Path | None,
    subject: str,
) -> bytes:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(entries.get("location", ""), folder, subject)
    offset = _number(entries.get("offset", "0"), "offset", subject)
    expected = _byte_count(shape, dtype)
    length = _number(entries.get("length", str(expected)), "length", subject)
    _check_length(length, shape, dtype, subject)
    try:
        with opened(path) as file:
            size = size_of(file)
            if offset + length > size:
                raise broken(
                    f'external data "{entries["location"]}" is too short',
                    subject=subject,
                    expected=f"{offset + length} bytes",
                    got=size,
                )
            check_size(length, memory())
            file.seek(offset)
            raw = file.read(length)
    except ReadingError as error:
        fact = f'cannot read external data "{entries["location"]}": {error}'
        raise broken(fact, subject=subject) from error
    _check_length(len(raw), shape, dtype, subject)
    return raw


def check_together(tensors: Iterable[TensorProto]) -> None:
    """Refuse tensors whose external data together takes more memory than the machine has.

    A long file may be sparse on disk, and many tensors may name the same part of it.

    Raises:
        ImportModelError: if it takes too much.
    """
    try:
        check_size(sum(map(_external_bytes, tensors)), memory())
    except ReadingError as error:
        raise broken(f"external data: {error}") from error


def _external_bytes(tensor: TensorProto) -> int:
    """The bytes of a tensor from a file; 0 if `array_of` refuses it before reading."""
    if tensor.data_location != TensorProto.EXTERNAL or any(d < 0 for d in tensor.dims):
        return 0
    try:
        size = _byte_count(tuple(tensor.dims), numpy_dtype(tensor.data_type))
    except UnsupportedNodeError:
        return 0
    return size if size <= LARGEST_TENSOR else 0


def _inside(location: str, folder: Path | None, subject: str) -> Path:
    """The file at `location`, which must be in the model's folder after links are resolved."""
    if folder is None:
        raise broken(
            "external data without a folder", subject=subject, hint="give the path of the model"
        )
    named = Path(location)
    root = folder.resolve()
    try:
        path = (root / named).resolve()
        outside = named.is_absolute() or ".." in named.parts or not path.is_relative_to(root)
        readable = not outside and path.is_file() and os.access(path, os.R_OK)
    except (OSError, ValueError, RuntimeError) as error:
        raise broken(f"external data: bad location: {error}", subject=subject) from error
    if outside:
        raise broken(
            "external data is outside the model's folder", subject=subject, got=f'"{location}"'
        )
    if not readable:
        raise broken(f'external data "{location}" is not a readable file', subject=subject)
    return path


def _number(text: str, key: str, subject: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise broken(
            f"external data: bad {key}", subject=subject, expected="a number", got=f'"{text}"'
        )
    return int(text)
