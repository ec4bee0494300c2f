"""The elements of a buffer that a store in loops reaches, found by eliminating loop by loop.

Where i runs up to n, the elements from 4 * i up to 4 * i + 4 are those from 0 up to 4 * n, and
those up to the smaller one of 4 * i + 4 and m are those up to the smaller one of 4 * n and m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....core.algebra.expressions import (
    CEIL,
    MOD,
    Affine,
    Atom,
    Quotient,
    divided,
    split,
    substituted,
    variables,
)
from ....core.algebra.polynomials import Polynomial
from ..loops import is_made_in
from ..ops_loops import ForOp
from .indices import KnownIndices
from .segments import Segment

_MOST_STEPS = 64
"""The most variables that are eliminated, also those that are made by dividing others."""


@dataclass
class Interval:
    """Indices from `start` up to, but not including, the smallest one of `ends`.

    All up to `size` have to be stored. For indices in segments, these may be numbers of segments.
    """

    start: Affine
    ends: list[Affine]
    size: Affine
    is_numbers: bool = False


Box = list[Interval]
"""The elements with an index in each of these intervals, one for each dimension."""


@dataclass
class LoopVariable:
    """The variable of a loop or a lane: from 0 up to the smallest one of `bounds`."""

    loop: ForOp | None
    bounds: list[Affine]


class StoredRegion:
    """The elements that a store reaches.

    Args:
        known: what is known of index values.
        box: the place of the store in an iteration.
        variables: those of loops around it and of lanes, inner ones first.
        segments: the segments that begin at index values.
        count_of: how many segments a division has, and where the last one ends.
        facts: what is not negative in a buffer that has elements.
        positions: the positions of entries, from where their rows begin.
    """

    def __init__(
        self,
        known: KnownIndices,
        box: Box,
        variables: dict[Atom, LoopVariable],
        segments: dict[Atom, Segment],
        count_of: Callable[[Segment], tuple[Affine, Affine] | None],
        facts: Sequence[Affine],
        positions: Mapping[Atom, Affine],
    ) -> None:
        self.box = box
        self._known, self._variables, self._segments = known, variables, segments
        self._count_of, self._given = count_of, facts
        self._substitute(positions)

    def is_swept(self) -> bool:
        """Whether all variables could be eliminated: then `box` is the region that is reached."""
        for _ in range(_MOST_STEPS):
            self._count_segments()
            if not self._variables:
                break
            inner_first = list(self._variables)
            if not any(self._eliminate(v) or self._divide(v) for v in inner_first):
                return False
        for interval in self.box:
            left = [end for end in interval.ends if not self._reaches(end, interval.size)]
            interval.ends = left or [interval.size]
            if any(map(self._varies, (interval.start, *left))):
                return False
        return not self._variables

    # Elimination.

    # [s, min(f * b + s, e)) is in the union over 0 <= i < b of [f * i + s, min(f * i + s + d, e))
    # for d >= f > 0
    def _eliminate(self, variable: Atom) -> bool:
        """Unite what is reached in the iterations of a loop that no other one depends on."""
        bounds = self._variables[variable].bounds
        others = (v.bounds for atom, v in self._variables.items() if atom != variable)
        if any(self._depends(bound, variable) for own in others for bound in own):
            return False
        used = [one for one in self.box if self._depends(one.start, variable)]
        if not used:
            runs = all(self._runs_or_is_empty(variable, bound) for bound in bounds)
            return runs and self._leave(variable)
        factor, start = split(used[0].start, variable)
        if len(used) > 1 or factor is None or self._depends(start, variable):
            return False
        number = factor.number
        if number is not None and number < 0 and len(bounds) == 1:
            self._substitute({variable: bounds[0] - 1 - Polynomial.atom(variable)})
            return self._eliminate(variable)
        # It need not have an iteration.
        outside = self._facts(except_of=variable)
        if self._depends(factor, variable) or not self._known.is_below_0(-factor, outside):
            return False
        own = [end for end in used[0].ends if self._joins(end - used[0].start, factor, variable)]
        if not own:
            return False
        before = used[0].ends
        used[0].ends = [end for end in before if end not in own]
        if not self._leave(variable):
            used[0].ends = before
            return False
        used[0].start = start
        used[0].ends += [start + factor * bound for bound in bounds]
        return True

    def _runs_or_is_empty(self, variable: Atom, bound: Affine) -> bool:
        """Whether a bound of a loop is above 0, or else an interval is empty."""
        facts = self._facts(except_of=variable)
        if self._known.is_below_0(-bound, facts):
            return True
        # b <= 0 and l - d * b <= 0  =>  l <= 0
        factors = {1, *(atom.divisor for atom in bound.atoms if isinstance(atom, Quotient))}
        lengths = (end - one.start for one in self.box for end in one.ends)
        return any(
            self._known.is_below_0(length - bound * factor - 1, facts)
            for length in lengths
            if not self._depends(length, variable)
            for factor in sorted(factors)
        )

    def _joins(self, length: Affine, factor: Affine, variable: Atom) -> bool:
        """Whether an interval of some length reaches the one that begins `factor` later."""
        fixed = not self._depends(length, variable)
        return fixed and self._known.is_below_0(factor - length - 1, self._facts())

    def _leave(self, variable: Atom) -> bool:
        """Drop a variable if the ends that depend on it are not below the sizes."""
        dependent = [
            (interval, end)
            for interval in self.box
            for end in interval.ends
            if self._depends(end, variable)
        ]
        if not all(self._reaches(end, interval.size) for interval, end in dependent):
            return False
        for interval, end in dependent:
            interval.ends.remove(end)
            if not interval.ends:
                interval.ends.append(interval.size)
        del self._variables[variable]
        return True

    def _reaches(self, end: Affine, size: Affine) -> bool:
        return self._known.is_below_0(size - end - 1, self._facts())

    def _facts(self, except_of: Atom | None = None) -> list[Affine]:
        """What is not negative in the iterations of the loops that are left."""
        left = ((atom, v) for atom, v in self._variables.items() if atom != except_of)
        bounds = ((atom, end) for atom, v in left for end in v.bounds)
        return [*self._given, *(end - 1 - Polynomial.atom(atom) for atom, end in bounds)]

    def _depends(self, value: Affine, variable: Atom) -> bool:
        """Whether a value may differ between iterations of a loop."""
        loop = self._variables[variable].loop
        for atom in variables(value):
            if atom == variable:
                return True
            if (segment := self._segments.get(atom)) is not None:
                parts = (segment.number, *segment.sizes)
                if any(self._depends(part, variable) for part in parts):
                    return True
                continue
            made = None if atom in self._variables else self._known.values.get(atom)
            if made is not None and loop is not None and is_made_in(made, loop):
                return True
        return False

    def _varies(self, value: Affine) -> bool:
        """Whether a value may differ between iterations of loops that were eliminated."""
        found = (self._known.values.get(atom) for atom in variables(value))
        return any(
            isinstance(made.owner.parent_op(), ForOp) for made in found if made is not None
        ) or any(atom in self._segments for atom in variables(value))

    # Division.

    # i == d * (i floordiv d) + i mod d
    def _divide(self, variable: Atom) -> bool:
        """Put a quotient and a remainder in place of a variable that indices are quotients of."""
        _, most = self._known.ranges.of(Polynomial.atom(variable))
        found = {n for one in self.box for n in _divisors(one.start, variable)}
        divisor = min((n for n in found if most is None or n <= most), default=None)
        if divisor is None:
            return False
        old, size = self._variables[variable], None if most is None else most // divisor + 1
        part = self._known.below(divisor, "remainder", variable, divisor)
        whole = self._known.below(size, "quotient", variable, divisor)
        parts: dict[Atom, LoopVariable] = {
            part: LoopVariable(old.loop, [Polynomial.of(divisor)]),
            whole: LoopVariable(old.loop, [divided(CEIL, bound, divisor) for bound in old.bounds]),
        }
        ends = (bound for bound in old.bounds if divided(MOD, bound, divisor) != 0)
        parts[part].bounds += [end - Polynomial.atom(whole) * divisor for end in ends]
        order = list(self._variables.items())
        place = [atom for atom, _ in order].index(variable)
        order[place : place + 1] = parts.items()
        self._variables = dict(order)
        self._substitute({variable: Polynomial.atom(whole) * divisor + Polynomial.atom(part)})
        return True

    def _substitute(self, values: Mapping[Atom, Affine]) -> None:
        def new(value: Affine) -> Affine:
            return self._known.ranges.folded(substituted(value, values))

        for interval in self.box:
            interval.start, interval.ends = new(interval.start), list(map(new, interval.ends))
        for variable in self._variables.values():
            variable.bounds = list(map(new, variable.bounds))
        self._segments = {
            atom: Segment(one.division, tuple(map(new, one.sizes)), new(one.number))
            for atom, one in self._segments.items()
        }

    # Segments.

    # the union over m <= k < n of the segments k  ==  from where m begins to where n begins
    def _count_segments(self) -> None:
        """Put the numbers of segments in place of where they begin and end."""
        for interval in self.box:
            begin = self._begun(interval.start)
            counted = None if begin is None else self._count_of(begin)
            if begin is None or counted is None or not self._reaches(counted[1], interval.size):
                continue
            ends = [(end, self._begun(end)) for end in interval.ends]
            numbers = [s.number for _, s in ends if s is not None and _is_beside(begin, s)]
            rest = [end for end, s in ends if s is None or not _is_beside(begin, s)]
            if numbers and all(self._reaches(end, interval.size) for end in rest):
                interval.start, interval.ends, interval.size = begin.number, numbers, counted[0]
                interval.is_numbers = True

    def _begun(self, value: Affine) -> Segment | None:
        atom = value.single_atom
        return None if atom is None else self._segments.get(atom)


def _is_beside(one: Segment, other: Segment) -> bool:
    """Whether two segments are of one division."""
    return (one.division, one.sizes) == (other.division, other.sizes)


def _divisors(value: Affine, variable: Atom) -> Iterator[int]:
    """The numbers of iterations after which quotients in a value are the next ones."""
    for atom in value.atoms:
        if isinstance(atom, Quotient):
            factor = atom.dividend.coefficient(variable)
            if factor > 0 and atom.divisor % factor == 0 and atom.divisor > factor:
                yield atom.divisor // factor
            yield from _divisors(atom.dividend, variable)
