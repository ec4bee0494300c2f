"""Comparisons, logic and selections by truth values of ATen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing.elementwise import is_inf, is_nan
from ...importing.selection import triangle
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_BOOL = np.dtype(np.bool_)

_COMPARISONS: dict[str, type[GraphOp]] = {
    "eq": graph.EqualOp,
    "lt": graph.LessOp,
    "le": graph.LessEqualOp,
    "gt": graph.GreaterOp,
    "ge": graph.GreaterEqualOp,
}
_LOGIC: dict[str, type[GraphOp]] = {
    "and": graph.LogicalAndOp,
    "or": graph.LogicalOrOp,
    "xor": graph.LogicalXorOp,
}
_BITS: dict[str, type[GraphOp]] = {
    "and": graph.BitwiseAndOp,
    "or": graph.BitwiseOrOp,
    "xor": graph.BitwiseXorOp,
}
_SHIFTS: dict[str, type[GraphOp]] = {"left": graph.ShiftLeftOp, "right": graph.ShiftRightOp}


def _register() -> None:
    for name, build in _COMPARISONS.items():
        converts(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(_comparison(build))
    for name, build in _LOGIC.items():
        converts(f"aten.logical_{name}.default")(_logic(build))
    for name, build in _BITS.items():
        overloads = ("Tensor", "Scalar", "Scalar_Tensor")
        converts(*(f"aten.bitwise_{name}.{overload}" for overload in overloads))(_bits(build))
    for name, build in _SHIFTS.items():
        overloads = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")
        converts(*(f"aten.bitwise_{name}_shift.{overload}" for overload in overloads))(_bits(build))
        converts(f"aten.__{name[0]}shift__.Tensor", f"aten.__{name[0]}shift__.Scalar")(_bits(build))


def _comparison(build: type[GraphOp]) -> Callable[[Node, Value, Any], Value]:
    def convert(node: Node, a: Value, b: Any) -> Value:
        return node.apply(build, *node.common(a, b))

    return convert


def _logic(build: type[GraphOp]) -> Callable[[Node, Value, Value], Value]:
    def convert(node: Node, a: Value, b: Value) -> Value:
        return node.apply(build, node.operand(a, _BOOL), node.operand(b, _BOOL))

    return convert


def _bits(build: type[GraphOp]) -> Callable[[Node, Any, Any], Value]:
    def convert(node: Node, a: Any, b: Any) -> Value:
        return node.apply(build, *(node.operand(x, node.dtype) for x in (a, b)))

    return convert


_register()


@converts("aten.ne.Tensor", "aten.ne.Scalar")
def ne(node: Node, a: Value, b: Any) -> Value:
    return node.logical_not(node.equal(*node.common(a, b)))


@converts("aten.logical_not.default")
def logical_not(node: Node, x: Value) -> Value:
    return node.logical_not(node.operand(x, _BOOL))


@converts("aten.bitwise_not.default")
def bitwise_not(node: Node, x: Value) -> Value:
    return node.bitwise_not(x)


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(node: Node, condition: Value, a: Any, b: Any) -> Value:
    left, right = (node.operand(x, node.dtype) for x in (a, b))
    return node.where(node.operand(condition, _BOOL), left, right)


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(node: Node, x: Value, mask: Value, value: Any) -> Value:
    return node.where(mask, node.operand(value, x.dtype), x)


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
    return node.less(node.abs(x), bound)


@converts("aten.tril.default")
def tril(node: Node, x: Value, diagonal: int = 0) -> Value:
    return triangle(node, x, diagonal, upper=False)


@converts("aten.triu.default")
def triu(node: Node, x: Value, diagonal: int = 0) -> Value:
    return triangle(node, x, diagonal, upper=True)
