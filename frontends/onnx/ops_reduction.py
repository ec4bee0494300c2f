"""Reductions and softmax."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dims import product
from ...dialects.graph import ops as graph
from .nodes import Builds, Node
from .ops_elementwise import absolute, cast
from .ops_shape import reshaped
from .registry import converts
from .values import Value

Reduction = Callable[[Node, Value, Sequence[int], bool], Value]
_AXES_AS_OPERAND = 18  # opset 13 for ReduceSum


def _register() -> None:
    reductions: dict[str, Reduction] = {
        "ReduceSum": functools.partial(_reduced, kind="sum"),
        "ReduceMean": functools.partial(_reduced, kind="mean"),
        "ReduceMax": functools.partial(_reduced, kind="max"),
        "ReduceMin": functools.partial(_reduced, kind="min"),
        "ReduceProd": functools.partial(_reduced, kind="prod"),
        "ReduceSumSquare": _sum_square,
        "ReduceL1": _l1,
        "ReduceL2": _l2,
        "ReduceLogSum": _log_sum,
        "ReduceLogSumExp": _log_sum_exp,
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
        given = [] if node.optional(1) is None else node.integers(1)
        keepdims = bool(node.attr_int("keepdims", 1))
        nothing = bool(node.attr_int("noop_with_empty_axes"))
        axes = node.axes(given, x.rank) if given or nothing else list(range(x.rank))
        return reduction(node, x, axes, keepdims)

    return convert


def _reduced(node: Node, x: Value, axes: Sequence[int], keepdims: bool, kind: str) -> Value:
    if not axes:
        return x
    if kind in ("max", "min"):
        return _extremum(node, x, axes, keepdims, kind)
    return node.emit(graph.ReduceOp, x, kind=kind, axes=axes, keepdims=keepdims)


def _extremum(node: Node, x: Value, axes: Sequence[int], keepdims: bool, kind: str) -> Value:
    # Of an empty axis it is the neutral element, as ONNX specifies it since opset 20.
    neutral = any(not x.shape[axis].is_static or x.shape[axis] == 0 for axis in axes)
    options = {"kind": kind, "axes": axes, "keepdims": keepdims, "neutral": neutral}
    if x.dtype != np.bool_:
        return node.emit(graph.ReduceOp, x, **options)
    found = node.emit(graph.ReduceOp, cast(node, x, np.dtype(np.int8)), **options)
    if neutral:
        found = node.emit(graph.ClipOp, found, minimum=0, maximum=1)
    return cast(node, found, x.dtype)


def _sum(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return _reduced(node, x, axes, keepdims, "sum")


def _sum_square(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return _sum(node, node.emit(graph.MulOp, x, x), axes, keepdims)


def _l1(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return _sum(node, absolute(node, x), axes, keepdims)


def _l2(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    if x.dtype.kind == "f":
        return node.emit(graph.SqrtOp, _sum_square(node, x, axes, keepdims))
    wide = cast(node, x, np.dtype(np.float64))
    return cast(node, node.emit(graph.SqrtOp, _sum_square(node, wide, axes, keepdims)), x.dtype)


def _log_sum(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return node.emit(graph.LogOp, _sum(node, x, axes, keepdims))


def _log_sum_exp(node: Node, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    # log(sum(exp(x))) == log(sum(exp(x - m))) + m, with m = max(x) clipped to finite numbers,
    # because inf - inf is NaN.
    if x.dtype.kind != "f":
        raise node.unsupported(f"not supported for {x.dtype.name}")
    if any(x.shape[axis] == 0 for axis in axes):
        return _log_sum(node, node.emit(graph.ExpOp, x), axes, keepdims)
    largest = float(np.finfo(x.dtype).max)
    maximum = _reduced(node, x, axes, True, "max")
    finite = node.emit(graph.ClipOp, maximum, minimum=-largest, maximum=largest)
    shifted = node.emit(graph.ExpOp, node.emit(graph.SubOp, x, finite))
    logarithm = node.emit(graph.LogOp, _sum(node, shifted, axes, True))
    result = node.emit(graph.AddOp, logarithm, finite)
    if keepdims:
        return result
    return reshaped(node, result, [d for i, d in enumerate(x.shape) if i not in axes])


_register()


def _softmax_of_rows(build: Builds) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        """Before opset 13, softmax is over all dimensions from the axis on."""
        x = node.input(0)
        axis = node.axis(node.attr_int("axis", 1), x.rank)
        if all(d == 1 for d in x.shape[axis + 1 :]):
            return node.emit(build, x, axis=axis)
        rows = reshaped(node, x, [*x.shape[:axis], product(x.shape[axis:])])
        return reshaped(node, node.emit(build, rows, axis=-1), x.shape)

    return convert


def _softmax_of_axis(build: Builds) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        x = node.input(0)
        axis = node.axis(node.attr_int("axis", -1), x.rank)
        return node.emit(build, x, axis=axis)

    return convert


for _operator, _build in (("Softmax", graph.SoftmaxOp), ("LogSoftmax", graph.LogSoftmaxOp)):
    converts(_operator, since=1)(_softmax_of_rows(_build))
    converts(_operator, since=13)(_softmax_of_axis(_build))
