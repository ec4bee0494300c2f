"""Operators on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp
from ..importing.values import Value
from .nodes import Node
from .registry import converts


def _register() -> None:
    operators: dict[str, type[GraphOp]] = {
        "BitwiseAnd": graph.BitwiseAndOp,
        "BitwiseOr": graph.BitwiseOrOp,
        "BitwiseXor": graph.BitwiseXorOp,
    }
    for operator, build in operators.items():
        converts(operator, since=18)(_binary(build))


def _binary(build: type[GraphOp]) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return node.apply(build, node.input(0), node.input(1))

    return convert


_register()


@converts("BitwiseNot", since=18)
def bitwise_not(node: Node) -> Value:
    return node.bitwise_not(node.input(0))


@converts("BitShift", since=11)
def bit_shift(node: Node) -> Value:
    direction = node.attr_string("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.broken("direction is unknown", "LEFT or RIGHT", direction)
    build = graph.ShiftLeftOp if direction == "LEFT" else graph.ShiftRightOp
    return node.apply(build, node.input(0), node.input(1))
