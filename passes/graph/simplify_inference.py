"""Operators that only training needs become what they are at inference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import dtype_of, is_half
from ...dialects.graph.interfaces import element_type, rank
from .rules.recorded import recorded


class DropoutIsIdentity(RewritePattern):
    """Leave dropout out."""

    # dropout(x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DropoutOp, rewriter: PatternRewriter) -> None:
        if op.x.type == op.result.type:
            rewriter.replace(op, [], [op.x])


class BatchNormIsScaleAndShift(RewritePattern):
    """Compute one factor and one summand for each channel, on vectors that are constants."""

    # batch_norm(x) == x * k + (bias - mean * k)  for k = scale * rsqrt(variance + epsilon)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.BatchNormOp, rewriter: PatternRewriter) -> None:
        if is_half(element_type(op.x)):
            return
        dtype = dtype_of(element_type(op.x))
        axis = op.axis.value.data % rank(op.x)
        channels = [1] * (rank(op.x) - axis)
        channels[0] = -1
        epsilon = graph.ConstantOp.literal(np.array(op.epsilon.value.data, dtype=dtype))
        variance = graph.AddOp(op.variance, epsilon)
        deviation = graph.RsqrtOp(variance)
        factor = graph.MulOp(op.scale, deviation)
        centre = graph.MulOp(op.mean, factor)
        summand = graph.SubOp(op.bias, centre)
        factors = graph.ReshapeOp(factor, channels)
        summands = graph.ReshapeOp(summand, channels)
        scaled = graph.MulOp(op.x, factors)
        shifted = graph.AddOp(scaled, summands, result_type=op.result.type)
        vectors = [epsilon, variance, deviation, factor, centre, summand, factors, summands]
        new = [*vectors, scaled, shifted]
        for part in new:
            part.location = op.location
        rewriter.replace(op, new, [shifted.result])


@dataclass(frozen=True)
class GraphSimplifyInferencePass(ModulePass):
    """Replace dropout by its operand and batch normalisation by a scale and a shift.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %y = graph.dropout %x ratio = 5.0e-01 : (tensor<?x8xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      func.return %x : tensor<?x8xf32>
    }
    ```

    A batch normalisation becomes ``x * k + (bias - mean * k)`` with
    ``k = scale * rsqrt(variance + epsilon)``: five operators on one number for each channel,
    which `graph-fold-constant` then evaluates, and two on ``x``. In f16 it stays, since ``k``
    would be rounded.

    Requires: nothing.
    Leaves: no `graph.batch_norm` but in f16, no `graph.dropout` but between types that differ.
    """

    name = "graph-simplify-inference"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [DropoutIsIdentity(), BatchNormIsScaleAndShift()]
        rules = recorded(ctx, patterns, "its parts fold and fuse with what is beside them")
        PatternRewriteWalker(GreedyRewritePatternApplier(rules)).rewrite_module(op)
