"""Conditions and loops of models: subgraphs become regions of `graph.if` and `graph.loop`.

A subgraph is a function from the values of its inputs to those of its outputs, which adds operators
to the current region when it is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Block, Region

from ...core.algebra.dims import Dim, Shape
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import text
from ..captures import captured
from .dtypes import tensor_type
from .elementwise import cast
from .nodes import ModelNode
from .values import Value

Subgraph = Callable[[Sequence[Value]], list[Value]]


def conditional(
    node: ModelNode, condition: Value, branches: Sequence[Callable[[], list[Value]]]
) -> list[Value]:
    """The results of the first branch where a condition holds, else those of the second one."""
    blocks, ends = [Block(), Block()], list[list[Value]]()
    for block, branch in zip(blocks, branches, strict=True):
        with node.inside(block):
            results = branch()
            if any(value.items is not None for value in results):
                raise node.unsupported(
                    "a branch gives an empty sequence, which needs a known condition"
                )
            block.add_op(graph.YieldOp(*map(node.ssa, results)))
        ends.append(results)
    if len(ends[0]) != len(ends[1]):
        counts = [len(end) for end in ends]
        raise node.broken("the branches give different numbers of results", *counts)
    for number, (one, other) in enumerate(zip(*ends, strict=True)):
        if one.rank != other.rank or one.dtype != other.dtype:
            shapes = f"{_described(one)} and {_described(other)}"
            raise node.unsupported(f"the branches give different results {number}: {shapes}")
    captures = captured(blocks)
    sizes = defaultdict[tuple[Dim, Dim], Dim](node.computed_size)
    shapes = [
        tuple(a if a == b else sizes[a, b] for a, b in zip(one.shape, other.shape, strict=True))
        for one, other in zip(*ends, strict=True)
    ]
    types = [tensor_type(v.dtype, shape) for v, shape in zip(ends[0], shapes, strict=True)]
    regions = [Region(block) for block in blocks]
    op = graph.IfOp(node.ssa(scalar(node, condition)), captures, types, *regions)
    return node.append(op, shapes)


def iterated(
    node: ModelNode,
    body: Subgraph,
    inits: Sequence[Value],
    most: Value | None,
    condition: Value | None,
    count: Dim | None,
) -> list[Value]:
    """The results of a loop: what it carries at the end, and the stacked outputs.

    Args:
        node: the node of the model.
        body: takes the number of the iteration, and what is carried; gives whether there is another
            iteration, what is carried on, and outputs.
        inits: what is carried at first.
        most: the largest number of iterations, or None.
        condition: whether there is a first iteration; None if there is one unless `most` is 0.
        count: `most` where it is a size or a number.
    """
    shapes, goes_on, results, block = _settled(node, body, inits)
    rows, bounds = results[len(inits) :], _bounds(node, count, inits, shapes, results)
    always = condition is None and goes_on.contents is not None and goes_on.contents.all()
    numbers = _numbers(node, most, block) if rows and count is None else []
    with node.inside(block):
        first = [] if always else [node.ssa(scalar(node, goes_on))]
        block.add_op(graph.YieldOp(*first, *map(node.ssa, results)))
    largest = numbers[0].shape[0] if numbers else count
    size = largest if always or not rows else node.computed_size()
    start, uncounted = condition or node.known(np.array(True)), count is None and not numbers
    ends = [
        tuple(node.computed_size() if axis in own else dim for axis, dim in enumerate(shape))
        for shape, own in zip(shapes, bounds, strict=True)
    ]
    op = graph.LoopOp(
        Region(block),
        [
            *(tensor_type(init.dtype, shape) for init, shape in zip(inits, ends, strict=True)),
            *(_stacked(row, size) for row in rows),
        ],
        count=None if count is None else str(count),
        times=None if most is None or not uncounted else node.ssa(scalar(node, most)),
        condition=None if always else node.ssa(scalar(node, start)),
        inits=list(map(node.ssa, inits)),
        sliced=list(map(node.ssa, numbers)),
        captures=captured([block]),
        bounds=[
            [str(own.get(axis, "")) for axis in range(init.rank)]
            for own, init in zip(bounds, inits, strict=True)
        ],
    )
    return node.append(op, [*ends, *((size, *row.shape) for row in rows if size is not None)])


def scanned(
    node: ModelNode,
    body: Subgraph,
    inits: Sequence[Value],
    tensors: Sequence[Value],
    taken: Sequence[int] = (),
    stored: Sequence[int] = (),
) -> list[Value]:
    """A loop over slices along first axes: what it carries at the end, and the stacked outputs.

    Args:
        node: the node of the model.
        body: takes what is carried, and the slices; gives what is carried on, and outputs.
        inits: what is carried at first.
        tensors: what is sliced, at least one.
        taken: 1 for each of `tensors` that is taken from its end, else 0.
        stored: the same for outputs.
    """
    rows = [tensor_type(value.dtype, value.shape[1:]) for value in tensors]
    block = Block(arg_types=[TensorType(i64, []), *map(_type, inits), *rows])
    shapes = [*(init.shape for init in inits), *(value.shape[1:] for value in tensors)]
    own = zip((*inits, *tensors), shapes, block.args[1:], strict=True)
    with node.inside(block):
        results = body([Value("", v.dtype, shape, ssa=argument) for v, shape, argument in own])
        block.add_op(graph.YieldOp(*map(node.ssa, results)))
    _check_carried(node, inits, results)
    outputs, size = results[len(inits) :], tensors[0].shape[0]
    op = graph.LoopOp(
        Region(block),
        [*map(_type, inits), *(_stacked(row, size) for row in outputs)],
        inits=list(map(node.ssa, inits)),
        sliced=list(map(node.ssa, tensors)),
        captures=captured([block]),
        backward_slices=[number for number, backward in enumerate(taken) if backward],
        backward_stacks=[number for number, backward in enumerate(stored) if backward],
    )
    return node.append(op, [*(v.shape for v in inits), *((size, *row.shape) for row in outputs)])


def scalar(node: ModelNode, value: Value) -> Value:
    """A tensor of one element without dimensions."""
    if value.rank == 0:
        return value
    if value.contents is not None:
        return node.known(value.contents.reshape(()))
    if any(dim != 1 for dim in value.shape):
        raise node.broken("not a single element", "a scalar", text(value.shape))
    return node.reshape(value, shape=[])


def _numbers(node: ModelNode, most: Value | None, block: Block) -> list[Value]:
    """What a loop takes slices of, so that there are as many iterations as a scalar says."""
    if most is None:
        raise node.unsupported("scan outputs need a largest number of iterations, operand 0")
    block.insert_arg(TensorType(i64, []), len(block.args))
    count = cast(node, scalar(node, most), np.dtype(np.int64))
    return [node.arange(node.max(count, node.known(np.array(0))))]


def _settled(
    node: ModelNode, body: Subgraph, inits: Sequence[Value]
) -> tuple[list[Shape], Value, list[Value], Block]:
    """Convert the body of a loop for shapes of carried values that hold in each iteration.

    Returns:
        These shapes, in which sizes that change are symbols of their own; the condition; the other
        results; and the block of the loop.
    """
    shapes = [init.shape for init in inits]
    while True:
        types = (tensor_type(init.dtype, shape) for init, shape in zip(inits, shapes, strict=True))
        block = Block(arg_types=[TensorType(i64, []), *types])
        own = zip(inits, shapes, block.args[1:], strict=True)
        with node.inside(block):
            number = Value("", np.dtype(np.int64), (), ssa=block.args[0])
            state = [Value("", init.dtype, shape, ssa=argument) for init, shape, argument in own]
            goes_on, *results = body([number, *state])
        _check_kinds(node, inits, results)
        changed = list(shapes)
        for place, (init, shape, result) in enumerate(zip(inits, shapes, results, strict=False)):
            sizes = zip(init.shape, shape, result.shape, strict=True)
            changed[place] = tuple(
                node.computed_size() if before == start != after else before
                for start, before, after in sizes
            )
        if changed == shapes:
            return shapes, goes_on, results, block
        block.erase(safe_erase=False)
        shapes = changed


def _bounds(
    node: ModelNode,
    count: Dim | None,
    inits: Sequence[Value],
    shapes: Sequence[Shape],
    results: Sequence[Value],
) -> list[dict[int, Dim]]:
    """The upper bounds of sizes that change: what an iteration adds, times their number."""
    inside = {name for shape in shapes for dim in shape for name in dim.symbols}
    inside -= {name for init in inits for dim in init.shape for name in dim.symbols}
    bounds = [dict[int, Dim]() for _ in inits]
    for number, (init, shape, result) in enumerate(zip(inits, shapes, results, strict=False)):
        for axis, (start, before) in enumerate(zip(init.shape, shape, strict=True)):
            if start == before:
                continue
            added = result.shape[axis] - before
            if count is None or node.is_computed(start) or not inside.isdisjoint(added.symbols):
                change = _change(number, init, result)
                raise node.unsupported(f"{change}, which has no known upper bound")
            grown = [Dim([term]) for term in (added * count).terms if term[1] > 0]
            bounds[number][axis] = sum(grown, start)
    return bounds


def _check_carried(node: ModelNode, inits: Sequence[Value], results: Sequence[Value]) -> None:
    """Demand that what is carried keeps its type and shape."""
    _check_kinds(node, inits, results)
    for number, (before, after) in enumerate(zip(inits, results, strict=False)):
        if before.shape != after.shape:
            raise node.unsupported(_change(number, before, after))


def _check_kinds(node: ModelNode, inits: Sequence[Value], results: Sequence[Value]) -> None:
    """Demand that what is carried keeps its type and rank."""
    if len(results) < len(inits):
        raise node.broken("the body has too few outputs", f"{len(inits)} or more", len(results))
    for number, (before, after) in enumerate(zip(inits, results, strict=False)):
        if before.dtype != after.dtype or before.rank != after.rank:
            raise node.unsupported(_change(number, before, after))


def _change(number: int, before: Value, after: Value) -> str:
    return f"loop state {number} changes from {_described(before)} to {_described(after)}"


def _described(value: Value) -> str:
    return f"{value.dtype.name} {text(value.shape)}"


def _type(value: Value) -> TensorType:
    return tensor_type(value.dtype, value.shape)


def _stacked(row: Value, count: Dim | None) -> TensorType:
    """The type of slices that are stacked."""
    return tensor_type(row.dtype, (count or Dim.of(0), *row.shape))
