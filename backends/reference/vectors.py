"""The semantics of `vector` on NumPy arrays: every accessed lane is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from ...core.ir.typed import vector_type
from ...dialects import x86vector
from ...dialects.upstream import ops as upstream
from .instructions import scaled
from .loop import outside
from .numbers import (
    COMBINE,
    REDUCTIONS,
    Compute,
    Meaning,
    dtype_of,
    fused,
    of_operation,
    reinterpret,
    shape_of,
    typed,
)


def _lanes(
    op: Operation, buffer: np.ndarray, indices: Sequence[Any], offsets: np.ndarray, mask: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The elements of a buffer in row-major order, and the accessed positions.

    Lanes beyond the end of a row continue in the next row.

    Raises:
        CompileError: if one of them is out of bounds.
    """
    elements, first = buffer.reshape(-1), 0
    for size, index in zip(buffer.shape, indices, strict=True):
        first = first * size + int(index)
    places = first + offsets[mask]
    wrong = (places < 0) | (places >= elements.size)
    if wrong.any():
        last = len(buffer.shape) - 1
        raise outside(op, last, int(places[wrong][0]), elements.size)
    return elements, places


def _masked_load(op: vector.MaskedLoadOp, buffer: np.ndarray, *rest: Any) -> np.ndarray:
    """Read the contiguous elements that the mask enables."""
    *indices, mask, passed = rest
    return _read(op, buffer, indices, np.arange(mask.size), mask, passed)


def _gather(op: upstream.GatherOp, buffer: np.ndarray, *rest: Any) -> np.ndarray:
    """Read the elements that the mask enables, each at its own offset."""
    *indices, offsets, mask, passed = rest
    return _read(op, buffer, indices, offsets.astype(np.int64), mask, passed)


def _read(
    op: Operation,
    buffer: np.ndarray,
    indices: Sequence[Any],
    offsets: np.ndarray,
    mask: Any,
    passed: np.ndarray,
) -> np.ndarray:
    """The elements that the mask enables, those of `passed` in the other lanes."""
    elements, places = _lanes(op, buffer, indices, offsets, mask)
    result = passed.copy()
    result[mask] = elements[places]
    return result


def _masked_store(op: vector.MaskedStoreOp, buffer: np.ndarray, *rest: Any) -> None:
    """Write the contiguous elements that the mask enables."""
    *indices, mask, value = rest
    elements, places = _lanes(op, buffer, indices, np.arange(mask.size), mask)
    elements[places] = value[mask]


def _create_mask(op: vector.CreateMaskOp, *counts: Any) -> np.ndarray:
    """Enable the first lanes of each dimension."""
    shape = shape_of(op.results[0].type)
    mask = np.ones(shape, bool)
    for axis, count in zip(np.ogrid[tuple(map(slice, shape))], counts, strict=True):
        mask &= axis < count
    return mask


def _extract(op: vector.ExtractOp, value: np.ndarray, *dynamic: Any) -> Any:
    """One lane, or a vector of fewer dimensions."""
    return typed(value[_position(op, dynamic)], op.results[0].type)


def _insert(op: vector.InsertOp, source: Any, target: np.ndarray, *dynamic: Any) -> np.ndarray:
    """Replace a lane."""
    result = target.copy()
    result[_position(op, dynamic)] = source
    return result


def _shuffle(op: vector.ShuffleOp, *both: np.ndarray) -> np.ndarray:
    """Lanes of two concatenated vectors."""
    return np.concatenate(both)[list(op.mask.get_values())]


def _scale(op: x86vector.Avx512MaskScalefOp, rest: Any, a: Any, b: Any, *settings: Any) -> Any:
    """A product with a power of two, with one rounding."""
    return scaled(op, (a, b, rest, *settings))


def _reduction(op: upstream.ReductionOp, value: np.ndarray, *start: Any) -> Any:
    """Combine all lanes and the accumulator, if any."""
    fold = REDUCTIONS[COMBINE[op.kind.data.value]]
    dtype = dtype_of(vector_type(op.vector))
    return typed(fold(np.append(np.asarray(start, dtype), value)), op.results[0].type)


def _contiguous(
    op: Operation, buffer: np.ndarray, indices: Sequence[Any], count: int
) -> np.ndarray:
    """Some elements of a buffer in row-major order, as a view.

    Raises:
        CompileError: if one of them is out of bounds.
    """
    elements, first = buffer.reshape(-1), 0
    for size, index in zip(buffer.shape, indices, strict=True):
        first = first * size + int(index)
    if not 0 <= first <= elements.size - count:
        wrong = first if first < 0 or first >= elements.size else elements.size
        raise outside(op, len(buffer.shape) - 1, wrong, elements.size)
    return elements[first : first + count]


def _load(op: vector.LoadOp) -> Compute:
    """Read contiguous elements."""
    (count,) = shape_of(op.result.type)
    return lambda buffer, *indices: _contiguous(op, buffer, indices, count).copy()


def _store(op: vector.StoreOp) -> Compute:
    """Write contiguous elements."""
    (count,) = shape_of(op.vector.type)

    def compute(value: np.ndarray, buffer: np.ndarray, *indices: Any) -> None:
        _contiguous(op, buffer, indices, count)[...] = value

    return compute


def _broadcast(op: upstream.BroadcastOp) -> Compute:
    """Repeat a number or a vector."""
    kind = op.results[0].type
    dtype, shape = dtype_of(kind), shape_of(kind)

    def compute(value: Any) -> np.ndarray:
        result = np.empty(shape, dtype)
        result[...] = value
        return result

    return compute


def _fma(op: vector.FMAOp) -> Compute:
    """A product and a sum with one rounding."""
    dtype = dtype_of(op.results[0].type)
    return lambda a, b, c: fused(a, b, c).astype(dtype)


COMPUTATIONS: Mapping[type[Operation], Meaning] = {
    upstream.BroadcastOp: _broadcast,
    upstream.GatherOp: of_operation(_gather),
    upstream.ReductionOp: of_operation(_reduction),
    vector.BitcastOp: of_operation(reinterpret),
    vector.CreateMaskOp: of_operation(_create_mask),
    vector.ExtractOp: of_operation(_extract),
    vector.FMAOp: _fma,
    vector.InsertOp: of_operation(_insert),
    vector.LoadOp: _load,
    vector.MaskedLoadOp: of_operation(_masked_load),
    vector.MaskedStoreOp: of_operation(_masked_store),
    vector.ShuffleOp: of_operation(_shuffle),
    vector.StoreOp: _store,
    x86vector.Avx512MaskScalefOp: of_operation(_scale),
}
"""Operations whose results depend on their operands alone."""


def _position(op: vector.ExtractOp | vector.InsertOp, dynamic: Sequence[Any]) -> tuple[int, ...]:
    numbers = iter(dynamic)
    static = op.static_position.get_values()
    return tuple(int(next(numbers)) if n == DYNAMIC_INDEX else n for n in static)
