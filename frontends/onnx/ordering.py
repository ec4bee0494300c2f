"""Topological order of nodes: every value is defined before its uses."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from onnx import GraphProto, NodeProto

from .diagnostics import broken


def label(node: NodeProto) -> str:
    """The name of a node in errors and locations; else its operator and first output."""
    if node.name:
        return node.name
    return f"{node.op_type}:{next((name for name in node.output if name), '')}"


def ordered(nodes: Sequence[NodeProto], defined: Collection[str]) -> list[NodeProto]:
    """Sort nodes topologically; sorted nodes keep their order.

    Args:
        nodes: the nodes of one graph.
        defined: names of inputs and initialisers.

    Raises:
        ImportModelError: if a value is defined twice or not at all, or the graph is cyclic.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if not name:
                continue
            if name in producer or name in defined:
                raise broken(f'value "{name}" is defined twice', origin=f'node "{label(node)}"')
            producer[name] = index
    waiting, readers = _edges(nodes, producer, defined)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    result: list[NodeProto] = []
    while ready:
        index = heapq.heappop(ready)
        result.append(nodes[index])
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    if len(result) < len(nodes):
        # One cycle among the waiting nodes, in the direction of data flow.
        trail: dict[int, None] = {}
        index = next(index for index, count in enumerate(waiting) if count)
        while index not in trail:
            trail[index] = None
            sources = (producer[name] for name in _reads(nodes[index]) if name in producer)
            index = next(source for source in sources if waiting[source])
        backwards = list(trail)
        cycle = backwards[backwards.index(index) :][::-1]
        first = cycle.index(min(cycle))
        cycle = [nodes[i] for i in cycle[first:] + cycle[:first]]
        path = " -> ".join(f'"{label(node)}"' for node in [*cycle[:8], cycle[0]])
        raise broken(f"the graph is cyclic: {path}")
    return result


def _reads(node: NodeProto) -> list[str]:
    """The values that a node reads, and those of other graphs that its subgraphs read."""
    names = list(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            body = attribute.g
            own = {name for inner in body.node for name in inner.output}
            own |= {value.name for value in (*body.input, *body.initializer)}
            read = [name for inner in body.node for name in _reads(inner)]
            read += [value.name for value in body.output]
            names += [name for name in read if name not in own]
    return names


def deciding_part(body: GraphProto) -> tuple[GraphProto, list[int]]:
    """The part of the body of a loop that decides whether there is another iteration.

    Returns:
        A body of these nodes, which carries what it depends on; and the numbers of these states.
    """
    condition, *carried = body.output
    producers = {name: node for node in body.node for name in node.output if name}
    states = {info.name: number for number, info in enumerate(body.input[2:])}
    read, waiting = set[str](), [condition.name]
    while waiting:
        name = waiting.pop()
        if name in read:
            continue
        read.add(name)
        if name in producers:
            waiting += _reads(producers[name])
        elif name in states:
            waiting.append(carried[states[name]].name)
    needed = [number for name, number in states.items() if name in read]
    part = GraphProto()
    part.CopyFrom(body)
    del part.node[:], part.input[:], part.output[:]
    part.node.extend(node for node in body.node if not read.isdisjoint(node.output))
    part.input.extend([*body.input[:2], *(body.input[2 + number] for number in needed)])
    part.output.extend([condition, *(carried[number] for number in needed)])
    return part, needed


def _edges(
    nodes: Sequence[NodeProto], producer: dict[str, int], defined: Collection[str]
) -> tuple[list[int], list[list[int]]]:
    """For each node, the number of nodes that it waits for, and the nodes that wait for it."""
    waiting = [0] * len(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        sources: set[int] = set()
        for name in _reads(node):
            if name in producer:
                sources.add(producer[name])
            elif name and name not in defined:
                raise broken(f'value "{name}" is not defined', origin=f'node "{label(node)}"')
        waiting[index] = len(sources)
        for source in sources:
            readers[source].append(index)
    return waiting, readers
