"""Products with weights for each kind of message: the rows of all kinds are multiplied at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import Rewriter

from ....core.pipelines.exactness import OPEN, states
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ints
from ....dialects.graph.interfaces import rank
from ....dialects.graph.known import elements_of
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.ops.sparse.aggregate_parts import KINDS
from ..rules.rooted import rooted
from .edge_lists import EdgeListFacts


@states(
    OPEN,
    "dense(h, w) == aggregate_dense(a, x, w as [p, k, f])  for h = aggregate(a, x) as [p, n, "
    "k], then as [n, p * k], and a finite w, so that rows of 0 contribute 0",
)
@dataclass
class ProductOfParts(RewritePattern):
    """Multiply what is aggregated for each node and relation without rows that are empty."""

    facts: EdgeListFacts

    @rooted
    def match_and_rewrite(
        self, op: graph.DenseOp | graph.MatmulOp, rewriter: PatternRewriter
    ) -> None:
        made = self._in_parts(op.operands[0])
        if made is None:
            return
        array = elements_of(op.operands[1], self.facts.weights)
        if array is None or array.ndim != 2 or not np.isfinite(array).all():
            return
        bias = op.bias if isinstance(op, graph.DenseOp) else None
        b, w = InsertingBuilder(rewriter, [made, op]), op.operands[1]
        by_rows = b.transpose(w, [1, 0]) if isinstance(op, graph.DenseOp) else w
        inner, columns = (self.facts.shape(y)[1].value for y in (made.result, op.results[0]))
        weights = b.reshape(by_rows, [-1, inner, columns])
        result = b.aggregate_dense(made.a, made.x, weights, made.kind.data.value)
        if bias is not None:
            result = b.add(result, bias)
        result = Rewriter.replace_value_with_new_type(result, op.results[0].type)
        rewriter.replace(op, [], [result])

    def _in_parts(self, rows: SSAValue) -> graph.AggregateOp | None:
        """The aggregation of which each row has several rows, that of each part; None if none."""
        turned = _reshaped(rows)
        if rank(rows) != 2 or not isinstance(turn := turned.owner, graph.TransposeOp):
            return None
        if list(ints(turn.permutation)) != [1, 0, 2] or not turned.has_one_use():
            return None
        made = _reshaped(turn.x).owner
        if not isinstance(made, graph.AggregateOp) or not made.result.has_one_use():
            return None
        if made.weights is not None or rank(made.x) != 2 or made.kind.data not in KINDS:
            return None
        (parts, nodes, inner), width = self.facts.shape(turn.x), self.facts.shape(rows)[1]
        static = parts.is_static and inner.is_static and inner != 0 and parts != 0
        fits = self.facts.shape(made.result) == (parts * nodes, inner) and width == parts * inner
        return made if static and fits else None


def _reshaped(value: SSAValue) -> SSAValue:
    """What a value is reshaped from, where nothing else reads what is in between."""
    while isinstance(value.owner, graph.ReshapeOp) and value.has_one_use():
        value = value.owner.x
    return value
