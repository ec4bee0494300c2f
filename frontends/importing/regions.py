"""Conditions and loops of models: subgraphs become regions of `graph.if` and `graph.loop`.

A subgraph is a function from the values of its inputs to those of its outputs, which adds operators
to the current region when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Block, Region

from ...core.algebra.dims import Dim, Shape
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import text
from ...dialects.graph.ops.control.loop_base import ITERATIONS, START
from ..captures import captured
from .diagnostics import BranchError
from .dtypes import tensor_type
from .elementwise import cast
from .nodes import ModelNode
from .shapes import broadcast
from .values import Value

Subgraph = Callable[[Sequence[Value]], list[Value]]
Counting = Callable[[Set[int]], Value]
"""Adds what counts the iterations of a loop, given which of its states grow."""

_ITERATIONS, _START = Dim.symbol(ITERATIONS), Dim.symbol(START)


def conditional(
    node: ModelNode, condition: Value, branches: Sequence[Callable[[], list[Value]]]
) -> list[Value | None]:
    """The results of the first branch where a condition holds, else those of the second one.

    Of two branches, one that raises a `BranchError` becomes an error when it is taken. Results of
    different ranks or element types are withheld: None, with the reason in `node.withheld`.
    """
    blocks, ends = list[Block](), list[list[Value]]()
    failed: dict[int, BranchError] = {}
    for number, branch in enumerate(branches):
        blocks.append(Block())
        with node.inside(blocks[-1]):
            try:
                ends.append(branch())
            except BranchError as error:
                failed[number] = error
                ends.append([])
    if len(failed) == len(branches):
        problems = [problem for error in failed.values() for problem in error.problems]
        raise BranchError(problems, next(filter(None, (e.error for e in failed.values())), None))
    for number, error in failed.items():
        blocks[number] = Block()
        with node.inside(blocks[number]):
            # Only where it is taken this does not hold, whatever runs in front of the condition.
            holds = scalar(node, condition) if number else node.logical_not(scalar(node, condition))
            ends[number] = _failing(node, holds, str(error), ends[1 - number])
    if len(ends[0]) != len(ends[1]):
        counts = [len(end) for end in ends]
        raise node.broken("the branches give different numbers of results", *counts)
    if any(value.items is not None for end in ends for value in end):
        raise node.unsupported("a branch gives an empty sequence, which needs a known condition")
    places = range(len(ends[0]))
    for number, (one, other) in enumerate(zip(*ends, strict=True)):
        if one.rank != other.rank or one.dtype != other.dtype:
            shapes = f"{_described(one)} and {_described(other)}"
            node.withheld[number] = f"the branches give different results {number}: {shapes}"
    ends = [[end[n] for n in places if n not in node.withheld] for end in ends]
    for block, end in zip(blocks, ends, strict=True):
        with node.inside(block):
            block.add_op(graph.YieldOp(*map(node.ssa, end)))
    captures = captured(blocks)
    sizes = dict[tuple[Dim, Dim], Dim]()

    def either(a: Dim, b: Dim) -> Dim:
        if a != b and (a, b) not in sizes:
            sizes[a, b] = node.computed_size(node.at_most(a).at_most_either(node.at_most(b)))
        return a if a == b else sizes[a, b]

    shapes = [tuple(map(either, one.shape, other.shape)) for one, other in zip(*ends, strict=True)]
    types = [tensor_type(v.dtype, shape) for v, shape in zip(ends[0], shapes, strict=True)]
    regions = [Region(block) for block in blocks]
    op = graph.IfOp(node.ssa(scalar(node, condition)), captures, types, *regions)
    found = iter(node.append(op, shapes))
    return [None if n in node.withheld else next(found) for n in places]


def _failing(node: ModelNode, holds: Value, text: str, like: Sequence[Value]) -> list[Value]:
    """The results of a branch that ends the call, with the sizes of those of the other branch."""
    message = f"the branch that is taken cannot be converted: {text}"
    results = list[Value]()
    for value in like:
        # A size that only the other branch knows is 0 here.
        sizes = [d if d.is_static or node.holder(d) else Dim.of(0) for d in value.shape]
        zeros = broadcast(node, node.known(np.zeros((), value.dtype)), sizes)
        results.append(node.check(zeros, holds, [], message))
    return results


def iterated(
    node: ModelNode,
    body: Subgraph,
    inits: Sequence[Value],
    most: Value | None,
    condition: Value | None,
    count: Dim | None,
    counting: Counting | None = None,
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
        counting: where `most` is None, how to know the number of iterations before the loop.
    """
    known = node.computed
    shapes, (goes_on, *results), block = _settled(node, body, inits, start=1)
    rows, growing = results[len(inits) :], _growing(node, inits, shapes, results)
    if most is None and counting is not None and goes_on.contents is None and (rows or growing):
        most = counting(growing)
    largest = _ITERATIONS if count is None and most is not None else count
    bounds = _bounds(node, largest, inits, shapes, results)
    _check_stacked(node, rows, known)
    always = condition is None and goes_on.contents is not None and goes_on.contents.all()
    texts = _texts(bounds, inits)
    counted = rows or any(ITERATIONS in bound for row in texts for bound in row)
    numbers = _numbers(node, most, block) if counted and count is None else []
    with node.inside(block):
        first = [] if always else [node.ssa(scalar(node, goes_on))]
        block.add_op(graph.YieldOp(*first, *map(node.ssa, results)))
    largest = numbers[0].shape[0] if numbers else count
    size = largest if always or not rows else node.computed_size(largest)
    start, uncounted = condition or node.known(np.array(True)), count is None and not numbers
    ends = _ends(node, inits, shapes, bounds, largest)
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
        bounds=texts,
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
    known, size = node.computed, tensors[0].shape[0]
    shapes, results, block = _settled(node, lambda values: body(values[1:]), inits, tensors)
    count = _ITERATIONS if node.is_computed(size) else size
    outputs, bounds = results[len(inits) :], _bounds(node, count, inits, shapes, results)
    _check_stacked(node, outputs, known)
    with node.inside(block):
        block.add_op(graph.YieldOp(*map(node.ssa, results)))
    ends = _ends(node, inits, shapes, bounds, size)
    kinds = (tensor_type(init.dtype, shape) for init, shape in zip(inits, ends, strict=True))
    op = graph.LoopOp(
        Region(block),
        [*kinds, *(_stacked(row, size) for row in outputs)],
        inits=list(map(node.ssa, inits)),
        sliced=list(map(node.ssa, tensors)),
        captures=captured([block]),
        backward_slices=[number for number, backward in enumerate(taken) if backward],
        backward_stacks=[number for number, backward in enumerate(stored) if backward],
        bounds=_texts(bounds, inits) if any(bounds) else (),
    )
    return node.append(op, [*ends, *((size, *row.shape) for row in outputs)])


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
    node: ModelNode,
    body: Subgraph,
    inits: Sequence[Value],
    tensors: Sequence[Value] = (),
    start: int = 0,
) -> tuple[list[Shape], list[Value], Block]:
    """Convert the body of a loop for shapes of carried values that hold in each iteration.

    Args:
        node: the node of the model.
        body: takes the number of the iteration, what is carried, and slices of `tensors`.
        inits: what is carried at first.
        tensors: what is sliced.
        start: the place of what is carried on among the results.

    Returns:
        These shapes, in which sizes that change are symbols of their own; the results; and the
        block of the loop.
    """
    shapes, rows = [init.shape for init in inits], [value.shape[1:] for value in tensors]
    while True:
        given = list(zip((*inits, *tensors), (*shapes, *rows), strict=True))
        types = (tensor_type(value.dtype, shape) for value, shape in given)
        block = Block(arg_types=[TensorType(i64, []), *types])
        with node.inside(block):
            values = [Value("", np.dtype(np.int64), (), ssa=block.args[0])]
            for (value, shape), argument in zip(given, block.args[1:], strict=True):
                values.append(Value("", value.dtype, shape, ssa=argument))
                node.hold(values[-1])
            results = body(values)
        carried_on = results[start:]
        _check_kinds(node, inits, carried_on)
        changed = list(shapes)
        for place, (init, shape, result) in enumerate(zip(inits, shapes, carried_on, strict=False)):
            sizes = zip(init.shape, shape, result.shape, strict=True)
            changed[place] = tuple(
                node.computed_size() if before == first != after else before
                for first, before, after in sizes
            )
        if changed == shapes:
            return shapes, results, block
        block.erase(safe_erase=False)
        shapes = changed


def _growing(
    node: ModelNode,
    inits: Sequence[Value],
    shapes: Sequence[Shape],
    results: Sequence[Value],
) -> set[int]:
    """The carried values whose sizes only a number of iterations bounds."""
    return {
        number
        for number, (init, shape, result) in enumerate(zip(inits, shapes, results, strict=False))
        for start, before, after in zip(init.shape, shape, result.shape, strict=True)
        if start != before and node.is_computed(node.at_most(start) + node.at_most(after))
    }


def _bounds(
    node: ModelNode,
    count: Dim | None,
    inits: Sequence[Value],
    shapes: Sequence[Shape],
    results: Sequence[Value],
) -> list[dict[int, Dim]]:
    """The upper bounds of sizes that change.

    A size is at most that at first or the one after each iteration, where what is around the loop
    bounds this one; else that at first, and what each of `count` iterations adds.
    """
    bounds = [dict[int, Dim]() for _ in inits]
    for number, (init, shape, result) in enumerate(zip(inits, shapes, results, strict=False)):
        for axis, (start, before) in enumerate(zip(init.shape, shape, strict=True)):
            if start == before:
                continue
            first, after = node.at_most(start), node.at_most(result.shape[axis])
            grown = [Dim([term]) for term in (after - before).terms if term[1] > 0]
            if not node.is_computed(first + after):
                bounds[number][axis] = first.at_most_either(after)
            elif any(map(node.is_computed, grown)) or (grown and count is None):
                change = _change(number, init, result)
                raise node.unsupported(f"{change}, which has no known upper bound")
            else:
                # A size without an upper bound has no name that a bound could use.
                begins = _START if node.is_computed(first) else first
                bounds[number][axis] = sum((own * (count or 0) for own in grown), begins)
            if node.is_computed(bounds[number][axis]):
                change = _change(number, init, result)
                raise node.unsupported(f"{change}, which has no known upper bound")
    return bounds


def _ends(
    node: ModelNode,
    inits: Sequence[Value],
    shapes: Sequence[Shape],
    bounds: Sequence[Mapping[int, Dim]],
    iterations: Dim | None,
) -> list[Shape]:
    """The shapes of what a loop carries at its end."""
    known = {} if iterations is None else {ITERATIONS: iterations}
    return [
        tuple(
            node.computed_size(own[axis].substitute({**known, START: init.shape[axis]}))
            if axis in own
            else dim
            for axis, dim in enumerate(shape)
        )
        for init, shape, own in zip(inits, shapes, bounds, strict=True)
    ]


def _texts(bounds: Sequence[Mapping[int, Dim]], inits: Sequence[Value]) -> list[list[str]]:
    """The property `bounds` of a loop."""
    return [
        [str(own.get(axis, "")) for axis in range(init.rank)]
        for own, init in zip(bounds, inits, strict=True)
    ]


def _check_stacked(node: ModelNode, rows: Sequence[Value], known: Set[str]) -> None:
    """Demand that slices that are stacked have sizes that are known around the loop."""
    for number, row in enumerate(rows):
        inside = {name for dim in row.shape for name in dim.symbols} & node.computed - known
        if inside:
            fact = f"stacked output {number} has a size that an iteration computes"
            raise node.unsupported(f"{fact}: {_described(row)}")


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
