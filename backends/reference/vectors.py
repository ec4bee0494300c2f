"""The semantics of `vector` on NumPy arrays: every accessed lane is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    impl,
    register_impls,
)
from xdsl.ir import Operation

from ...core.typed import vector_type
from ...dialects import x86vector
from ...dialects.upstream import ops as upstream
from .loop import outside
from .numbers import (
    COMBINE,
    REDUCTIONS,
    Compute,
    Meaning,
    dtype_of,
    fused,
    reinterpret,
    scaled,
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


@register_impls
class VectorFunctions(InterpreterFunctions):
    """Implementations of `vector` for xDSL's interpreter."""

    @impl(vector.MaskedLoadOp)
    def run_masked_load(
        self, interpreter: Interpreter, op: vector.MaskedLoadOp, args: PythonValues
    ) -> PythonValues:
        """Read the contiguous elements that the mask enables."""
        buffer, *indices, mask, rest = args
        elements, places = _lanes(op, buffer, indices, np.arange(mask.size), mask)
        result = rest.copy()
        result[mask] = elements[places]
        return (result,)

    @impl(vector.MaskedStoreOp)
    def run_masked_store(
        self, interpreter: Interpreter, op: vector.MaskedStoreOp, args: PythonValues
    ) -> PythonValues:
        """Write the contiguous elements that the mask enables."""
        buffer, *indices, mask, value = args
        elements, places = _lanes(op, buffer, indices, np.arange(mask.size), mask)
        elements[places] = value[mask]
        return ()

    @impl(upstream.GatherOp)
    def run_gather(
        self, interpreter: Interpreter, op: upstream.GatherOp, args: PythonValues
    ) -> PythonValues:
        """Read the elements that the mask enables, each at its own offset."""
        buffer, *indices, offsets, mask, rest = args
        elements, places = _lanes(op, buffer, indices, offsets.astype(np.int64), mask)
        result = rest.copy()
        result[mask] = elements[places]
        return (result,)

    @impl(vector.CreateMaskOp)
    def run_create_mask(
        self, interpreter: Interpreter, op: vector.CreateMaskOp, args: PythonValues
    ) -> PythonValues:
        """Enable the first lanes of each dimension."""
        shape = shape_of(op.results[0].type)
        mask = np.ones(shape, bool)
        for axis, count in zip(np.ogrid[tuple(map(slice, shape))], args, strict=True):
            mask &= axis < count
        return (mask,)

    @impl(vector.ExtractOp)
    def run_extract(
        self, interpreter: Interpreter, op: vector.ExtractOp, args: PythonValues
    ) -> PythonValues:
        """One lane, or a vector of fewer dimensions."""
        value, *dynamic = args
        return (typed(value[_position(op, dynamic)], op.results[0].type),)

    @impl(vector.InsertOp)
    def run_insert(
        self, interpreter: Interpreter, op: vector.InsertOp, args: PythonValues
    ) -> PythonValues:
        """Replace a lane."""
        source, target, *dynamic = args
        result = target.copy()
        result[_position(op, dynamic)] = source
        return (result,)

    @impl(vector.ShuffleOp)
    def run_shuffle(
        self, interpreter: Interpreter, op: vector.ShuffleOp, args: PythonValues
    ) -> PythonValues:
        """Lanes of two concatenated vectors."""
        return (np.concatenate(args)[list(op.mask.get_values())],)

    @impl(x86vector.Avx512MaskScalefOp)
    def run_scale(
        self, interpreter: Interpreter, op: x86vector.Avx512MaskScalefOp, args: PythonValues
    ) -> PythonValues:
        """A product with a power of two, with one rounding."""
        rest, a, b, mask, rounding = args
        return (scaled(op, (a, b, rest, mask, rounding)),)

    @impl(vector.BitcastOp)
    def run_bitcast(
        self, interpreter: Interpreter, op: vector.BitcastOp, args: PythonValues
    ) -> PythonValues:
        """The same bits in another type."""
        return (reinterpret(op, *args),)

    @impl(upstream.ReductionOp)
    def run_reduction(
        self, interpreter: Interpreter, op: upstream.ReductionOp, args: PythonValues
    ) -> PythonValues:
        """Combine all lanes and the accumulator, if any."""
        value, *start = args
        fold = REDUCTIONS[COMBINE[op.kind.data.value]]
        dtype = dtype_of(vector_type(op.vector))
        return (typed(fold(np.append(np.asarray(start, dtype), value)), op.results[0].type),)


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
    vector.FMAOp: _fma,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
}
"""What operations compute of their operands alone."""


def _position(op: vector.ExtractOp | vector.InsertOp, dynamic: Sequence[Any]) -> tuple[int, ...]:
    numbers = iter(dynamic)
    static = op.static_position.get_values()
    return tuple(int(next(numbers)) if n == DYNAMIC_INDEX else n for n in static)
