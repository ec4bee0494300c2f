"""Operators that combine what arrives at the rows of a sparse matrix: one message for each entry.

`graph.aggregate` sends rows of x from the columns of the entries, `graph.reduce_entries` has the
messages as a tensor. Only the pattern of the matrix counts; see `edge.py`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array, sparse_array
from .....core.pipelines.exactness import EXACT
from ...attrs import FLOAT_TENSOR, SPARSE_TENSOR, AggregateKind, AggregateKindAttr, ReduceKind
from ...combiners import COMBINER_OF, Combiner
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    widened,
)
from ...nests import scalars
from ...nests.nest import PlaceStep
from ...rules import rule
from ...traits import ReadsPattern
from ..products.contraction import same_element_types
from .edge import require_equal
from .edge_softmax import softmax_of_rows
from .matrices import rows_of
from .products import require_csr, require_entries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ...interfaces import Array

_SPREAD = (AggregateKind.VAR, AggregateKind.STD)
_DIVIDED = (AggregateKind.MEAN, *_SPREAD)

Message = Callable[[AffineExpr, AffineExpr], SSAValue]
"""From the position of an entry and its column to what it sends."""


class AggregationOp(GraphOp, ABC):
    """Common code of operators that combine the messages of the entries of each row.

    `var` is the mean squared distance from the mean, and `std` its square root. A row without
    entries yields 0, and 1 for `prod`.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION
    traits = traits_def(ReadsPattern())

    kind = prop_def(AggregateKindAttr)
    result = result_def(FLOAT_TENSOR)

    @property
    def matrix(self) -> SSAValue:
        """The matrix whose entries the messages belong to."""
        return self.operands[0]

    @property
    def combiner(self) -> Combiner:
        """How messages are combined: a mean is a sum first, and so is a variance."""
        sums = self.kind.data in (*_DIVIDED, AggregateKind.SOFTMAX)
        return COMBINER_OF[ReduceKind.SUM if sums else ReduceKind(self.kind.data.value)]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.operands[1])]

    def combined(self, a: csr_array, messages: np.ndarray) -> np.ndarray:
        """The messages of each row, combined."""
        rows, kind = rows_of(a), self.kind.data
        count = np.diff(a.indptr).reshape(-1, *[1] * (messages.ndim - 1))
        divisor = np.maximum(count, 1).astype(messages.dtype)

        def gathered(values: np.ndarray) -> np.ndarray:
            shape, first = (a.shape[0], *values.shape[1:]), self.combiner.first(values.dtype)
            result = np.full(shape, first, values.dtype)
            self.combiner.ufunc.at(result, rows, values)
            return result / divisor if kind in _DIVIDED else result

        result = gathered(messages)
        if kind in _SPREAD:
            result = gathered(np.square(messages - result[rows]))
        if kind == AggregateKind.STD:
            result = np.sqrt(result)
        empty = 1 if kind == AggregateKind.PROD else 0
        return np.where(count == 0, messages.dtype.type(empty), result)

    def reduced(
        self, nest: Nest, row: AffineExpr, message: Message, step: PlaceStep | None = None
    ) -> SSAValue:
        """The messages of a row, combined; `step` adds one to a sum, where it can do better."""
        kind, type = self.kind.data, nest.compute_type(element_type(self.result))
        init = self.combiner.init(nest, type)

        def combine(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            return self.combiner.step(nest, total, message(position, column))

        adds = self.combiner is COMBINER_OF[ReduceKind.SUM]
        chosen = step if adds and step is not None else combine
        total = nest.pattern(self.matrix, row, self.combiner.name, init, chosen)
        if kind in (AggregateKind.SUM, AggregateKind.PROD):
            return total
        count = scalars.from_index(nest, nest.value(nest.count(self.matrix, row)), type)
        zero, one = (nest.constant(value, type) for value in (0.0, 1.0))
        if kind not in _DIVIDED:
            return scalars.select(nest, scalars.equal(nest, count, zero), zero, total)
        divisor = scalars.maximum(nest, count, one)
        if kind == AggregateKind.MEAN:
            # One division for the row: those of its elements take as long as to load them.
            return scalars.mul(nest, total, scalars.divide(nest, one, divisor))
        mean = scalars.divide(nest, total, divisor)

        def spread(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            rest = scalars.sub(nest, message(position, column), mean)
            return scalars.fma(nest, rest, rest, total)

        variance = scalars.divide(
            nest, nest.pattern(self.matrix, row, "add", init, spread), divisor
        )
        return variance if kind == AggregateKind.VAR else nest.insert(math.SqrtOp(variance))


@irdl_op_definition
class AggregateOp(AggregationOp, HasCanonicalizationPatternsInterface):
    """Combine, for each row, the rows of x at the columns of its stored entries.

    `sum`, `mean`, `max`, `min`, `prod`, `var` or `std`; a row without entries yields 0 (1 for
    `prod`). With `weights` the row of x is multiplied by the weight of the entry first: weights of
    shape [E, H] belong to x of shape [N, H, ...]. For `softmax` weights are scores, and the result
    is the sum of the rows of x weighted by the softmax of the scores of the row. The stored values
    of the matrix are ignored; `graph.entries` returns them.

    %y = graph.aggregate sum %a, %x weights %p
        : (tensor<?x?xf32, #csr>, tensor<?x2x3xf32>, tensor<?x2xf32>) -> tensor<?x2x3xf32>
    """

    name = "graph.aggregate"

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    weights = opt_operand_def(FLOAT_TENSOR)

    assembly_format = (
        "$kind $a `,` $x (`weights` $weights^)? attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        weights: SSAValue | Operation | None = None,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"kind": AggregateKindAttr(AggregateKind(kind))}
        super().__init__(operands=[a, x, weights], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (aggregate_by_stored_values,)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        same_element_types(self, facts, self.operands[1:])
        a, x = shapes[:2]
        if not x:
            facts.fail("x has no rows", "rank 1 or more", "rank 0")
        facts.equal(a[1], x[0], "x does not have one row for each column of a")
        if self.weights is None and self.kind.data == AggregateKind.SOFTMAX:
            facts.fail("softmax has no scores", "weights", "none")
        if self.weights is not None:
            weights = shapes[2]
            require_entries(facts, self.a, weights, "weights")
            fact = "weights do not fit the leading dimensions of x"
            require_equal(facts, x[1 : len(weights)], weights[1:], fact)
        return [(a[0], *x[1:])]

    def flops(self, sizes: Sizes) -> Dim:
        entries = sizes.nnz(self.a) or Dim.of(0)
        each = 1 if self.weights is None else 2
        return entries * product(sizes.shape(self.x)[1:]) * each

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a = sparse_array(arrays[0])
        x = widened(dense_array(arrays[1]))
        messages = x[a.indices]
        with np.errstate(all="ignore"):
            if self.weights is not None:
                weights = widened(dense_array(arrays[2]))
                if self.kind.data == AggregateKind.SOFTMAX:
                    weights = softmax_of_rows(a, weights)
                trailing = [1] * (x.ndim - weights.ndim)
                messages = messages * weights.reshape(*weights.shape, *trailing)
            return self.stored(self.combined(a, messages))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, *rest = index

        def weight(position: AffineExpr) -> SSAValue | None:
            if self.weights is None:
                return None
            return nest.at(self.weights, (position, *rest[: rank(self.weights) - 1]))

        if self.kind.data == AggregateKind.SOFTMAX:
            return self._attended(nest, index, weight)

        def message(position: AffineExpr, column: AffineExpr) -> SSAValue:
            value, factor = nest.at(self.x, (column, *rest)), weight(position)
            return value if factor is None else scalars.mul(nest, factor, value)

        def weighted(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            value, factor = nest.at(self.x, (column, *rest)), weight(position)
            if factor is None:
                return scalars.add(nest, total, value)
            return scalars.fma(nest, factor, value, total)

        return self.reduced(nest, row, message, weighted)

    def _attended(
        self, nest: Nest, index: Indices, score: Callable[[AffineExpr], SSAValue | None]
    ) -> SSAValue:
        """The sum weighted by exp(score - maximum), over the sum of these weights."""
        row, *rest = index
        type = nest.compute_type(element_type(self.result))

        def scored(position: AffineExpr) -> SSAValue:
            found = score(position)
            assert found is not None
            return found

        def larger(position: AffineExpr, column: AffineExpr, best: SSAValue) -> SSAValue:
            return scalars.maxnum(nest, scored(position), best)

        # The maximum ignores a NaN, which makes the sums NaN.
        maximum = nest.pattern(self.a, row, "maxnum", nest.constant(-np.inf, type), larger)

        def accumulate(
            position: AffineExpr, column: AffineExpr, totals: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            weights, total = totals
            below = scalars.sub(nest, scored(position), maximum)
            weight = scalars.exp_of_difference(nest, below)
            value = nest.at(self.x, (column, *rest))
            return scalars.add(nest, weights, weight), scalars.fma(nest, weight, value, total)

        zero = scalars.zero(nest, type)
        weights, total = nest.pattern_several(self.a, row, ("add", "add"), (zero, zero), accumulate)
        share = scalars.divide(nest, nest.constant(1.0, type), weights)
        empty = scalars.equal(nest, weights, zero)
        return scalars.mul(nest, total, scalars.select(nest, empty, zero, share))


@operator(kind="sum")
class ReduceEntriesOp(AggregationOp, HasCanonicalizationPatternsInterface):
    """Combine, for each row, the slices of x that belong to its stored entries.

    `sum`, `mean`, `max`, `min`, `prod`, `var` or `std`; a row without entries yields 0 (1 for
    `prod`). The first dimension of x runs over the entries.

    %y = graph.reduce_entries sum %a, %e
        : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.reduce_entries"

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)

    assembly_format = "$kind $a `,` $x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (reduce_columns,)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        if self.kind.data == AggregateKind.SOFTMAX:
            facts.fail("softmax has no scores", "graph.aggregate with weights", self.name)
        a, x = shapes
        require_entries(facts, self.a, x, "x")
        return [(a[0], *x[1:])]

    def flops(self, sizes: Sizes) -> Dim:
        return product(sizes.shape(self.x))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, x = sparse_array(arrays[0]), widened(dense_array(arrays[1]))
        with np.errstate(all="ignore"):
            return self.stored(self.combined(a, x))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, *rest = index
        return self.reduced(nest, row, lambda position, _: nest.at(self.x, (position, *rest)))


@rule('aggregate(a, x, entries(a), kind="sum") == spmm(a, x)  for a matrix x', EXACT)
def aggregate_by_stored_values(x: SSAValue) -> bool:
    return rank(x) == 2


@rule("reduce_entries(a, at_entries(a, x, axis=1), kind=k) == aggregate(a, x, kind=k)", EXACT)
def reduce_columns() -> None: ...
