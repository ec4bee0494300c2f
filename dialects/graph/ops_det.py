"""Determinants of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, result_def

from ...core.dims import Dim, Shape, product
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR
from .constructors import operator
from .interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, element_type, rank, widened
from .ops_ternary import wide_fma
from .sorting import known_size

if TYPE_CHECKING:
    from .interfaces import Array
    from .nests.nest import LocalBuffer, WritingNest


@operator()
class DetOp(GraphOp):
    """The determinant of each matrix of the last two dimensions, which are equal; 1 without rows.

    Gaussian elimination with partial pivoting, in f32 for f16 and bf16: it is the product of the
    pivots, negated by each exchange of rows. It is NaN for a NaN, and 0 for a pivot of 0, even
    where the product of the others is infinite.

    %y = graph.det %x : (tensor<?x2x2xf32>) -> tensor<?xf32>
    """

    name = "graph.det"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        if len(x) < 2:
            facts.fail("x is not a matrix", "rank >= 2", f"rank {len(x)}")
        facts.equal(x[-2], x[-1], "a matrix is not square")
        return [x[:-2]]

    def flops(self, sizes: Sizes) -> Dim | None:
        """n ** 3 for each matrix, of which two thirds count."""
        shape = sizes.shape(self.x)
        return product((*shape, shape[-1]))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = widened(dense_array(arrays[0]))
        with np.errstate(all="ignore"):
            return self.stored(_determinants(x))

    def write(self, nest: WritingNest) -> None:
        count = rank(self.x) - 2
        size = nest.extent(self.x, count)
        with nest.loops([nest.extent(self.x, axis) for axis in range(count)]) as outer:
            one = nest.constant(1.0, nest.compute_type(element_type(self.x)))
            rows = _Rows(nest, size, one)
            with nest.loops([size, size]) as (row, column):
                rows.matrix.put((row, column), nest.at(self.x, (*outer, row, column)))
            found, is_regular = nest.serial(size, [one, one], rows.eliminate)
            nest.write(0, outer, _unless_singular(nest, found, is_regular))


def _determinants(x: np.ndarray) -> np.ndarray:
    """The determinants of matrices, in the order of operations of `DetOp.write`.

    That of LAPACK depends on its build, and so does what it makes of infinities; some builds lose a
    NaN in a column that is divided by an infinite pivot.
    """
    rows = x.reshape(prod(x.shape[:-2]), *x.shape[-2:]).copy()
    every = np.arange(len(rows))
    found, is_singular = np.ones(len(rows), x.dtype), np.zeros(len(rows), bool)
    for k in range(rows.shape[-1]):
        column = np.abs(rows[:, k:, k])
        best = k + np.argmax(np.where(np.isnan(column), -1, column), axis=1)
        rows[every, k], rows[every, best] = rows[every, best], rows[every, k]
        pivot = rows[:, k, k]
        divisor = np.where(pivot == 0, 1, pivot)
        factor = -rows[:, k + 1 :, k, None] / divisor[:, None, None]
        rows[:, k + 1 :] = wide_fma(factor, rows[:, k, None], rows[:, k + 1 :])
        found *= np.where(best == k, divisor, -divisor)
        is_singular |= pivot == 0
    zero_or_nan = np.minimum(np.abs(found), 0)
    return np.where(is_singular, zero_or_nan, found).reshape(x.shape[:-2])


def _unless_singular(nest: WritingNest, found: SSAValue, is_regular: SSAValue) -> SSAValue:
    """The product of the pivots that are not 0; 0 if one was, or NaN if the product is NaN."""
    zero = scalars.zero(nest, found.type)
    zero_or_nan = scalars.minimum(nest, nest.insert(math.AbsFOp(found)), zero)
    return scalars.select(nest, scalars.equal(nest, is_regular, zero), zero_or_nan, found)


class _Rows:
    """The rows of a matrix, in memory."""

    def __init__(self, nest: WritingNest, size: AffineExpr, one: SSAValue) -> None:
        self.nest, self.size, self.kind = nest, size, one.type
        # No local buffer is empty.
        own = AffineExpr.constant(1) if known_size(size) == 0 else size
        self.matrix: LocalBuffer = nest.local((own, own), one.type)

    def eliminate(self, place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Make a column 0 below the diagonal.

        Returns the product of the pivots so far that are not 0, and 0 if one of them is, else 1.
        """
        nest, number = self.nest, scalars.from_index(self.nest, self.nest.value(place), i64)
        best = self._largest(place, number)
        self._exchange(place, nest.index(best))
        pivot = self.matrix.at((place, place))
        zero, one = scalars.zero(nest, self.kind), nest.constant(1.0, self.kind)
        is_zero = scalars.equal(nest, pivot, zero)
        # Where the pivot is 0, what is divided is 0 or NaN.
        divisor = scalars.select(nest, is_zero, one, pivot)

        def subtract(row: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            own = scalars.from_index(nest, nest.value(row), i64)
            factor = scalars.divide(nest, self.matrix.at((row, place)), divisor)
            factor = scalars.negative(nest, factor)
            is_below = scalars.less(nest, number, own)
            with nest.loops([self.size]) as (column,):
                before = self.matrix.at((row, column))
                after = scalars.fma(nest, factor, self.matrix.at((place, column)), before)
                # Other rows stay as they are, infinities included.
                after = scalars.select(nest, is_below, after, before)
                self.matrix.put((row, column), after)
            return nothing

        nest.serial(self.size, [], subtract)
        product, is_regular = carried
        signed = scalars.negative(nest, divisor)
        factor = scalars.select(nest, scalars.equal(nest, best, number), divisor, signed)
        is_regular = scalars.select(nest, is_zero, zero, is_regular)
        return [scalars.mul(nest, product, factor), is_regular]

    def _largest(self, place: AffineExpr, number: SSAValue) -> SSAValue:
        """The row from a place on with the largest magnitude in the column of that place."""
        nest = self.nest

        def better(row: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            size, best = carried
            own = scalars.from_index(nest, nest.value(row), i64)
            x = nest.insert(math.AbsFOp(self.matrix.at((row, place))))
            inside = scalars.less_equal(nest, number, own)
            wins = nest.insert(arith.AndIOp(inside, scalars.less(nest, size, x)))
            return [scalars.select(nest, wins, x, size), scalars.select(nest, wins, own, best)]

        least = nest.constant(-1.0, self.kind)
        return nest.serial(self.size, [least, number], better)[1]

    def _exchange(self, first: AffineExpr, second: AffineExpr) -> None:
        def step(column: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            pair = [self.matrix.at((row, column)) for row in (first, second)]
            self.matrix.put((first, column), pair[1])
            self.matrix.put((second, column), pair[0])
            return nothing

        self.nest.serial(self.size, [], step)
