"""Products around a softmax become attention, which has no matrix of all scores."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...core.dtypes import dtype_of
from ...core.ir.context import weights_of
from ...core.ir.weights import WeightStore
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import SPECIAL, Exactness, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import is_float
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import elements_of, replace, sizes_of
from .rules.permission import permitted
from .rules.recorded import recorded

LEAST = -1e30
"""To a number up to this any score may be added: it is less than a unit in the last place."""

FEWEST_SCORES = 256
"""Fewer scores of a head stay in a cache anyway, and a tile of its own costs more than it saves."""


@dataclass
class _Scores:
    """A product of q and the transpose of k, and what becomes of it before the softmax."""

    ops: list[Operation] = field(default_factory=list[Operation])
    """What the attention takes the place of, users first."""
    scale: float = 1.0
    mask: SSAValue | None = None
    """What is added, or the condition under which a score counts."""
    lowest: float | None = None
    """What takes the place of other scores, if it is not -inf."""
    product: graph.MatmulOp | None = None


@states(SPECIAL, "softmax(q k^T * scale + mask) v == attention(q, k, v, mask, scale)")
@dataclass
class RaiseAttention(RewritePattern):
    # Sums are rescaled, q is scaled in place of the scores, exponentials below 2^-125 are 0. Where
    # a NaN is made 0, a row without keys is 0; one whose scores have a NaN is NaN here.
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MatmulOp, rewriter: PatternRewriter) -> None:
        softmax = self._softmax(op.a)
        if softmax is None or softmax.axis_from_front != rank(softmax.x) - 1:
            return
        scores = self._scores(softmax.x)
        if scores.product is None or not _fits(scores.product, op):
            return
        q, k = scores.product.a, scores.product.b
        last = rank(k) - 1
        keys = graph.TransposeOp(k, [*range(last - 1), last, last - 1])
        new: list[GraphOp] = [keys]
        mask = scores.mask
        if mask is not None and scores.lowest is not None:
            mask = _added(new, mask, scores.lowest, q)
        safe = softmax is not op.a.owner
        new.append(graph.AttentionOp(q, keys, op.b, mask, scale=scores.scale, safe=safe))
        replace(op, new, rewriter, [*scores.ops, softmax])

    def _softmax(self, shares: SSAValue) -> graph.SoftmaxOp | None:
        """The softmax whose result is multiplied, or is where it is no NaN, which is made 0."""
        op = shares.owner
        if _is_shared(shares):
            return None
        if isinstance(op, graph.SoftmaxOp):
            return op
        if not isinstance(op, graph.WhereOp):
            return None
        condition, result, zero = op.condition.owner, op.a, op.b
        if isinstance(condition, graph.LogicalNotOp):
            condition, result, zero = condition.x.owner, op.b, op.a
        is_number = isinstance(condition, graph.EqualOp) and set(condition.operands) == {result}
        users = {use.operation for use in result.uses}
        if not is_number or self._number(zero) != 0 or users != {op, condition}:
            return None
        return result.owner if isinstance(result.owner, graph.SoftmaxOp) else None

    def _scores(self, value: SSAValue) -> _Scores:
        """The product that scores are made from; without one where it is something else."""
        found = _Scores()
        while not _is_shared(value):
            op = value.owner
            inner = self._step(op, found)
            if isinstance(op, Operation):
                found.ops.append(op)
            if isinstance(op, graph.MatmulOp):
                found.product = op
                return found
            # Nothing is broadcast on the way: a mask may have fewer dimensions than the scores.
            if inner is None or inner.type != value.type:
                return found
            value = inner
        return found

    def _step(self, op: object, found: _Scores) -> SSAValue | None:
        """What an operator on the way to the softmax is applied to."""
        if isinstance(op, graph.MulOp):
            return self._scaled(op, found)
        if found.mask is not None or found.scale != 1.0:
            return None  # a mask is added to scores that are scaled
        if isinstance(op, graph.AddOp):
            a, b = op.operands
            inner, found.mask = (b, a) if self._is_product(b, op) else (a, b)
            return inner
        if isinstance(op, graph.WhereOp):
            lowest = self._number(op.b)
            if lowest is not None and lowest <= LEAST:
                found.mask = op.condition
                found.lowest = None if np.isneginf(lowest) else lowest
                return op.a
        return None

    def _scaled(self, op: graph.MulOp, found: _Scores) -> SSAValue | None:
        for inner, other in (op.operands, tuple(reversed(op.operands))):
            factor = self._number(other)
            if factor is not None and np.isfinite(factor):
                found.scale *= factor
                return inner
        return None

    def _is_product(self, value: SSAValue, op: graph.AddOp) -> bool:
        """Whether a term of a sum is made of a product, perhaps scaled, and has all its sizes."""
        while isinstance(value.owner, graph.MulOp):
            inner = self._scaled(value.owner, _Scores())
            if inner is None:
                return False
            value = inner
        return isinstance(value.owner, graph.MatmulOp) and value.type == op.results[0].type

    def _number(self, value: SSAValue) -> float | None:
        """The number that a constant consists of, if it is one."""
        array = elements_of(value, self.weights)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _added(new: list[GraphOp], condition: SSAValue, lowest: float, like: SSAValue) -> SSAValue:
    """The mask that adds a number to a score where a condition does not hold."""
    dtype = dtype_of(element_type(like))
    zero, least = (graph.ConstantOp.literal(np.array(value, dtype)) for value in (0.0, lowest))
    new += [zero, least, graph.WhereOp(condition, zero, least)]
    return new[-1].results[0]


def _is_shared(value: SSAValue) -> bool:
    """Whether a value is used by several operators."""
    return len({(use.operation, use.index) for use in value.uses}) != 1


def _fits(product: graph.MatmulOp, result: graph.MatmulOp) -> bool:
    """Whether an attention has the operands of two products, and their sizes."""
    q, k, v = product.a, product.b, result.b
    kinds = {element_type(value) for value in (q, k, v)}
    ranks = {rank(value) for value in (q, k, v)}
    if len(kinds) > 1 or not is_float(kinds.pop()) or len(ranks) > 1 or min(ranks) < 3:
        return False
    q_sizes, k_sizes, v_sizes = map(sizes_of, (q, k, v))
    if q_sizes[-1] <= 0 or v_sizes[-1] <= 0 or k_sizes[-3] not in (1, q_sizes[-3]):
        return False
    scores = q_sizes[-2] * v_sizes[-2]
    if 0 <= scores < FEWEST_SCORES and min(q_sizes[-2], v_sizes[-2]) >= 0:
        return False
    return k_sizes[:-2] == v_sizes[:-2] and q_sizes[:-3] == k_sizes[:-3]


@Exactness.SPECIAL
class GraphRaiseAttentionPass(ModulePass):
    """Raise products around a softmax to attention.

    Before:

    ```mlir
    !q = tensor<2x50x4xf32> !s = tensor<2x50x50xf32>
    func.func @main(%q: !q, %k: tensor<2x4x50xf32>, %v: !q, %m: tensor<50x50xf32>) -> !q {
      %c = graph.constant dense<0.5> : tensor<f32>
      %p = graph.matmul %q, %k : (!q, tensor<2x4x50xf32>) -> !s
      %s = graph.mul %p, %c : (!s, tensor<f32>) -> !s
      %t = graph.add %s, %m : (!s, tensor<50x50xf32>) -> !s
      %e = graph.softmax %t axis = 2 : (!s) -> !s
      %y = graph.matmul %e, %v : (!s, !q) -> !q
      func.return %y : !q
    }
    ```

    After:

    ```mlir
    !q = tensor<2x50x4xf32>
    func.func @main(%q: !q, %k: tensor<2x4x50xf32>, %v: !q, %m: tensor<50x50xf32>) -> !q {
      %t = graph.transpose %k permutation = [0, 2, 1] : (tensor<2x4x50xf32>) -> !q
      %y = graph.attention %q, %t, %v mask %m : tensor<50x50xf32> scale = 5.000000e-01
          softcap = 0.000000e+00 left = -1 right = -1 at_end = false safe = false
          : (!q, !q, !q) -> !q
      func.return %y : !q
    }
    ```

    Sums are rescaled where a larger score comes, q is scaled in place of the scores, and an
    exponential that is less than 2^-125 counts as 0. Where each NaN of a softmax is made 0, as
    exporters do for rows without keys, those with a NaN among their scores are NaN.

    Requires: nothing.
    Order: preceded by `graph-canonicalize-ops` and `graph-simplify`, after which scores are
        multiplied by a constant; before `graph-fold-scale-axis`, which moves scales past products;
        before `graph-order-contractions`, which reorders products.
    Leaves: a softmax along another axis, scores or shares that something else uses, operands of
        matrices without a third dimension or with heads of unknown
        width, and few scores.
    """

    name = "graph-raise-attention"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        why = "scores of blocks stay in a cache"
        rules = permitted(op, [recorded(RaiseAttention(weights_of(ctx)), ctx, why)])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)
