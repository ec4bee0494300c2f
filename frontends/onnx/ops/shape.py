"""Operators that move or reshape elements: transposes, reshapes, broadcasts."""

from __future__ import annotations

import math

import numpy as np

from ....core.algebra.dims import Dim, product
from ....dialects.graph import ops as graph
from ...counts import step_count
from ...importing.elementwise import cast
from ...importing.nodes import LARGEST_FOLDED
from ...importing.shapes import (
    broadcast,
    places_of,
    repeated,
    reshaped,
    squeezed,
    transposed,
    unsqueezed,
)
from ...importing.values import Value, from_dims, is_static
from ..axes import squeezed_by, unsqueezed_by
from ..dynamic import broadcast_by, reshaped_by, static_sizes
from ..extents import tiled_by
from ..nodes import Node
from ..registry import converts


@converts("Identity", since=1)
def identity(node: Node) -> Value:
    return node.operand(0)


@converts("Shape", since=1)
def shape(node: Node) -> Value:
    dims = node.input(0).shape
    end = node.attr_int("end", len(dims))
    taken = dims[node.attr_int("start") : end]
    return node.known(from_dims(taken, (len(taken),)))


@converts("Size", since=1)
def size(node: Node) -> Value:
    return node.known(from_dims([product(node.input(0).shape)], ()))


@converts("Transpose", since=1)
def transpose(node: Node) -> Value:
    x = node.input(0)
    order = node.attr_ints("perm")
    permutation = list(reversed(range(x.rank))) if order is None else order
    if sorted(permutation) != list(range(x.rank)):
        raise node.broken("perm is not a permutation", f"0 to {x.rank - 1}", permutation)
    return transposed(node, x, permutation)


# Reshape and its relatives


@converts("Reshape", since=5)
def reshape(node: Node) -> Value:
    x = node.input(0)
    zero_is_zero = bool(node.attr_int("allowzero"))
    given = node.elements(1)
    if not all(isinstance(dim, Dim) for dim in given):
        return reshaped_by(node, x, given, zero_is_zero)
    return reshaped_to(node, x, node.dims(1), zero_is_zero)


def reshaped_to(node: Node, x: Value, given: list[Dim], zero_is_zero: bool = False) -> Value:
    """A tensor in the shape that ONNX's target denotes."""
    return reshaped(node, x, _target(node, x, given, zero_is_zero))


def _target(node: Node, x: Value, given: list[Dim], zero_is_zero: bool) -> list[Dim | None]:
    """The shape that ONNX's target denotes; None for a dimension only known at run time."""
    target: list[Dim | None] = []
    for i, dim in enumerate(given):
        if dim == 0 and not zero_is_zero:
            if i >= x.rank:
                raise node.broken(f"0 at {i} copies a dimension that does not exist", got=x.rank)
            dim = x.shape[i]
        elif dim.is_static and dim.value < -1:
            raise node.broken("negative dimension in the target", got=dim)
        target.append(None if dim == -1 else dim)
    if target.count(None) > 1:
        raise node.broken("more than one dimension of the target is -1")
    if None in target:
        # The size for -1. Equal dimensions cancel first, which gives 0 beside -1 a meaning.
        elements, others = list(x.shape), []
        for dim in target:
            if dim is None:
                continue
            if dim in elements:
                elements.remove(dim)
            else:
                others.append(dim)
        total, divisor = product(tuple(elements)), product(tuple(others))
        quotient = total.exact_div(divisor)
        if quotient is None and total.is_static and divisor.is_static:
            fact = "the target does not divide the elements"
            raise node.broken(fact, f"a divisor of {total}", divisor)
        target[target.index(None)] = quotient
    return target


@converts("Flatten", since=1)
def flatten(node: Node) -> Value:
    x = node.input(0)
    axis = node.axis(node.attr_int("axis", 1), x.rank, inclusive=True)
    return reshaped(node, x, [product(x.shape[:axis]), product(x.shape[axis:])])


@converts("Squeeze", since=1)
def squeeze_attribute(node: Node) -> Value:
    return _squeeze(node, node.attr_ints("axes"))


@converts("Squeeze", since=13)
def squeeze(node: Node) -> Value:
    if node.optional(1) is None:
        return _squeeze(node, None)
    axes = static_sizes(given := node.elements(1))
    return squeezed_by(node, node.input(0), given) if axes is None else _squeeze(node, axes)


def _squeeze(node: Node, given: list[int] | None) -> Value:
    x = node.input(0)
    if given is not None:
        return squeezed(node, x, node.axes(given, x.rank))
    if not is_static(x.shape):
        raise node.unsupported("without axes, a symbolic dimension may or may not be 1")
    return squeezed(node, x, [i for i, dim in enumerate(x.shape) if dim == 1])


@converts("Unsqueeze", since=1)
def unsqueeze_attribute(node: Node) -> Value:
    axes = node.attr_ints("axes")
    if axes is None:
        raise node.broken('attribute "axes" is missing')
    return unsqueezed(node, node.input(0), node.axes(axes, node.input(0).rank + len(axes)))


@converts("Unsqueeze", since=13)
def unsqueeze(node: Node) -> Value:
    axes = static_sizes(given := node.elements(1))
    if axes is None:
        return unsqueezed_by(node, node.input(0), given)
    return unsqueezed(node, node.input(0), node.axes(axes, node.input(0).rank + len(axes)))


# Broadcasting and repetition


@converts("Expand", since=8)
def expand(node: Node) -> Value:
    given = node.elements(1)
    if not all(isinstance(dim, Dim) for dim in given):
        return broadcast_by(node, node.input(0), given)
    return broadcast(node, node.input(0), node.dims(1))


@converts("ConstantOfShape", since=9)
def constant_of_shape(node: Node) -> Value:
    fill = node.attr_tensor("value")
    fill = np.zeros(1, np.float32) if fill is None else fill
    if fill.size != 1:
        raise node.broken("value has several elements", 1, fill.size)
    given = node.elements(0)
    if not all(isinstance(dim, Dim) for dim in given):
        return broadcast_by(node, node.known(fill.reshape(())), given)
    dims = node.dims(0)
    sizes = [dim.value for dim in dims if dim.is_static]
    if any(n < 0 for n in sizes):
        raise node.broken("negative dimension", got=sizes)
    if is_static(dims) and math.prod(sizes) <= LARGEST_FOLDED:
        return node.known(np.full(sizes, fill.reshape(())))
    return broadcast(node, node.known(fill.reshape(())), dims)


@converts("Range", since=11)
def range_(node: Node) -> Value:
    node.ignore("stash_type")
    start, limit, delta = (squeezed(node, x, range(x.rank)) for x in map(node.input, range(3)))
    if not start.dtype == limit.dtype == delta.dtype:
        raise node.broken("element types differ", start.dtype.name, f"{limit.dtype}, {delta.dtype}")
    if (size := _size_of_range(start, limit, delta)) is not None:
        return places_of(node, size)
    wide = np.dtype(np.float64 if start.dtype.kind == "f" else np.int64)
    ends = (cast(node, value, wide) for value in (start, limit, delta))
    count = step_count(node, *ends, of_floats=wide == np.float64)
    kind = node.declared([-1], np.dtype(np.int64))
    places = node.apply(graph.ArangeOp, count, result_type=kind)
    return node.add(node.mul(cast(node, places, start.dtype), delta), start)


def _size_of_range(start: Value, limit: Value, delta: Value) -> Dim | None:
    """The size n of the range 0, 1, ..., n - 1; None for other ranges."""
    from_zero = start.contents is not None and start.contents.item() == 0
    by_one = delta.contents is not None and delta.contents.item() == 1
    size = None if limit.contents is None else limit.contents.item()
    if not (from_zero and by_one and isinstance(size, Dim)):
        return None
    # A sum of sizes is never negative; a difference may be, and is then a range of no numbers.
    return size if all(coefficient >= 0 for _, coefficient in size.terms) else None


@converts("Tile", since=6)
def tile(node: Node) -> Value:
    x, repeats = node.input(0), node.elements(1)
    if len(repeats) != x.rank:
        raise node.broken("repeats do not fit", f"{x.rank} counts", len(repeats))
    known = static_sizes(repeats)
    if known is None:
        return tiled_by(node, x, repeats)
    if any(n < 0 for n in known):
        raise node.broken("repeats do not fit", f"{x.rank} counts", known)
    return repeated(node, x, list(map(Dim.of, known)))


@converts("SpaceToDepth", since=1)
def space_to_depth(node: Node) -> Value:
    # DCR: y[n, (a, b, c), h, w] == x[n, c, (h, a), (w, b)];  CRD: y[n, (c, a, b), h, w]
    order = [0, 3, 5, 1, 2, 4] if _mode(node) == "DCR" else [0, 1, 3, 5, 2, 4]
    x, block = node.input(0), _block(node)
    n, c, h, w = x.shape
    rows, columns = h.exact_div(block), w.exact_div(block)
    if rows is None or columns is None:
        if not is_static((h, w)):
            raise node.unsupported(f"blocks of {block} in a symbolic image {h}x{w}")
        raise node.broken("blocks do not divide the image", f"multiples of {block}", f"{h}x{w}")
    b = Dim.of(block)
    apart = reshaped(node, x, [n, c, rows, b, columns, b])
    return reshaped(node, transposed(node, apart, order), [n, c * block * block, rows, columns])


@converts("DepthToSpace", since=1)
def depth_to_space(node: Node) -> Value:
    # DCR: y[n, c, (h, a), (w, b)] == x[n, (a, b, c), h, w];  CRD: x[n, (c, a, b), h, w]
    x, block = node.input(0), _block(node)
    mode = _mode(node)
    n, c, h, w = x.shape
    depth = c.exact_div(block * block)
    if depth is None:
        if not c.is_static:
            raise node.unsupported(f"blocks of {block} in a symbolic depth {c}")
        raise node.broken("blocks do not divide the depth", f"a multiple of {block * block}", c)
    b = Dim.of(block)
    inner = [b, b, depth] if mode == "DCR" else [depth, b, b]
    order = [0, 3, 4, 1, 5, 2] if mode == "DCR" else [0, 1, 4, 2, 5, 3]
    moved = transposed(node, reshaped(node, x, [n, *inner, h, w]), order)
    return reshaped(node, moved, [n, depth, h * block, w * block])


def _mode(node: Node) -> str:
    mode = node.attr_string("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.broken('attribute "mode" is unknown', "DCR or CRD", mode)
    return mode


def _block(node: Node) -> int:
    x, block = node.input(0), node.attr_int("blocksize")
    if x.rank != 4 or block < 1:
        got = f"rank {x.rank}, blocksize {block}"
        raise node.broken("operand or block does not fit", "rank 4, blocksize >= 1", got)
    return block
