"""When the accesses of a kernel are inside of their buffers, in the sizes that it is called with.

What is below 0 for an index to be inside (`-index - 1`, `index - size`) is bounded from above by
the facts of `known.py`, until only sizes are left: then it is either known to be below 0, or a
condition of each call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import affine, arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from ...core.building.affine import (
    FLOOR,
    MOD,
    Affine,
    Atom,
    DivisorError,
    Quotient,
    Variable,
)
from ...core.building.polynomials import Polynomial
from ...core.dims import Dim
from .dependences import place_text
from .known import Known, KnownIndices
from .linear import joined, split, substituted
from .loops import enclosing
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp
from .ops_partition import PartitionPointOp
from .ops_values import block_shape

_MOST_STEPS = 400
"""The most bounds that are tried for one index: what takes more is not found."""

_MOST_NUMBERS = 64
"""The most numbers that are tried one by one."""

Conditions = frozenset[Affine]
"""Polynomials over sizes that have to be below 0."""

_NONE: Conditions = frozenset()


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

    def __init__(self, known: Known) -> None:
        super().__init__(known)
        self._steps = 0

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
        if not self._fits(access):
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
                self._steps = _MOST_STEPS
                found = self._needed(value, facts)
                if found is None:
                    yield Unproved(access, dimension)
                    break
                yield from (self._in_sizes(condition) for condition in sorted(found, key=_order))

    def is_below(self, access: LoadOp, dimension: int, size: int) -> bool:
        """Whether an index of an access is below a number in all calls."""
        if not self._fits(access):
            return False
        try:
            value = self.place(access, 0)[dimension] - size
            return self.is_below_0(value, self._facts_at(access))
        except DivisorError:
            return False

    def _facts_at(self, access: Reader, loops: Iterable[ForOp] | None = None) -> list[Affine]:
        """What holds where an access runs."""
        facts = list(self._facts_in(enclosing(access) if loops is None else loops))
        return [*facts, *self._facts_of_lanes([first for _, first, _ in self._places(access)])]

    def _places(self, access: Reader) -> Iterator[tuple[int, Affine, Affine]]:
        """The dimensions of the buffer, each with the first and the last index that is accessed."""
        match access:
            case ForOp():
                (row,) = self._applied(access.bound.data, access.bounds, 0)
                yield 0, row, row + 1
            case PartitionPointOp():
                yield 0, Polynomial.of(0), self._of(access.rows)
            case _:
                yield from (
                    (axis, index, index) for axis, index in enumerate(self.place(access, 0))
                )

    def _fits(self, access: Reader) -> bool:
        """Whether the index is computed in 64 bits."""
        match access:
            case ForOp():
                return self.magnitudes.fits(access.bound.data, access.bounds)
            case LoadOp() | StoreOp():
                kind = access.result.type if isinstance(access, LoadOp) else access.value.type
                return self.magnitudes.fits(access.map.data, access.indices, block_shape(kind))
            case _:
                return True

    # Proofs.

    def is_below_0(self, value: Affine, facts: Sequence[Affine] = ()) -> bool:
        """Whether a value is below 0 in all calls, wherever no fact is negative."""
        self._steps = _MOST_STEPS
        return self._needed(value, facts) == _NONE

    def _needed(self, value: Affine, facts: Sequence[Affine]) -> Conditions | None:
        """Conditions under which a value is below 0; None if none are found."""
        value, self._steps = joined(value), self._steps - 1
        if self._is_below_0(value) or any(self._is_below_0(value + fact) for fact in facts):
            return _NONE
        if self._steps <= 0:
            return None
        if (less := _without_pairs(value)) != value:
            return self._needed(less, facts)
        unknown = sorted((a for a in value.atoms if a not in self.names), key=_first)
        if unknown:
            # Quotients first, as a variable may be in one; or the variable that came last.
            atoms = dict.fromkeys(
                (unknown[0], *[a for a in unknown if isinstance(a, Variable)][:1])
            )
            found = self._best(one for a in atoms for one in self._without(value, a, facts))
            never = found != _NONE and any(self._never_fails(value, a, facts) for a in value.atoms)
            return _NONE if never else found
        lowest, _ = self.ranges.of(value)
        if lowest is not None and lowest >= 0:
            return None
        if any(self._never_fails(value, atom, facts) for atom in value.atoms):
            return _NONE
        # The same condition, with the smallest numbers:
        # a * x + b < 0  ==  x <= (-b - 1) floordiv a  for a > 0
        common = math.gcd(*(factor for monomial, factor in value.terms if monomial)) or 1
        terms = [(monomial, factor // common) for monomial, factor in value.terms if monomial]
        return frozenset([Polynomial(terms) - ((-1 - value.constant) // common) - 1])

    # For a fact f(n):  not f(0) and .. and not f(k)  =>  k - n < 0
    def _never_fails(self, value: Affine, unknown: Atom, facts: Sequence[Affine]) -> bool:
        """Whether a value is below 0 but for a few numbers, with each of which no fact holds."""
        own, factor = Polynomial.atom(unknown), value.coefficient(unknown)
        _, most = self.ranges.of(value - own * factor)
        if factor >= 0 or most is None or most < 0 or most // -factor >= _MOST_NUMBERS:
            return False
        if unknown not in self.names and self._needed(-own - 1, facts) != _NONE:
            return False
        few = range(most // -factor + 1)
        return all(
            any(
                self._is_below_0(substituted(fact, {unknown: Polynomial.of(number)}))
                for fact in facts
            )
            for number in few
        )

    def _is_below_0(self, value: Affine) -> bool:
        _, most = self.ranges.of(value)
        return most is not None and most < 0

    def _best(self, found: Iterable[Conditions | None]) -> Conditions | None:
        """The fewest conditions of those that are found, or the one that the other implies."""
        best: Conditions | None = None
        for one in found:
            if one is not None and (best is None or self._is_weaker(one, best)):
                best = one
            if best == _NONE:
                break
        return best

    def _is_weaker(self, one: Conditions, other: Conditions) -> bool:
        if len(one) != 1 or len(other) != 1:
            return len(one) < len(other)
        (value,), (stronger,) = one, other
        return value != stronger and self.ranges.is_nonnegative(stronger - value)

    def _both(self, values: Iterable[tuple[Affine, Sequence[Affine]]]) -> Conditions | None:
        """The conditions under which several values are below 0."""
        total = _NONE
        for value, facts in values:
            found = self._needed(value, facts)
            if found is None:
                return None
            total |= found
        return total

    def _without(
        self, value: Affine, atom: Atom, facts: Sequence[Affine]
    ) -> Iterator[Conditions | None]:
        """The conditions for a value, by all bounds of one of its unknowns."""
        factor, rest = split(value, atom)
        if factor is None:
            return
        rising, falling = self.ranges.is_nonnegative(factor), self.ranges.is_nonnegative(-factor)
        if not rising and not falling:
            return
        if isinstance(atom, Quotient):
            for end, scale in _ends_of(atom, rising):
                yield self._needed(factor * end + rest * scale, facts)
            return
        op = None if (given := self.value(atom)) is None else given.owner
        if isinstance(op, Operation):
            yield from self._without_choice(op, factor, rest, facts, rising)
        for fact in (*facts, *self._facts_of(atom)):
            times, end = split(fact, atom)
            number = None if times is None else times.number
            if number is None or number == 0 or (number < 0) != rising:
                continue
            # fact == end - n * atom >= 0  ==>  n * atom <= end, and the same from below.
            bound = end if number < 0 else -end
            yield self._needed(factor * bound + rest * abs(number), facts)
        least, most = self.ranges.of(Polynomial.atom(atom))
        if (last := most if rising else least) is not None:
            yield self._needed(factor * last + rest, facts)

    def _without_choice(
        self, op: Operation, factor: Affine, rest: Affine, facts: Sequence[Affine], rising: bool
    ) -> Iterator[Conditions | None]:
        """The conditions for a value with a minimum, a maximum or a choice in it."""
        match op:
            case arith.SelectOp():
                pairs = ((op.lhs, True), (op.rhs, False))
                yield self._both(
                    (factor * self._of(one) + rest, [*facts, *self._if(op.cond, holds)])
                    for one, holds in pairs
                )
                return
            case arith.MinSIOp() | arith.MaxSIOp():
                parts = [self._of(op.lhs), self._of(op.rhs)]
            case affine.MinOp():
                parts = self._applied(op.map.data, op.operands, 0)
            case _:
                return
        values = [factor * part + rest for part in parts]
        # A minimum is at most each of its parts, and at least one of them.
        if rising == isinstance(op, arith.MaxSIOp):
            yield self._both((value, facts) for value in values)
        else:
            yield from (self._needed(value, facts) for value in values)
            if len(values) == 2:
                # max(a, b) >= (a + b) / 2 >= min(a, b), which is all there is of max(a, -a).
                yield self._needed(values[0] + values[1], facts)


# a floordiv d - b floordiv d <= (a - b) ceildiv d  where a - b is a number
def _without_pairs(value: Affine) -> Affine:
    """An upper bound in which no quotient is subtracted from one of nearly the same dividend."""
    cuts = [a for a in value.atoms if isinstance(a, Quotient) and a.function is FLOOR]
    for one, other in itertools.permutations(cuts, 2):
        count = min(value.coefficient(one), -value.coefficient(other))
        apart = (one.dividend - other.dividend).number
        if count > 0 and one.divisor == other.divisor and apart is not None:
            pair = Polynomial.atom(one) - Polynomial.atom(other)
            return _without_pairs(value + (-(-apart // one.divisor) - pair) * count)
    return value


def _ends_of(atom: Quotient, upper: bool) -> Iterator[tuple[Affine, int]]:
    """Upper or lower bounds of a number of times a quotient or a remainder, with that number."""
    dividend, divisor = atom.dividend, atom.divisor
    if atom.function is MOD:
        yield Polynomial.of(divisor - 1 if upper else 0), 1
    elif atom.function is FLOOR:
        yield dividend + (0 if upper else 1 - divisor), divisor
    else:
        yield dividend + (divisor - 1 if upper else 0), divisor


def _first(atom: Atom) -> tuple[int, int]:
    """Quotients before variables and before those in them, variables that came later first."""
    return (0, -_depth(atom)) if isinstance(atom, Quotient) else (1, -atom.position)


def _depth(atom: Atom) -> int:
    """How many quotients are in one another."""
    if not isinstance(atom, Quotient):
        return 0
    return 1 + max(map(_depth, atom.dividend.atoms), default=0)


def _order(value: Affine) -> str:
    return str(value.terms)


def as_text(value: Dim) -> str:
    """The condition that a sum of sizes is below 0, as a comparison: ``x0.0 <= 3``."""
    factors = math.gcd(*(factor for monomial, factor in value.terms if monomial))
    most = (-1 - value.constant) // factors
    terms = [(monomial, factor // factors) for monomial, factor in value.terms if monomial]
    left = Dim([term for term in terms if term[1] > 0])
    right = -Dim([term for term in terms if term[1] < 0])
    left, right = (left, right + most) if most >= 0 else (left - most, right)
    return f"{left} <= {right}"
