"""The joint graph of results and gradients, which AOTAutograd divides into two.

What depends on index buffers alone, such as the sorted edges of a constant graph, belongs to both
parts: with these buffers as constants, each part is compiled with its own folded form of it. So
the product with a matrix has the compressed rows, and that with its transpose in the gradients the
compressed columns, and no call sorts anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .exporting import core_operators
from .library import library
from .ops.random import random_uniform


def static_inputs() -> list[int]:
    """The numbers of the inputs that are parameters and buffers, in the graph being compiled."""
    context = importlib.import_module("torch._guards").TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    return list(getattr(metadata, "static_input_indices", None) or [])


def is_index(value: Any) -> bool:
    """Whether a tensor may hold indices: integers, more than one of them."""
    torch = library()
    return getattr(value, "dtype", None) in (torch.int32, torch.int64) and value.ndim > 0


def index_buffers(graph: Any, static_inputs: Sequence[int]) -> set[str]:
    """The names of the inputs of a graph, among some by number, that hold indices."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    static = [nodes[number] for number in static_inputs]
    return {node.name for node in static if is_index(node.meta.get("val"))}


def decompositions() -> Any:
    """Those to core ATen, of norms that take statistics of a batch, and of dropout.

    Dropout has random numbers that are a function of a seed: torch draws seeds alone, and all else
    can be one part.
    """
    torch = library()
    aten = torch.ops.aten
    norms = torch._decomp.get_decompositions(
        [
            aten._native_batch_norm_legit_functional,
            aten._native_batch_norm_legit.no_stats,
            aten._batch_norm_with_update_functional,
            aten.batch_norm_backward,
        ]
    )
    return {**core_operators(), **norms, aten.native_dropout.default: _dropout}


def _dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    torch = library()
    if train is False or p in (0, 1):
        keeps = train is False or p == 0
        kept = torch.full(x.shape, keeps, dtype=torch.bool, device=x.device)
        return (x.clone() if keeps else torch.zeros_like(x)), kept
    seed = torch.randint(-(1 << 63), (1 << 63) - 1, (), dtype=torch.int64, device=x.device)
    kept = random_uniform()(seed, x.shape) >= p
    return x * kept * (1 / (1 - p)), kept


def partition(joint: Any, inputs: Any, **options: Any) -> Any:
    """Divide a joint graph as torch does; both parts have computations with indices, and views.

    So no view is a result of the first part that the second one takes, and none is copied.
    """
    partitioners = importlib.import_module("torch._functorch.partitioners")
    policy = importlib.import_module("torch.utils.checkpoint").CheckpointPolicy
    nondeterministic = library().Tag.nondeterministic_seeded
    known = index_buffers(joint, options.get("static_lifetime_input_indices") or ())
    for node in joint.graph.nodes:
        if node.op != "call_function" or nondeterministic in getattr(node.target, "tags", ()):
            continue
        if all(operand.name in known for operand in node.all_input_nodes):
            known.add(node.name)
        if node.name in known or getattr(node.target, "is_view", False):
            node.meta["recompute"] = policy.MUST_RECOMPUTE
    return partitioners.default_partition(joint, inputs, **options)
