"""Queries about loops: their sizes, those around an operation, those in a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import affine
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from ...core.algebra.affine import DivisorError, polynomial, value_of, variable
from ...core.algebra.ranges import Ranges
from .attrs import Combine, LoopKind
from .ops_loops import ForOp
from .ops_owned import OwnedOp
from .proofs.bounds import filled_in, iterations


def reduction(
    name: str,
    bound: AffineMap,
    operands: Sequence[SSAValue],
    combines: Sequence[str],
    inits: Sequence[SSAValue],
    matrix: Sequence[SSAValue] = (),
) -> ForOp:
    """A reduction over a bound, or over a row if the index arrays of a matrix are given."""
    return ForOp(
        name,
        bound,
        operands,
        LoopKind.REDUCTION,
        matrix=matrix,
        inits=inits,
        combines=[Combine(combine) for combine in combines],
    )


def loops_in(block: Block) -> Iterator[ForOp]:
    """The loops in a block, outer ones first."""
    around: list[Operation] = []
    op = block.first_op
    while op is not None or around:
        if op is None:
            op = around.pop().next_op
        elif type(op) is ForOp:
            yield op
            around.append(op)
            op = op.regions[0].block.first_op
        else:
            for region in op.regions:
                for inner in region.blocks:
                    yield from loops_in(inner)
            op = op.next_op


def bound_of(loop: ForOp) -> list[AffineExpr]:
    """The bounds of a loop, over its operands; constants among these are filled in."""
    return filled_in(loop.bound.data, loop.bounds)


def extent_of(loop: ForOp) -> int | None:
    """The number of iterations, None where it is not known at compile time."""
    if loop.over_entries:
        return None
    return iterations(loop.bound.data, loop.bounds)


def most_iterations(loop: ForOp) -> int | None:
    """An upper limit of the number of iterations, None where none is known."""
    if loop.over_entries:
        return None
    # What is known of the indices, as dimensions of the bound: a minimum is not above any of its
    # numbers, a loop variable is not negative, and whether a part owns a place is 0 or 1.
    ranges = Ranges()
    for number, index in enumerate(loop.bounds):
        atom, owner = variable(AffineExpr.dimension(number)), index.owner
        if isinstance(owner, affine.MinOp):
            limits = map(value_of, filled_in(owner.map.data, owner.operands))
            most = min((limit for limit in limits if limit is not None), default=None)
            ranges.know(atom, None, most)
        elif isinstance(owner, OwnedOp):
            ranges.know(atom, 0, 1)
        elif isinstance(owner, Block) and isinstance(owner.parent_op(), ForOp):
            ranges.know(atom, 0, None)
    known = [n for e in bound_of(loop) if (n := _most(e, ranges)) is not None]
    return max(0, min(known)) if known else None


def loop_of(value: SSAValue) -> ForOp | None:
    """The loop whose variable a value is, None for another value."""
    loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return loop if isinstance(loop, ForOp) and value is loop.variable else None


def is_made_in(value: SSAValue, loop: ForOp) -> bool:
    """Whether a value is defined in the body of a loop; the variable of the loop does not count."""
    owner = value.owner
    inside = owner if isinstance(owner, Operation) else owner.parent_op()
    return value is not loop.variable and inside is not None and loop.is_ancestor(inside)


def _most(expr: AffineExpr, ranges: Ranges) -> int | None:
    """A number that an expression never exceeds, None where none is known."""
    try:
        return ranges.of(polynomial(expr))[1]
    except DivisorError:
        return None


def enclosing(op: Operation) -> Iterator[ForOp]:
    """The loops around an operation, inner ones first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            yield parent
        parent = parent.parent_op()
