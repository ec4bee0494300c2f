"""When the accesses of a kernel are inside of their buffers, in the sizes that it is called with.

An index is a polynomial over sizes, variables of loops and values that are computed. What is below
0 for it to be inside (`-index - 1`, `index - size`) is bounded from above by the bounds of loops,
by guards and by what is known of indices, until only sizes are left: then it is either known to be
below 0, or a condition of each call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineExpr

from ...core.building.affine import (
    FLOOR,
    MOD,
    MUL,
    Affine,
    Atom,
    DivisorError,
    Quotient,
    polynomial,
    variable,
)
from ...core.building.affine import affine as affine_of
from ...core.building.polynomials import Polynomial
from ...core.dims import Dim
from ...core.typed import memref_type
from .attrs import LoopKind
from .bounds import constant_index
from .linear import joined
from .loops import enclosing
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp
from .ops_values import LocalOp
from .syntax import INDEX
from .unknowns import Unknowns, loop_of

_MOST_STEPS = 400
"""The most bounds that are tried for one index: what takes more is not found."""

Conditions = frozenset[Affine]
"""Polynomials over sizes that have to be below 0."""

_NONE: Conditions = frozenset()


@dataclass
class Known:
    """What is known of the arguments of a kernel."""

    shapes: dict[SSAValue, Sequence[Dim | None]] = field(default_factory=dict)
    """The sizes of buffers; None for one that does not follow from those of arguments."""
    sizes: dict[SSAValue, Dim] = field(default_factory=dict)
    """The sizes that are arguments."""
    contents: dict[SSAValue, list[tuple[Dim, Dim]]] = field(default_factory=dict)
    """For buffers of integers the least one, and what is above all."""


@dataclass(frozen=True)
class Unproved:
    """An access of which it is not known to be inside of its buffer."""

    access: LoadOp | StoreOp
    dimension: int


class Inside(Unknowns):
    """Finds the conditions under which accesses are inside of their buffers."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known
        self.names: dict[Atom, str] = {}
        """The sizes, by their unknowns."""
        self._steps = 0

    def conditions(self, access: LoadOp | StoreOp) -> Iterator[Dim | Unproved]:
        """The sizes that have to be below 0 for an access to be inside of its buffer."""
        try:
            place = self.place(access, 0)
            facts = list(self._facts_around(access))
        except DivisorError:
            yield Unproved(access, 0)
            return
        for dimension, index in enumerate(place):
            size = self.extent(access.buffer, dimension)
            for value in (-index - 1, index - size):
                self._steps = _MOST_STEPS
                found = self._needed(value, facts)
                if found is None:
                    yield Unproved(access, dimension)
                    break
                yield from (self._in_sizes(condition) for condition in sorted(found, key=_order))

    def _in_sizes(self, value: Affine) -> Dim:
        return Dim.of(value.substituted(lambda atom: Dim.symbol(self.names[atom])))

    # Values.

    def extent(self, buffer: SSAValue, dimension: int) -> Affine:
        """The size of a dimension of a buffer."""
        return polynomial(self._size(buffer, dimension))

    def _size(self, buffer: SSAValue, dimension: int) -> AffineExpr:
        size = memref_type(buffer).get_shape()[dimension]
        if size != DYNAMIC_INDEX:
            return AffineExpr.constant(size)
        known = self.known.shapes[buffer][dimension] if buffer in self.known.shapes else None
        if known is not None:
            return self._named(known)
        if isinstance(buffer.owner, LocalOp):
            before = memref_type(buffer).get_shape()[:dimension].count(DYNAMIC_INDEX)
            return self.expr(buffer.owner.sizes[before], 0)
        return self.below(None, "size", buffer, dimension)

    def _named(self, dim: Dim) -> AffineExpr:
        def symbol(name: str) -> AffineExpr:
            found = self.below(None, "size", name)
            self.names[variable(found)] = name
            return found

        return affine_of(dim, symbol, lambda a, b: AffineBinaryOpExpr(MUL, a, b))

    def expr(self, value: SSAValue, side: int) -> AffineExpr:
        """An index, or an integer that becomes one."""
        op = value.owner
        if value in self.known.sizes:
            return self._named(self.known.sizes[value])
        # An axis that there is not is refused where the operation is lowered.
        if (
            isinstance(op, memref.DimOp)
            and (axis := constant_index(op.index)) is not None
            and 0 <= axis < memref_type(op.source).get_num_dims()
        ):
            return self._size(op.source, axis)
        if isinstance(op, arith.IndexCastOp | arith.ExtSIOp):
            return self.expr(op.operands[0], side)
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return AffineExpr.constant(op.value.value.data)
        return super().expr(value, side)

    def _computed(self, op: Operation, side: int) -> AffineExpr | None:
        if op.results[0].type not in (INDEX, i64) or not all(map(self._is_bounded, op.operands)):
            # It may wrap around.
            return None
        found = super()._computed(op, side)
        if found is None and isinstance(op, arith.MuliOp):
            found = AffineBinaryOpExpr(MUL, self.expr(op.lhs, side), self.expr(op.rhs, side))
        return found

    def _is_bounded(self, value: SSAValue) -> bool:
        """Whether a value is known to be so small that sums of a few do not wrap around."""
        op = value.owner
        if isinstance(op, Block):
            loop = op.parent_op()
            return (
                value in self.known.sizes
                or loop_of(value) is not None
                or ((start := _start_of_counter(value)) is not None and self._is_bounded(start))
                or (isinstance(loop, ForOp) and loop.over_entries and value is loop.column)
            )
        if isinstance(op, LoadOp | memref.DimOp):
            return isinstance(op, memref.DimOp) or op.buffer in self.known.contents
        if isinstance(op, arith.MinSIOp | arith.MaxSIOp):
            inner = [v.owner for v in op.operands if not self._is_bounded(v)]
            other = arith.MaxSIOp if isinstance(op, arith.MinSIOp) else arith.MinSIOp
            return len(inner) < 2 and all(
                isinstance(part, other) and any(map(self._is_bounded, part.operands))
                for part in inner
            )
        if isinstance(op, arith.SelectOp):
            return self._is_bounded(op.lhs) and self._is_bounded(op.rhs)
        return isinstance(op, _EXACT) and all(map(self._is_bounded, op.operands))

    def _of(self, value: SSAValue) -> Affine:
        return polynomial(self.expr(value, 0))

    # Facts: polynomials that are not negative.

    def _facts_around(self, access: LoadOp | StoreOp) -> Iterator[Affine]:
        """What holds where an access runs, from the loops around it."""
        for loop in enclosing(access):
            if loop.over_entries:
                continue
            index = self._of(loop.variable)
            for bound in self._applied(loop.bound.data, loop.bounds, 0):
                yield bound - 1 - index
                yield bound - 1
                yield from self._if_positive(bound)
        for atom in [atom for index in self.place(access, 0) for atom in index.atoms]:
            if atom in self._limits:
                yield from (bound - 1 - Polynomial.atom(atom) for bound in self._bounds(atom))

    def _if_positive(self, bound: Affine) -> Iterator[Affine]:
        """What holds if a bound is above 0: the condition by which a guard is 1 or 0."""
        atom = bound.single_atom
        value = None if atom is None else self.value(atom)
        op = None if value is None else value.owner
        if isinstance(op, arith.SelectOp):
            for chosen, holds in ((op.lhs, False), (op.rhs, True)):
                number = self._of(chosen).number
                if number is not None and number <= 0:
                    yield from self._if(op.cond, holds)

    def _if(self, condition: SSAValue, holds: bool) -> Iterator[Affine]:
        """What follows from a condition, or from its opposite."""
        op = condition.owner
        if isinstance(op, arith.AndIOp if holds else arith.OrIOp):
            yield from self._if(op.lhs, holds)
            yield from self._if(op.rhs, holds)
        if not isinstance(op, arith.CmpiOp):
            return
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        if predicate not in _FACTS:
            return
        left, right = self._of(op.lhs), self._of(op.rhs)
        unsigned = predicate.startswith("u")
        if unsigned and not (holds and predicate == "ult" and self.ranges.is_nonnegative(right)):
            return
        strict, swapped = _FACTS[predicate]
        if swapped:
            left, right = right, left
        yield right - left - strict if holds else left - right - (1 - strict)
        if unsigned:
            yield left

    def _facts_of(self, atom: Atom) -> Iterator[Affine]:
        """What always holds of an unknown."""
        value, own = self.value(atom), Polynomial.atom(atom)
        if value is None:
            return
        loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
        source = value.owner.buffer if isinstance(value.owner, LoadOp) else None
        last = 1
        if isinstance(loop, ForOp) and loop.over_entries and value not in loop.carried:
            # A position is before the end of its row, a column is one of the column indices.
            is_position = value is loop.variable
            source, last = loop.matrix[0 if is_position else 1], 2 if is_position else 1
        for low, high in self.known.contents.get(source, ()) if source is not None else ():
            yield own - polynomial(self._named(low))
            yield polynomial(self._named(high)) - own - last
        if loop_of(value) is not None:
            yield own
        start = _start_of_counter(value)
        if isinstance(loop, ForOp) and start is not None:
            # It has grown by at most 1 in each iteration before this one.
            yield own - self._of(start)
            yield self._of(start) + self._of(loop.variable) - own

    # Proofs.

    def _needed(self, value: Affine, facts: Sequence[Affine]) -> Conditions | None:
        """Conditions under which a value is below 0; None if none are found."""
        value, self._steps = joined(value), self._steps - 1
        if self._is_below_0(value) or any(self._is_below_0(value + fact) for fact in facts):
            return _NONE
        if self._steps <= 0:
            return None
        atom = next(iter(sorted((a for a in value.atoms if a not in self.names), key=_first)), None)
        if atom is not None:
            return self._best(self._without(value, atom, facts))
        lowest, _ = self.ranges.of(value)
        return None if lowest is not None and lowest >= 0 else frozenset([value])

    def _is_below_0(self, value: Affine) -> bool:
        _, most = self.ranges.of(value)
        return most is not None and most < 0

    def _best(self, found: Iterable[Conditions | None]) -> Conditions | None:
        """The fewest conditions of those that are found."""
        best: Conditions | None = None
        for one in found:
            if one is not None and (best is None or len(one) < len(best)):
                best = one
            if best == _NONE:
                break
        return best

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
        factor, rest = _split(value, atom)
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
            times, end = _split(fact, atom)
            number = None if times is None else times.number
            if number is None or number == 0 or (number < 0) != rising:
                continue
            # fact == end - n * atom >= 0  ==>  n * atom <= end, and the same from below.
            bound = end if number < 0 else -end
            yield self._needed(factor * bound + rest * abs(number), facts)

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


_EXACT = (
    arith.ConstantOp,
    arith.IndexCastOp,
    arith.ExtSIOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    affine.ApplyOp,
    affine.MinOp,
)
"""Operations whose results are small where their operands are."""

_FACTS = {
    "slt": (1, False),
    "sle": (0, False),
    "sgt": (1, True),
    "sge": (0, True),
    "ult": (1, False),
}
"""For comparisons whether they are strict, and whether the right side is the smaller one."""


def _start_of_counter(value: SSAValue) -> SSAValue | None:
    """The first value of a counter: what a serial loop carries, and grows by 0 or 1 each time."""
    owner = value.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(loop, ForOp) or loop.kind.data != LoopKind.SERIAL:
        return None
    for init, argument, after in zip(loop.inits, loop.carried, loop.yielded, strict=True):
        if argument is value:
            return init if _counts_on(after, value) else None
    return None


def _counts_on(value: SSAValue, counter: SSAValue) -> bool:
    """Whether a value is a counter, or one more."""
    match value.owner:
        case arith.SelectOp() as op:
            return _counts_on(op.lhs, counter) and _counts_on(op.rhs, counter)
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            return any(one is counter and _is_one(other) for one, other in ((lhs, rhs), (rhs, lhs)))
        case _:
            return value is counter


def _is_one(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.ConstantOp) and (
        isinstance(op.value, IntegerAttr) and op.value.value.data == 1
    )


def _split(value: Affine, atom: Atom) -> tuple[Affine | None, Affine]:
    """A factor and a rest without an unknown: value == factor * atom + rest; None for powers."""
    factor, rest = list[tuple[tuple[Atom, ...], int]](), list[tuple[tuple[Atom, ...], int]]()
    for monomial, number in value.terms:
        if atom not in monomial:
            rest.append((monomial, number))
            continue
        left = list(monomial)
        left.remove(atom)
        if atom in left:
            return None, value
        factor.append((tuple(left), number))
    return Polynomial(factor), Polynomial(rest)


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
    """Quotients before variables, those that came later first."""
    return (0, 0) if isinstance(atom, Quotient) else (1, -atom.position)


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
