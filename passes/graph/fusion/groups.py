"""Groups of operators, proposals to merge two of them, and what that gains."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from xdsl.ir import Operation, SSAValue

from ....dialects.graph.interfaces import FusionKind, GraphOp


class Gain(Enum):
    """What is gained where two groups become one kernel, in words."""

    EPILOGUE = "its epilogue is computed while the result is in registers"
    USER = "elementwise operators are computed where they are used"
    PRODUCT = "the row of values between the products never leaves the cache"
    COMMON_REDUCTION = "reductions over the same entries of a row are computed together"
    ENTRIES = "the values of the entries of a row are computed where they are read"
    ROWS = "per-row statistics are computed before the row is visited"
    REREAD = "rows of the product are read again while they are in the cache"
    SIBLINGS = "the rows of one matrix are visited once"


@dataclass(eq=False)
class Group:
    """Operators that become one kernel, and why they may."""

    anchor: GraphOp | None
    """The operator that the loops are made for, if there is one: a contraction, a reduction, or one
    that writes its results."""
    ops: list[GraphOp] = field(default_factory=list)
    """The operators in the order of the function."""
    repeated: set[GraphOp] = field(default_factory=set)
    """Those that are computed more often than they have elements."""
    gains: list[Gain] = field(default_factory=lambda: [Gain.USER])
    """What has been gained by merging groups into this one."""

    @property
    def why(self) -> str:
        """Why the operators are one kernel: the last gain, the most common one aside."""
        return next((gain for gain in self.gains[::-1] if gain != Gain.USER), Gain.USER).value

    @property
    def results(self) -> list[SSAValue]:
        """The results that are used elsewhere, and all of the last operator."""
        return results_of(self.ops)

    def is_of(self, kind: FusionKind) -> bool:
        """Whether the operator that the loops are made for is of a kind."""
        return self.anchor is not None and self.anchor.fusion == kind


@dataclass(frozen=True)
class Proposal:
    """That one group computes what another one reads, in its kernel."""

    gain: Gain
    maker: Group
    reader: Group
    value: SSAValue

    @property
    def users(self) -> list[Operation]:
        """The operators of the reader that read the value."""
        return [user for user in users_of([self.value]) if user in self.reader.ops]


def results_of(ops: Collection[GraphOp]) -> list[SSAValue]:
    """The results of operators that others use, or that are sizes; those of the last operator."""
    *inner, last = ops
    inside = set[Operation](ops)
    shared = [
        result
        for op in inner
        for result in op.results
        if result in op.size_results or not inside.issuperset(users_of([result]))
    ]
    return [*shared, *last.results]


def users_of(values: Iterable[SSAValue]) -> list[Operation]:
    """The operations that use values, each once, in a fixed order."""
    return list(dict.fromkeys(use.operation for value in values for use in value.uses))
