"""Comparisons, logic and selections by truth values of ATen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialects.graph import ops as graph
from ..importing.elementwise import is_inf, is_nan
from ..importing.nodes import Builds
from ..importing.selection import triangle
from ..importing.values import Value
from .nodes import Node
from .registry import converts

_BOOL = np.dtype(np.bool_)

_COMPARISONS: dict[str, Builds] = {
    "eq": graph.EqualOp,
    "lt": graph.LessOp,
    "le": graph.LessEqualOp,
    "gt": graph.GreaterOp,
    "ge": graph.GreaterEqualOp,
}
_LOGIC: dict[str, Builds] = {
    "and": graph.LogicalAndOp,
    "or": graph.LogicalOrOp,
    "xor": graph.LogicalXorOp,
}


def _register() -> None:
    for name, build in _COMPARISONS.items():
        converts(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(_comparison(build))
    for name, build in _LOGIC.items():
        converts(f"aten.logical_{name}.default")(_logic(build))
        converts(f"aten.bitwise_{name}.Tensor", f"aten.bitwise_{name}.Scalar")(_bits(build))


def _comparison(build: Builds) -> Callable[[Node, Value, Any], Value]:
    def convert(node: Node, a: Value, b: Any) -> Value:
        return node.emit(build, *node.common(a, b))

    return convert


def _logic(build: Builds) -> Callable[[Node, Value, Value], Value]:
    def convert(node: Node, a: Value, b: Value) -> Value:
        return node.emit(build, node.operand(a, _BOOL), node.operand(b, _BOOL))

    return convert


def _bits(build: Builds) -> Callable[[Node, Value, Any], Value]:
    def convert(node: Node, a: Value, b: Any) -> Value:
        left, right = node.common(a, b)
        if left.dtype != _BOOL:
            raise node.unsupported(f"not supported for {left.dtype.name}")
        return node.emit(build, left, right)

    return convert


_register()


@converts("aten.ne.Tensor", "aten.ne.Scalar")
def ne(node: Node, a: Value, b: Any) -> Value:
    return node.emit(graph.LogicalNotOp, node.emit(graph.EqualOp, *node.common(a, b)))


@converts("aten.logical_not.default")
def logical_not(node: Node, x: Value) -> Value:
    return node.emit(graph.LogicalNotOp, node.operand(x, _BOOL))


@converts("aten.bitwise_not.default")
def bitwise_not(node: Node, x: Value) -> Value:
    if x.dtype == _BOOL:
        return node.emit(graph.LogicalNotOp, x)
    # ~x == -1 - x
    return node.emit(graph.SubOp, node.scalar(-1, x), x)


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(node: Node, condition: Value, a: Any, b: Any) -> Value:
    left, right = (node.operand(x, node.dtype) for x in (a, b))
    return node.emit(graph.WhereOp, node.operand(condition, _BOOL), left, right)


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(node: Node, x: Value, mask: Value, value: Any) -> Value:
    return node.emit(graph.WhereOp, mask, node.operand(value, x.dtype), x)


@converts("aten.isnan.default")
def isnan(node: Node, x: Value) -> Value:
    return is_nan(node, x)


@converts("aten.isinf.default")
def isinf(node: Node, x: Value) -> Value:
    return is_inf(node, x)


@converts("aten.isfinite.default")
def isfinite(node: Node, x: Value) -> Value:
    # Only |x| < inf is finite, which NaN is not.
    bound = node.known(np.array(np.inf, x.dtype))
    return node.emit(graph.LessOp, node.emit(graph.AbsOp, x), bound)


@converts("aten.tril.default")
def tril(node: Node, x: Value, diagonal: int = 0) -> Value:
    return triangle(node, x, diagonal, upper=False)


@converts("aten.triu.default")
def triu(node: Node, x: Value, diagonal: int = 0) -> Value:
    return triangle(node, x, diagonal, upper=True)
