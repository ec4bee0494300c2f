"""Axes that come at run time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dims import Dim
from ..importing.values import Value
from .arithmetic import Arithmetic, Number
from .dynamic import Element, shaped_as
from .nodes import Node

Shape = tuple[Dim, ...]
_I64 = np.dtype(np.int64)


def reduced_by(
    node: Node,
    x: Value,
    axes: Sequence[Element],
    keepdims: bool,
    reduction: Callable[[Sequence[int]], Value],
) -> Value:
    """The reduction of `x` along axes of which some are scalars.

    All axes that give the declared shape are reduced, and the result is selected: there is one
    choice unless sizes are equal. Other axes are an error of the call.
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
    if len(set(map(shape_of, choices))) != 1:
        reason = "axes that come at run time, without a declared shape that they can give"
        raise node.unsupported(reason)
    b = Arithmetic(node)
    is_reduced = _named(b, axes, x.rank)
    chosen = [
        functools.reduce(b.logical_and, (is_reduced[axis] for axis in choice)) for choice in choices
    ]
    result, fits = reduction(choices[0]), chosen[0]
    for choice, found in zip(choices[1:], chosen[1:], strict=True):
        result, fits = b.where(found, reduction(choice), result), b.logical_or(fits, found)
    return node.check(result, fits, "axes out of range, or not those of the declared shape")


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
    b, (first, *others) = Arithmetic(node), range(x.rank) if among is None else among
    result, fits = build(first), _means(b, axis, first, x.rank)
    for number in others:
        is_own = _means(b, axis, number, x.rank)
        result, fits = b.where(is_own, build(number), result), b.logical_or(fits, is_own)
    return node.check(result, fits, "axis out of range, got {0}", [b.value(axis, _I64)])


def unsqueezed_by(node: Node, x: Value, axes: Sequence[Element]) -> Value:
    """`x` with dimensions of size 1 at axes of which some are scalars."""
    b, rank = Arithmetic(node), x.rank + len(axes)
    named = _named(b, axes, rank)
    before: Number = Dim.of(0)
    target: list[Element] = []
    for flag in named:
        target.append(b.where(flag, 1, _dimension(b, x, b.value(before, _I64))))
        before = b.add(before, b.where(flag, 0, 1))
    return shaped_as(node, x, target)


def squeezed_by(node: Node, x: Value, axes: Sequence[Element]) -> Value:
    """`x` without dimensions at axes of which some are scalars; their sizes must be 1."""
    b, named = Arithmetic(node), _named(Arithmetic(node), axes, x.rank)
    target: list[Element] = []
    for place in range(x.rank - len(axes)):
        size, before = b.value(Dim.of(-1), _I64), b.value(Dim.of(0), _I64)
        for flag, dim in zip(named, x.shape, strict=True):
            is_own = b.logical_and(b.logical_not(flag), b.equal(before, place))
            size = b.where(is_own, dim, size)
            before = b.add(before, b.where(flag, 0, 1))
        target.append(size)
    return shaped_as(node, x, target)


def _named(b: Arithmetic, axes: Sequence[Element], rank: int) -> list[Value]:
    """Whether each axis is one of those."""
    return [
        functools.reduce(b.logical_or, [_means(b, own, axis, rank) for own in axes])
        for axis in range(rank)
    ]


def _dimension(b: Arithmetic, x: Value, place: Value) -> Value:
    """The size of a dimension that a scalar names; -1 for none, which no tensor has."""
    size = b.value(Dim.of(-1), _I64)
    for axis, dim in enumerate(x.shape):
        size = b.where(b.equal(place, axis), dim, size)
    return size


def _means(b: Arithmetic, own: Element, axis: int, rank: int) -> Value:
    """Whether a number means an axis; a negative one counts from the back."""
    return b.logical_or(b.equal(own, axis), b.equal(own, axis - rank))
