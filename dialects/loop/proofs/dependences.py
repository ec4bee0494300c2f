"""Dependences between the iterations of a loop, and reads before the first write.

Iterations of a loop that is not serial run in any order, or at the same time. Two of them depend on
each other if one stores to a place that the other loads from or stores to. For each pair of
accesses, being at one place is a system of equations, one for each dimension, over the loop
variables of the two iterations (`core/algebra/equations.py`).

Two stores that accumulate by the same combiner commute. That suffices for a reduction, whose
iterations one thread runs in any order, but not for loops whose iterations run at the same time:
the read and the write of one may come between those of the other.

An index that is not affine (read from memory, a column of a sparse matrix) may have any value. So
an indirect store is independent only if another of its indices proves it, or if it stays in the row
of a sparse matrix that the iteration visits (`segments.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from ....core.algebra.affine import ADD, DivisorError
from ....core.algebra.equations import never_equal, sometimes_equal
from ....core.ir.typed import memref_type
from ..loops import enclosing, is_made_in, loops_in, most_iterations
from ..ops_access import LoadOp, StoreOp
from ..ops_loops import ForOp
from ..ops_values import LocalOp
from .bounds import constant_index
from .indices import IndexValues
from .segments import implied

Access = LoadOp | StoreOp


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


def dependences(
    body: Block,
    over: Mapping[SSAValue, Collection[SSAValue]],
    names: Collection[str] | None = None,
) -> Iterator[Dependence]:
    """The pairs of accesses that prevent, or may prevent, a loop from being parallel.

    Args:
        body: the body of a kernel.
        over: for each output the inputs that it may overwrite.
        names: the names of the loops in question; None for all loops.
    """
    groups = _accesses(body, over)
    for loop in loops_in(body):
        if names is not None and loop.loop_name.data not in names:
            continue
        if loop.kind.data.keeps_order:
            continue
        most = most_iterations(loop)
        if most is not None and most < 2:
            continue
        for accesses in groups:
            inside = [a for a in accesses if loop.is_ancestor(a) and not is_made_in(a.buffer, loop)]
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
    both = IndexValues(loop)
    try:
        places = both.place(first, 0), both.place(second, 1)
        if loop is None and sometimes_equal(*places, both.count_of):
            return True
        shape = memref_type(first.buffer).get_shape()
        return not never_equal(*places, shape, both, implied(first, second, both))
    except DivisorError:
        return True


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
