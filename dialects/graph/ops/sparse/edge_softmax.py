"""The softmax of the scores of the edges that come into a node, with or without a self loop."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array, sparse_array
from ...attrs import FLOAT_TENSOR, SPARSE_TENSOR
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type, widened
from ...nests import scalars
from ...partitions import PartitionInterface
from ...traits import ReadsPattern
from ..products.contraction import same_element_types
from .edge import require_equal
from .matrices import rows_of
from .products import require_csr, require_entries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ...interfaces import Array


class SoftmaxOverEntriesOp(GraphOp, PartitionInterface, ABC):
    """What the softmax of the stored entries of each row and that of the self loop have in common.

    With `own`, each row has the score of a self loop, in place of those that are stored. With
    `halo` the matrix is one of a part of a graph: after the columns of its rows it may have others
    (see `ExchangeOp`).
    """

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    traits = traits_def(ReadsPattern())

    halo = opt_prop_def(UnitAttr)

    @property
    def on_part(self) -> dict[str, Attribute] | None:
        return {"halo": UnitAttr()}

    @property
    def matrix(self) -> SSAValue:
        """The matrix whose stored entries the scores belong to."""
        return self.operands[0]

    @property
    def all_scores(self) -> tuple[SSAValue, SSAValue | None]:
        """The scores of the entries, and those that belong to no entry."""
        scores, *own = self.operands[1:]
        return scores, own[0] if own else None

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.matrix, facts)
        same_element_types(self, facts, self.operands[1:])
        a, scores = shapes[:2]
        require_entries(facts, self.matrix, scores, "scores")
        if len(shapes) > 2:
            if self.halo is None:
                facts.equal(a[0], a[1], "a is not square, as a graph with self loops is")
            expected = (a[0], *scores[1:])
            fact = "own does not have one score for each row of a"
            require_equal(facts, expected, shapes[2], fact)
        return [scores]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.operands[1])]

    def parts(self, *arrays: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """exp of the scores and of the own ones, each less the row's maximum; the row's sum."""
        a = sparse_array(arrays[0])
        scores = widened(dense_array(arrays[1]))
        rows, shape = rows_of(a), (a.shape[0], *scores.shape[1:])
        own = np.full(shape, -np.inf, scores.dtype)
        if len(arrays) > 2:
            own = widened(dense_array(arrays[2]))
            stored = (rows == a.indices).reshape(-1, *[1] * (scores.ndim - 1))
            scores = np.where(stored, scores.dtype.type(-np.inf), scores)
        maximum = own.copy()
        with np.errstate(all="ignore"):
            np.maximum.at(maximum, rows, scores)
            e = np.exp(scores - maximum[rows])
            rest = np.exp(own - maximum) if len(arrays) > 2 else np.zeros_like(maximum)
        total = rest.copy()
        np.add.at(total, rows, e)
        return e, rest, total

    def score(self, nest: Nest, index: Indices, row: AffineExpr, column: AffineExpr) -> SSAValue:
        """The score of a stored entry; with `own`, a self loop has none."""
        scores, own = self.all_scores
        score = nest.at(scores, index)
        if own is None:
            return score
        loop = scalars.equal(nest, nest.value(column), nest.value(row))
        return scalars.select(nest, loop, nest.constant(-np.inf, score.type), score)

    def row(self, nest: Nest, row: AffineExpr, rest: Indices) -> tuple[SSAValue, SSAValue]:
        """The origin of the scores of a row, and the sum of exp(score - origin).

        The maximum ignores a NaN, which makes the sum NaN.
        """
        scores, others = self.all_scores
        own = None if others is None else nest.at(others, (row, *rest))
        type = nest.compute_type(element_type(scores))

        def larger(position: AffineExpr, column: AffineExpr, best: SSAValue) -> SSAValue:
            return scalars.maxnum(nest, self.score(nest, (position, *rest), row, column), best)

        lowest = nest.constant(-np.inf, type)
        maximum = nest.pattern(self.matrix, row, "maxnum", lowest, larger)
        if own is not None:
            maximum = scalars.maxnum(nest, own, maximum)
        origin = scalars.origin_of_softmax(nest, maximum)

        def accumulate(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            score = self.score(nest, (position, *rest), row, column)
            return scalars.add(nest, total, exp_less(nest, score, origin))

        first = scalars.zero(nest, type)
        if own is not None:
            first = exp_less(nest, own, origin)
        return origin, nest.pattern(self.matrix, row, "add", first, accumulate)


def softmax_of_rows(a: csr_array, scores: np.ndarray) -> np.ndarray:
    """The softmax of the scores of the entries of each row, of shape [E, ...]."""
    rows, shape = rows_of(a), (a.shape[0], *scores.shape[1:])
    maximum, total = np.full(shape, -np.inf, scores.dtype), np.zeros(shape, scores.dtype)
    np.maximum.at(maximum, rows, scores)
    e = np.exp(scores - maximum[rows])
    np.add.at(total, rows, e)
    return e / total[rows]


def exp_less(nest: Nest, score: SSAValue, origin: SSAValue) -> SSAValue:
    """exp(score - origin)."""
    return scalars.exp_of_difference(nest, scalars.sub(nest, score, origin))


@operator()
class EdgeSoftmaxOp(SoftmaxOverEntriesOp):
    """exp(score - max) / sum(exp(score - max)) over the stored entries of each row.

    With `own` each row has the score of one self loop, which takes part in the maximum and in the
    sum; stored ones are ignored and have weight 0. `graph.own_softmax` returns its weight.

    %p = graph.edge_softmax %a, %e
        : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.edge_softmax"

    a = operand_def(SPARSE_TENSOR)
    scores = operand_def(FLOAT_TENSOR)
    own = opt_operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$a (`halo` $halo^)? `,` $scores (`own` $own^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        e, _, total = self.parts(*arrays)
        with np.errstate(all="ignore"):
            return self.stored(e / total[rows_of(sparse_array(arrays[0]))])

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, column = nest.entry(self.a, index[0])
        origin, total = self.row(nest, row, index[1:])
        score = self.score(nest, index, row, column)
        return scalars.divide(nest, exp_less(nest, score, origin), total)


@operator()
class OwnSoftmaxOp(SoftmaxOverEntriesOp):
    """The weight of the self loop of each row, which is no stored entry; see `EdgeSoftmaxOp`.

    %q = graph.own_softmax %a, %e own %s
        : (tensor<?x?xf32, #csr>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.own_softmax"

    a = operand_def(SPARSE_TENSOR)
    scores = operand_def(FLOAT_TENSOR)
    own = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$a (`halo` $halo^)? `,` $scores `own` $own attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        super().infer_shapes(shapes, facts)
        return [(shapes[0][0], *shapes[1][1:])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        _, own, total = self.parts(*arrays)
        with np.errstate(all="ignore"):
            return self.stored(own / total)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        origin, total = self.row(nest, index[0], index[1:])
        return scalars.divide(nest, exp_less(nest, nest.at(self.own, index), origin), total)
