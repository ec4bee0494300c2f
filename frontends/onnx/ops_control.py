"""`If`, `Loop` and `Scan`, whose subgraphs become regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from onnx import GraphProto
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i64
from xdsl.ir import Block, Region

from ...core.dims import Dim, Shape
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import text
from ..captures import captured
from ..importing.dtypes import element_type
from ..importing.selection import concatenated
from ..importing.shapes import unsqueezed
from ..importing.values import Value
from .arithmetic import Arithmetic
from .nodes import Node
from .registry import converts

_MOST_UNROLLED = 64
"""Loops are unrolled up to this many nodes, in which the numbers of iterations are known."""


@converts("If", since=1)
def if_(node: Node) -> Sequence[Value | None]:
    # A branch that is never taken need not be supported.
    condition, branches = node.input(0), ("then_branch", "else_branch")
    bodies = [node.attr_graph(name) for name in branches]
    if condition.contents is not None:
        return node.convert(bodies[0 if condition.contents.any() else 1], [])
    blocks, ends = [Block(), Block()], list[list[Value]]()
    for block, body in zip(blocks, bodies, strict=True):
        with node.inside(block):
            results = node.convert(body, [])
            if any(value.items is not None for value in results):
                raise node.unsupported("a branch gives a sequence, which needs a known condition")
            block.add_op(graph.YieldOp(*map(node.ssa, results)))
        ends.append(results)
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
    types = [_tensor(v.dtype, shape) for v, shape in zip(ends[0], shapes, strict=True)]
    regions = [Region(block) for block in blocks]
    op = graph.IfOp(node.ssa(_scalar(node, condition)), captures, types, *regions)
    return node.add(op, shapes)


@converts("Loop", since=1)
def loop(node: Node) -> Sequence[Value | None]:
    """Iterations up to a number, and while a condition holds."""
    most, condition, body = node.optional(0), node.optional(1), node.attr_graph("body")
    inits = [node.operand(number) for number in range(2, len(node.inputs))]
    if condition is not None and condition.contents is not None:
        if not condition.contents.any() and len(body.output) == 1 + len(inits):
            return inits
        condition = None if condition.contents.any() else condition
    count = None if most is None or most.contents is None else _count(most)
    if count is not None and node.is_computed(count):
        count = None
    if condition is None and count is not None and count.is_static:
        results = _unrolled(node, body, count.value, inits)
        if results is not None:
            return results
    return _iterated(node, body, inits, most, condition, count)


def _iterated(
    node: Node,
    body: GraphProto,
    inits: Sequence[Value],
    most: Value | None,
    condition: Value | None,
    count: Dim | None,
) -> list[Value]:
    """The results of a loop whose iterations run in a region."""
    for number, init in enumerate(inits):
        if init.items is not None:
            fact = f"loop state {number} is a sequence"
            least = f"a known number of iterations, of at most {_MOST_UNROLLED} nodes in all"
            raise node.unsupported(f"{fact}, which needs {least}")
    shapes, goes_on, results, block = _settled(node, body, inits)
    rows, bounds = results[len(inits) :], _bounds(node, count, inits, shapes, results)
    always = condition is None and goes_on.contents is not None and goes_on.contents.all()
    numbers = _numbers(node, most, block) if rows and count is None else []
    with node.inside(block):
        first = [] if always else [node.ssa(_scalar(node, goes_on))]
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
            *(_tensor(init.dtype, shape) for init, shape in zip(inits, ends, strict=True)),
            *(_stacked(row, size) for row in rows),
        ],
        count=None if count is None else str(count),
        times=None if most is None or not uncounted else node.ssa(_scalar(node, most)),
        condition=None if always else node.ssa(_scalar(node, start)),
        inits=list(map(node.ssa, inits)),
        sliced=list(map(node.ssa, numbers)),
        captures=captured([block]),
        bounds=[
            [str(own.get(axis, "")) for axis in range(init.rank)]
            for own, init in zip(bounds, inits, strict=True)
        ],
    )
    return node.add(op, [*ends, *((size, *row.shape) for row in rows if size is not None)])


def _numbers(node: Node, most: Value | None, block: Block) -> list[Value]:
    """What a loop takes slices of, so that there are as many iterations as a scalar says."""
    if most is None:
        raise node.unsupported("scan outputs need a largest number of iterations, operand 0")
    block.insert_arg(TensorType(i64, []), len(block.args))
    count = Arithmetic(node).max(node.wide(_scalar(node, most)), 0)
    return [node.emit(graph.ArangeOp, count)]


def _settled(
    node: Node, body: GraphProto, inits: Sequence[Value]
) -> tuple[list[Shape], Value, list[Value], Block]:
    """Convert the body of a loop for shapes of carried values that hold in each iteration.

    Returns:
        These shapes, in which sizes that change are symbols of their own; the condition; the other
        results; and the block of the loop.
    """
    shapes = [init.shape for init in inits]
    while True:
        types = (_tensor(init.dtype, shape) for init, shape in zip(inits, shapes, strict=True))
        block = Block(arg_types=[TensorType(i64, []), *types])
        own = zip(inits, shapes, block.args[1:], strict=True)
        with node.inside(block):
            number = Value("", np.dtype(np.int64), (), ssa=block.args[0])
            state = [Value("", init.dtype, shape, ssa=argument) for init, shape, argument in own]
            values = [number, node.known(np.array(True)), *state]
            goes_on, *results = node.convert(body, values)
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
    node: Node,
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


def _unrolled(
    node: Node, body: GraphProto, count: int, inits: Sequence[Value]
) -> list[Value] | None:
    """The results of a short loop, iteration by iteration, in which numbers are known.

    None if it is long, or a condition is not known.
    """
    if count * len(body.node) > _MOST_UNROLLED or (not count and len(body.output) > 1 + len(inits)):
        return None
    block, rows = Block(), list[list[Value]]()
    state = list(inits)
    with node.inside(block):
        for number in range(count):
            values = [node.known(np.array(number)), node.known(np.array(True)), *state]
            goes_on, *results = node.convert(body, values)
            if goes_on.contents is None:
                block.erase(safe_erase=False)
                return None
            state, stacked = results[: len(inits)], results[len(inits) :]
            rows.append([unsqueezed(node, value, [0]) for value in stacked])
            if not goes_on.contents.all():
                break
        stacks = [node.emit(concatenated, *row, axis=0) for row in zip(*rows, strict=True)]
    node.take(block)
    return [*state, *stacks]


@converts("Scan", since=8)
def scan_of_batches(node: Node) -> Sequence[Value | None]:
    """For each element of a batch: slices of some operands in turn, with others carried along."""
    body, count = node.attr_graph("body"), node.attr_int("num_scan_inputs")
    if node.optional(0) is not None:
        raise node.unsupported("sequence lengths are not supported")
    operands = [node.input(number) for number in range(1, len(node.inputs))]
    _check_scanned(node, count, operands)
    directions = node.attr_ints("directions") or [0] * count
    block = _block([], operands)
    with node.inside(block):
        values = _arguments(block, [], operands)
        results = _scan(node, body, values[:-count], values[-count:], directions, ())
        block.add_op(graph.YieldOp(*map(node.ssa, results)))
    size = operands[0].shape[0]
    op = graph.LoopOp(
        Region(block),
        [_stacked(value, size) for value in results],
        sliced=list(map(node.ssa, operands)),
        captures=captured([block]),
    )
    return node.add(op, [(size, *value.shape) for value in results])


@converts("Scan", since=9)
def scan(node: Node) -> Sequence[Value | None]:
    """Slices of some operands in turn, with others carried along."""
    body, count = node.attr_graph("body"), node.attr_int("num_scan_inputs")
    operands = node.variadic()
    _check_scanned(node, count, operands)
    inits, scanned = operands[:-count], operands[-count:]
    outputs = len(body.output) - len(inits)
    taken, stored = (
        node.attr_ints(f"scan_{name}_directions") or [0] * length
        for name, length in (("input", count), ("output", outputs))
    )
    axes = _axes(node, "scan_input_axes", [value.rank for value in scanned])
    tensors = [_moved(node, v, axis, 0) for v, axis in zip(scanned, axes, strict=True)]
    found = _scan(node, body, inits, tensors, taken, stored)
    state, stacks = found[: len(inits)], found[len(inits) :]
    axes = _axes(node, "scan_output_axes", [value.rank for value in stacks])
    return [*state, *(_moved(node, v, 0, axis) for v, axis in zip(stacks, axes, strict=True))]


def _scan(
    node: Node,
    body: GraphProto,
    inits: Sequence[Value],
    tensors: Sequence[Value],
    taken: Sequence[int],
    stored: Sequence[int],
) -> list[Value]:
    """A loop over slices along first axes; 1 in `taken` and `stored` says that it is backward."""
    block = _block(inits, tensors)
    with node.inside(block):
        results = node.convert(body, _arguments(block, inits, tensors))
        block.add_op(graph.YieldOp(*map(node.ssa, results)))
    _check_carried(node, inits, results)
    rows, size = results[len(inits) :], tensors[0].shape[0]
    op = graph.LoopOp(
        Region(block),
        [*map(_type, inits), *(_stacked(row, size) for row in rows)],
        inits=list(map(node.ssa, inits)),
        sliced=list(map(node.ssa, tensors)),
        captures=captured([block]),
        backward_slices=[number for number, backward in enumerate(taken) if backward],
        backward_stacks=[number for number, backward in enumerate(stored) if backward],
    )
    return node.add(op, [*(init.shape for init in inits), *((size, *row.shape) for row in rows)])


def _check_scanned(node: Node, count: int, operands: Sequence[Value]) -> None:
    if not 0 < count <= len(operands):
        raise node.broken("wrong num_scan_inputs", f"1 to {len(operands)}", count)
    for value in operands[-count:]:
        if value.rank == 0:
            raise node.broken("a scalar is scanned", "a tensor of rank 1 or more", "rank 0")


def _axes(node: Node, name: str, ranks: Sequence[int]) -> list[int]:
    """The axes of scanned inputs or outputs, counted from the front."""
    given = node.attr_ints(name) or [0] * len(ranks)
    if len(given) != len(ranks):
        raise node.broken(f"wrong number of {name}", len(ranks), len(given))
    return [node.axis(axis, rank) for axis, rank in zip(given, ranks, strict=True)]


def _block(inits: Sequence[Value], tensors: Sequence[Value]) -> Block:
    """The block of a loop."""
    rows = [_tensor(value.dtype, value.shape[1:]) for value in tensors]
    return Block(arg_types=[TensorType(i64, []), *map(_type, inits), *rows])


def _arguments(block: Block, inits: Sequence[Value], tensors: Sequence[Value]) -> list[Value]:
    """What the block of a loop carries, and its slices."""
    shapes = [*(init.shape for init in inits), *(value.shape[1:] for value in tensors)]
    own = zip((*inits, *tensors), shapes, block.args[1:], strict=True)
    return [Value("", value.dtype, shape, ssa=argument) for value, shape, argument in own]


def _moved(node: Node, value: Value, source: int, target: int) -> Value:
    """A tensor with an axis moved to another place."""
    if source == target:
        return value
    order = [axis for axis in range(value.rank) if axis != source]
    order.insert(target, source)
    return node.emit(graph.TransposeOp, value, permutation=order)


def _check_carried(node: Node, inits: Sequence[Value], results: Sequence[Value]) -> None:
    """Demand that what is carried keeps its type and shape."""
    _check_kinds(node, inits, results)
    for number, (before, after) in enumerate(zip(inits, results, strict=False)):
        if before.shape != after.shape:
            raise node.unsupported(_change(number, before, after))


def _check_kinds(node: Node, inits: Sequence[Value], results: Sequence[Value]) -> None:
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


def _count(most: Value) -> Dim:
    """A known number of iterations; a negative one counts as 0."""
    assert most.contents is not None
    number = most.contents.reshape(-1)[0]
    return number if isinstance(number, Dim) else Dim.of(max(0, int(number)))


def _scalar(node: Node, value: Value) -> Value:
    """A tensor of one element without dimensions: ONNX also allows one."""
    if value.rank == 0:
        return value
    if value.contents is not None:
        return node.known(value.contents.reshape(()))
    if any(dim != 1 for dim in value.shape):
        raise node.broken("not a single element", "a scalar", text(value.shape))
    return node.emit(graph.ReshapeOp, value, shape=[])


def _type(value: Value) -> TensorType:
    return _tensor(value.dtype, value.shape)


def _tensor(dtype: np.dtype, shape: Shape) -> TensorType:
    sizes = [dim.value if dim.is_static else DYNAMIC_INDEX for dim in shape]
    return TensorType(element_type(dtype), sizes)


def _stacked(row: Value, count: Dim | None) -> TensorType:
    """The type of slices that are stacked."""
    return _tensor(row.dtype, (count or Dim.of(0), *row.shape))
