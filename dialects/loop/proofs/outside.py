"""Accesses that are outside of their buffers whenever the kernel runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import DivisorError, polynomial, variable
from ....core.algebra.expressions import Affine, Quotient
from ....core.algebra.ranges import Ranges
from ....core.ir.typed import memref_type
from ..loops import enclosing, extent_of
from ..ops_access import LoadOp, StoreOp
from .bounds import constant_index


@dataclass(frozen=True)
class Outside:
    """An access of a scalar at an index that its buffer does not have."""

    access: LoadOp | StoreOp
    dimension: int
    size: int | None
    """The size of the dimension, None where it is known at run time only."""
    index: int


def outside(body: Block) -> Iterator[Outside]:
    """The accesses of scalars that are certainly outside of their buffers.

    That is decided for sums of variables of loops whose numbers of iterations are known, and not
    0: all combinations of the variables occur.
    """
    for op in body.walk():
        if isinstance(op, LoadOp | StoreOp) and not op.map.data.num_symbols:
            yield from _outside(op)


def _outside(access: LoadOp | StoreOp) -> Iterator[Outside]:
    extents = {loop.variable: extent_of(loop) for loop in enclosing(access)}
    shape = memref_type(access.buffer).get_shape()
    if not all(extents.values()) or 0 in shape:
        return
    ranges, dims = Ranges(), list[AffineExpr]()
    for index in access.indices:
        # The same value twice is one dimension.
        dim = AffineExpr.dimension(list(access.indices).index(index))
        if extent := extents.get(index):
            ranges.know(variable(dim), 0, extent - 1)
        number = constant_index(index)
        dims.append(dim if number is None else AffineExpr.constant(number))
    for dimension, (expr, size) in enumerate(zip(access.map.data.results, shape, strict=True)):
        least, most = _ends(expr, dims, ranges)
        known = None if size == DYNAMIC_INDEX else size
        if least is not None and least < 0:
            yield Outside(access, dimension, known, least)
        elif most is not None and known is not None and most >= known:
            yield Outside(access, dimension, known, most)


def _ends(
    expr: AffineExpr, dims: Sequence[AffineExpr], ranges: Ranges
) -> tuple[int | None, int | None]:
    """The smallest and the largest value of a sum of multiples of indices; None if it is none."""
    try:
        value: Affine = polynomial(expr, dims)
    except DivisorError:
        return None, None
    # Not each value in the range of a quotient need occur.
    is_sum = not any(isinstance(atom, Quotient) for atom in value.atoms)
    return ranges.of(value) if is_sum else (None, None)
