"""How much memory tensors take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue

from ....core.algebra.dims import Dim, product
from ....core.dtypes import dtype_of
from ....core.ir.typed import tensor_type
from ..buffers import buffer_types
from ..interfaces import Sizes


def bytes_of(values: Iterable[SSAValue], sizes: Sizes) -> Dim:
    """The bytes of the buffers that stand for some tensors."""
    return sum((_bytes(value, sizes) for value in values), Dim.of(0))


def _bytes(value: SSAValue, sizes: Sizes) -> Dim:
    buffers = [b for b in buffer_types(tensor_type(value)) if not isinstance(b, IndexType)]
    widths = [dtype_of(cast(MemRefType, buffer).element_type).itemsize for buffer in buffers]
    entries = sizes.nnz(value)
    if entries is None:
        return product(sizes.shape(value)) * widths[0]
    pointers, indices, values = widths
    return (sizes.shape(value)[0] + 1) * pointers + entries * (indices + values)
