"""Reductions along axes that come at run time, to a shape that the model declares."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.shapes import reshaped
from ..importing.values import Value
from .arithmetic import Arithmetic
from .dynamic import Element
from .nodes import Node

Shape = tuple[Dim, ...]


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
    named = [[_means(b, own, axis, x.rank) for own in axes] for axis in range(x.rank)]
    is_reduced = [functools.reduce(b.logical_or, flags) for flags in named]
    chosen = [
        functools.reduce(b.logical_and, (is_reduced[axis] for axis in choice)) for choice in choices
    ]
    result, fits = reduction(choices[0]), chosen[0]
    for choice, found in zip(choices[1:], chosen[1:], strict=True):
        result, fits = b.where(found, reduction(choice), result), b.logical_or(fits, found)
    return _required(node, result, fits)


def _means(b: Arithmetic, own: Element, axis: int, rank: int) -> Value:
    """Whether a number means an axis; a negative one counts from the back."""
    return b.logical_or(b.equal(own, axis), b.equal(own, axis - rank))


def _required(node: Node, x: Value, fits: Value) -> Value:
    """`x`; a call in which `fits` does not hold ends with an error about its first size."""
    if not x.rank:
        return reshaped(node, _required(node, reshaped(node, x, [Dim.of(1)]), fits), [])
    b, start = Arithmetic(node), node.number(Dim.of(0))
    count = b.where(fits, x.shape[0], -1)
    step, kind = node.number(Dim.of(1)), node.ssa(x).type
    return node.emit(graph.DynamicSliceOp, x, start, step, count, axis=0, result_type=kind)
