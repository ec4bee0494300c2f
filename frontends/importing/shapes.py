"""Transposes, reshapes and broadcasts of values with symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.algebra.dims import Dim, Shape, SizeQuotient, product
from ...core.dtypes import is_low_bit
from ...dialects.graph import ops as graph
from ...dialects.graph.ops.moves.select import WHOLE_END
from .dtypes import element_type
from .nodes import ModelNode
from .values import Value, is_static


def transposed(node: ModelNode, x: Value, permutation: Sequence[int]) -> Value:
    """`x` with permuted dimensions; `x` itself for the identity."""
    if list(permutation) == sorted(permutation):
        return x
    return node.transpose(x, permutation=tuple(permutation))


def reshaped(node: ModelNode, x: Value, target: Sequence[Dim | None]) -> Value:
    """`x` in another shape; None, at most once, for a dimension only known at run time.

    Raises:
        UnsupportedNodeError: if a size that several dimensions need is not known.
    """
    if tuple(target) == x.shape:
        return x
    known = [dim for dim in target if dim is not None]
    if 0 in x.shape and 0 in known and is_static(known) and None not in target:
        return node.known(np.zeros([dim.value for dim in known], x.dtype))
    sizes = [_size(x, i, dim) for i, dim in enumerate(target)]
    if sizes.count(-1) <= 1:
        return node.reshape(x, shape=sizes)
    if None not in target and _without_ones(x.shape) == _without_ones(target):
        # A reshape that only drops and adds ones, which are moved to the end and changed there.
        source = sorted(range(x.rank), key=lambda i: x.shape[i] == 1)
        gathered = transposed(node, x, source)
        kept = _without_ones(target)
        ones = [1] * (len(target) - len(kept))
        sizes = [_size(gathered, i, dim) for i, dim in enumerate(kept)] + ones
        at_end = node.reshape(gathered, shape=sizes)
        order = sorted(range(len(target)), key=lambda i: target[i] == 1)
        return transposed(node, at_end, [order.index(i) for i in range(len(target))])
    groups = (
        None if None in target else _groups(x.shape, [dim for dim in target if dim is not None])
    )
    if groups is None:
        # `x` in a shape that is computed in the call, and has to have as many elements.
        known = product(tuple(dim for dim in target if dim is not None))
        numbers = [
            node.div(node.number(product(x.shape)), node.number(known))
            if dim is None
            else node.number(dim)
            for dim in target
            if dim is None or not dim.is_static
        ]
        shape = [dim.value if dim is not None and dim.is_static else -1 for dim in target]
        return node.dynamic_reshape(x, numbers, shape=shape)
    for start, end, dims in reversed(groups):
        x = _regrouped(node, x, start, end, dims)
    return x


def _size(x: Value, position: int, dim: Dim | None) -> int:
    """A dimension for `graph.reshape`: a size, 0 to copy the operand's, -1 to infer it."""
    if position < x.rank and dim == x.shape[position] and dim is not None:
        return dim.value if dim.is_static else 0
    if dim is None or not dim.is_static or dim.value == 0:
        return -1
    return dim.value


def _without_ones(shape: Sequence[Dim | None]) -> list[Dim | None]:
    return [dim for dim in shape if dim != 1]


def _groups(source: Shape, target: Sequence[Dim]) -> list[tuple[int, int, list[Dim]]] | None:
    """Neighbouring dimensions that become others with as many elements: start, end, the others."""
    groups: list[tuple[int, int, list[Dim]]] = []
    start, dims = 0, list[Dim]()
    for end in range(1, len(source) + 1):
        elements = product(source[start:end])
        taken = sum(len(group) for _, _, group in groups)
        rest = target[taken:]
        counts = range(1, len(rest) + 1)
        count = next((n for n in counts if product(tuple(rest[:n])) == elements), None)
        if count is None:
            continue
        dims = list(rest[:count])
        groups.append((start, end, dims))
        start = end
    ones = target[sum(len(group) for _, _, group in groups) :]
    if start < len(source) or not groups or any(dim != 1 for dim in ones):
        return None
    groups[-1][2].extend(ones)
    return groups


def _regrouped(node: ModelNode, x: Value, start: int, end: int, dims: Sequence[Dim]) -> Value:
    """`x` with other dimensions instead of those from `start` to `end`, which move to the back."""
    if list(x.shape[start:end]) == list(dims):
        return x
    others = [*range(start), *range(end, x.rank)]
    moved = transposed(node, x, [*others, *range(start, end)])
    copied = [dim.value if dim.is_static else 0 for dim in moved.shape[: len(others)]]
    several = sum(not dim.is_static for dim in dims) > 1
    sizes = [-1] if several else [dim.value if dim.is_static else -1 for dim in dims]
    changed = node.reshape(moved, shape=[*copied, *sizes])
    if several:
        changed = node.gather(changed, _row_major(node, dims), axis=len(others))
    back = [*range(start), *range(len(others), changed.rank), *range(start, len(others))]
    return transposed(node, changed, back)


def _row_major(node: ModelNode, dims: Sequence[Dim]) -> Value:
    """The place of each element of a tensor in row-major order, as a tensor of its shape."""
    places = places_of(node, dims[0])
    for dim in dims[1:]:
        rows = node.mul(places, node.number(dim))
        places = node.add(unsqueezed(node, rows, [rows.rank]), places_of(node, dim))
    return places


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
    x = node.broadcast_to(x, shape=sizes)
    for axis, (a, b) in enumerate(zip(own, result, strict=True)):
        if not b.is_static and a != b:
            is_stored = is_low_bit(element_type(x.dtype))
            zeros = _zeros(node, b, np.dtype(np.bool_) if is_stored else x.dtype)
            zeros = unsqueezed(node, zeros, [i for i in range(rank) if i != axis])
            # x == x - 0 == x or false == (x if false else x), for a negative 0 and a NaN too
            if is_stored:
                x = node.where(zeros, x, x)
            else:
                x = node.apply(graph.LogicalOrOp if x.dtype.kind == "b" else graph.SubOp, x, zeros)
    return x


def _zeros(node: ModelNode, size: Dim, dtype: np.dtype) -> Value:
    """A vector of zeros of a symbolic size: an empty sum is 0, as often as a value has rows."""
    holder = node.holder(size)
    by_number = node.is_computed(size) or _has_quotients(size)
    if holder is None and by_number and not _is_composed(node, size):
        places = places_of(node, size)
        nothing = node.mul(places, 0)
        return node.cast(nothing, target=element_type(dtype))
    if holder is None:
        return _composed_zeros(node, size, dtype)
    x, axis = holder
    apart = unsqueezed(node, x, [x.rank])
    ends = [dim.value if dim.is_static else WHOLE_END for dim in x.shape]
    empty = node.slice(apart, starts=[0] * apart.rank, ends=[*ends, 0])
    if empty.dtype.kind == "b":
        empty = node.cast(empty, target=element_type(np.dtype(np.int64)))
    axes = [other for other in range(apart.rank) if other != axis]
    zeros = node.reduce(empty, kind="sum", axes=axes)
    return zeros if zeros.dtype == dtype else node.cast(zeros, target=element_type(dtype))


def _is_composed(node: ModelNode, size: Dim) -> bool:
    """Whether a size is a sum of products of sizes that values have."""
    parts = map(Dim.atom, size.atoms)
    return all(n >= 0 for _, n in size.terms) and all(node.holder(own) for own in parts)


def _has_quotients(size: Dim) -> bool:
    return any(isinstance(atom, SizeQuotient) for atom in size.atoms)


def _composed_zeros(node: ModelNode, size: Dim, dtype: np.dtype) -> Value:
    """Zeros for a + b one after the other, for a * b as a matrix in row-major order."""
    if any(c < 0 for _, c in size.terms) or size.single_atom is not None:
        raise node.unsupported(f"expanding to symbolic dimension {size}, which no value has")
    parts = [Dim([term]) for term in size.terms]
    if len(parts) > 1:
        return node.concat([_zeros_of(node, part, dtype) for part in parts], axis=0)
    ((factors, coefficient),) = size.terms
    sides = [Dim.symbol(factor) for factor in factors]
    sides += [Dim.of(coefficient)] if coefficient > 1 else []
    one, other = (_zeros_of(node, side, dtype) for side in (sides[0], product(tuple(sides[1:]))))
    build = graph.LogicalOrOp if dtype.kind == "b" else graph.AddOp
    matrix = node.apply(build, unsqueezed(node, one, [1]), unsqueezed(node, other, [0]))
    return reshaped(node, matrix, [size])


def _zeros_of(node: ModelNode, size: Dim, dtype: np.dtype) -> Value:
    """A vector of zeros of any size."""
    return node.known(np.zeros(size.value, dtype)) if size.is_static else _zeros(node, size, dtype)


def places_of(node: ModelNode, size: Dim) -> Value:
    """The numbers from 0 to below a size, as a vector of i64."""
    if size.is_static:
        return node.known(np.arange(size.value))
    by_number = node.is_computed(size) or _has_quotients(size)
    by_number = by_number or any(coefficient < 0 for _, coefficient in size.terms)
    if by_number and node.holder(size) is None and not _is_composed(node, size):
        return node.arange(node.number(size))
    ones = broadcast(node, node.known(np.array(1)), [size])
    return node.cumulative(ones, kind="sum", axis=0, exclusive=True)


def sliced_to(node: ModelNode, x: Value, axis: int, first: Dim, count: Dim, step: int = 1) -> Value:
    """`count` elements along an axis, from `first` on."""
    places = places_of(node, count)
    if step != 1:
        places = node.mul(places, step)
    if first != 0:
        places = node.add(places, node.number(first))
    return node.gather(x, places, axis=axis)


def repeated(node: ModelNode, x: Value, counts: Sequence[Dim]) -> Value:
    """`x` repeated along each dimension."""
    # repeated(x[a, b], [r, s]) == reshape(broadcast(x[1, a, 1, b], [r, a, s, b]), [r*a, s*b])
    if all(count == 1 for count in counts):
        return x
    apart = reshaped(node, x, [d for dim in x.shape for d in (Dim.of(1), dim)])
    pairs = zip(counts, x.shape, strict=True)
    wide = broadcast(node, apart, [d for count, dim in pairs for d in (count, dim)])
    return reshaped(node, wide, [dim * n for n, dim in zip(counts, x.shape, strict=True)])


def matrix_product(
    node: ModelNode, a: Value, b: Value, multiply: Callable[[Value, Value], Value] | None = None
) -> Value:
    """The product of matrices, or of a vector as a row on the left or a column on the right.

    `multiply` gives that of matrices; by default it is `graph.matmul`.
    """
    for operand in (a, b):
        if operand.rank == 0:
            raise node.broken("an operand is a scalar", "rank >= 1", "rank 0")
    row, column = a.rank == 1, b.rank == 1
    left = unsqueezed(node, a, [0]) if row else a
    right = unsqueezed(node, b, [1]) if column else b
    found = (multiply or node.matmul)(left, right)
    dropped = [axis for axis, drop in ((-2, row), (-1, column)) if drop]
    return squeezed(node, found, [axis % found.rank for axis in dropped])


def product_along(node: ModelNode, x: Value, axis: int, matrix: Value) -> Value:
    """The products of a matrix with the vectors along an axis: its columns are the new places."""
    order = [*(i for i in range(x.rank) if i != axis), axis]
    moved = node.matmul(transposed(node, x, order), matrix)
    return transposed(node, moved, [order.index(i) for i in range(x.rank)])
