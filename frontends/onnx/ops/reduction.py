"""Reductions and softmax."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ....core.algebra.dims import product
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing.reductions import l1, l2, log_sum, log_sum_exp, reduced, sum_square
from ...importing.shapes import reshaped
from ...importing.values import Value
from ..axes import reduced_by
from ..nodes import Node
from ..registry import converts

Reduction = Callable[..., Value]
_AXES_AS_OPERAND = 18  # opset 13 for ReduceSum


def _register() -> None:
    reductions: dict[str, Reduction] = {
        "ReduceSum": functools.partial(reduced, kind="sum"),
        "ReduceMean": functools.partial(reduced, kind="mean"),
        "ReduceMax": functools.partial(reduced, kind="max"),
        "ReduceMin": functools.partial(reduced, kind="min"),
        "ReduceProd": functools.partial(reduced, kind="prod"),
        "ReduceSumSquare": sum_square,
        "ReduceL1": l1,
        "ReduceL2": l2,
        "ReduceLogSum": log_sum,
        "ReduceLogSumExp": log_sum_exp,
    }
    for operator, reduction in reductions.items():
        converts(operator, since=1)(_with_attribute(reduction))
        since = 13 if operator == "ReduceSum" else _AXES_AS_OPERAND
        converts(operator, since=since)(_with_operand(reduction))


def _with_attribute(reduction: Reduction) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        x = node.input(0)
        given = node.attr_ints("axes")
        axes = list(range(x.rank)) if given is None else node.axes(given, x.rank)
        return reduction(node, x, axes, bool(node.attr_int("keepdims", 1)))

    return convert


def _with_operand(reduction: Reduction) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        x = node.input(0)
        keepdims = bool(node.attr_int("keepdims", 1))
        nothing = bool(node.attr_int("noop_with_empty_axes"))
        named = [] if node.optional(1) is None else node.elements(1)
        if any(isinstance(axis, Value) for axis in named):
            return reduced_by(node, x, named, keepdims, functools.partial(reduction, node))
        given = node.integers(1) if named else []
        axes = node.axes(given, x.rank) if given or nothing else list(range(x.rank))
        return reduction(node, x, axes, keepdims)

    return convert


_register()


def softmax_of_rows(node: Node, build: type[GraphOp], x: Value) -> Value:
    """Before opset 13, softmax is over all dimensions from the axis on."""
    axis = node.axis(node.attr_int("axis", 1), x.rank)
    if all(d == 1 for d in x.shape[axis + 1 :]):
        return node.apply(build, x, axis=axis)
    rows = reshaped(node, x, [*x.shape[:axis], product(x.shape[axis:])])
    return reshaped(node, node.apply(build, rows, axis=-1), x.shape)


def softmax_of_axis(node: Node, build: type[GraphOp], x: Value) -> Value:
    """Softmax along the axis of a node, by default the last one."""
    return node.apply(build, x, axis=node.axis(node.attr_int("axis", -1), x.rank))


def _softmax(
    compute: Callable[[Node, type[GraphOp], Value], Value], build: type[GraphOp]
) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return compute(node, build, node.input(0))

    return convert


for _operator, _build in (("Softmax", graph.SoftmaxOp), ("LogSoftmax", graph.LogSoftmaxOp)):
    converts(_operator, since=1)(_softmax(softmax_of_rows, _build))
    converts(_operator, since=13)(_softmax(softmax_of_axis, _build))
