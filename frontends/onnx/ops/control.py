"""`If`, `Loop` and `Scan`, whose subgraphs become regions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

import numpy as np
from onnx import GraphProto, ValueInfoProto
from xdsl.ir import Block

from ....core.algebra.dims import Dim
from ...importing.regions import conditional, iterated, scanned
from ...importing.shapes import unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..ordering import deciding_part
from ..registry import converts
from ..signature import declared_sizes

_MOST_UNROLLED = 64
"""Loops are unrolled up to this many nodes, in which the numbers of iterations are known."""

_NO_NUMBER = 1 << 31
"""Exporters write the largest integer where only a condition ends a loop."""

_FIRST_LIMIT = 16
"""The iterations of a loop that are tried first to count them."""


@converts("If", since=1)
def if_(node: Node) -> Sequence[Value | None]:
    # A branch that is never taken need not be supported.
    condition, branches = node.input(0), ("then_branch", "else_branch")
    bodies = [node.attr_graph(name) for name in branches]
    if condition.contents is not None:
        return node.convert(bodies[0 if condition.contents.any() else 1], [])
    forms: list[list[int | None]] = []

    def branch(body: GraphProto) -> list[Value]:
        results = node.branch(body, [])
        forms.append([None if value.items is None else len(value.items) for value in results])
        return [part for value in results for part in value.items or [value]]

    found = conditional(node, condition, [functools.partial(branch, body) for body in bodies])
    if any(form != forms[0] for form in forms):
        raise node.unsupported("the branches give sequences of different lengths")
    rest, results = iter(found), list[Value | None]()
    for count in forms[0]:
        items = list(itertools.islice(rest, 1 if count is None else count))
        results.append(items[0] if count is None else _sequence(items))
    return results


def _sequence(items: Sequence[Value | None]) -> Value | None:
    """Tensors as a sequence; None where one of them is."""
    known = [item for item in items if item is not None]
    return Value("", known[0].dtype, (), items=known) if len(known) == len(items) else None


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
    for number, init in enumerate(inits):
        if init.items is not None:
            fact = f"loop state {number} is a sequence"
            least = f"a known number of iterations, of at most {_MOST_UNROLLED} nodes in all"
            raise node.unsupported(f"{fact}, which needs {least}")

    before = node.computed

    def iteration(values: Sequence[Value]) -> list[Value]:
        number, *state = values
        results = node.convert(body, [number, node.known(np.array(True)), *state])
        rows = body.output[1 + len(inits) :]
        stacked = _as_declared(node, rows, results[1 + len(inits) :], before)
        return [*results[: 1 + len(inits)], *stacked]

    if count is not None and count.is_static and count.value >= _NO_NUMBER:
        most = count = None
    counting = functools.partial(_counted, node, body, inits, condition)
    return iterated(node, iteration, inits, most, condition, count, counting)


def _as_declared(
    node: Node, infos: Sequence[ValueInfoProto], results: Sequence[Value], known: Set[str]
) -> Iterator[Value]:
    """The results of the body of a loop that are stacked.

    All slices that are stacked have one shape: where an iteration computes it, the declared one is
    checked.
    """
    declared = declared_sizes(GraphProto(output=infos))
    for info, value in zip(infos, results, strict=True):
        sizes = [size for size in declared.get(info.name, []) if size is not None]
        symbols = {name for dim in value.shape for name in dim.symbols}
        is_declared = symbols & node.computed - known and len(sizes) == value.rank
        yield node.reshape(value, shape=sizes) if is_declared else value


def _counted(
    node: Node,
    body: GraphProto,
    inits: Sequence[Value],
    condition: Value | None,
    growing: Set[int],
) -> Value:
    """The number of iterations of a loop that only a condition ends, by running what decides.

    Where that depends on what grows, it runs with at most `_FIRST_LIMIT` iterations, and again with
    twice as many as long as these are not enough.
    """
    deciding, states = deciding_part(body)
    once = growing.isdisjoint(states)
    why = "only a condition ends it, and memory for what it stacks or lets grow is allocated before"
    often = f"up to 3 times more: at most {_FIRST_LIMIT} iterations, then {2 * _FIRST_LIMIT}, ..."
    part = f"{len(deciding.node)} of {len(body.node)} nodes of its body"
    cost = f"{part} run {'once more' if once else often}"
    node.remarks.append(("counted first", why, cost))
    given = [*(inits[number] for number in states), node.known(np.array(0))]

    def step(values: Sequence[Value]) -> list[Value]:
        number, *state, count = values
        results = node.convert(deciding, [number, node.known(np.array(True)), *state])
        return [*results, node.add(count, node.known(np.array(1)))]

    def longer(values: Sequence[Value]) -> list[Value]:
        _, limit, _ = values
        # A constant of another region is no value of this one.
        own = [value if value.contents is None else replace(value, ssa=None) for value in given]
        found = iterated(node, step, own, limit, condition, None)[-1]
        return [node.equal(found, limit), node.mul(limit, node.known(np.array(2))), found]

    if once:
        return iterated(node, step, given, None, condition, None)[-1]
    first = [node.known(np.array(_FIRST_LIMIT)), node.known(np.array(0))]
    return iterated(node, longer, first, None, None, None)[-1]


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
        stacks = [node.concat(row, axis=0) for row in zip(*rows, strict=True)]
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

    def element(values: Sequence[Value]) -> list[Value]:
        each = functools.partial(node.convert, body)
        return scanned(node, each, values[:-count], values[-count:], directions)

    return scanned(node, element, [], operands)


@converts("Scan", since=9)
def scan(node: Node) -> Sequence[Value | None]:
    """Slices of some operands in turn, with others carried along."""
    body, count = node.attr_graph("body"), node.attr_int("num_scan_inputs")
    operands = node.variadic()
    _check_scanned(node, count, operands)
    inits, tensors = operands[:-count], operands[-count:]
    outputs = len(body.output) - len(inits)
    taken, stored = (
        node.attr_ints(f"scan_{name}_directions") or [0] * length
        for name, length in (("input", count), ("output", outputs))
    )
    axes = _axes(node, "scan_input_axes", [value.rank for value in tensors])
    moved = [_moved(node, v, axis, 0) for v, axis in zip(tensors, axes, strict=True)]
    found = scanned(node, functools.partial(node.convert, body), inits, moved, taken, stored)
    state, stacks = found[: len(inits)], found[len(inits) :]
    axes = _axes(node, "scan_output_axes", [value.rank for value in stacks])
    return [*state, *(_moved(node, v, 0, axis) for v, axis in zip(stacks, axes, strict=True))]


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


def _moved(node: Node, value: Value, source: int, target: int) -> Value:
    """A tensor with an axis moved to another place."""
    if source == target:
        return value
    order = [axis for axis in range(value.rank) if axis != source]
    order.insert(target, source)
    return node.transpose(value, permutation=order)


def _count(most: Value) -> Dim:
    """A known number of iterations; a negative one counts as 0."""
    assert most.contents is not None
    number = most.contents.reshape(-1)[0]
    return number if isinstance(number, Dim) else Dim.of(max(0, int(number)))
