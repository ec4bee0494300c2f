"""Determinants of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.irdl import operand_def, result_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from ...attrs import FLOAT_TENSOR
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ..elementwise.ternary import wide_fma

if TYPE_CHECKING:
    from ...interfaces import Array


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

    def write(self, k: KernelBody, x: Buffer, result: Buffer) -> None:
        size = x.shape[-2]
        with k.loops(x.shape[:-2]) as batch:
            one = k.scalar(1.0, x.type)
            rows = _MatrixRows(k, size, k.local((size, size), x.type))
            with k.loops(size, size) as (row, column):
                rows.matrix[row, column] = x[(*batch, row, column)]
            found, is_regular = k.carry(size, [one, one], rows.eliminate)
            # The product of the pivots that are not 0; 0 if one was, or NaN if the product is NaN.
            zero_or_nan = k.minimum(k.abs(found), 0.0)
            result[batch] = k.where(k.equal(is_regular, 0.0), zero_or_nan, found)


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


class _MatrixRows:
    """The rows of a matrix, in memory."""

    def __init__(self, k: KernelBody, size: int | Index, matrix: Buffer) -> None:
        self.k, self.size, self.matrix = k, size, matrix

    def eliminate(self, place: Index, product: Scalar, is_regular: Scalar) -> tuple[Scalar, Scalar]:
        """Make a column 0 below the diagonal.

        Returns the product of the pivots so far that are not 0, and 0 if one of them is, else 1.
        """
        k, matrix = self.k, self.matrix
        number = k.cast(place, i64)
        best = self._largest(place, number)
        self._exchange(place, k.index(best))
        pivot = matrix[place, place]
        is_zero = k.equal(pivot, 0.0)
        # Where the pivot is 0, what is divided is 0 or NaN.
        divisor = k.where(is_zero, 1.0, pivot)
        with k.serial(self.size) as row:
            own = k.cast(row, i64)
            factor = -(matrix[row, place] / divisor)
            is_below = number < own
            with k.loops(self.size) as column:
                before = matrix[row, column]
                after = k.fma(factor, matrix[place, column], before)
                # Other rows stay as they are, infinities included.
                matrix[row, column] = k.where(is_below, after, before)
        signed = -divisor
        factor = k.where(k.equal(best, number), divisor, signed)
        is_regular = k.where(is_zero, 0.0, is_regular)
        return product * factor, is_regular

    def _largest(self, place: Index, number: Scalar) -> Scalar:
        """The row from a place on with the largest magnitude in the column of that place."""
        k = self.k

        def better(row: Index, size: Scalar, best: Scalar) -> tuple[Scalar, Scalar]:
            own = k.cast(row, i64)
            x = k.abs(self.matrix[row, place])
            wins = (number <= own) & (size < x)
            return k.where(wins, x, size), k.where(wins, own, best)

        return k.carry(self.size, [k.scalar(-1.0, self.matrix.type), number], better)[1]

    def _exchange(self, first: Index, second: Index) -> None:
        with self.k.serial(self.size) as column:
            pair = [self.matrix[row, column] for row in (first, second)]
            self.matrix[first, column] = pair[1]
            self.matrix[second, column] = pair[0]
