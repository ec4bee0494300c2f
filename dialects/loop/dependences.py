"""Dependences between the iterations of a loop, and reads before the first write.

Iterations of a loop that is not serial run in any order, or at the same time. Two of them depend on
each other if one stores to a place that the other loads from or stores to. For each pair of
accesses, being at one place is a system of linear equations, one for each dimension, over the loop
variables of the two iterations. It has no solution if an equation, or one that follows from
several, has none: by the greatest common divisor of its coefficients (Banerjee, Dependence
Analysis, 1997, chapter 3), or by the ranges of its terms (chapter 4).

Two stores that accumulate by the same combiner commute. That suffices for a reduction, whose
iterations one thread runs in any order, but not for loops whose iterations run at the same time:
the read and the write of one may come between those of the other.

An index that is not affine (read from memory, a column of a sparse matrix) may have any value. So
an indirect store is independent only if another of its indices proves it, or if it stays in the row
of a sparse matrix that the iteration visits (`segments.py`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from ...core.algebra.affine import ADD, DivisorError
from ...core.algebra.expressions import (
    FLOOR,
    MOD,
    Affine,
    Atom,
    Quotient,
    joined,
)
from ...core.algebra.polynomials import Polynomial
from ...core.typed import memref_type
from .bounds import constant_index
from .indices import IndexValues
from .loops import enclosing, loops_in, most_iterations
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp
from .ops_values import LocalOp
from .segments import implied

Access = LoadOp | StoreOp

MOST_EQUATIONS = 24
"""The limit of equations combined from those of the dimensions; more have not helped."""


@dataclass(frozen=True)
class Dependence:
    """Two accesses of different iterations of `loop` that may be at one place."""

    loop: ForOp
    first: StoreOp
    second: Access

    def __str__(self) -> str:
        verb = "stores" if isinstance(self.second, StoreOp) else "loads"
        return (
            f'iterations of loop "{self.loop.loop_name.data}" may depend on one another: '
            f"one stores {access_text(self.first)}, another {verb} {access_text(self.second)}"
        )


def dependences(body: Block, over: Mapping[SSAValue, Collection[SSAValue]]) -> Iterator[Dependence]:
    """The pairs of accesses that prevent, or may prevent, a loop from being parallel.

    Args:
        body: the body of a kernel.
        over: for each output the inputs that it may overwrite.
    """
    groups = _accesses(body, over)
    for loop in loops_in(body):
        if loop.kind.data.keeps_order:
            continue
        most = most_iterations(loop)
        if most is not None and most < 2:
            continue
        for accesses in groups:
            inside = [a for a in accesses if loop.is_ancestor(a) and not _is_own(a.buffer, loop)]
            for number, first in enumerate(inside):
                for second in inside[number:]:
                    store, other = (first, second) if _stores(first) else (second, first)
                    if not isinstance(store, StoreOp) or _share_coordinate(store, other, loop):
                        continue
                    if loop.is_reduction and _commute(store, other):
                        continue
                    if _may_meet(store, other, loop):
                        yield Dependence(loop, store, other)


def unwritten(body: Block, outputs: Collection[SSAValue]) -> Iterator[Access]:
    """The reads of outputs and local buffers at places where nothing was stored before."""
    written: dict[SSAValue, list[StoreOp]] = {}
    for op in body.walk():
        if not isinstance(op, Access):
            continue
        stores = written.setdefault(op.buffer, [])
        if isinstance(op, LoadOp) or op.accumulates:
            fresh = op.buffer in outputs or isinstance(op.buffer.owner, LocalOp)
            if 0 in memref_type(op.buffer).get_shape():
                continue  # There is no place in it, and loops that do not run may be gone.
            if fresh and not any(_may_meet(store, op, None) for store in stores) and _may_run(op):
                yield op
        if isinstance(op, StoreOp):
            stores.append(op)


def _commute(first: StoreOp, second: Access) -> bool:
    """Whether two stores to one place commute: both accumulate by the same combiner."""
    if not isinstance(second, StoreOp) or first.accumulates is None:
        return False
    return first.accumulates == second.accumulates


def _stores(access: Access) -> bool:
    return isinstance(access, StoreOp)


def _accesses(body: Block, over: Mapping[SSAValue, Collection[SSAValue]]) -> list[list[Access]]:
    """The accesses of each buffer that is stored to, in their order.

    An output and the inputs that it may be written over count as one.
    """
    idle = {loop for loop in loops_in(body) if most_iterations(loop) == 0}
    every = [op for op in body.walk() if isinstance(op, Access)]
    if idle:
        every = [op for op in every if idle.isdisjoint(enclosing(op))]
    stored = dict.fromkeys(op.buffer for op in every if _stores(op))
    return [
        [op for op in every if op.buffer is buffer or op.buffer in over.get(buffer, ())]
        for buffer in stored
    ]


def _may_run(access: Access) -> bool:
    """Whether the loops around an access may have iterations: it meets itself in any of them."""
    return all(most_iterations(loop) != 0 for loop in enclosing(access)) and _may_meet(
        access, access, None
    )


def _is_own(buffer: SSAValue, loop: ForOp) -> bool:
    """Whether each iteration has its own buffer."""
    return isinstance(buffer.owner, LocalOp) and loop.is_ancestor(buffer.owner)


def _share_coordinate(first: Access, second: Access, loop: ForOp) -> bool:
    """Whether the loop variable is the same index of both; this settles nearly every pair."""
    pairs = zip(first.map.data.results, second.map.data.results, strict=True)
    return any(
        type(one) is AffineDimExpr
        and type(other) is AffineDimExpr
        and first.indices[one.position] is loop.variable
        and second.indices[other.position] is loop.variable
        for one, other in pairs
    )


def _may_meet(first: Access, second: Access, loop: ForOp | None) -> bool:
    """Whether two accesses may be at one place, in different iterations of a loop.

    Without a loop, whether there are any iterations in which they are.
    """
    unknowns = IndexValues(loop)
    try:
        places = unknowns.place(first, 0), unknowns.place(second, 1)
        equations = [one - other for one, other in zip(*places, strict=True)]
        if any(_has_no_solution(equation, unknowns) for equation in equations):
            return False
        equations += _numbered(*places, memref_type(first.buffer).get_shape())
        derived = _eliminated([*equations, *_whole(*places)], unknowns)
        if any(_has_no_solution(equation, unknowns) for equation in derived):
            return False
        derived = _eliminated([*implied(first, second, unknowns), *equations], unknowns)
        if any(_has_no_solution(equation, unknowns) for equation in derived):
            return False
        return not any(_is_too_far(equation, unknowns) for equation in equations)
    except DivisorError:
        return True


# c * distance + rest == 0 for no distance but 0 if |rest| < |c|, and for none at all if |rest|
# is larger than |c| times the largest distance; and never if gcd(coefficients) does not divide
# the constant
def _has_no_solution(equation: Affine, unknowns: IndexValues) -> bool:
    """Whether a polynomial is never 0, where the distance of two iterations is not 0."""
    constant = equation.constant
    if equation == constant:
        return constant != 0
    if constant % math.gcd(*(c for monomial, c in equation.terms if monomial)):
        return True
    factor = equation.coefficient(unknowns.distance)
    rest = equation - Polynomial.atom(unknowns.distance) * factor
    if factor and _skips(factor, rest, unknowns.size):
        return True
    least, most = unknowns.ranges.of(rest)
    if least is None or most is None:
        return False
    factor, size, nearest = abs(factor), unknowns.size, max(0, least, -most)
    if factor == 0:
        return nearest > 0
    return max(-least, most) < factor or (size is not None and nearest > factor * (size - 1))


# c * distance + k == 0 (mod g)  <=>  distance == -k / c (mod g / gcd(c, g))
def _skips(factor: int, rest: Affine, size: int | None) -> bool:
    """Whether the distances at which the terms with unknowns may make up for the others are all
    0, or at least the number of iterations."""
    step = math.gcd(*(c for monomial, c in rest.terms if monomial))
    if size is None or not step:
        return False
    common = math.gcd(factor, step)
    period = step // common
    nearest = -(rest.constant // common) * pow(factor // common, -1, period) % period
    return min(nearest or period, period - nearest) >= size


# c * distance + rest == 0 for no distance but 0 if -|c| < rest < |c|
def _is_too_far(equation: Affine, unknowns: IndexValues) -> bool:
    """Whether a polynomial is never 0 by what loop variables and lanes are below."""
    factor = equation.coefficient(unknowns.distance)
    rest = equation - Polynomial.atom(unknowns.distance) * factor
    ends = unknowns.is_negative(rest - abs(factor)), unknowns.is_negative(-rest - abs(factor))
    return all(ends) if factor else any(ends)


# a == b and c == d  =>  n * a + c == n * b + d
def _numbered(
    first: Sequence[Affine], second: Sequence[Affine], shape: Sequence[int]
) -> Iterator[Affine]:
    """Equal indices in the last dimensions of a buffer have equal row-major numbers.

    In such a number the quotients and remainders of a fused loop cancel out.
    """
    one, other, stride = Polynomial[Atom].of(0), Polynomial[Atom].of(0), 1
    inner_first = zip(reversed(first), reversed(second), reversed(shape), strict=True)
    for number, (a, b, size) in enumerate(inner_first):
        one, other = one + a * stride, other + b * stride
        if number > 0:
            yield joined(one) - joined(other)
        if size == DYNAMIC_INDEX:
            return
        stride *= size


# q * c * (p * (a floordiv c)) + p * (q * (a mod c)) == p * q * a
def _whole(first: Sequence[Affine], second: Sequence[Affine]) -> Iterator[Affine]:
    """Consequences for indices that are split into a quotient and a remainder."""
    for high, low in itertools.permutations(range(len(first)), 2):
        for p, divisor in _cuts(first[high], FLOOR):
            for q in [q for q, other in _cuts(first[low], MOD) if other == divisor]:
                one, other = (
                    joined(place[high] * (q * divisor) + place[low] * p)
                    for place in (first, second)
                )
                yield one - other


def _cuts(index: Affine, function: AffineBinaryOpKind) -> list[tuple[int, int]]:
    """The coefficients and divisors of the quotients or remainders in an index."""
    cuts = [atom for atom in index.atoms if isinstance(atom, Quotient)]
    found = {(index.coefficient(c), c.divisor) for c in cuts if c.function is function}
    return sorted(pair for pair in found if pair[0])


def _eliminated(equations: Sequence[Affine], unknowns: IndexValues) -> list[Affine]:
    """The equations, and those that remain when others are solved for one unknown."""
    found = list(dict.fromkeys(equations))
    for solved in found:
        if len(found) >= MOST_EQUATIONS:
            break
        for unknown, factor in solved.terms:
            if abs(factor) != 1 or unknown in ((), (unknowns.distance,)):
                continue
            for other in list(found):
                count = other.coefficient(*unknown)
                if other is not solved and count:
                    new = other - solved * (count * factor)
                    if new not in found:
                        found.append(new)
    return found


def access_text(access: Access) -> str:
    """An access as one would write it: ``y[i, j + 1]``."""
    return place_text(access.buffer, access.map.data, access.indices)


def place_text(buffer: SSAValue, map: AffineMap, indices: Sequence[SSAValue]) -> str:
    """A place in a buffer as one would write it."""
    names = [_name(value) for value in indices]
    texts = [re.sub(r"d(\d+)", lambda m: names[int(m[1])], _plain(expr)) for expr in map.results]
    return f"{_name(buffer)}[{', '.join(texts)}]"


def _plain(expr: AffineExpr) -> str:
    """An expression with parentheses in quotients and remainders only."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return str(expr)
    left, right = _plain(expr.lhs), _plain(expr.rhs)
    if expr.kind is ADD:
        return f"{left} + {right}".replace("+ -", "- ")
    if isinstance(expr.lhs, AffineBinaryOpExpr):
        left = f"({left})"
    return f"{left} {expr.kind.get_token()} {right}"


def _name(value: SSAValue) -> str:
    """The name of a value; of a loop variable, that of the loop."""
    owner = value.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if isinstance(loop, ForOp) and value is loop.variable:
        return loop.loop_name.data
    if value.name_hint is not None:
        return value.name_hint
    constant = constant_index(value)
    if constant is not None:
        return str(constant)
    if isinstance(value, BlockArgument) and not isinstance(loop, ForOp):
        return f"argument {value.index}"
    return "(computed)"
