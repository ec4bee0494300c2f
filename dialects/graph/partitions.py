"""How operators work where a graph is split into parts: what `graph-split-at-halo` asks."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping

from xdsl.ir import Attribute, Operation

from .attrs import ReduceKind

OverParts = tuple[ReduceKind, Mapping[str, Attribute]]
"""The kind of the reduction of partial results, and the properties of the operator on a part."""


class PartitionInterface(Operation, ABC):
    """An operator that works on a part of a graph with other properties, or over all parts."""

    @property
    def on_part(self) -> dict[str, Attribute] | None:
        """The properties with which the operator works on a part of a graph.

        The matrix of a part has columns for its own nodes, which are its rows, and then for nodes
        of other parts. Asked only of operators that compute with the numbers of rows or columns;
        None, the default: such an operator works on no part.
        """
        return None

    @property
    def over_parts(self) -> OverParts | None:
        """How a result over all nodes follows from those over the nodes of each part of a graph.

        It is the kind of the reduction of the partial results, and the properties with which the
        operator works on a part, which may have no nodes. A mean is weighted by the number of
        nodes. None, the default, if a result is not such a reduction along axis 0.
        """
        return None
