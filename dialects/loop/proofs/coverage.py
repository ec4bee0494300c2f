"""Whether a kernel stores every element of its outputs, proved from its loops.

Each store reaches a box (see `regions.py`); boxes side by side cover one that is larger. Where
indices are remainders, as after `loop-fuse`, dimensions are merged: the row-major number of an
element in them is its index. What is stored under a condition, or at an index that is computed from
data, does not count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr

from ....core.algebra.affine import DivisorError
from ....core.algebra.dims import Dim
from ....core.algebra.expressions import MOD, Affine, Atom, Quotient, joined, parts_of, variables
from ....core.algebra.polynomials import Polynomial
from ....core.ir.typed import memref_type
from ..loops import enclosing
from ..ops_access import StoreOp
from ..ops_loops import ForOp
from ..ops_values import block_shape
from .indices import Known
from .inside import Inside
from .regions import Box, Interval, LoopVariable, StoredRegion
from .segments import Segment, begun

_MOST_CASES = 64
"""The most remainders of a size that are distinguished."""


@dataclass(frozen=True)
class CounterStep:
    """The iterations of a block in which a counter grows by 1: where a condition holds, or all."""

    counter: SSAValue
    block: Block
    condition: SSAValue | None = None


def is_covered(
    known: Known, output: SSAValue, width: int | None = None, step: CounterStep | None = None
) -> bool:
    """Whether each element of an output of a kernel is stored.

    Where quotients of a size bound loops, each remainder of it is a case of its own.

    Args:
        known: what is known of the arguments of the kernel.
        output: the output.
        width: how many elements of each row count; by default all.
        step: a step of a counter, in which only the elements at the counter, along the first
            dimension, have to be stored.
    """
    coverage = Coverage(known, output, width, step)
    if coverage.is_complete():
        return True
    size, divisor = coverage.divided_size()
    if size is None:
        return False
    # The size is less than the divisor, or divisor * (more + 1) + rest.
    more = Dim.symbol(f"{size} // {divisor}") * divisor + divisor
    cases = [case for rest in range(divisor) for case in (Dim.of(rest), more + rest)]
    return all(is_covered(known.with_sizes({size: case}), output, width, step) for case in cases)


class Coverage(Inside):
    """What the stores of a kernel cover of an output.

    Args:
        known: what is known of the arguments of the kernel.
        output: the output.
        width: how many elements of each row have to be stored; by default all.
        step: see `is_covered`.
    """

    def __init__(
        self,
        known: Known,
        output: SSAValue,
        width: int | None = None,
        step: CounterStep | None = None,
    ) -> None:
        super().__init__(known)
        self._step = step
        users = [use.operation for use in output.uses]
        # The list of uses begins with the last one.
        self._stores = [
            op for op in reversed(users) if isinstance(op, StoreOp) and op.accumulates is None
        ]
        self._axes = range(0 if step is None else 1, memref_type(output).get_num_dims())
        self._sizes = [self.extent(output, axis) for axis in self._axes]
        if width is not None:
            self._sizes[-1] = Polynomial.of(width)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored, or only to accumulate."""
        return not self._stores

    def is_complete(self) -> bool:
        """Whether each element is stored."""
        if any(size == 0 for size in self._sizes):
            return True
        pairs = itertools.combinations(range(len(self._sizes)), 2)
        # Whether an index of a store is computed with a remainder.
        exprs = (store.map.data.results[axis] for store in self._stores for axis in self._axes)
        parts = (part for expr in exprs for part in expr.dfs())
        has_remainders = any(isinstance(p, AffineBinaryOpExpr) and p.kind is MOD for p in parts)
        flat = [slice(first, last + 1) for first, last in pairs] if has_remainders else []
        return any(map(self._is_complete, [slice(0, 1), *flat]))

    def _is_complete(self, flat: slice) -> bool:
        boxes: list[Box] = []
        for box in self.boxes(flat):
            if self._is_all(box):
                return True
            boxes.append(box)
        # Columns whose rows are cut elsewhere are joined last.
        dims = range(len(boxes[0]) if boxes else 0)
        for dim in (*reversed(dims), *dims[1:]):
            boxes = self._joined(boxes, dim)
            if any(map(self._is_all, boxes)):
                return True
        return False

    def boxes(self, flat: slice = slice(0, 1)) -> Iterator[Box]:
        """What the stores reach, as far as it is known.

        Args:
            flat: the dimensions that are merged into one.
        """
        for store in self._stores:
            try:
                region = self._region(store, flat)
            except DivisorError:
                continue
            if region is not None and region.is_swept():
                yield region.box

    def widths(self) -> list[int]:
        """The numbers of elements of rows that stores reach, where it is not all of them."""
        rows = [box[-1] for box in self.boxes() if box]
        ends = [row.ends[0].number for row in rows if row.start == 0 and len(row.ends) == 1]
        return sorted({end for end in ends if end is not None and self._sizes[-1] != end})

    def divided_size(self) -> tuple[str | None, int]:
        """A size of which quotients bound loops around stores, and the divisor."""
        divisors: dict[str, set[int]] = {}
        for loop in {loop: None for store in self._stores for loop in enclosing(store)}:
            for bound in self.bounds_of(loop):
                for atom in (a for a in bound.atoms if isinstance(a, Quotient)):
                    sizes = [a for a in atom.dividend.atoms if a in self.sizes]
                    if len(sizes) == 1 and (factor := atom.dividend.coefficient(sizes[0])):
                        divisor = atom.divisor // math.gcd(factor, atom.divisor)
                        divisors.setdefault(self.sizes[sizes[0]], set()).add(divisor)
        for size, found in divisors.items():
            common = math.lcm(*(n for n in found if n <= _MOST_CASES))
            if 1 < common <= _MOST_CASES and "//" not in size:
                return size, common
        return None, 1

    def places(self, box: Box) -> list[tuple[Dim | None, Dim | None]]:
        """The first index of each interval and its end, None where they have no name."""
        return [
            (self._dim(one.start, one), self._dim(one.ends[0], one) if len(one.ends) == 1 else None)
            for one in box
        ]

    def shape(self) -> list[Dim | None]:
        """The sizes that have to be stored, None for those without a name."""
        return list(map(self.in_sizes, self._sizes))

    def _dim(self, value: Affine, interval: Interval) -> Dim | None:
        return None if interval.is_numbers else self.in_sizes(value)

    # Stores.

    def _region(self, store: StoreOp, flat: slice) -> StoredRegion | None:
        """What a store reaches in its loops, None where that is nothing, or an index may wrap."""
        loops = list(self._loops_around(store))
        if not all(map(self._may_run, loops)) or not self.fits(store):
            return None
        place, found = self.place(store), self._lanes(store)
        if self._step is not None and place[0] != self.of(self._step.counter):
            return None
        place = [place[axis] for axis in self._axes]
        positions, segments = dict[Atom, Affine](), dict[Atom, Segment]()
        for loop in loops:
            (atom,) = self.of(loop.variable).atoms
            if not loop.over_entries:
                found[atom] = LoopVariable(loop, _parts(self.bounds_of(loop)))
                continue
            row = self._row(loop)
            begin, end = map(Polynomial[Atom].atom, row)
            entry = self.below(None, "entry", loop)
            found[entry] = LoopVariable(loop, [end - begin])
            positions[atom] = begin + Polynomial.atom(entry)
            segments |= row
        box = self._box(place, flat)
        if box is None:
            return None
        segments |= self._segments([*place, *(end for v in found.values() for end in v.bounds)])
        facts = [size - 1 for size in self._sizes]
        return StoredRegion(self, box, found, segments, self._count_of, facts, positions)

    def _loops_around(self, store: StoreOp) -> Iterator[ForOp]:
        """The loops around a store; in a step of a counter those that are in the step.

        One that guards the store by the condition of the step runs once in it.
        """
        for loop in enclosing(store):
            if self._step is not None and loop.body.block is self._step.block:
                return
            if not self._guards_step(loop):
                yield loop

    def _guards_step(self, loop: ForOp) -> bool:
        """Whether a loop runs once where the condition of the step holds."""
        if self._step is None or self._step.condition is None or loop.over_entries:
            return False
        (bound, *others), condition = self.bounds_of(loop), self._step.condition
        value = None if others or bound.single_atom is None else self.values.get(bound.single_atom)
        op = None if value is None else value.owner
        return isinstance(op, arith.SelectOp) and op.cond is condition and self.of(op.lhs) == 1

    # n * (e floordiv n) + e mod n == e
    def _box(self, place: Sequence[Affine], flat: slice) -> Box | None:
        """The place of a store, with the dimensions of `flat` merged into one.

        None where an index may be outside of a merged dimension, the first one aside.
        """
        if not place:
            return []
        number, count = place[flat][0], self._sizes[flat][0]
        for index, size in zip(place[flat][1:], self._sizes[flat][1:], strict=True):
            most = size.number
            if not most or self.ranges.quotient(index, most) != 0:
                return None
            number, count = number * most + index, count * most
        places = [*place[: flat.start], joined(number), *place[flat.stop :]]
        sizes = [*self._sizes[: flat.start], count, *self._sizes[flat.stop :]]
        return [Interval(e, [e + 1], size) for e, size in zip(places, sizes, strict=True)]

    def _may_run(self, loop: ForOp) -> bool:
        if not self.magnitudes.fits_bounds(loop):
            return False
        most = (self.ranges.of(bound)[1] for bound in self.bounds_of(loop))
        return loop.over_entries or all(number is None or number > 0 for number in most)

    def _row(self, loop: ForOp) -> dict[Atom, Segment]:
        """Where the row of a loop over entries begins, and where the next one does."""
        (row,), indptr = self.bounds_of(loop), loop.matrix[0]
        segments = (Segment(indptr, (), number) for number in (row, row + 1))
        return {self.atom("row", indptr, s.number): s for s in segments}

    def _lanes(self, store: StoreOp) -> dict[Atom, LoopVariable]:
        found: dict[Atom, LoopVariable] = {}
        for axis, count in enumerate(block_shape(store.value.type)):
            lane = self.below(count, store, axis, 0)
            found[lane] = LoopVariable(None, [Polynomial.of(count), *self.bounds(lane)])
        return found

    # Segments.

    def _segments(self, values: Iterable[Affine]) -> dict[Atom, Segment]:
        """The segments that begin at parts of values."""
        found: dict[Atom, Segment] = {}
        for atom in sorted({atom for value in values for atom in variables(value)}):
            value = self.values.get(atom)
            segment = None if value is None else begun(value, self)
            if segment is not None:
                found[atom] = segment
        return found

    def _count_of(self, segment: Segment) -> tuple[Affine, Affine] | None:
        """How many segments a division has, and where the last one ends."""
        division = segment.division
        if not isinstance(division, SSAValue):
            # The rows of a matrix, divided into parts.
            rows, parts = segment.sizes
            return (parts, rows) if self.is_below_0(-parts, [rows - 1]) else None
        entries = self.known.entries.get(division)
        if entries is None:
            return None
        return self.extent(division, 0) - 1, self.named(entries)

    # Boxes.

    def _is_all(self, box: Box) -> bool:
        """Whether a box is a whole output."""
        return all(one.start == 0 and one.ends == [one.size] for one in box)

    def _joined(self, boxes: list[Box], dim: int) -> list[Box]:
        """Boxes of which those that touch along a dimension, and agree in the others, are one."""
        for one, other in itertools.permutations(boxes, 2):
            if _beside(one, dim) == _beside(other, dim) and self._touch(one[dim], other[dim]):
                both = [*one[:dim], replace(one[dim], ends=other[dim].ends), *one[dim + 1 :]]
                left = [box for box in boxes if box is not one and box is not other]
                return self._joined([*left, both], dim)
        return boxes

    def _touch(self, one: Interval, other: Interval) -> bool:
        """Whether an interval goes on where another one ends, or overlaps it there."""
        if one.is_numbers != other.is_numbers or not all(
            self.is_below_0(other.start - end - 1) for end in one.ends
        ):
            return False
        ends = itertools.product(one.ends, other.ends)
        return other.start in one.ends or all(self.is_below_0(a - b - 1) for a, b in ends)


def _parts(bounds: Iterable[Affine]) -> list[Affine]:
    """Bounds, with those in a minimum in place of it."""
    return [part for bound in bounds for part in parts_of(bound)]


def _beside(box: Box, dim: int) -> Box:
    return [*box[:dim], *box[dim + 1 :]]
