"""Reductions, softmax and cumulative operators of ATen."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import product
from ....core.dtype_names import is_real
from ....dialects.graph import ops as graph
from ...importing.elementwise import cast, is_inf, is_nan
from ...importing.reductions import log_sum_exp, norm, reduced
from ...importing.regions import scanned
from ...importing.shapes import broadcast, places_of, reshaped, transposed, unsqueezed
from ...importing.values import Value
from ..dtypes import numpy_dtype
from ..nodes import Node, rounds_once
from ..registry import converts

_BOOL = np.dtype(np.bool_)


def _axes(node: Node, x: Value, dims: int | Sequence[int] | None) -> list[int]:
    """Axes counted from the front; all of them where none is given, as torch has it."""
    given = [dims] if isinstance(dims, int) else dims
    if not x.rank or (not given and given != 0):
        return list(range(x.rank))
    return node.axes(given, x.rank)


def _reduction(
    node: Node, x: Value, dims: Any = None, keepdim: bool = False, dtype: Any = None, *, kind: str
) -> Value:
    """A sum, mean or product, in the element type of the result."""
    x = node.operand(x, node.dtype)
    return reduced(node, x, _axes(node, x, dims), keepdim, kind)


def _truth(node: Node, x: Value, dims: Any = None, keepdim: bool = False, *, kind: str) -> Value:
    x = node.operand(x, _BOOL)
    return reduced(node, x, _axes(node, x, dims), keepdim, kind)


def _largest(node: Node, x: Value, dims: Any = (), keepdim: bool = False, *, kind: str) -> Value:
    """The extremum, which an empty axis does not have: that is an error of the call."""
    axes = _axes(node, x, dims)
    if x.dtype == _BOOL or not axes:
        return reduced(node, x, axes, keepdim, kind)
    return node.reduce(x, kind=kind, axes=axes, keepdims=keepdim)


def _extremum(
    node: Node, x: Value, dim: int, keepdim: bool = False, *, kind: str
) -> list[Value | None]:
    """The extremum along one axis, and its place."""
    if not x.rank:
        return [x, node.known(np.array(0))]
    values = _largest(node, x, dim, keepdim, kind=kind) if node.uses(0) else None
    return [values, _place(node, x, dim, keepdim, kind=kind) if node.uses(1) else None]


def _place(
    node: Node, x: Value, dim: int | None = None, keepdim: bool = False, *, kind: str
) -> Value:
    if dim is None or not x.rank:
        x = reshaped(node, x, [product(x.shape)])
        place = node.arg_reduce(x, kind=kind, axis=0, keepdims=False)
        return reshaped(node, place, node.result_shape)
    axis = node.axis(dim, x.rank)
    return node.arg_reduce(x, kind=kind, axis=axis, keepdims=keepdim)


def _cumulative(node: Node, x: Value, dim: int, dtype: Any = None, *, kind: str) -> Value:
    target = node.dtype if dtype is None else numpy_dtype(dtype)
    x = node.operand(x, target)
    if not x.rank:
        return x
    return node.cumulative(x, kind=kind, axis=node.axis(dim, x.rank))


def _register() -> None:
    for kind, axes in (("sum", "dim_IntList"), ("mean", "dim"), ("prod", "dim_int")):
        reduction = functools.partial(_reduction, kind=kind)
        converts(f"aten.{kind}.default", f"aten.{kind}.{axes}")(reduction)
    for name, kind in (("any", "max"), ("all", "min")):
        overloads = (f"aten.{name}.{overload}" for overload in ("default", "dim", "dims"))
        converts(*overloads)(functools.partial(_truth, kind=kind))
    for kind in ("max", "min"):
        largest = functools.partial(_largest, kind=kind)
        converts(f"aten.a{kind}.default", f"aten.{kind}.default")(largest)
        converts(f"aten.{kind}.dim")(functools.partial(_extremum, kind=kind))
        converts(f"aten.arg{kind}.default")(functools.partial(_place, kind=kind))
    for name, kind in (("cumsum", "sum"), ("cumprod", "prod")):
        converts(f"aten.{name}.default")(functools.partial(_cumulative, kind=kind))


_register()


def _variance(
    node: Node,
    x: Value,
    dims: Sequence[int] | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> Value:
    """The mean square of the distance from the mean, divided by n - correction instead of n."""
    x = node.wide(x)
    axes = _axes(node, x, dims)
    less = 1 if correction is None else correction
    mean = reduced(node, x, axes, True, "mean")
    distance = node.sub(x, mean)
    square = node.mul(distance, distance)
    if not less:
        return reduced(node, square, axes, keepdim, "mean")
    total = reduced(node, square, axes, keepdim, "sum")
    count = product(tuple(x.shape[axis] for axis in axes))
    if count.is_static:
        rest = max(0.0, count.value - float(less))
        divisor = node.known(np.array(rest, x.dtype))
    else:
        held = node.operand(count, x.dtype)
        rest_of_it = node.sub(held, float(less))
        divisor = node.max(rest_of_it, 0)
    return node.div(total, divisor)


var = converts("aten.var.correction", "aten.var.dim")(rounds_once(_variance))


@converts("aten.std.correction", "aten.std.dim")
@rounds_once
@functools.wraps(_variance)
def std(node: Node, *args: Any, **options: Any) -> Value:
    return node.sqrt(_variance(node, *args, **options))


@converts("aten.var_mean.correction")
def var_mean(
    node: Node,
    x: Value,
    dims: Sequence[int] | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> list[Value | None]:
    mean = reduced(node, x, _axes(node, x, dims), keepdim, "mean") if node.uses(1) else None
    return [var(node, x, dims, correction, keepdim) if node.uses(0) else None, mean]


@converts("aten.logsumexp.default")
@rounds_once
def logsumexp(node: Node, x: Value, dims: Sequence[int], keepdim: bool = False) -> Value:
    return log_sum_exp(node, node.wide(x), _axes(node, x, dims), keepdim)


@converts("aten.linalg_vector_norm.default")
@rounds_once
def vector_norm(
    node: Node,
    x: Value,
    order: Any = 2,
    dims: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    return norm(node, node.wide(x), order, _axes(node, x, dims), keepdim)


# Softmax


@converts("aten._softmax.default", "aten._safe_softmax.default")
def softmax(node: Node, x: Value, dim: int, half_to_float: Any = False) -> Value:
    return _normalised(node, x, dim, graph.SoftmaxOp)


@converts("aten._log_softmax.default")
def log_softmax(node: Node, x: Value, dim: int, half_to_float: Any = False) -> Value:
    return _normalised(node, x, dim, graph.LogSoftmaxOp)


def _normalised(node: Node, x: Value, dim: int, build: Any) -> Value:
    x = node.operand(x, node.dtype)
    if not x.rank:
        row = reshaped(node, x, node.dims([1]))
        return reshaped(node, node.apply(build, row, axis=0), [])
    return node.apply(build, x, axis=node.axis(dim, x.rank))


@converts("aten.cummax.default")
def cummax(node: Node, x: Value, dim: int) -> list[Value | None]:
    return _running(node, x, dim, "max")


@converts("aten.cummin.default")
def cummin(node: Node, x: Value, dim: int) -> list[Value | None]:
    return _running(node, x, dim, "min")


def _running(node: Node, x: Value, dim: int, kind: str) -> list[Value | None]:
    """The extremum up to each element, and the last place where it is; of NaN, the last NaN."""
    if not x.rank:
        return [x, node.known(np.array(0))]
    axis = node.axis(dim, x.rank)
    found = node.cumulative(x, kind=kind, axis=axis)
    if not node.uses(1):
        return [found, None]
    same = node.logical_or(node.equal(x, found), is_nan(node, x))
    places = unsqueezed(node, places_of(node, x.shape[axis]), range(1, x.rank - axis))
    hits = node.where(same, places, node.known(np.array(0)))
    return [found, node.cumulative(hits, kind="max", axis=axis)]


@converts("aten.logcumsumexp.default")
def logcumsumexp(node: Node, x: Value, dim: int) -> Value:
    if not x.rank:
        return x
    axis = node.axis(dim, x.rank)
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    rows = transposed(node, x, order)
    first = broadcast(node, node.known(np.array(-np.inf, x.dtype)), rows.shape[1:])

    def step(values: Sequence[Value]) -> list[Value]:
        # log(exp(a) + exp(b)) == m + log(1 + exp(n - m))
        # for m = max(a, b), n = min(a, b), m finite
        m, n = node.max(*values), node.min(*values)
        closeness = node.exp(node.sub(n, m))
        rest = node.log1p(closeness)
        total = node.where(is_inf(node, m), m, node.add(m, rest))
        return [total, total]

    found = scanned(node, step, [first], [rows])[1]
    return transposed(node, found, [order.index(i) for i in range(x.rank)])


_JOINED = {"sum": graph.AddOp, "prod": graph.MulOp, "max": graph.MaxOp, "min": graph.MinOp}


@converts("aten.segment_reduce.default")
def segment_reduce(
    node: Node,
    x: Value,
    reduce: str,
    lengths: Value | None = None,
    indices: Value | None = None,
    offsets: Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Value:
    if offsets is None or offsets.rank != 1 or axis:
        raise node.unsupported("only for a vector of offsets, along axis 0")
    if not is_real(x.dtype):
        raise node.unsupported(f"not supported for {x.dtype.name}")
    kind, places = reduce.removeprefix("a"), cast(node, offsets, np.dtype(np.int64))
    found = node.segment_reduce(x, places, kind=kind)
    if initial is None:
        return found
    if kind != "mean":
        return node.apply(_JOINED[kind], found, initial)
    if initial != 0:
        raise node.unsupported(f"a mean that begins with {initial}", "0")
    # (0 + sum) / count is the mean; that of an empty segment is 0, not NaN.
    ones = broadcast(node, node.known(np.array(1)), [x.shape[0]])
    counts = node.segment_reduce(ones, places, kind="sum")
    empty = node.equal(counts, 0)
    empty = unsqueezed(node, empty, range(1, x.rank))
    return node.where(empty, initial, found)
