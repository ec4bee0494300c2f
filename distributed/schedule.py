"""`ExchangeSchedule`, what a run exchanges and for how long, and `Traffic`, what it has moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.boundary.specs import ValueSpec
from ..dialects.graph.attrs import ReduceKind


@dataclass
class Traffic:
    """What a run has moved between parts, in bytes.

    Attributes:
        sent: for each stage the bytes of halos that travelled; those of a part that ran again
            count once.
        shared: for each stage those that were read from maps, or memory, of the same host.
        lost: the workers that ended during the run; on Dask, also those that waited for their rows.
    """

    sent: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def exchanged(self) -> list[int]:
        """For each stage the bytes of halos that came from other parts."""
        return [a + b for a, b in zip(self.sent, self.shared, strict=True)]


@dataclass(frozen=True)
class ExchangeSchedule:
    """What is exchanged, and how long it is needed.

    Attributes:
        received: for each stage the values that are exchanged before it.
        last_use: for each value the number of the last stage that reads it.
        combined: the results over all nodes, and how those of parts are combined.
        specs: the shape and the element type of each value on a part.
    """

    received: Sequence[Sequence[str]]
    last_use: Mapping[str, int]
    combined: Mapping[str, ReduceKind]
    specs: Mapping[str, ValueSpec]

    @property
    def exchanged(self) -> set[str]:
        """The values that are exchanged at some time."""
        return {value for values in self.received for value in values}
