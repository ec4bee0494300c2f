"""The cheapest set of values to store, so that others can be computed of them: a minimum cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class CutCosts(Generic[Value]):
    """What values cost.

    Attributes:
        operands: what a value is computed of; None where it cannot be computed.
        computing: what it costs to compute a value from its operands.
        storing: what it costs to have it stored, which is always possible.
    """

    operands: Callable[[Value], Sequence[Value] | None]
    computing: Callable[[Value], int]
    storing: Callable[[Value], int]


def cheapest(required: Iterable[Value], costs: CutCosts[Value]) -> tuple[list[Value], list[Value]]:
    """The values to store and those to compute, so that all required ones are there.

    A value is there if it is stored, or is computed and its operands are there. The choice is the
    minimum cut of a network in which each value is an edge whose capacity is the cost of storing
    it, and its beginning is joined to the source by the cost of computing it: as in the choice of
    what to recompute in a backward pass (He and Yu, Transcending runtime-memory tradeoffs, 2023).
    Of several choices it is the one that stores what is needed latest.

    Args:
        required: the values.
        costs: what they and the values that they are computed of cost.

    Returns:
        The values to store and those to compute, each from the required ones backwards.
    """
    import networkx as nx

    network = nx.DiGraph()
    network.add_nodes_from(("source", "sink"))
    reached: dict[Value, None] = dict.fromkeys(required)
    for value in reached:
        network.add_edge((value, "stored"), "sink")
    pending = list(reached)
    while pending:
        value = pending.pop(0)
        network.add_edge((value, "computed"), (value, "stored"), capacity=costs.storing(value))
        operands = costs.operands(value)
        if operands is None:
            network.add_edge("source", (value, "computed"))
            continue
        network.add_edge("source", (value, "computed"), capacity=costs.computing(value))
        for operand in operands:
            network.add_edge((operand, "stored"), (value, "computed"))
            if operand not in reached:
                reached[operand] = None
                pending.append(operand)
    _, (before, after) = nx.minimum_cut(network, "source", "sink")
    computed = [value for value in reached if (value, "computed") in after]
    stored = [v for v in reached if (v, "computed") in before and (v, "stored") in after]
    return stored, computed
