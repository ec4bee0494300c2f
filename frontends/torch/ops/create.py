"""Tensors that ATen makes of nothing: constants, ranges, and memory that is written later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.elementwise import cast
from ...importing.nodes import LARGEST_FOLDED
from ...importing.shapes import broadcast, places_of, unsqueezed
from ...importing.values import Value, is_static
from ..nodes import Node
from ..registry import converts


def _filled(node: Node, number: Any) -> Value:
    """A number in the shape and element type of the result."""
    shape = node.result_shape
    if isinstance(number, (Value, Dim)):
        return broadcast(node, node.operand(number, node.dtype), shape)
    element = node.known(np.array(number).astype(node.dtype))
    return broadcast(node, element, shape)


@converts("aten.full.default")
def full(node: Node, size: Sequence[Any], value: Any, dtype: Any = None) -> Value:
    return _filled(node, value)


@converts("aten.full_like.default", "aten.fill.Scalar", "aten.fill.Tensor")
def full_like(node: Node, x: Value, value: Any, dtype: Any = None) -> Value:
    return _filled(node, value)


@converts("aten.new_full.default")
def new_full(node: Node, x: Value, size: Any, value: Any, dtype: Any = None) -> Value:
    return _filled(node, value)


@converts(
    "aten.zeros.default",
    "aten.zeros_like.default",
    "aten.new_zeros.default",
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_permuted.default",
    "aten.empty_strided.default",
    "aten.new_empty.default",
)
def zeros(node: Node, *sizes: Any, dtype: Any = None) -> Value:
    return _filled(node, 0)


@converts("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(node: Node, *sizes: Any, dtype: Any = None) -> Value:
    return _filled(node, 1)


@converts("aten.scalar_tensor.default")
def scalar_tensor(node: Node, value: Any, dtype: Any = None) -> Value:
    return _filled(node, value)


@converts("aten.copy.default")
def copy(node: Node, x: Value, source: Value, non_blocking: bool = False) -> Value:
    return broadcast(node, node.operand(source, x.dtype), x.shape)


@converts("aten.arange.default")
def arange(node: Node, end: Any, dtype: Any = None) -> Value:
    return arange_step(node, 0, end)


@converts("aten.arange.start")
def arange_start(node: Node, start: Any, end: Any, dtype: Any = None) -> Value:
    return arange_step(node, start, end)


@converts("aten.arange.start_step")
def arange_step(node: Node, start: Any, end: Any, step: Any = 1, dtype: Any = None) -> Value:
    """start, start + step, ... as many as torch has found there to be."""
    given, (size,) = (start, end, step), node.result_shape
    numbers = [n.value if isinstance(n, Dim) and n.is_static else n for n in given]
    known = size.is_static and size.value <= LARGEST_FOLDED
    if known and all(isinstance(n, (int, float)) for n in numbers):
        first, last, gap = (n for n in numbers if isinstance(n, (int, float)))
        return node.known(np.arange(first, last, gap).astype(node.dtype))
    places = cast(node, places_of(node, size), node.dtype)
    if numbers[2] != 1:
        places = node.mul(places, node.operand(step, node.dtype))
    if numbers[0] == 0:
        return places
    return node.add(places, node.operand(start, node.dtype))


@converts("aten.linspace.default")
def linspace(node: Node, start: Any, end: Any, steps: Any, dtype: Any = None) -> Value:
    if not is_static(node.result_shape):
        raise node.unsupported("a symbolic number of steps")
    count = node.result_shape[0].value
    return node.known(np.linspace(start, end, count).astype(node.dtype))


@converts("aten.eye.default", "aten.eye.m")
def eye(node: Node, rows: Any, columns: Any = None, dtype: Any = None) -> Value:
    a, b = (places_of(node, size) for size in node.result_shape)
    same = node.equal(unsqueezed(node, a, [1]), unsqueezed(node, b, [0]))
    return cast(node, same, node.dtype)


@converts("aten.tril_indices.default", "aten.triu_indices.default")
def triangle_indices(
    node: Node, rows: Any, columns: Any, offset: int = 0, dtype: Any = None
) -> Value:
    """The rows and the columns of the elements of a triangle."""
    shape = [node.integer(size, "a size of a triangle") for size in (rows, columns)]
    find = np.tril if "tril" in node.subject else np.triu
    places = np.stack(np.nonzero(find(np.ones(shape, np.bool_), offset)))
    return node.known(places.astype(node.dtype))
