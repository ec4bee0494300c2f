"""Replace training layers by their inference form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter

from ...core.budgets import ROUNDING
from ...core.dtypes import dtype_of
from ...core.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import is_half
from ...dialects.graph.interfaces import GraphOp, element_type, rank, tensor_type
from .rules.permission import permitted
from .rules.recorded import recorded
from .rules.rooted import rooted


@Exactness.EXACT
class DropoutIsIdentity(RewritePattern):
    """Remove dropout."""

    # dropout(x) == x
    @rooted
    def match_and_rewrite(self, op: graph.DropoutOp, rewriter: PatternRewriter) -> None:
        if op.x.type == op.result.type:
            rewriter.replace(op, [], [op.x])


class Composition:
    """Builds the primitives that replace an operator; like it they compute 16 bits in f32.

    Args:
        op: the operator; its operands of 16 bits are cast.
        rewriter: inserts before `op`.
    """

    def __init__(self, op: GraphOp, rewriter: PatternRewriter) -> None:
        self.op = op
        self.rewriter = rewriter
        stored = element_type(op.operands[0])
        self.element = f32 if is_half(stored) else stored

    def add(self, new: Operation) -> SSAValue:
        """Insert an operator and return its one result."""
        new.location = self.op.location
        self.rewriter.insert(new)
        return new.results[0]

    def operand(self, value: SSAValue) -> SSAValue:
        """An operand in the type in which it is computed."""
        if element_type(value) == self.element:
            return value
        return self.add(graph.CastOp(value, self.element))

    def number(self, value: float) -> SSAValue:
        """A scalar constant."""
        return self.add(graph.ConstantOp.literal(np.array(value, dtype_of(self.element))))

    def mean(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """The mean along some axes, which are kept with size 1."""
        return self.add(graph.ReduceOp(x, "mean", axes, keepdims=True))

    def mean_square(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """The mean of the squares along some axes, which are kept with size 1."""
        return self.mean(self.add(graph.MulOp(x, x)), axes)

    def inverse_root(self, x: SSAValue, epsilon: float) -> SSAValue:
        """1 / sqrt(x + epsilon)."""
        return self.add(graph.RsqrtOp(self.add(graph.AddOp(x, self.number(epsilon)))))

    def standardized(self, x: SSAValue, axes: Sequence[int], epsilon: float) -> SSAValue:
        """x with mean 0 and variance 1 along some axes.

        The mean and the variance are corrected as in `StandardizationOp`.
        """
        distance = self.add(graph.SubOp(x, self.mean(x, axes)))
        correction, square = self.mean(distance, axes), self.mean_square(distance, axes)
        variance = self.add(graph.SubOp(square, self.add(graph.MulOp(correction, correction))))
        # By its rounding error the difference may be below 0.
        variance = self.add(graph.MaxOp(variance, self.number(0.0)))
        distance = self.add(graph.SubOp(distance, correction))
        return self.add(graph.MulOp(distance, self.inverse_root(variance, epsilon)))

    def affine(
        self, y: SSAValue, scale: SSAValue | None, bias: SSAValue | None, shape: Sequence[int] = ()
    ) -> SSAValue:
        """y * scale + bias, either of which may be None; both get `shape` if there is one."""
        for parameter, operator in ((scale, graph.MulOp), (bias, graph.AddOp)):
            if parameter is not None:
                p = self.operand(parameter)
                y = self.add(operator(y, self.add(graph.ReshapeOp(p, shape)) if shape else p))
        return y

    def finish(self, y: SSAValue) -> None:
        """Replace the first result by `y`."""
        result = self.op.results[0]
        y = (
            y
            if element_type(y) == element_type(result)
            else self.add(graph.CastOp(y, element_type(result)))
        )
        if y.type != result.type:
            # The two types may differ in which sizes are static.
            y = Rewriter.replace_value_with_new_type(y, result.type)
        result.replace_all_uses_with(y)
        self.rewriter.erase(self.op)


def _vector(x: SSAValue, axis: int) -> list[int]:
    """The shape in which a vector broadcasts along a dimension of `x`."""
    return [-1, *[1] * (rank(x) - axis - 1)]


@Exactness.OPEN
class BatchNormIsScaleAndShift(RewritePattern):
    """Compute one factor and one summand for each channel, from vectors that are constants."""

    # batch_norm(x) == x * k + (bias - mean * k)  for k = scale * rsqrt(variance + epsilon)
    @rooted
    def match_and_rewrite(self, op: graph.BatchNormOp, rewriter: PatternRewriter) -> None:
        if is_half(element_type(op.x)):
            return
        new, shape = Composition(op, rewriter), _vector(op.x, op.axis_from_front)
        epsilon = new.number(op.epsilon.value.data)
        factor = new.add(graph.RsqrtOp(new.add(graph.AddOp(op.variance, epsilon))))
        if op.scale is not None:
            factor = new.add(graph.MulOp(op.scale, factor))
        centre = new.add(graph.MulOp(op.mean, factor))
        shift = graph.NegOp(centre) if op.bias is None else graph.SubOp(op.bias, centre)
        new.finish(new.affine(op.x, factor, new.add(shift), shape))


@Exactness.OPEN
class BatchNormTrainingIsPrimitives(RewritePattern):
    """Standardize the channels, if the statistics are unused."""

    # batch_norm_training(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means over all dimensions but that of the channels
    @rooted
    def match_and_rewrite(self, op: graph.BatchNormTrainingOp, rewriter: PatternRewriter) -> None:
        if op.mean.uses or op.variance.uses:
            return
        new = Composition(op, rewriter)
        epsilon = op.epsilon.value.data
        y = new.standardized(new.operand(op.x), op.normalized_axes, epsilon)
        new.finish(new.affine(y, op.scale, op.bias, _vector(op.x, op.axis_from_front)))


@Exactness.OPEN
class LayerNormIsPrimitives(RewritePattern):
    """Standardize along an axis and those after it."""

    # layer_norm(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means along the axes
    @rooted
    def match_and_rewrite(self, op: graph.LayerNormOp, rewriter: PatternRewriter) -> None:
        new = Composition(op, rewriter)
        y = new.standardized(new.operand(op.x), op.normalized_axes, op.epsilon.value.data)
        new.finish(new.affine(y, op.scale, op.bias))


@Exactness.OPEN
class InstanceNormIsPrimitives(RewritePattern):
    """Standardize each channel of each element of the batch."""

    # instance_norm(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means over all dimensions but those of batch and channels
    @rooted
    def match_and_rewrite(self, op: graph.InstanceNormOp, rewriter: PatternRewriter) -> None:
        new = Composition(op, rewriter)
        y = new.standardized(new.operand(op.x), op.normalized_axes, op.epsilon.value.data)
        new.finish(new.affine(y, op.scale, op.bias, _vector(op.x, op.axis_from_front)))


@Exactness.OPEN
class GroupNormIsPrimitives(RewritePattern):
    """Standardize runs of channels, where a reshape can separate them."""

    # group_norm(x) == reshape((z - m) * rsqrt(mean((z - m)^2) + epsilon) * scale + bias)
    #     for z = x reshaped to groups of channels, and m = mean(z), the means of the groups
    @rooted
    def match_and_rewrite(self, op: graph.GroupNormOp, rewriter: PatternRewriter) -> None:
        axis, sizes = op.axis_from_front, tensor_type(op.x).get_shape()
        trailing = [-1 if n == DYNAMIC_INDEX else n for n in sizes[axis + 1 :]]
        if trailing.count(-1) > 1 or 0 in sizes[axis:]:  # 0 would copy a size
            return
        new = Composition(op, rewriter)
        groups = [op.groups.value.data, op.channels_of_group]
        apart = graph.ReshapeOp(new.operand(op.x), [*[0] * axis, *groups, *trailing])
        axes = [i for i in range(1, len(sizes) + 1) if i != axis]
        y = new.standardized(new.add(apart), axes, op.epsilon.value.data)
        y = new.affine(y, op.scale, op.bias, [*groups, *[1] * len(trailing)])
        new.finish(new.add(graph.ReshapeOp(y, [*[0] * axis, sizes[axis], *trailing])))


@Exactness.OPEN
class RmsNormIsPrimitives(RewritePattern):
    """Divide by the root mean square along an axis and those after it."""

    # rms_norm(x) == x * rsqrt(mean(x^2) + epsilon) * scale
    @rooted
    def match_and_rewrite(self, op: graph.RmsNormOp, rewriter: PatternRewriter) -> None:
        new = Composition(op, rewriter)
        x = new.operand(op.x)
        square = new.mean_square(x, op.normalized_axes)
        inverse = new.inverse_root(square, op.epsilon.value.data)
        new.finish(new.affine(new.add(graph.MulOp(x, inverse)), op.scale, None))


@Exactness.OPEN
class L2NormalizeIsPrimitives(RewritePattern):
    """Divide by the Euclidean norm."""

    # l2_normalize(x) == x * rsqrt(max(sum(x^2), epsilon))
    @rooted
    def match_and_rewrite(self, op: graph.L2NormalizeOp, rewriter: PatternRewriter) -> None:
        new = Composition(op, rewriter)
        x = new.operand(op.x)
        square = new.add(graph.MulOp(x, x))
        total = new.add(graph.ReduceOp(square, "sum", op.normalized_axes, keepdims=True))
        bounded = new.add(graph.MaxOp(total, new.number(op.epsilon.value.data)))
        new.finish(new.add(graph.MulOp(x, new.add(graph.RsqrtOp(bounded)))))


@dataclass(frozen=True)
class GraphSimplifyInferencePass(ModulePass):
    """Replace dropout by its operand, and normalisations by primitive operators.

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
    ``k = scale * rsqrt(variance + epsilon)``: a few operators on one number for each channel,
    which `graph-fold-constant` then evaluates, and two on ``x``. In 16 bits it is kept, since
    ``k`` would be rounded. Normalisations by statistics of ``x`` itself (layer, instance, group,
    root mean square, L2, and batch in training) become reductions and elementwise operators,
    for 16 bits in f32; `graph-fuse-ops` fuses these into one kernel again, now together with
    their neighbours.

    Requires: nothing.
    Leaves: no `graph.batch_norm` but in 16 bits, no `graph.dropout` but between different types,
        no normalisation but a `graph.batch_norm_training` whose statistics are used and a
        `graph.group_norm` with two symbolic sizes after the channels, or without elements.
    """

    name = "graph-simplify-inference"
    budget = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: list[RewritePattern] = [
            DropoutIsIdentity(),
            BatchNormIsScaleAndShift(),
            BatchNormTrainingIsPrimitives(),
            LayerNormIsPrimitives(),
            InstanceNormIsPrimitives(),
            GroupNormIsPrimitives(),
            RmsNormIsPrimitives(),
            L2NormalizeIsPrimitives(),
        ]
        why = "its parts fold and fuse with their neighbours"
        rules = permitted(op, [recorded(rule, ctx, why) for rule in patterns])
        PatternRewriteWalker(GreedyRewritePatternApplier(rules)).rewrite_module(op)
