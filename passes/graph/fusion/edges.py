"""Why two groups are two kernels: the recorded reason of each edge between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .grouping import Grouping
from .groups import Group


@dataclass(frozen=True)
class Edge:
    """That one group reads from memory what another one computes, and why it does."""

    maker: Group
    reader: Group
    why: str


def edges(grouping: Grouping) -> Iterator[Edge]:
    """The edges between groups; one for each two groups, about the first value that is read."""
    for reader in grouping.groups:
        seen = {reader}
        for op in reader.ops:
            for value in op.operands:
                maker = grouping.group_of.get(value.owner)
                if maker is not None and maker not in seen:
                    seen.add(maker)
                    yield Edge(maker, reader, grouping.refused[value, op])
