"""Operators as they were before opset 7, where they differ from those that came after."""

from __future__ import annotations

from onnx import TensorProto

from ....core.algebra.dims import Dim, product
from ...importing.elementwise import cast
from ...importing.shapes import repeated, reshaped
from ...importing.values import Value
from ..dtypes import numpy_dtype
from ..nodes import Node
from ..registry import converter, converts
from .shape import reshaped_to
from .window import padded_by_attributes


def _aligned(node: Node) -> Value:
    """A binary operator whose second operand has the dimensions of the first from `axis` on.

    They differ only on request; without an axis, its dimensions are the last ones.
    """
    a, b = node.input(0), node.input(1)
    request, one = bool(node.attr_int("broadcast")), product(b.shape) == 1
    if not request and a.shape != b.shape:
        fact = "the shapes of operands differ without broadcast"
        raise node.broken(fact, [str(d) for d in a.shape], [str(d) for d in b.shape])
    last = a.rank - b.rank
    axis = node.attr_int("axis", last)
    if one:
        b = reshaped(node, b, [])
    elif not 0 <= (start := axis + a.rank if axis < 0 else axis) <= last:
        raise node.broken("axis out of range", f"0 <= axis <= {last}", axis)
    else:
        b = reshaped(node, b, [*b.shape, *[Dim.of(1)] * (last - start)])
    node.inputs = [a, b]
    current = converter("", node.operator, 7)
    assert current is not None
    result = current.convert(node)
    assert isinstance(result, Value)
    if result.shape != a.shape:
        fact = "the second operand does not broadcast to the first"
        raise node.broken(fact, [str(d) for d in a.shape], [str(d) for d in b.shape])
    return result


for _operator in (
    *("Add", "Sub", "Mul", "Div", "Pow"),
    *("And", "Or", "Xor", "Equal", "Less", "Greater"),
):
    converts(_operator, since=1)(_aligned)


@converts("Cast", since=1)
def cast_to_name(node: Node) -> Value:
    name = node.attr_string("to").upper()
    kinds = dict(TensorProto.DataType.items())
    if name not in kinds:
        raise node.broken("no such element type", got=name)
    return cast(node, node.input(0), numpy_dtype(kinds[name]))


@converts("Pad", since=1)
def pad_by_paddings(node: Node) -> Value:
    return padded_by_attributes(node, "paddings")


@converts("PRelu", since=1)
def slopes_of_channels(node: Node) -> Value:
    # One slope, or one for each channel, which is dimension 1
    x, slope = node.input(0), node.input(1)
    if product(slope.shape) == 1:
        slope = reshaped(node, slope, [])
    elif slope.rank == 1 and x.rank > 2:
        slope = reshaped(node, slope, [*slope.shape, *[Dim.of(1)] * (x.rank - 2)])
    return node.prelu(x, slope)


@converts("Reshape", since=1)
def reshape_by_attribute(node: Node) -> Value:
    shape = node.attr_ints("shape")
    if shape is None:
        raise node.broken('attribute "shape" is missing')
    return reshaped_to(node, node.input(0), list(map(Dim.of, shape)))


@converts("Tile", since=1)
def tile_of_axis(node: Node) -> Value:
    x, numbers = node.input(0), [node.integers(1), node.integers(2)]
    if list(map(len, numbers)) != [1, 1]:
        raise node.broken("tiles and axis are not one number each", got=numbers)
    (tiles,), (axis,) = numbers
    repeats = [1] * x.rank
    repeats[node.axis(axis, x.rank)] = tiles
    if tiles < 0:
        raise node.broken("tiles out of range", "0 or more", tiles)
    return repeated(node, x, list(map(Dim.of, repeats)))
