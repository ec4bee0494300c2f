"""Groups of operators, proposals to merge two of them, and what that gains."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from xdsl.ir import Operation, SSAValue

from ....dialects.graph.demands import size_results
from ....dialects.graph.interfaces import FusionKind, GraphOp


class Gain(Enum):
    """What is gained where two groups become one kernel, in words."""

    EPILOGUE = "its epilogue is computed while the result is in registers"
    FRAME = "what is padded is stored where it will be, and a constant around it"
    USER = "elementwise operators are computed where they are used"
    STORED = "what it stores is read by the next operators while it is in registers"
    PARTS = "the parts of the product that they read are computed together"
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
        """The results that are used elsewhere, or are sizes."""
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
    """The results of operators that others use, or that are sizes.

    Where nobody uses a result of the last operator, these are all that it has.
    """
    *inner, last = ops
    inside = set[Operation](ops)
    shared = [
        result
        for op in inner
        for result in op.results
        if result in size_results(op) or not inside.issuperset(users_of([result]))
    ]
    sizes = size_results(last)
    used = [v for v in last.results if v in sizes or v.first_use is not None]
    return [*shared, *(used or last.results)]


def users_of(values: Iterable[SSAValue]) -> list[Operation]:
    """The operations that use values, each once, in a fixed order."""
    found: dict[Operation, None] = {}
    for value in values:
        # By `value.uses` this function would take three times as long, 4 % of compiling DenseNet.
        use = value.first_use
        while use is not None:
            found[use.operation] = None
            use = use._next_use  # pyright: ignore[reportPrivateUsage]
    return list(found)


class FusionRegion:
    """An operator and those that follow it elementwise, from one proposal to the next.

    Args:
        anchor: the operator.
        separate: whether what follows each of its results is proposed by itself.
    """

    def __init__(self, anchor: GraphOp, separate: bool) -> None:
        every = frozenset[SSAValue](anchor.results)
        self.ops: dict[Operation, None] = {anchor: None}
        self.open = set[SSAValue](every)
        """The results that may have more followers."""
        self._sources = {value: frozenset({value}) if separate else every for value in every}
        self._leaving: set[SSAValue | GraphOp] = set(anchor.results)
        self._waiting: list[GraphOp] = []

    def sources_of(self, op: Operation) -> frozenset[SSAValue]:
        """The results of the first operator that an operator reads, by way of others or not."""
        found = [self._sources[value] for value in op.operands if value in self._sources]
        return frozenset[SSAValue]().union(*found)

    def add(self, op: GraphOp) -> list[GraphOp]:
        """Add an operator; returns it and those that wait if nothing else leaves the region.

        That is nothing else that is made of the same results.
        """
        sources = self.sources_of(op)
        self.ops[op] = None
        self._sources |= dict.fromkeys(op.results, sources)
        self._waiting.append(op)
        self._leaving = {part for part in {*self._leaving, op} if self._leaves(part)}
        if any(part is not op and self._meets(part, sources) for part in self._leaving):
            return []
        segment = [waiting for waiting in self._waiting if self._meets(waiting, sources)]
        self._waiting = [waiting for waiting in self._waiting if waiting not in segment]
        return segment

    def _meets(self, part: SSAValue | GraphOp, sources: frozenset[SSAValue]) -> bool:
        """Whether a value or what an operator makes follows from one of these results."""
        value = part if isinstance(part, SSAValue) else part.results[0]
        return not self._sources[value].isdisjoint(sources)

    def _leaves(self, part: SSAValue | GraphOp) -> bool:
        """Whether a value, or what an operator makes, is needed outside of the region."""
        is_value = isinstance(part, SSAValue)
        users = users_of([part] if is_value else part.results)
        return any(user not in self.ops for user in users) or not (is_value or users)
