"""When the accesses of a kernel are inside of their buffers, in the sizes that it is called with.

An index is inside where `-index - 1` and `index - size` are below 0: the question of
`core/algebra/follows.py`. Where only sizes are missing for a proof, they are a condition of each
call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from ....core.algebra.affine import DivisorError
from ....core.algebra.dims import Dim
from ....core.algebra.expressions import Affine
from ....core.algebra.follows import Missing, follows, in_order
from ....core.algebra.polynomials import Polynomial
from ..loops import enclosing
from ..ops_access import LoadOp, StoreOp
from ..ops_loops import ForOp
from ..ops_partition import PartitionPointOp
from ..ops_values import block_shape
from .dependences import place_text
from .indices import KnownIndices

Reader: TypeAlias = LoadOp | StoreOp | ForOp | PartitionPointOp
"""What accesses buffers: loads and stores, loops over entries, searches in row pointers."""


@dataclass(frozen=True)
class Unproved:
    """An access of which it is not known to be inside of its buffer."""

    access: Reader
    dimension: int

    @property
    def buffer(self) -> SSAValue:
        """The buffer that may not have the index."""
        return buffer_of(self.access)

    def __str__(self) -> str:
        match self.access:
            case ForOp(bound=map) | LoadOp(map=map) | StoreOp(map=map):
                return place_text(self.buffer, map.data, indices_of(self.access))
            case _:
                return place_text(self.buffer, AffineMap.identity(1), indices_of(self.access))


def readers_in(kernel: Operation) -> Iterator[Reader]:
    """The operations that access buffers at an index."""
    for op in kernel.walk():
        if isinstance(op, LoadOp | StoreOp | PartitionPointOp) or (
            isinstance(op, ForOp) and op.over_entries
        ):
            yield op


def indices_of(access: Reader) -> Sequence[SSAValue]:
    """The indices from which the place of an access is computed."""
    match access:
        case ForOp():
            return access.bounds
        case PartitionPointOp():
            return [access.rows]
        case _:
            return access.indices


def buffer_of(access: Reader) -> SSAValue:
    """The buffer that is accessed; of a loop over entries the row pointers."""
    match access:
        case ForOp():
            return access.matrix[0]
        case PartitionPointOp():
            return access.indptr
        case _:
            return access.buffer


class Inside(KnownIndices):
    """Finds the conditions under which accesses are inside of their buffers."""

    def is_inside(self, access: Reader, loops: Iterable[ForOp]) -> bool:
        """Whether an access is inside of its buffer in all calls, given the loops around it."""
        return next(self.conditions(access, loops), None) is None

    def conditions(
        self, access: Reader, loops: Iterable[ForOp] | None = None
    ) -> Iterator[Dim | Unproved]:
        """The sizes that have to be below 0 for an access to be inside of its buffer.

        Args:
            access: the access.
            loops: those around it, of which an iteration runs; by default those that it is in.
        """
        if not self.fits(access):
            yield Unproved(access, 0)
            return
        try:
            places = list(self._places(access))
            facts = self._facts_at(access, loops)
        except DivisorError:
            yield Unproved(access, 0)
            return
        for dimension, first, last in places:
            size = self.extent(buffer_of(access), dimension)
            for value in (-first - 1, last - size):
                answer = follows(value, self, facts)
                if isinstance(answer, Missing) and not answer.conditions:
                    yield Unproved(access, dimension)
                    break
                if isinstance(answer, Missing):
                    yield from map(self._in_sizes, in_order(answer.conditions))

    def is_below(self, access: LoadOp, dimension: int, size: int) -> bool:
        """Whether an index of an access is below a number in all calls."""
        if not self.fits(access):
            return False
        try:
            value = self.place(access)[dimension] - size
            return self.is_below_0(value, self._facts_at(access))
        except DivisorError:
            return False

    def _facts_at(self, access: Reader, loops: Iterable[ForOp] | None = None) -> list[Affine]:
        """What holds where an access runs."""
        facts = list(self.facts_in(enclosing(access) if loops is None else loops))
        return [*facts, *self.facts_of_lanes([first for _, first, _ in self._places(access)])]

    def _places(self, access: Reader) -> Iterator[tuple[int, Affine, Affine]]:
        """The dimensions of the buffer, each with the first and the last index that is accessed."""
        match access:
            case ForOp():
                (row,) = self.bounds_of(access)
                yield 0, row, row + 1
            case PartitionPointOp():
                yield 0, Polynomial.of(0), self.of(access.rows)
            case _:
                yield from ((axis, index, index) for axis, index in enumerate(self.place(access)))

    def fits(self, access: Reader) -> bool:
        """Whether the index is computed in 64 bits."""
        match access:
            case ForOp():
                return self.magnitudes.fits(access.bound.data, access.bounds)
            case LoadOp() | StoreOp():
                kind = access.result.type if isinstance(access, LoadOp) else access.value.type
                return self.magnitudes.fits(access.map.data, access.indices, block_shape(kind))
            case _:
                return True


def as_text(value: Dim) -> str:
    """The condition that a sum of sizes is below 0, as a comparison: ``x0.0 <= 3``."""
    factors = math.gcd(*(factor for monomial, factor in value.terms if monomial))
    most = (-1 - value.constant) // factors
    terms = [(monomial, factor // factors) for monomial, factor in value.terms if monomial]
    left = Dim([term for term in terms if term[1] > 0])
    right = -Dim([term for term in terms if term[1] < 0])
    left, right = (left, right + most) if most >= 0 else (left - most, right)
    return f"{left} <= {right}"
