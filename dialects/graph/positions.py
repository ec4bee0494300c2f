"""Row-major positions of elements, and the indices at them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from .nests import scalars
from .nests.nest import Nest, Places


def linearize(nest: Nest, index: Sequence[AffineExpr], sizes: Sequence[AffineExpr]) -> AffineExpr:
    """The row-major position of an index."""
    linear = AffineExpr.constant(0)
    for position, (i, size) in enumerate(zip(index, sizes, strict=True)):
        linear = i if position == 0 else _times(nest, linear, size) + i
    return linear


def delinearize(nest: Nest, linear: AffineExpr, sizes: Sequence[AffineExpr]) -> list[AffineExpr]:
    """The index at a row-major position."""
    index: list[AffineExpr] = []
    for size in reversed(sizes[1:]):
        linear, remainder = _divide(nest, linear, size)
        index.append(remainder)
    return [linear, *reversed(index)] if sizes else []


def from_start(nest: Places, place: SSAValue, size: AffineExpr) -> AffineExpr:
    """A place, an integer of which a negative one counts from the back."""
    where, extent = scalars.to_index(nest, place), nest.value(size)
    negative = scalars.less(nest, where, nest.value(AffineExpr.constant(0)))
    return nest.index(scalars.select(nest, negative, scalars.add(nest, where, extent), where))


def _times(nest: Nest, a: AffineExpr, b: AffineExpr) -> AffineExpr:
    if isinstance(b, AffineConstantExpr):
        return a * b.value
    return nest.index(nest.insert(arith.MuliOp(nest.value(a), nest.value(b))))


def _divide(nest: Nest, a: AffineExpr, b: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
    if isinstance(b, AffineConstantExpr):
        size = max(b.value, 1)
        return a // size, a % size
    x = nest.value(a)
    # An empty tensor has no element to compute, but its size must not trap where it is hoisted.
    one = nest.value(AffineExpr.constant(1))
    y = nest.insert(arith.MaxUIOp(nest.value(b), one))
    quotient = nest.index(nest.insert(arith.DivUIOp(x, y)))
    return quotient, nest.index(nest.insert(arith.RemUIOp(x, y)))
