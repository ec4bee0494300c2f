"""Shapes, starts and ends that come at run time: sizes are computed from them by the program.

Where the model declares the size of a result, that is its size, and a call that computes another
one is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i64

from ...core.algebra.dims import Dim, product
from ...dialects.graph import ops as graph
from ..importing.nodes import Number
from ..importing.values import Value
from .nodes import Node

Element = Dim | Value
"""An element of a shape: a known size, or a scalar of i64."""


def static_sizes(elements: Sequence[Element]) -> list[int] | None:
    """The numbers that all elements are; None if one is not known."""
    known = [dim.value for dim in elements if isinstance(dim, Dim) and dim.is_static]
    return known if len(known) == len(elements) else None


def reshaped_by(node: Node, x: Value, given: Sequence[Element], zero_is_zero: bool) -> Value:
    """`x` in a shape of which some elements are scalars, with ONNX's meaning of 0 and -1."""
    own = [node.number(dim) for dim in x.shape]
    target = list(given)
    for axis, element in enumerate(given):
        if zero_is_zero or axis >= x.rank:
            continue
        if isinstance(element, Value):
            target[axis] = node.where(node.equal(element, 0), own[axis], element)
        elif element == 0:
            target[axis] = x.shape[axis]
    others: Value | Dim = Dim.of(1)
    for element in target:
        if isinstance(element, Value):
            others = node.mul(node.where(node.equal(element, -1), 1, element), others)
        elif element != -1:
            others = others * element if isinstance(others, Dim) else node.mul(others, element)
    rest = node.div(product(x.shape), others)
    for axis, element in enumerate(target):
        if isinstance(element, Value):
            target[axis] = node.where(node.equal(element, -1), rest, element)
        elif element == -1:
            target[axis] = rest
    return shaped_as(node, x, target)


def shaped_as(node: Node, x: Value, target: Sequence[Element]) -> Value:
    """`x` in a shape of which some elements are scalars; none is negative, or the call fails."""
    return _shaped(node, graph.DynamicReshapeOp, x, target)


def broadcast_by(node: Node, x: Value, given: Sequence[Element]) -> Value:
    """`x` broadcast together with a tensor of a shape of which some elements are scalars."""
    one = Dim.of(1)
    rank = max(x.rank, len(given))
    own = [*[one] * (rank - x.rank), *x.shape]
    target: list[Element] = [*[one] * (rank - len(given)), *given]
    for axis, (dim, element) in enumerate(zip(own, target, strict=True)):
        if dim == 1:
            continue
        if isinstance(element, Value):
            target[axis] = node.where(node.equal(element, 1), dim, element)
        elif element == 1:
            target[axis] = dim
    return _shaped(node, graph.DynamicBroadcastOp, x, target)


def _shaped(
    node: Node,
    operator: type[graph.DynamicReshapeOp | graph.DynamicBroadcastOp],
    x: Value,
    target: Sequence[Element],
) -> Value:
    """The result of an operator that is given its shape, by scalars where it is not static."""
    shape = [dim.value if isinstance(dim, Dim) and dim.is_static else -1 for dim in target]
    if any(isinstance(dim, Dim) and dim.is_static and dim.value < 0 for dim in target):
        raise node.broken("negative dimension in the target", got=shape)
    given = [dim for dim, n in zip(target, shape, strict=True) if n == -1]
    return node.apply(operator, x, given, shape, node.declared(shape, x.dtype))


def numbers_below(node: Node, count: Number, size: int | None = None) -> Value:
    """The numbers below a scalar, which the model may declare to be this size."""
    kind = TensorType(i64, [DYNAMIC_INDEX if size is None else size])
    return node.apply(graph.ArangeOp, count, result_type=kind)
