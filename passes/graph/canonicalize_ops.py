"""Canonical forms, so that later passes match one form only: `docs/canonical-forms.md`."""

from __future__ import annotations

from dataclasses import dataclass
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

from ...core.budgets import SUMS
from ...core.exactness import Exactness
from ...core.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import ints, is_half
from ...dialects.graph.axes import CanonicalPropertiesInterface
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import (
    elements_of,
    is_constant,
    replace,
    reshape_target,
    sizes_of,
)
from .rules.permission import permitted
from .rules.recorded import recorded
from .rules.rooted import rooted

_SWAP = (1, 0)


@Exactness.EXACT
class ConstantComesLast(RewritePattern):
    # f(c, x) == f(x, c)  for a commutative f
    @rooted
    def match_and_rewrite(self, op: graph.BinaryOp, rewriter: PatternRewriter) -> None:
        swaps = is_constant(op.lhs) and not is_constant(op.rhs)
        if swaps and op.has_trait(Commutative):
            replace(op, [type(op)(op.rhs, op.lhs)], rewriter)


@Exactness.EXACT
class SubtractConstant(RewritePattern):
    # x - c == x + (-c)
    @rooted
    def match_and_rewrite(self, op: graph.SubOp, rewriter: PatternRewriter) -> None:
        if is_constant(op.lhs) or not is_constant(op.rhs):
            return
        literal = elements_of(op.rhs, WeightStore())
        if literal is not None and literal.size:
            negated: GraphOp = graph.ConstantOp.literal(np.negative(literal))
        else:
            negated = graph.NegOp(op.rhs)
        replace(op, [negated, graph.AddOp(op.lhs, negated)], rewriter)


def _is_zero(bound: float) -> bool:
    """Whether a number is 0 and not -0.0, which is below the 0.0 of a relu."""
    return bound == 0 and copysign(1, bound) > 0


@Exactness.EXACT
class MaxIsClip(RewritePattern):
    # max(x, 0) == relu(x), and max(x, c) == clip(x, c, inf)  for a splat c
    @rooted
    def match_and_rewrite(self, op: graph.MaxOp, rewriter: PatternRewriter) -> None:
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            low = graph.splat_of(bound)
            if low is None or low != low or is_constant(x):
                continue
            new = graph.ReluOp(x) if _is_zero(low) else graph.ClipOp(x, minimum=low)
            replace(op, [new], rewriter)
            return


@Exactness.EXACT
class MinIsClip(RewritePattern):
    # min(x, c) == clip(x, -inf, c)  for a splat c
    @rooted
    def match_and_rewrite(self, op: graph.MinOp, rewriter: PatternRewriter) -> None:
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            high = graph.splat_of(bound)
            if high is None or high != high or is_constant(x):
                continue
            replace(op, [graph.ClipOp(x, maximum=high)], rewriter)
            return


@Exactness.EXACT
class ClipIsRelu(RewritePattern):
    # clip(x, 0, inf) == relu(x)
    @rooted
    def match_and_rewrite(self, op: graph.ClipOp, rewriter: PatternRewriter) -> None:
        low, high = op.bounds
        if low is not None and _is_zero(low) and high in (None, inf):
            replace(op, [graph.ReluOp(op.x)], rewriter)


@Exactness.OPEN
class MatmulOfTransposed(RewritePattern):
    # matmul(a, transpose(w)) == dense(a, w)  for a matrix w
    @rooted
    def match_and_rewrite(self, op: graph.MatmulOp, rewriter: PatternRewriter) -> None:
        transpose = op.b.owner
        if isinstance(transpose, graph.TransposeOp) and ints(transpose.permutation) == _SWAP:
            replace(op, [graph.DenseOp(op.a, transpose.x)], rewriter, [transpose])


@Exactness.OPEN
class DenseOfTransposed(RewritePattern):
    # dense(x, transpose(w)) == matmul(x, w)
    @rooted
    def match_and_rewrite(self, op: graph.DenseOp, rewriter: PatternRewriter) -> None:
        transpose = op.w.owner
        if not isinstance(transpose, graph.TransposeOp) or op.bias is not None or rank(op.x) < 2:
            return
        if ints(transpose.permutation) == _SWAP:
            replace(op, [graph.MatmulOp(op.x, transpose.x)], rewriter, [transpose])


@Exactness.OPEN
class TransposeOfDense(RewritePattern):
    # transpose(dense(w, x)) == dense(x, w), where that does not move a constant from the weights
    @rooted
    def match_and_rewrite(self, op: graph.TransposeOp, rewriter: PatternRewriter) -> None:
        dense = op.x.owner
        if not isinstance(dense, graph.DenseOp) or dense.bias is not None:
            return
        if rank(dense.x) != 2 or not dense.result.has_one_use():
            return
        if ints(op.permutation) == _SWAP and (is_constant(dense.x) or not is_constant(dense.w)):
            replace(op, [graph.DenseOp(dense.w, dense.x)], rewriter, [dense])


_Layer = graph.DenseOp | graph.ConvOp


def _biased(op: graph.AddOp) -> tuple[_Layer, SSAValue, int] | None:
    """A layer that only `op` uses, the vector added along its columns, and the vector's length."""
    for product, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        layer = product.owner
        if not isinstance(layer, _Layer) or not product.has_one_use():
            continue
        # A vector along the columns of dense, along the channels of conv.
        after = rank(product) - 2 if isinstance(layer, graph.ConvOp) else 0
        width, sizes = sizes_of(product)[-1 - after], sizes_of(bias)
        vector = (1,) * (len(sizes) - 1 - after) + (width,) + (1,) * after
        if width >= 0 and sizes and sizes == vector:
            return layer, bias, width
    return None


def _with_bias(layer: _Layer, bias: SSAValue) -> GraphOp:
    """The layer with this bias in place of its own."""
    if isinstance(layer, graph.DenseOp):
        return graph.DenseOp(layer.x, layer.w, bias)
    steps = ints(layer.strides), ints(layer.dilations), layer.groups.value.data
    return graph.ConvOp(layer.x, layer.w, bias, *steps)


def _flat(bias: SSAValue, width: int) -> tuple[list[GraphOp], SSAValue]:
    """The reshape that makes a bias a vector, if it is not one, and the vector."""
    if rank(bias) == 1:
        return [], bias
    flat = graph.ReshapeOp(bias, [width])
    return [flat], flat.result


@Exactness.OPEN
class BiasIsAnOperand(RewritePattern):
    # dense(x, w) + b == dense(x, w, b), likewise conv with a bias per channel: the sum starts
    # at b
    @rooted
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        if (found := _biased(op)) is None:
            return
        layer, bias, width = found
        # A computed matrix of one row stays an ordinary summand.
        if layer.bias is None and (rank(bias) == 1 or is_constant(bias)):
            new, bias = _flat(bias, width)
            replace(op, [*new, _with_bias(layer, bias)], rewriter, [layer])


@Exactness.ROUNDING
class BiasesAreOne(RewritePattern):
    # dense(x, w, a) + b == dense(x, w, a + b)  for constants, likewise conv
    @rooted
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        if (found := _biased(op)) is None:
            return
        layer, bias, width = found
        if layer.bias is None or not is_constant(layer.bias) or not is_constant(bias):
            return
        # The sum of two biases would be rounded to 16 bits before it is used.
        if is_half(element_type(bias)):
            return
        new, bias = _flat(bias, width)
        total = graph.AddOp(layer.bias, bias)
        replace(op, [*new, total, _with_bias(layer, total.result)], rewriter, [layer])


@Exactness.EXACT
class ReshapeToSizes(RewritePattern):
    # shape = [0, -1] == shape = [-1, 12]  where the type says 12
    @rooted
    def match_and_rewrite(self, op: graph.ReshapeOp, rewriter: PatternRewriter) -> None:
        target = reshape_target(sizes_of(op.result))
        if target is not None and target != list(ints(op.shape)):
            replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


@Exactness.EXACT
class CanonicalProperties(RewritePattern):
    # axis = -1 == axis = rank - 1;  axes = [-1, 0] == axes = [0, rank - 1]
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, CanonicalPropertiesInterface):
            return
        wanted = op.canonical_properties()
        if any(op.properties.get(name) != value for name, value in wanted.items()):
            op.properties |= wanted
            rewriter.notify_op_modified(op)


_PATTERNS: tuple[type[RewritePattern], ...] = (
    ConstantComesLast,
    SubtractConstant,
    MaxIsClip,
    MinIsClip,
    ClipIsRelu,
    MatmulOfTransposed,
    DenseOfTransposed,
    TransposeOfDense,
    BiasIsAnOperand,
    BiasesAreOne,
    ReshapeToSizes,
    CanonicalProperties,
)


@dataclass(frozen=True)
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
        patterns = [kind() for kind in _PATTERNS]
        why = "later passes match one form only"
        rules = permitted(op, [recorded(rule, ctx, why) for rule in patterns])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)
