"""Axes that come at run time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ...core.algebra.dims import Dim, product
from ..importing.nodes import Number
from ..importing.shapes import reshaped, unsqueezed
from ..importing.values import Value
from .dynamic import Element, numbers_below, shaped_as
from .nodes import Node

Shape = tuple[Dim, ...]
Reduction = Callable[[Value, Sequence[int], bool], Value]
"""From a value, axes and whether they stay as ones to the reduction."""
_I64 = np.dtype(np.int64)


def reduced_by(
    node: Node,
    x: Value,
    axes: Sequence[Element],
    keepdims: bool,
    reduction: Reduction,
) -> Value:
    """The reduction of `x` along axes of which some are scalars.

    All axes that give the declared shape are reduced, and the result is selected: there is one
    choice unless sizes are equal. Other axes are an error of the call. Where no declared shape
    tells, the shape of the result is computed.
    """

    def shape_of(reduced: Sequence[int]) -> Shape:
        one = Dim.of(1)
        sizes = (one if axis in reduced else dim for axis, dim in enumerate(x.shape))
        return tuple(dim for axis, dim in enumerate(sizes) if keepdims or axis not in reduced)

    declared = node.declared_sizes(x.rank if keepdims else x.rank - len(axes))
    choices = [
        choice
        for choice in itertools.combinations(range(x.rank), len(axes))
        if all(n is None or d == n for n, d in zip(declared, shape_of(choice), strict=True))
    ]
    if not choices:
        reason = "axes that come at run time, without a declared shape that they can give"
        raise node.unsupported(reason)
    if len(set(map(shape_of, choices))) > 1:
        return _reduced_rows(node, x, axes, keepdims, reduction)
    is_reduced = _named(node, axes, x.rank)
    every = ((is_reduced[axis] for axis in choice) for choice in choices)
    chosen = [functools.reduce(node.logical_and, flags) for flags in every]
    result, fits = reduction(x, choices[0], keepdims), chosen[0]
    for choice, found in zip(choices[1:], chosen[1:], strict=True):
        own = reduction(x, choice, keepdims)
        result, fits = node.where(found, own, result), node.logical_or(fits, found)
    return node.check(result, fits, [], "axes out of range, or not those of the declared shape")


def _reduced_rows(
    node: Node, x: Value, axes: Sequence[Element], keepdims: bool, reduction: Reduction
) -> Value:
    """The reduction of the rows of a matrix: one for each element of the axes that stay."""
    one = Dim.of(1)
    named = _named(node, axes, x.rank)
    matrix = _checked(node, _as_matrix(node, x, named), axes, named)
    rows = reduction(matrix, [1], False)
    if not keepdims:
        return shaped_as(node, rows, _kept(node, x, named, x.rank - len(axes)))
    sizes = [node.where(flag, one, dim) for flag, dim in zip(named, x.shape, strict=True)]
    return shaped_as(node, rows, sizes)


def _as_matrix(node: Node, x: Value, named: Sequence[Value]) -> Value:
    """`x` with a column for each element of the axes that are named, and a row for each other."""
    inner = list[Value]()
    rows = columns = node.value(Dim.of(1), _I64)
    for flag, dim in zip(reversed(named), reversed(x.shape), strict=True):
        inner.insert(0, node.where(flag, columns, rows))
        columns, rows = (
            node.where(flag, node.mul(columns, dim), columns),
            node.where(flag, rows, node.mul(rows, dim)),
        )
    row, column = (
        unsqueezed(node, numbers_below(node, count), [axis])
        for count, axis in ((rows, 1), (columns, 0))
    )
    place = node.value(Dim.of(0), _I64)
    for axis, (flag, step, dim) in enumerate(zip(named, inner, x.shape, strict=True)):
        count = node.div(node.where(flag, column, row), step)
        own = node.sub(count, node.mul(node.div(count, dim), dim))
        place = node.add(place, node.mul(own, product(x.shape[axis + 1 :])))
    flat = reshaped(node, x, [product(x.shape)])
    return node.gather(flat, place, axis=0)


def along_axis_by(
    node: Node,
    x: Value,
    axis: Element,
    build: Callable[[int], Value],
    among: Sequence[int] | None = None,
) -> Value:
    """An operator along an axis that is a scalar: the result for each, of which one is selected.

    All results, those for the axes `among` or for all axes of `x`, have the same shape.
    """
    first, *others = range(x.rank) if among is None else among
    result, fits = build(first), _means(node, axis, first, x.rank)
    for number in others:
        is_own = _means(node, axis, number, x.rank)
        result, fits = node.where(is_own, build(number), result), node.logical_or(fits, is_own)
    return node.check(result, fits, [node.value(axis, _I64)], "axis out of range, got {0}")


def unsqueezed_by(node: Node, x: Value, axes: Sequence[Element]) -> Value:
    """`x` with dimensions of size 1 at axes of which some are scalars."""
    rank = x.rank + len(axes)
    named = _named(node, axes, rank)
    before: Number = Dim.of(0)
    target: list[Element] = []
    for flag in named:
        target.append(node.where(flag, 1, _dimension(node, x, node.value(before, _I64))))
        before = node.add(before, node.where(flag, 0, 1))
    return shaped_as(node, x, target)


def squeezed_by(node: Node, x: Value, axes: Sequence[Element]) -> Value:
    """`x` without dimensions at axes of which some are scalars; their sizes must be 1."""
    return shaped_as(node, x, _kept(node, x, _named(node, axes, x.rank), x.rank - len(axes)))


def padding_by(
    node: Node, rank: int, axes: Sequence[Element], pads: Sequence[Element]
) -> tuple[list[Element], list[Element]]:
    """The padding before and after each dimension, of which `pads` has that of some axes."""
    named = _named(node, axes, rank)
    known = [_checked(node, node.value(pads[0], _I64), axes, named), *pads[1:]]
    ends: list[list[Element]] = []
    for own in (known[: len(axes)], known[len(axes) :]):
        sizes: list[Element] = []
        for axis in range(rank):
            size = node.value(Dim.of(0), _I64)
            for place, pad in zip(axes, own, strict=True):
                size = node.where(_means(node, place, axis, rank), pad, size)
            sizes.append(size)
        ends.append(sizes)
    return ends[0], ends[1]


def _checked(node: Node, value: Value, axes: Sequence[Element], named: Sequence[Value]) -> Value:
    """`value`; a call with axes that are out of range, or the same, fails."""
    count = functools.reduce(node.add, (node.where(flag, 1, 0) for flag in named))
    return node.check(value, node.equal(count, len(axes)), [], "axes out of range, or named twice")


def _kept(node: Node, x: Value, named: Sequence[Value], count: int) -> list[Element]:
    """The sizes of `count` dimensions that are not named; -1 for one that is not there."""
    target: list[Element] = []
    for place in range(count):
        size, before = node.value(Dim.of(-1), _I64), node.value(Dim.of(0), _I64)
        for flag, dim in zip(named, x.shape, strict=True):
            is_own = node.logical_and(node.logical_not(flag), node.equal(before, place))
            size = node.where(is_own, dim, size)
            before = node.add(before, node.where(flag, 0, 1))
        target.append(size)
    return target


def _named(node: Node, axes: Sequence[Element], rank: int) -> list[Value]:
    """Whether each axis is one of those."""
    return [
        functools.reduce(node.logical_or, [_means(node, own, axis, rank) for own in axes])
        for axis in range(rank)
    ]


def _dimension(node: Node, x: Value, place: Value) -> Value:
    """The size of a dimension that a scalar names; -1 for none, which no tensor has."""
    size = node.value(Dim.of(-1), _I64)
    for axis, dim in enumerate(x.shape):
        size = node.where(node.equal(place, axis), dim, size)
    return size


def _means(node: Node, own: Element, axis: int, rank: int) -> Value:
    """Whether a number means an axis; a negative one counts from the back."""
    return node.logical_or(node.equal(own, axis), node.equal(own, axis - rank))
