"""Questions about numbers, remainders, triangles, places of extrema, and one-hot vectors."""

from __future__ import annotations

import numpy as np

from ....core.algebra.dims import Dim, product
from ....core.dtype_names import is_real
from ...importing.elementwise import cast, is_inf, is_nan, modulo, remainder, shrunk
from ...importing.low_bits import computable
from ...importing.selection import triangle
from ...importing.shapes import reshaped
from ...importing.values import Value
from ..dynamic import static_sizes
from ..extents import one_hot_by
from ..nodes import Node
from ..registry import converts


@converts("IsNaN", since=9)
def not_a_number(node: Node) -> Value:
    return is_nan(node, computable(node, node.input(0)))


@converts("IsInf", since=10)
def infinite(node: Node) -> Value:
    negative = bool(node.attr_int("detect_negative", 1))
    positive = bool(node.attr_int("detect_positive", 1))
    return is_inf(node, computable(node, node.input(0)), negative=negative, positive=positive)


@converts("ThresholdedRelu", since=10)
def thresholded_relu(node: Node) -> Value:
    x = node.input(0)
    return node.where(node.less(node.attr_float("alpha", 1.0), x), x, 0)


@converts("Shrink", since=9)
def shrink(node: Node) -> Value:
    return shrunk(node, node.input(0), node.attr_float("lambd", 0.5), node.attr_float("bias"))


@converts("Mod", since=10)
def mod(node: Node) -> Value:
    a, b = node.input(0), node.input(1)
    if node.attr_int("fmod"):
        return remainder(node, a, b)
    rest = modulo(node, a, b)
    if not is_real(a.dtype):
        return rest
    # As in NumPy, a zero has the sign of b.
    zero = node.scalar(0, a)
    none = node.where(node.less(b, zero), -0.0, zero)
    return node.where(node.equal(rest, zero), none, rest)


@converts("Trilu", since=14)
def trilu(node: Node) -> Value:
    x, upper = node.input(0), bool(node.attr_int("upper", 1))
    given = [Dim.of(0)] if node.optional(1) is None else node.elements(1)
    if len(given) != 1 or x.rank < 2:
        got = f"{len(given)} and rank {x.rank}"
        raise node.broken("a matrix and one diagonal are needed", "1 and rank >= 2", got)
    known = static_sizes(given)
    return triangle(node, x, given[0] if known is None else known[0], upper=upper)


@converts("ArgMax", since=1)
def arg_max(node: Node) -> Value:
    return _arg_extremum(node, "max")


@converts("ArgMin", since=1)
def arg_min(node: Node) -> Value:
    return _arg_extremum(node, "min")


def _arg_extremum(node: Node, kind: str) -> Value:
    x = node.input(0)
    axis = node.axis(node.attr_int("axis"), x.rank)
    keepdims, last = bool(node.attr_int("keepdims", 1)), bool(node.attr_int("select_last_index"))
    return node.arg_reduce(x, kind=kind, axis=axis, keepdims=keepdims, last=last)


def _places(node: Node, count: int, trailing: int) -> Value:
    """0, 1, 2, ... along a dimension before `trailing` others."""
    return node.known(np.arange(count).reshape(-1, *[1] * trailing))


@converts("Hardmax", since=13)
def hardmax(node: Node) -> Value:
    x = node.input(0)
    return _hardmax(node, x, node.axis(node.attr_int("axis", -1), x.rank))


@converts("Hardmax", since=1)
def hardmax_of_rows(node: Node) -> Value:
    """Before opset 13, all dimensions from the axis on are one."""
    x = node.input(0)
    axis = node.axis(node.attr_int("axis", 1), x.rank, inclusive=True)
    rows = reshaped(node, x, [product(x.shape[:axis]), product(x.shape[axis:])])
    return reshaped(node, _hardmax(node, rows, 1), x.shape)


def _hardmax(node: Node, x: Value, axis: int) -> Value:
    """1 at the first maximum along an axis, else 0."""
    if not (size := x.shape[axis]).is_static:
        raise node.unsupported(f"positions in symbolic dimension {size}")
    place = node.arg_reduce(x, kind="max", axis=axis, keepdims=True)
    places = _places(node, size.value, x.rank - 1 - axis)
    return cast(node, node.equal(places, place), x.dtype)


@converts("OneHot", since=9)
def one_hot(node: Node) -> Value:
    indices, values = node.input(0), node.input(2)
    if values.shape != (2,):
        raise node.broken("values has the wrong shape", [2], [str(d) for d in values.shape])
    axis = node.axis(node.attr_int("axis", -1), indices.rank + 1)
    whole, depth = cast(node, indices, np.dtype(np.int64)), _depth(node)
    if isinstance(depth, Value):
        return one_hot_by(node, whole, depth, values, axis)
    return node.one_hot(whole, values, depth=depth, axis=axis)


def _depth(node: Node) -> int | Value:
    """A number, which may be stored as a float, or a scalar that comes at run time."""
    given = node.input(1)
    if product(given.shape) != 1:
        raise node.broken("operand 1 is not a scalar", 1, product(given.shape))
    if given.contents is None:
        return reshaped(node, cast(node, given, np.dtype(np.int64)), [])
    depth = given.contents.reshape(-1)[0]
    if isinstance(depth, Dim):
        return node.number(depth)
    if depth != np.round(depth):
        raise node.broken("operand 1 is not an integer", got=depth)
    return int(depth)
