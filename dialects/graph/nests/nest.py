"""What a nest offers to operators: elements of operands, loops, scalars, indices.

`Nest` is for `GraphOp.value_at`, `WritingNest` also for `GraphOp.write`. `NestBuilder` builds
loops, `RecordingNest` records reads, and a test computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...loop.attrs import LoopKind
from ..attrs import compute_type

Indices = tuple[AffineExpr, ...]
"""One index expression for each dimension of a tensor."""


class Scalars(Protocol):
    """A place for operations on scalars."""

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A scalar constant."""
        ...

    def insert(self, op: Operation) -> SSAValue:
        """Append an operation on scalars; returns its first result, or that of an equal one."""
        ...

    def compute_type(self, element_type: Attribute) -> Attribute:
        """The type in which scalars of this element type are computed: `attrs.compute_type`."""
        return compute_type(element_type)


class Places(Scalars, Protocol):
    """The same, with index expressions of integers."""

    @abstractmethod
    def index(self, value: SSAValue) -> AffineExpr:
        """A computed integer as an index expression."""

    @abstractmethod
    def value(self, expr: AffineExpr) -> SSAValue:
        """An index expression as a scalar of type `index`."""


Step = Callable[[Indices, SSAValue], SSAValue]
"""From the iteration indices and the accumulator to the new accumulator."""
Steps = Callable[[Indices, Sequence[SSAValue]], Sequence[SSAValue]]
"""The same of several accumulators at once."""
PlaceStep = Callable[[AffineExpr, AffineExpr, SSAValue], SSAValue]
"""The same of stored entries: from the position of one, its column, and the accumulator."""
PlaceSteps = Callable[[AffineExpr, AffineExpr, Sequence[SSAValue]], Sequence[SSAValue]]
"""The same of several accumulators at once."""
SerialStep = Callable[[AffineExpr, Sequence[SSAValue]], Sequence[SSAValue]]
"""From the index of an iteration and the carried values to the next ones."""


class Nest(Places):
    """What the conversion to loops offers to `GraphOp.value_at`.

    Index expressions are affine expressions whose dims are numbered by the nest: an operator
    only combines them, with ``+``, and with ``*``, ``floordiv`` and ``mod`` by constants.
    """

    @abstractmethod
    def at(self, value: SSAValue, index: Indices) -> SSAValue:
        """The scalar of an operand at an index, in `compute_type`; i1 arrives as i1."""

    @abstractmethod
    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        """The size of a dimension: a constant, or a dim bound to a size."""

    def reduce(
        self, extents: Sequence[AffineExpr], combine: str, init: SSAValue, step: Step
    ) -> SSAValue:
        """Fold over the iteration space `extents`, starting at `init`.

        `combine` says how partial accumulators join: add, mul, max or min. The step only computes:
        it writes to no result, and to no local buffer but one of its own.
        """

        def steps(index: Indices, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [step(index, totals[0])]

        return self.reduce_several(extents, [combine], [init], steps)[0]

    @abstractmethod
    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        """Fold several accumulators at once over `extents`, each with how its parts join.

        One that depends on another, as a sum does that is rescaled by a running maximum, joins
        in a way of its own: "custom". The step only computes, as that of `reduce`.
        """

    def pattern(
        self, matrix: SSAValue, row: AffineExpr, combine: str, init: SSAValue, step: PlaceStep
    ) -> SSAValue:
        """Fold over the places of the stored entries of a row of a CSR matrix."""

        def steps(
            position: AffineExpr, column: AffineExpr, totals: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            return [step(position, column, totals[0])]

        return self.pattern_several(matrix, row, [combine], [init], steps)[0]

    @abstractmethod
    def pattern_several(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        """Fold several accumulators at once over those places; see `reduce_several`."""

    @abstractmethod
    def entry(self, matrix: SSAValue, position: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        """The row and the column of the stored entry at a position."""

    @abstractmethod
    def stored_entry(self, matrix: SSAValue, position: AffineExpr) -> SSAValue:
        """The value of the stored entry at a position, in the type in which it is computed."""

    @abstractmethod
    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        """The number of stored entries of a row."""


class LocalBuffer(ABC):
    """A buffer of `WritingNest.local`."""

    @abstractmethod
    def at(self, index: Indices) -> SSAValue:
        """The element at an index, which has been put there before."""

    @abstractmethod
    def put(self, index: Indices, value: SSAValue, combine: str | None = None) -> None:
        """Change the element at an index.

        It becomes the scalar, or what is there combined with it by add, mul, max or min. Parallel
        iterations must not meet in an element.
        """


class Loops(Places, Protocol):
    """A place for loops: see `WritingNest`."""

    @abstractmethod
    def loops(
        self, extents: Sequence[AffineExpr], kind: LoopKind = LoopKind.PARALLEL
    ) -> AbstractContextManager[Indices]:
        """Open nested loops within the context, parallel or serial, and give their variables."""

    @abstractmethod
    def serial(
        self, extent: AffineExpr, inits: Sequence[SSAValue], step: SerialStep
    ) -> Sequence[SSAValue]:
        """Run `step` for each index from 0 on, in order, and return the last carried values.

        `step` is given the index and the carried values, and returns their next values.
        """

    @abstractmethod
    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        """Fold several accumulators at once over `extents`: see `Nest.reduce_several`."""

    @abstractmethod
    def local(self, shape: Indices, type: Attribute) -> LocalBuffer:
        """A buffer in the innermost open loop, each of whose iterations has its own.

        Its elements are scalars of `type`, and undefined at first. Sizes are positive numbers, or
        symbolic and not negative. No index is checked: an operator proves that each is inside.
        """


class WritingNest(Loops, Nest):
    """What the conversion to loops offers to `GraphOp.write`: loops whose bodies have effects.

    Operands are read as in `value_at`, so what computes them is fused. The elements of a result
    are either written once each by `write`, and what follows elementwise is computed there as
    well, or they get a first value by `fill` and are then changed by `update`. That each element is
    written has to follow from the loops and indices: see `loop/coverage.py` and `loop/counted.py`.
    """

    @abstractmethod
    def write(self, result: int, index: Indices, value: SSAValue) -> None:
        """Write an element of a result, which is a scalar in `compute_type`."""

    @abstractmethod
    def fill(self, result: int, value: Callable[[Indices], SSAValue]) -> None:
        """Give each element of a result its first value: `value` at its index."""

    @abstractmethod
    def update(
        self, result: int, index: Indices, value: SSAValue, combine: str | None = None
    ) -> None:
        """Change an element of a result that is filled.

        It becomes the scalar, or what is there combined with it by add, mul, max or min.
        """
