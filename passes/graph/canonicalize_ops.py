"""One form for each meaning, so that later passes look for one; `docs/canonical-forms.md`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...core.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import i64_array, i64_attr, ints, is_half
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import (
    elements_of,
    is_constant,
    replace,
    reshape_target,
    sizes_of,
)
from ...dialects.graph.ops_binary import BinaryOp
from .rules.recorded import recorded

_COMMUTATIVE = (graph.AddOp, graph.MulOp, graph.MaxOp, graph.MinOp)
_WITH_AXIS = (
    graph.BatchNormOp,
    graph.ConcatOp,
    graph.GatherOp,
    graph.LogSoftmaxOp,
    graph.SoftmaxOp,
)
_SWAP = (1, 0)


class ConstantComesLast(RewritePattern):
    # c + x == x + c, and so for mul, max and min
    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, BinaryOp) or not isinstance(op, _COMMUTATIVE):
            return
        if is_constant(op.lhs) and not is_constant(op.rhs):
            replace(op, [type(op)(op.rhs, op.lhs)], rewriter)


class SubtractConstant(RewritePattern):
    # x - c == x + (-c)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SubOp, rewriter: PatternRewriter) -> None:
        if is_constant(op.lhs) or not is_constant(op.rhs):
            return
        literal = elements_of(op.rhs, WeightStore())
        if literal is not None and literal.size:
            negated: GraphOp = graph.ConstantOp.literal(np.negative(literal))
        else:
            negated = graph.NegOp(op.rhs)
        replace(op, [negated, graph.AddOp(op.lhs, negated)], rewriter)


class MaxIsClip(RewritePattern):
    # max(x, 0) == relu(x), and max(x, c) == clip(x, c, inf)  for one number c
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MaxOp, rewriter: PatternRewriter) -> None:
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            low = graph.splat_of(bound)
            if low is None or low != low or is_constant(x):
                continue
            replace(op, [graph.ReluOp(x) if low == 0 else graph.ClipOp(x, minimum=low)], rewriter)
            return


class MinIsClip(RewritePattern):
    # min(x, c) == clip(x, -inf, c)  for one number c
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MinOp, rewriter: PatternRewriter) -> None:
        for x, bound in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            high = graph.splat_of(bound)
            if high is None or high != high or is_constant(x):
                continue
            replace(op, [graph.ClipOp(x, maximum=high)], rewriter)
            return


class ClipIsRelu(RewritePattern):
    # clip(x, 0, inf) == relu(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ClipOp, rewriter: PatternRewriter) -> None:
        low, high = op.bounds
        if low == 0 and high in (None, inf):
            replace(op, [graph.ReluOp(op.x)], rewriter)


class MatmulOfTransposed(RewritePattern):
    # matmul(a, transpose(w)) == dense(a, w)  for a matrix w
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MatmulOp, rewriter: PatternRewriter) -> None:
        transpose = op.b.owner
        if isinstance(transpose, graph.TransposeOp) and ints(transpose.permutation) == _SWAP:
            replace(op, [graph.DenseOp(op.a, transpose.x)], rewriter, [transpose])


class DenseOfTransposed(RewritePattern):
    # dense(x, transpose(w)) == matmul(x, w)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DenseOp, rewriter: PatternRewriter) -> None:
        transpose = op.w.owner
        if not isinstance(transpose, graph.TransposeOp) or op.bias is not None or rank(op.x) < 2:
            return
        if ints(transpose.permutation) == _SWAP:
            replace(op, [graph.MatmulOp(op.x, transpose.x)], rewriter, [transpose])


class BiasIsAnOperand(RewritePattern):
    # dense(x, w) + b == dense(x, w, b), and dense(x, w, a) + b == dense(x, w, a + b)
    # The same holds for conv and a bias of channels.
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        for product, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            layer = product.owner
            if not isinstance(layer, graph.DenseOp | graph.ConvOp) or not product.has_one_use():
                continue
            # A vector along the columns of dense, along the channels of conv.
            after = rank(product) - 2 if isinstance(layer, graph.ConvOp) else 0
            width, sizes = sizes_of(product)[-1 - after], sizes_of(bias)
            vector = (1,) * (len(sizes) - 1 - after) + (width,) + (1,) * after
            if width < 0 or not sizes or sizes != vector:
                continue
            if layer.bias is not None and not (is_constant(bias) and is_constant(layer.bias)):
                continue
            # One computed row is another summand, whatever its shape.
            if rank(bias) > 1 and not is_constant(bias):
                continue
            # The sum of two biases would be rounded to f16 before it is used.
            if layer.bias is not None and is_half(element_type(bias)):
                continue
            new = self._layer(layer, bias, width)
            if replace(op, new, rewriter, [layer]):
                return

    @staticmethod
    def _layer(layer: graph.DenseOp | graph.ConvOp, bias: SSAValue, width: int) -> list[GraphOp]:
        new: list[GraphOp] = []
        if rank(bias) > 1:
            new.append(graph.ReshapeOp(bias, [width]))
            bias = new[-1].results[0]
        if layer.bias is not None:
            new.append(graph.AddOp(layer.bias, bias))
            bias = new[-1].results[0]
        if isinstance(layer, graph.DenseOp):
            return [*new, graph.DenseOp(layer.x, layer.w, bias)]
        steps = ints(layer.strides), ints(layer.dilations), layer.groups.value.data
        return [*new, graph.ConvOp(layer.x, layer.w, bias, *steps)]


class ReshapeToSizes(RewritePattern):
    # shape = [0, -1] == shape = [-1, 12]  where the type says 12
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReshapeOp, rewriter: PatternRewriter) -> None:
        target = reshape_target(sizes_of(op.result))
        if target is not None and target != list(ints(op.shape)):
            replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


class AxisFromTheFront(RewritePattern):
    # axis = -1 == axis = rank - 1
    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, _WITH_AXIS) or not op.operands:
            return
        axis = op.properties["axis"]
        if isinstance(axis, IntegerAttr) and axis.value.data < 0:
            op.properties["axis"] = i64_attr(axis.value.data % rank(op.operands[0]))
            rewriter.notify_op_modified(op)


class AxesInOrder(RewritePattern):
    # axes = [-1, 0] == axes = [0, rank - 1]
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        axes = tuple(sorted(op.reduced_axes))
        if axes != ints(op.axes):
            op.properties["axes"] = i64_array(axes)
            rewriter.notify_op_modified(op)


_PATTERNS: tuple[type[RewritePattern], ...] = (
    ConstantComesLast,
    SubtractConstant,
    MaxIsClip,
    MinIsClip,
    ClipIsRelu,
    MatmulOfTransposed,
    DenseOfTransposed,
    BiasIsAnOperand,
    ReshapeToSizes,
    AxisFromTheFront,
    AxesInOrder,
)


@dataclass(frozen=True)
class GraphCanonicalizeOpsPass(ModulePass):
    """Bring operators into the one form that stands for each meaning.

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

    `docs/canonical-forms.md` lists the forms. A value that has other users keeps them.

    Requires: `graph-order-contractions` before it, which looks for products without a bias.
    Leaves: operators whose results are no longer used are erased.
    """

    name = "graph-canonicalize-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [kind() for kind in _PATTERNS]
        rules = recorded(ctx, patterns, "later passes look for one form of each meaning")
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)
