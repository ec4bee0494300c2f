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
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineDimExpr, AffineExpr

from ...core.building.affine import (
    ADD,
    FLOOR,
    MOD,
    Affine,
    Atom,
    DivisorError,
    Quotient,
    polynomial,
    variable,
)
from ...core.building.facts import Ranges
from ...core.building.polynomials import Polynomial
from .attrs import LoopKind
from .bounds import constant_index
from .linear import with_dims
from .loops import enclosing, extent_of, loops_in, most_iterations
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp
from .ops_values import LocalOp, block_shape
from .segments import segments

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


def dependences(body: Block, over: Mapping[SSAValue, SSAValue]) -> Iterator[Dependence]:
    """The pairs of accesses that prevent, or may prevent, a loop from being parallel.

    Args:
        body: the body of a kernel.
        over: for each input that an output may overwrite, that output.
    """
    groups = _accesses(body, over)
    for loop in loops_in(body):
        if loop.kind.data == LoopKind.SERIAL:
            continue
        size = extent_of(loop)
        if size is not None and size < 2:
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
                    if segments(store, loop) & segments(other, loop):
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
            if fresh and not any(_may_meet(store, op, None) for store in stores):
                yield op
        if isinstance(op, StoreOp):
            stores.append(op)


def _commute(first: StoreOp, second: Access) -> bool:
    """Whether two stores to one place commute: both accumulate by the same combiner."""
    return isinstance(second, StoreOp) and None is not first.accumulates == second.accumulates


def _stores(access: Access) -> bool:
    return isinstance(access, StoreOp)


def _accesses(body: Block, over: Mapping[SSAValue, SSAValue]) -> list[list[Access]]:
    """The accesses of each buffer that is stored to, in their order.

    An output and the inputs that it may be written over count as one.
    """
    found: defaultdict[SSAValue, list[Access]] = defaultdict(list)
    for op in body.walk():
        if isinstance(op, Access) and _may_run(op):
            found[over.get(op.buffer, op.buffer)].append(op)
    return [group for group in found.values() if any(map(_stores, group))]


def _may_run(access: Access) -> bool:
    """Whether no loop around an access is known to have no iteration."""
    return all(most_iterations(loop) != 0 for loop in enclosing(access))


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


class _Unknowns:
    """Index values as dimensions: those of one iteration, of the other, and of both."""

    def __init__(self, loop: ForOp | None) -> None:
        self.loop = loop
        self.size = None if loop is None else most_iterations(loop)
        self.ranges: Ranges[Atom] = Ranges()
        self._dims: dict[tuple[object, ...], AffineExpr] = {}
        self._between = self.dim("distance")
        self.distance = variable(self._between)

    def dim(self, *key: object, size: int | None = None) -> AffineExpr:
        """The dimension that stands for something, which is below `size` where that is known."""
        found = self._dims.setdefault(key, AffineExpr.dimension(len(self._dims)))
        if size is not None:
            self.ranges.know(variable(found), 0, max(0, size - 1))
        return found

    def expr(self, value: SSAValue, side: int) -> AffineExpr:
        """An index value in one of the two iterations, 0 or 1."""
        constant = constant_index(value)
        if constant is not None:
            return AffineExpr.constant(constant)
        owner = value.owner
        if self.loop is not None and value is self.loop.variable:
            index = self.dim(value, size=self.size)
            return index if side == 0 else index - self._between
        if isinstance(owner, Operation):
            computed = self._computed(owner, side)
            if computed is not None:
                return computed
        loop = owner.parent_op() if isinstance(owner, Block) else None
        size = None
        if isinstance(loop, ForOp) and value is loop.variable:
            size = most_iterations(loop)
        key = (value, side) if _varies(owner, self.loop) else (value,)
        return self.dim(*key, size=size)

    def _computed(self, op: Operation, side: int) -> AffineExpr | None:
        """The result of sums, differences, products by constants and affine maps."""
        match op:
            case affine.ApplyOp() if not op.map.data.num_symbols:
                dims = [self.expr(operand, side) for operand in op.operands]
                return with_dims(op.map.data.results[0], dims)
            case arith.AddiOp():
                return self.expr(op.lhs, side) + self.expr(op.rhs, side)
            case arith.SubiOp():
                return self.expr(op.lhs, side) + self.expr(op.rhs, side) * -1
            case arith.MuliOp():
                for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                    factor = constant_index(other)
                    if factor is not None:
                        return self.expr(one, side) * factor
        return None

    def place(self, access: Access, side: int) -> list[Affine]:
        """The index of the access in one of the two iterations."""
        kind = access.result.type if isinstance(access, LoadOp) else access.value.type
        lanes = enumerate(block_shape(kind))
        symbols = [self.dim(access, axis, side, size=count) for axis, count in lanes]
        dims = [self.expr(index, side) for index in access.indices]
        return [polynomial(expr, dims, symbols) for expr in access.map.data.results]


def _varies(owner: Operation | Block, loop: ForOp | None) -> bool:
    """Whether a value may differ between two iterations of a loop; without one, of any loop."""
    if loop is not None:
        return loop.body.block is owner or loop.is_ancestor(owner)
    around = owner.parent_op() if isinstance(owner, Block) else owner
    if isinstance(around, ForOp):
        return True
    return around is not None and any(True for _ in enclosing(around))


def _may_meet(first: Access, second: Access, loop: ForOp | None) -> bool:
    """Whether two accesses may be at one place, in different iterations of a loop.

    Without a loop, whether there are any iterations in which they are.
    """
    unknowns = _Unknowns(loop)
    try:
        places = unknowns.place(first, 0), unknowns.place(second, 1)
    except DivisorError:
        return True
    equations = [one - other for one, other in zip(*places, strict=True)]
    if any(_has_no_solution(equation, unknowns) for equation in equations):
        return False
    derived = _eliminated([*equations, *_whole(*places)], unknowns)
    return not any(_has_no_solution(equation, unknowns) for equation in derived)


# c * distance + rest == 0 for no distance but 0 if |rest| < |c|, and for none at all if |rest|
# is larger than |c| times the largest distance; and never if gcd(coefficients) does not divide
# the constant
def _has_no_solution(equation: Affine, unknowns: _Unknowns) -> bool:
    """Whether a polynomial is never 0, where the distance of two iterations is not 0."""
    constant = equation.constant
    if equation == constant:
        return constant != 0
    if constant % math.gcd(*(c for monomial, c in equation.terms if monomial)):
        return True
    factor = equation.coefficient(unknowns.distance)
    least, most = unknowns.ranges.of(equation - Polynomial.atom(unknowns.distance) * factor)
    if least is None or most is None:
        return False
    factor, size, nearest = abs(factor), unknowns.size, max(0, least, -most)
    if factor == 0:
        return nearest > 0
    return max(-least, most) < factor or (size is not None and nearest > factor * (size - 1))


# a floordiv c == b floordiv c and a mod c == b mod c  <=>  a == b
def _whole(first: Sequence[Affine], second: Sequence[Affine]) -> Iterator[Affine]:
    """Consequences for indices that are split into a quotient and a remainder."""
    for high, low in itertools.permutations(range(len(first)), 2):
        for by in sorted(_divisors(first[high], FLOOR) & _divisors(first[low], MOD)):
            one, other = (_joined(place[high] * by + place[low]) for place in (first, second))
            yield one - other


def _divisors(index: Affine, function: AffineBinaryOpKind) -> set[int]:
    """The divisors of the quotients or remainders in an index."""
    cuts = [atom for atom in index.atoms if isinstance(atom, Quotient)]
    return {cut.divisor for cut in cuts if cut.function is function}


def _joined(index: Affine) -> Affine:
    """The same, in which c * (a floordiv c) + a mod c is a."""
    result = index
    for cut in index.atoms:
        if isinstance(cut, Quotient) and cut.function is MOD:
            quotient, factor = cut._replace(operation=FLOOR.value), index.coefficient(cut)
            if index.coefficient(quotient) == cut.divisor * factor:
                parts = Polynomial.atom(quotient) * cut.divisor + Polynomial.atom(cut)
                result += (cut.dividend - parts) * factor
    return result


def _eliminated(equations: Sequence[Affine], unknowns: _Unknowns) -> list[Affine]:
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
    names = [_name(value) for value in access.indices]
    results = access.map.data.results
    texts = [re.sub(r"d(\d+)", lambda m: names[int(m[1])], _plain(expr)) for expr in results]
    return f"{_name(access.buffer)}[{', '.join(texts)}]"


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
