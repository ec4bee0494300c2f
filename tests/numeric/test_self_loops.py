"""Edge lists without self loops, then one for each node: sorted without a list of them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import InputError
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from ..harness import RNG, close, floats, same

GRAPHS = [(7, 23), (1, 0), (1, 3), (5, 0), (40, 200), (3, 3)]
END = 2**63 - 1


def edges(nodes: int, count: int) -> np.ndarray:
    """Ends with duplicates; a third are self loops, and nothing comes into the last nodes."""
    found = RNG.integers(0, nodes, (2, count))
    found[1] = found[1] * 2 // 3
    found[1, : count // 3] = found[0, : count // 3]
    return found


def row(b: sw.Builder, x: Value, number: int) -> Value:
    return b.reshape(b.slice(x, [number, 0], [number + 1, END]), [-1])


def sums(source: int = 0, first: int = 0, weighted: bool = False) -> sw.Module:
    """Each node sums up what others send and what it has itself, as torch-geometric writes it."""
    b = sw.Builder("main")
    x, ends = b.input("x", ("n", 9)), b.input("ends", (2, "e"), "i64")
    differ = b.logical_not(b.equal(row(b, ends, 0), row(b, ends, 1)))
    kept, _ = b.nonzero(differ)
    numbers = b.cumulative(_ones(b, x), "sum", 0, exclusive=not first)
    loops = b.reshape(b.broadcast_to(b.reshape(numbers, [1, -1]), [2, -1]), [2, -1])
    both = b.concat([b.gather(ends, kept, axis=1), loops], axis=1)
    sources, targets = (row(b, both, k) for k in (source, 1 - source))
    messages = b.gather(x, sources, axis=0)
    if weighted:
        messages = messages * b.reshape(b.cast(sources + targets, "f32"), [-1, 1])
    zero = b.reduce(b.slice(b.reshape(x, [-1, 9, 1]), [0, 0, 0], [END, END, 0]), "sum", [2], False)
    b.output(b.scatter_nd(zero, messages, [targets], kind="add"), name="y")
    return b.module()


def _ones(b: sw.Builder, x: Value) -> Value:
    """1 for each node."""
    none = b.slice(b.reshape(x, [-1, 9, 1]), [0, 0, 0], [END, END, 0])
    return b.cast(b.reduce(none, "sum", [1, 2], keepdims=False), "i64") * 0 + 1


@functools.cache
def compiled(source: int, threads: int) -> sw.Executable:
    return sw.compile(sums(source), threads=threads)


@pytest.mark.parametrize(("source", "threads"), [(0, 1), (1, 2)])
def test_no_list_with_self_loops_is_made(source: int, threads: int) -> None:
    exe, module = compiled(source, threads), sums(source)
    text = exe.ir("optimized")
    assert "graph.sort_edges_with_loops" in text
    assert not any(op in text for op in ("graph.nonzero", "graph.concat", "graph.scatter_nd"))
    for graph in GRAPHS:
        x, ends = floats(graph[0], 9), edges(*graph)
        close(exe(x, ends), module.run_reference(x, ends))


def test_other_lists_stay() -> None:
    # Numbers from 1 on are no self loops of the nodes.
    text = Compilation.of(Request(sums(first=1), threads=1)).text("optimized")
    assert "graph.sort_edges_with_loops" not in text
    # Weights of edges are in the order of the list.
    text = Compilation.of(Request(sums(weighted=True), threads=1)).text("optimized")
    assert "graph.concat" in text


@pytest.mark.parametrize("end", [5, -6])
def test_a_self_loop_outside_of_the_graph_is_an_error(end: int) -> None:
    ends = edges(5, 9)
    ends[:, 4] = end
    with pytest.raises(InputError, match=rf"index out of range at position 4, .* got {end}"):
        compiled(0, 1)(np.zeros((5, 9), np.float32), ends)


@pytest.mark.parametrize("level", [0, 3])
def test_sorted_with_loops(level: int) -> None:
    b = sw.Builder("main")
    x, ends = b.input("x", ("n",)), [b.input(name, ("e",), "i64") for name in ("r", "c")]
    for value in b.sort_edges_with_loops(*ends, x):
        b.output(value)
    module = b.module()
    exe = sw.compile(module, threads=1, opt_level=level)
    for nodes, count in GRAPHS:
        rows, columns = edges(nodes, count)
        rows[::3] -= nodes
        inputs = np.zeros(nodes, np.float32), rows, columns
        same(exe(*inputs), module.run_reference(*inputs))
    rows, columns = edges(4, 9)
    inputs = np.zeros(4, np.float32), rows, columns
    same(exe.run_at("loops", *inputs), module.run_reference(*inputs))
