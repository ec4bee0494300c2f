"""Canonical forms, so that later passes match one form only: `docs/canonical-forms.md`."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, inf

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
)
from xdsl.traits import Commutative

from ...core.ir.weights import WeightStore
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import EXACT, OPEN, ROUNDING, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import is_half
from ...dialects.graph.axes import CanonicalPropertiesInterface
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import (
    elements_of,
    is_constant,
    reshape_target,
    sizes_of,
)
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.rules import rule
from .rules.permission import permitted
from .rules.recorded import recorded


@rule("f(c, x) == f(x, c)  for a commutative f", EXACT, f=graph.BinaryOp)
def constant_comes_last(op: graph.BinaryOp, x: SSAValue) -> bool:
    return op.has_trait(Commutative) and not is_constant(x)


@rule("x - c == x + -c", EXACT)
def subtract_constant(b: InsertingBuilder, x: SSAValue, c: SSAValue) -> SSAValue | None:
    if is_constant(x):
        return None
    literal = elements_of(c, WeightStore())
    if literal is None or not literal.size:
        return b.add(x, b.neg(c))
    return b.add(x, b.constant(np.negative(literal)))


def _is_zero(bound: float) -> bool:
    """Whether a number is 0 and not -0.0, which is below the 0.0 of a relu."""
    return bound == 0 and copysign(1, bound) > 0


@rule("max(x, c) == clip(x, c, inf)  for a splat c, relu(x) for 0", EXACT)
def max_is_clip(b: InsertingBuilder, x: SSAValue, c: SSAValue) -> SSAValue | None:
    low = graph.splat_of(c)
    if low is None or low != low or is_constant(x):
        return None
    return b.relu(x) if _is_zero(low) else b.clip(x, low)


@rule("min(x, c) == clip(x, None, high)  for a splat c, which is high", EXACT)
def min_is_clip(x: SSAValue, c: SSAValue) -> Mapping[str, float] | None:
    high = graph.splat_of(c)
    return None if high is None or high != high or is_constant(x) else {"high": high}


@rule("clip(x, low, high) == relu(x)  for 0 and infinity, or no upper bound", EXACT)
def clip_is_relu(low: float | None, high: float | None) -> bool:
    return low is not None and _is_zero(low) and high in (None, inf)


@rule("matmul(a, transpose(w, [1, 0])) == dense(a, w)  for a matrix w", OPEN)
def matmul_of_transposed() -> None: ...


@rule("dense(x, transpose(w, [1, 0])) == matmul(x, w)", OPEN)
def dense_of_transposed(x: SSAValue) -> bool:
    return rank(x) >= 2


@rule("transpose(p := dense(w, x), [1, 0]) == dense(x, w)  unless x alone is a constant", OPEN)
def transpose_of_dense(p: SSAValue, w: SSAValue, x: SSAValue) -> bool:
    return rank(w) == 2 and p.has_one_use() and (is_constant(w) or not is_constant(x))


_Layer = graph.DenseOp | graph.ConvOp


def _along_columns(b: InsertingBuilder, layer: GraphOp, bias: SSAValue) -> SSAValue | None:
    """The vector that is added along the columns of a layer that nothing else uses."""
    # A vector along the columns of dense, along the channels of conv.
    product = layer.results[0]
    after = rank(product) - 2 if isinstance(layer, graph.ConvOp) else 0
    width, sizes = sizes_of(product)[-1 - after], sizes_of(bias)
    vector = (1,) * (len(sizes) - 1 - after) + (width,) + (1,) * after
    if width < 0 or not sizes or sizes != vector or not product.has_one_use():
        return None
    return bias if rank(bias) == 1 else b.reshape(bias, [width])


@rule("f(x, w) + v == f(x, w, bias)  along the columns: the sum starts there", OPEN, f=_Layer)
def bias_is_an_operand(
    b: InsertingBuilder, f: GraphOp, v: SSAValue
) -> Mapping[str, SSAValue] | None:
    # A computed matrix of one row stays an ordinary summand.
    bias = _along_columns(b, f, v) if rank(v) == 1 or is_constant(v) else None
    return None if bias is None else {"bias": bias}


@rule("f(x, w, c) + d == f(x, w, c + bias)  for constants along the columns", ROUNDING, f=_Layer)
def biases_are_one(b: InsertingBuilder, f: GraphOp, d: SSAValue) -> Mapping[str, SSAValue] | None:
    # The sum of two biases would be rounded to 16 bits before it is used.
    bias = None if is_half(element_type(d)) else _along_columns(b, f, d)
    return None if bias is None else {"bias": bias}


@rule("reshape(x, s) == reshape(x, sizes)  where the type tells more sizes than s", EXACT)
def reshape_to_sizes(op: graph.ReshapeOp, s: tuple[int, ...]) -> Mapping[str, list[int]] | None:
    target = reshape_target(sizes_of(op.result))
    return None if target is None or target == list(s) else {"sizes": target}


@states(EXACT, "axis = -1 == axis = rank - 1  likewise axes, in ascending order")
class CanonicalProperties(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, CanonicalPropertiesInterface):
            return
        wanted = op.canonical_properties()
        if any(op.properties.get(name) != value for name, value in wanted.items()):
            op.properties |= wanted
            rewriter.notify_op_modified(op)


_PATTERNS: tuple[RewritePattern, ...] = (
    constant_comes_last,
    subtract_constant,
    max_is_clip,
    min_is_clip,
    clip_is_relu,
    matmul_of_transposed,
    dense_of_transposed,
    transpose_of_dense,
    bias_is_an_operand,
    biases_are_one,
    reshape_to_sizes,
    CanonicalProperties(),
)


class GraphCanonicalizeOpsPass(ModulePass):
    """Bring operators into canonical form.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>)
        -> tensor<?x4xf32> {
      %z = graph.constant dense<0.0> : tensor<f32>
      %t = graph.transpose %w permutation = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
      %d = graph.matmul %x, %t : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
      %s = graph.add %b, %d : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %y = graph.max %z, %s : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>)
        -> tensor<?x4xf32> {
      %d = graph.dense %x, %w, %b
          : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
      %y = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    `docs/canonical-forms.md` lists the forms. A value with other users is kept for them.

    Requires: `graph-order-contractions` before it, which matches products without a bias.
    Leaves: operators whose results are no longer used are erased.
    """

    name = "graph-canonicalize-ops"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        why = "later passes match one form only"
        rules = permitted(op, [recorded(rule, ctx, why) for rule in _PATTERNS])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)
