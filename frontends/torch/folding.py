"""Nodes of a graph of torch that depend on constants of indices alone, computed by torch.

The edges of a constant graph without its loops, their degrees, the normalisation of a layer: torch
computes them once, with the sizes that depend on their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .joint import is_index
from .library import library

_SMALL = 1 << 16
_GROWTH = 16
"""A result with more elements than so many times those of the constants is not kept."""

_SWEEPS = 2


def folded(owner: Any, constants: Mapping[Any, Any]) -> dict[Any, Any]:
    """The results of nodes that are known: tensors, integers, or tuples of them.

    Args:
        owner: the module of `torch.fx` with the graph.
        constants: the tensors that are known, by their nodes.
    """
    known = {node: tensor for node, tensor in constants.items() if is_index(tensor)}
    if not known:
        return {}
    torch = library()
    largest = _SMALL + _GROWTH * sum(tensor.numel() for tensor in known.values())
    numbers: dict[Any, int] = {}
    # A size that the graph takes may be that of a tensor which is computed here.
    for _ in range(_SWEEPS):
        for node in owner.graph.nodes:
            if node in known:
                continue
            if (size := _number(node.meta.get("val"), numbers)) is not None:
                known[node] = size
            elif _is_folded(torch, node, known, largest):
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
                with torch.no_grad():
                    known[node] = node.target(*args, **kwargs)
                _learn(node.meta.get("val"), known[node], numbers)
    return {node: value for node, value in known.items() if node not in constants}


def _number(size: Any, numbers: Mapping[Any, int]) -> int | None:
    """The value of a symbolic size; None if it has an unknown symbol."""
    if type(size).__name__ != "SymInt":
        return None
    expression = size.node.expr.xreplace(dict(numbers))
    is_known = isinstance(expression, int) or expression.is_Integer
    return int(expression) if is_known else None


def _learn(expected: Any, value: Any, numbers: dict[Any, int]) -> None:
    """Note the values of the symbols in a shape."""
    pairs = [(expected, value)]
    if hasattr(value, "shape"):
        pairs = list(zip(expected.shape, value.shape, strict=True))
    for size, number in pairs:
        if type(size).__name__ == "SymInt" and type(number) is int and size.node.expr.is_Symbol:
            numbers.setdefault(size.node.expr, number)


def _is_folded(torch: Any, node: Any, known: Mapping[Any, Any], largest: int) -> bool:
    """Whether a node is to be computed: it is deterministic, small, and its operands are known."""
    random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    if node.op != "call_function" or random or any(n not in known for n in node.all_input_nodes):
        return False
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    sizes = [part.numel() for part in parts if hasattr(part, "numel")]
    counts = [size if isinstance(size, int) else 0 for size in sizes]
    return all(count <= largest for count in counts)
