"""What an exported program computes with sizes, and what it demands of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.elementwise import cast
from ..importing.values import Value
from .nodes import Node
from .registry import converts


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
        raise node.unsupported("an element that is no integer as a number of Python")
    bound = node.sizes.most(symbol)
    if bound is None:
        hint = "torch._check(n <= ...) gives it a bound"
        raise node.unsupported(f"a size that is an element of a tensor without a bound; {hint}")
    count = cast(node, x, node.index)
    places = node.emit(graph.ArangeOp, count, at_most=bound)
    node.hold(places)
    size = places.shape[0]
    node.sizes.name(str(symbol), size)
    node.sizes.hold(size, count)
    return size


@converts("_operator.truediv")
def quotient(node: Node, a: Any, b: Any) -> Value:
    wide = np.dtype(np.float64)
    return node.emit(graph.DivOp, node.operand(a, wide), node.operand(b, wide))


@converts("math.trunc", "torch.sym_float")
def as_float(node: Node, size: Dim) -> Any:
    return size
