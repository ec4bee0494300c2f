"""The parts of a graph of `torch.fx` that can be read, each as a module of its own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from ..importing.diagnostics import UnsupportedNodeError
from .dtypes import numpy_dtype
from .graphs import TorchGraph, read_graph
from .registry import closest, conversion, load_conversions

_ROUNDS = 8
"""How often a graph is divided again, without the nodes that turned out to be unsupported."""

_PREFIX = "stepwell_"


def divided(
    owner: Any, names: Mapping[str, str] | None = None
) -> tuple[Any, dict[str, TorchGraph], dict[str, str]]:
    """Divide a graph into parts that are supported and the nodes between them.

    Args:
        owner: the module of `torch.fx` with the graph, which stays as it is.
        names: what the user calls inputs, by the names of their nodes.

    Returns:
        A module whose calls of other modules are the parts; the parts by name; and why each of the
        other nodes is not supported, by the name of the node.
    """
    load_conversions()
    refused = {node.name: reason for node in owner.graph.nodes if (reason := _refusal(node))}
    for _ in range(_ROUNDS):
        split = _divided(owner, refused)
        parts = {name: read_graph(part, names=names) for name, part in _parts(split)}
        found = {node: why for part in parts.values() for node, why in part.problems.items()}
        if not found:
            return split, parts, refused
        refused |= found
    rest = {name: part for name, part in parts.items() if part.module is not None}
    return split, rest, refused


def _refusal(node: Any) -> str | None:
    """Why a node stays with torch whatever is around it; None if it may not have to."""
    if node.op != "call_function":
        return None
    target = node.target
    for value in _tensors([node, *node.all_input_nodes]):
        if value.device.type != "cpu":
            return f"{target}: a tensor in memory of {value.device.type}"
        if not str(value.layout).endswith("strided"):
            return f"{target}: a sparse tensor"
        try:
            numpy_dtype(value.dtype)
        except UnsupportedNodeError as error:
            return f"{target}: {error.reason}"
    known = not hasattr(target, "_schema") or conversion(str(target)) is not None
    if known or type(node.meta.get("val")).__name__ in ("SymInt", "int"):
        return None
    near = closest(str(target))
    return f"{target}: no conversion" + (f"; closest supported: {near}" if near else "")


def _tensors(nodes: list[Any]) -> Iterator[Any]:
    """What torch knows of the tensors among the results of nodes."""
    for node in nodes:
        value = node.meta.get("val")
        for part in value if isinstance(value, (tuple, list)) else [value]:
            if hasattr(part, "device") and hasattr(part, "dtype"):
                yield part


def _divided(owner: Any, refused: Mapping[str, str]) -> Any:
    """A copy of the module in which nodes that stay together are calls of modules."""
    fx = importlib.import_module("torch.fx")
    partitioner = importlib.import_module("torch.fx.passes.infra.partitioner")
    support = importlib.import_module("torch.fx.passes.operator_support")
    graph = fx.Graph()
    graph.output(graph.graph_copy(owner.graph, {}))
    graph.output_node().meta = dict(owner.graph.output_node().meta)
    split = fx.GraphModule(owner, graph)

    def is_supported(modules: Any, node: Any) -> bool:
        return node.op == "call_function" and node.name not in refused

    found = partitioner.CapabilityBasedPartitioner(
        split, support.create_op_support(is_supported), allows_single_node_partition=True
    )
    partitions = [part for part in found.propose_partitions() if any(map(_computes, part.nodes))]
    fuser = importlib.import_module("torch.fx.passes.utils.fuser_utils")
    fuser.fuse_by_partitions(split, [dict(part.nodes) for part in partitions], _PREFIX)
    return split


def _computes(node: Any) -> bool:
    """Whether a node is more than a view, a size or a part of several results."""
    target = node.target
    return hasattr(target, "_schema") and not target.is_view and bool(list(_tensors([node])))


def _parts(split: Any) -> list[tuple[str, Any]]:
    return [(n, part) for n, part in split.named_children() if n.startswith(_PREFIX)]
