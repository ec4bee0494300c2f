"""Conditions and loops of torch, whose graphs become regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing.regions import conditional, iterated, scanned
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts
from ..sizes import SizeRelation

_BOOL = np.dtype(np.bool_)

_RELATIONS: dict[str, type[GraphOp]] = {
    "<": graph.LessOp,
    "<=": graph.LessEqualOp,
    ">": graph.GreaterOp,
    ">=": graph.GreaterEqualOp,
    "==": graph.EqualOp,
}


def truth(node: Node, condition: Any) -> Value:
    """A condition as a value: a tensor, a truth value, or a comparison of sizes."""
    if isinstance(condition, Value):
        return node.operand(condition, _BOOL)
    if isinstance(condition, bool):
        return node.known(np.array(condition))
    if not isinstance(condition, SizeRelation):
        raise node.unsupported(f"the condition {condition}", "a comparison of sizes")
    sides = [node.number(side) for side in (condition.left, condition.right)]
    if condition.sign == "!=":
        return node.logical_not(node.equal(*sides))
    return node.apply(_RELATIONS[condition.sign], *sides)


@converts("torch.ops.higher_order.cond")
def cond(
    node: Node, condition: Any, then: Any, orelse: Any, operands: Sequence[Any] = ()
) -> list[Value]:
    """One of two graphs; one of them alone where the condition is known."""
    if isinstance(condition, bool):
        return node.graphs.inlined(then if condition else orelse, operands)

    def branch(owner: Any) -> Callable[[], list[Value]]:
        return lambda: _tensors(node, node.graphs.in_region(owner, operands))

    found = conditional(node, truth(node, condition), [branch(then), branch(orelse)])
    for reason in node.withheld.values():
        raise node.unsupported(reason)
    return _entering(node, node.results, [value for value in found if value is not None])


@converts("torch.ops.higher_order.while_loop")
def while_loop(
    node: Node, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()
) -> list[Any]:
    """A loop while a condition holds; integers are carried as scalars."""
    inits = _tensors(node, carried)
    kinds = [fx.meta["val"] for fx in body.graph.find_nodes(op="placeholder")][: len(inits)]

    def goes_on(state: Sequence[Value]) -> Value:
        given = [*_entering(node, kinds, state), *others]
        return truth(node, node.graphs.in_region(condition, given)[0])

    def iteration(values: Sequence[Value]) -> list[Value]:
        given = [*_entering(node, kinds, values[1:]), *others]
        results = _tensors(node, node.graphs.in_region(body, given))
        return [goes_on(results), *results]

    return _entering(node, kinds, iterated(node, iteration, inits, None, goes_on(inits), None))


@converts("torch.ops.higher_order.scan")
def scan(
    node: Node, body: Any, init: Sequence[Value], xs: Sequence[Value], others: Sequence[Any] = ()
) -> list[Value]:
    """Slices along the first axes of tensors in turn, with others carried along."""

    def iteration(values: Sequence[Value]) -> list[Value]:
        return _tensors(node, node.graphs.in_region(body, [*values, *others]))

    return scanned(node, iteration, init, xs)


@converts("torch.ops.higher_order.map_impl")
def map_(node: Node, body: Any, xs: Sequence[Value], others: Sequence[Any] = ()) -> list[Value]:
    """A graph for each slice along the first axes of tensors."""
    return scan(node, body, [], xs, others)


def _tensors(node: Node, values: Sequence[Any]) -> list[Value]:
    """Values as tensors: sizes and integers are scalars of i64."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, int):
            value = Dim.of(value)
        if isinstance(value, Dim):
            value = node.number(value)
        if not isinstance(value, Value):
            raise node.unsupported("an input or a result that is no tensor", "a tensor")
        found.append(value)
    return found


def _entering(node: Node, kinds: Sequence[Any], values: Sequence[Value]) -> list[Any]:
    """Values as torch has them: scalars as integers where `kinds` are no tensors."""
    pairs = zip(values, kinds, strict=True)
    return [value if hasattr(kind, "shape") else node.size_of(value) for value, kind in pairs]
