"""`TensorProto` to NumPy: every size is checked before allocation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from onnx import TensorProto

from ...core.files.reading import ReadingError, check_size, memory
from ..importing.diagnostics import UnsupportedNodeError
from ..importing.sizes import LARGEST_TENSOR, check_shape, shown
from .diagnostics import broken
from .dtypes import LOW_BITS, numpy_dtype
from .files import ExternalData, Piece

_BITS_IN_INT32 = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
}


def array_of(tensor: TensorProto, data: ExternalData, subject: str) -> np.ndarray:
    """The contents of a tensor.

    Args:
        tensor: an initialiser or an attribute of a model.
        data: the external data of the model.
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
        return _from_bytes(_external(tensor, shape, dtype, data, subject), shape, dtype)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        _check_length(len(raw), shape, dtype, subject)
        return _from_bytes(raw, shape, dtype)
    return _from_field(tensor, shape, dtype, subject)


def numbers_of_texts(tensor: TensorProto, table: dict[str, int], subject: str) -> np.ndarray:
    """The numbers of the strings of a tensor in a table, to which new ones are added.

    Raises:
        ImportModelError: if the strings do not fill the dimensions.
    """
    shape, texts = tuple(tensor.dims), tensor.string_data
    check_shape(shape, 8, subject)
    if len(texts) != math.prod(shape):
        fact = f"data does not fill shape {shown(shape) or '()'} of strings"
        raise broken(fact, subject=subject, expected=math.prod(shape), got=len(texts))
    numbers = [table.setdefault(t.decode(errors="replace"), len(table)) for t in texts]
    return np.array(numbers, np.int64).reshape(shape)


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
    tensor: TensorProto, shape: tuple[int, ...], dtype: np.dtype, data: ExternalData, subject: str
) -> bytes:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    data.check(location, subject)
    offset = _number(entries.get("offset", "0"), "offset", subject)
    expected = _byte_count(shape, dtype)
    length = _number(entries.get("length", str(expected)), "length", subject)
    _check_length(length, shape, dtype, subject)
    raw = data.read(Piece(location, offset, length), subject)
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


def _number(text: str, key: str, subject: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise broken(
            f"external data: bad {key}", subject=subject, expected="a number", got=f'"{text}"'
        )
    return int(text)
