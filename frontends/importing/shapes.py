"""Transposes, reshapes and broadcasts of values with symbolic shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ...dialects.graph.ops_select import WHOLE_END
from .dtypes import element_type
from .nodes import ModelNode
from .values import Value, is_static


def transposed(node: ModelNode, x: Value, permutation: Sequence[int]) -> Value:
    """`x` with permuted dimensions; `x` itself for the identity."""
    if list(permutation) == sorted(permutation):
        return x
    return node.emit(graph.TransposeOp, x, permutation=tuple(permutation))


def reshaped(node: ModelNode, x: Value, target: Sequence[Dim | None]) -> Value:
    """`x` in another shape; None, at most once, for a dimension only known at run time.

    Raises:
        UnsupportedNodeError: if several symbolic dimensions change position.
    """
    if tuple(target) == x.shape:
        return x
    known = [dim for dim in target if dim is not None]
    if 0 in x.shape and 0 in known and is_static(known) and None not in target:
        return node.known(np.zeros([dim.value for dim in known], x.dtype))
    sizes = [_size(x, i, dim) for i, dim in enumerate(target)]
    if sizes.count(-1) <= 1:
        return node.emit(graph.ReshapeOp, x, shape=sizes)
    if None not in target and _without_ones(x.shape) == _without_ones(target):
        return _moved_ones(node, x, target)
    shown = ", ".join("?" if dim is None else str(dim) for dim in target)
    raise node.unsupported(f"several symbolic dimensions change position in [{shown}]")


def _size(x: Value, position: int, dim: Dim | None) -> int:
    """A dimension for `graph.reshape`: a size, 0 to copy the operand's, -1 to infer it."""
    if position < x.rank and dim == x.shape[position] and dim is not None:
        return dim.value if dim.is_static else 0
    if dim is None or not dim.is_static or dim.value == 0:
        return -1
    return dim.value


def _without_ones(shape: Sequence[Dim | None]) -> list[Dim | None]:
    return [dim for dim in shape if dim != 1]


def _moved_ones(node: ModelNode, x: Value, target: Sequence[Dim | None]) -> Value:
    """A reshape that only drops and adds ones, which are moved to the end and changed there."""
    source = sorted(range(x.rank), key=lambda i: x.shape[i] == 1)
    gathered = transposed(node, x, source)
    kept = _without_ones(target)
    ones = [1] * (len(target) - len(kept))
    sizes = [_size(gathered, i, dim) for i, dim in enumerate(kept)] + ones
    at_end = node.emit(graph.ReshapeOp, gathered, shape=sizes)
    order = sorted(range(len(target)), key=lambda i: target[i] == 1)
    return transposed(node, at_end, [order.index(i) for i in range(len(target))])


def squeezed(node: ModelNode, x: Value, axes: Sequence[int]) -> Value:
    """`x` without these dimensions of size 1."""
    for axis in axes:
        if x.shape[axis].is_static and x.shape[axis] != 1:
            raise node.broken(f"dimension {axis} cannot be squeezed", 1, x.shape[axis])
        if not x.shape[axis].is_static:
            raise node.unsupported(f"squeezing symbolic dimension {axis} ({x.shape[axis]})")
    return reshaped(node, x, [d for i, d in enumerate(x.shape) if i not in axes])


def unsqueezed(node: ModelNode, x: Value, axes: Sequence[int]) -> Value:
    """`x` with dimensions of size 1 at these axes of the result."""
    dims = iter(x.shape)
    rank = x.rank + len(axes)
    return reshaped(node, x, [Dim.of(1) if i in axes else next(dims) for i in range(rank)])


def broadcast(node: ModelNode, x: Value, target: Sequence[Dim]) -> Value:
    """`x` broadcast together with a tensor of shape `target`."""
    rank = max(x.rank, len(target))
    one = Dim.of(1)
    own = [one] * (rank - x.rank) + list(x.shape)
    wanted = [one] * (rank - len(target)) + list(target)
    for a, b in zip(own, wanted, strict=True):
        if a.is_static and b.is_static and a != b and 1 not in (a.value, b.value):
            raise node.broken("shapes do not broadcast", a, b)
        if b.is_static and b.value < 0:
            raise node.broken("negative dimension", got=b)
    result = [a if b == 1 else b for a, b in zip(own, wanted, strict=True)]
    if tuple(result) == x.shape:
        return x
    sizes = [
        b.value if b.is_static else 1 if a == 1 else -1 for a, b in zip(own, result, strict=True)
    ]
    x = node.emit(graph.BroadcastToOp, x, shape=sizes)
    for axis, (a, b) in enumerate(zip(own, result, strict=True)):
        if not b.is_static and a != b:
            zeros = unsqueezed(
                node, _zeros(node, b, x.dtype), [i for i in range(rank) if i != axis]
            )
            # x == x - 0 == x or false, for a negative 0 and a NaN too
            x = node.emit(graph.LogicalOrOp if x.dtype.kind == "b" else graph.SubOp, x, zeros)
    return x


def _zeros(node: ModelNode, size: Dim, dtype: np.dtype) -> Value:
    """A vector of zeros, as long as a dimension of an input: an empty sum is 0."""
    holder = node.holder(size)
    if holder is None:
        raise node.unsupported(f"expanding to symbolic dimension {size}, which no input has")
    x, axis = holder
    apart = unsqueezed(node, x, [x.rank])
    ends = [dim.value if dim.is_static else WHOLE_END for dim in x.shape]
    empty = node.emit(graph.SliceOp, apart, starts=[0] * apart.rank, ends=[*ends, 0])
    axes = [other for other in range(apart.rank) if other != axis]
    zeros = node.emit(graph.ReduceOp, empty, kind="sum", axes=axes)
    return (
        zeros
        if zeros.dtype == dtype
        else node.emit(graph.CastOp, zeros, target=element_type(dtype))
    )
