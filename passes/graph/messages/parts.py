"""Products with weights for each kind of message: the rows of all kinds are multiplied at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.exactness import Exactness
from ....core.provenance import fuse
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp, rank
from ....dialects.graph.known import elements_of
from ....dialects.graph.ops_aggregate_parts import KINDS
from ..rules.rooted import rooted
from .edge_lists import Facts


@Exactness.OPEN
@dataclass
class ProductOfParts(RewritePattern):
    """Multiply what is aggregated for each node and relation without rows that are empty."""

    facts: Facts

    # dense(reshape(aggregate(a, x), [n, p * k]), w) == aggregate_dense(a, x, w as [p, k, f])
    #     for a finite w, so that rows of 0 contribute 0
    @rooted
    def match_and_rewrite(
        self, op: graph.DenseOp | graph.MatmulOp, rewriter: PatternRewriter
    ) -> None:
        made = _aggregated(op.operands[0])
        if made is None or not self._is_in_parts(op.operands[0], made.result):
            return
        array = elements_of(op.operands[1], self.facts.weights)
        if array is None or array.ndim != 2 or not np.isfinite(array).all():
            return
        bias = op.bias if isinstance(op, graph.DenseOp) else None
        weights = self._weights(op, self.facts.shape(made.result)[1].value)
        kind = made.kind.data.value
        new: list[GraphOp] = [*weights, graph.AggregateDenseOp(made.a, made.x, weights[-1], kind)]
        if bias is not None:
            new.append(graph.AddOp(new[-1].results[0], bias))
        new[-1].set_result_types([op.results[0].type])
        for part in new:
            part.location = fuse([made, op])
        rewriter.replace(op, new, new[-1].results)

    def _is_in_parts(self, rows: SSAValue, each: SSAValue) -> bool:
        """Whether each row has several rows of an aggregation one after the other."""
        (nodes, width), (count, inner) = self.facts.shape(rows), self.facts.shape(each)
        if not (width.is_static and inner.is_static) or inner == 0 or width == inner:
            return False
        return width.value % inner.value == 0 and nodes * (width.value // inner.value) == count

    def _weights(self, op: graph.DenseOp | graph.MatmulOp, inner: int) -> list[GraphOp]:
        """The weights of a product, part by part."""
        w = op.operands[1]
        turned = [graph.TransposeOp(w, [1, 0])] if isinstance(op, graph.DenseOp) else []
        last = turned[-1].result if turned else w
        columns = self.facts.shape(op.results[0])[1].value
        return [*turned, graph.ReshapeOp(last, [-1, inner, columns])]


def _aggregated(value: SSAValue) -> graph.AggregateOp | None:
    """The aggregation of matrices that a value is a matrix of, where nothing else reads it."""
    if rank(value) != 2 or not isinstance(value.owner, graph.ReshapeOp):
        return None
    while isinstance(value.owner, graph.ReshapeOp) and value.has_one_use():
        value = value.owner.x
    made = value.owner
    if not isinstance(made, graph.AggregateOp) or not value.has_one_use():
        return None
    fits = made.weights is None and rank(made.x) == 2
    return made if fits and made.kind.data in KINDS else None
