"""What an exported program computes with sizes, and what it demands of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.elementwise import cast
from ...importing.shapes import reshaped
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_WIDE = np.dtype(np.float64)
"""The element type of numbers of Python that are no sizes."""


@converts(
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)
def demand(node: Node, *args: Any, **kwargs: Any) -> None:
    """A demand that the export makes: sizes are checked by the operators that need them."""


@converts("aten._local_scalar_dense.default", "aten.item.default")
def item(node: Node, x: Value) -> Any:
    """An element of a tensor as a number, which may become a size."""
    symbol = getattr(getattr(node.results[0], "node", None), "expr", None)
    if x.dtype.kind not in "iub" or symbol is None:
        fact = "an element that is no integer as a number of Python"
        raise node.unsupported(fact, "the tensor itself, without float() or item()")
    # A number that the program adds 1 to may be -1: then the size is the sum.
    most, least = node.sizes.most(symbol), node.sizes.least(symbol)
    count = cast(node, x if least == 0 else _largest_or(node, x, least), node.index)
    if least:
        count = node.sub(count, least)
    places = node.arange(count, at_most=None if most is None else most - least)
    node.hold(places)
    size = places.shape[0]
    node.sizes.name(str(symbol), size + least)
    return size + least


# max(x) == max(x, least)  for x >= least
def _largest_or(node: Node, x: Value, least: int) -> Value:
    """A number, or the least one where it is the largest element of an empty tensor."""
    largest = node.fx.args[0]
    if str(largest.target) != "aten.max.default":
        return x
    elements = reshaped(node, node.values[largest.args[0]], [None])
    joined = node.concat([elements, node.known(np.array([least], x.dtype))], axis=0)
    return node.reduce(joined, kind="max", axes=[0])


@converts("aten.sym_size.int")
def size(node: Node, x: Value, dim: int) -> Dim:
    found = x.shape[node.axis(dim, x.rank)]
    node.sizes.learn((found,), node.results)
    return found


@converts("aten.sym_numel.default")
def number_of_elements(node: Node, x: Value) -> Dim:
    return product(x.shape)


@converts("_operator.truediv")
def quotient(node: Node, a: Any, b: Any) -> Value:
    return node.div(node.operand(a, _WIDE), node.operand(b, _WIDE))


@converts("_operator.pow")
def power(node: Node, a: Any, b: Any) -> Value:
    return node.pow(node.operand(a, _WIDE), node.operand(b, _WIDE))


@converts("_operator.neg")
def negative(node: Node, a: Any) -> Value:
    return node.neg(node.operand(a, _WIDE))


@converts("torch._sym_sqrt")
def root(node: Node, a: Any) -> Value:
    return node.sqrt(node.operand(a, _WIDE))


@converts("math.trunc", "torch.sym_float")
def as_float(node: Node, size: Dim) -> Any:
    return size
