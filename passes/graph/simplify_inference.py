"""Replace training layers by their inference form, and composites by their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter

from ...core.budgets import ROUNDING
from ...core.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import is_half
from ...dialects.graph.composite import CompositeOp
from ...dialects.graph.interfaces import GraphOp, element_type, rank, tensor_type
from ...dialects.graph.op_builder import InsertingBuilder, OpBuilder, V
from .legalize import tables
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


@Exactness.EXACT
@dataclass
class CompositeIsItsBody(RewritePattern):
    """Open the composites that no pass matches, and for which no table has a rule or kernel."""

    ctx: Context
    kept: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = frozenset(name for table in tables(self.ctx) for name in table)

    # f(x) == body(x), computed in f32 for 16 bits
    @rooted
    def match_and_rewrite(self, op: CompositeOp, rewriter: PatternRewriter) -> None:
        if op.STAYS_CLOSED or op.name in self.kept:
            return
        b = InsertingBuilder(rewriter, [op])
        y = op.body(b, *(_computed(b, operand) for operand in op.operands))
        if y in op.operands and y.type != op.results[0].type:
            return
        _replace(op, y, b, rewriter)


def _computed(b: InsertingBuilder, x: SSAValue) -> SSAValue:
    """A value in the type in which it is computed: f32 for 16 bits."""
    return b.cast(x, f32) if is_half(element_type(x)) else x


def _mean_square(b: OpBuilder[V], x: V, axes: Sequence[int]) -> V:
    """The mean of the squares along some axes, which are kept with size 1."""
    return b.reduce(b.mul(x, x), "mean", axes, keepdims=True)


def _inverse_root(b: OpBuilder[V], x: V, epsilon: float) -> V:
    """1 / sqrt(x + epsilon)."""
    return b.rsqrt(b.add(x, epsilon))


def _standardized(b: OpBuilder[V], x: V, axes: Sequence[int], epsilon: float) -> V:
    """x with mean 0 and variance 1 along some axes.

    The mean and the variance are corrected as in `StandardizationOp`.
    """
    distance = b.sub(x, b.reduce(x, "mean", axes, keepdims=True))
    correction = b.reduce(distance, "mean", axes, keepdims=True)
    variance = b.sub(_mean_square(b, distance, axes), b.mul(correction, correction))
    # By its rounding error the difference may be below 0.
    variance = b.max(variance, 0.0)
    distance = b.sub(distance, correction)
    return b.mul(distance, _inverse_root(b, variance, epsilon))


def _affine(
    b: InsertingBuilder,
    y: SSAValue,
    scale: SSAValue | None,
    bias: SSAValue | None,
    shape: Sequence[int] = (),
) -> SSAValue:
    """y * scale + bias, either of which may be None; both get `shape` if there is one."""
    for parameter, operator in ((scale, b.mul), (bias, b.add)):
        if parameter is not None:
            p = _computed(b, parameter)
            y = operator(y, b.reshape(p, shape) if shape else p)
    return y


def _replace(op: GraphOp, y: SSAValue, b: InsertingBuilder, rewriter: PatternRewriter) -> None:
    """Replace the first result of an operator, in its element type."""
    result = op.results[0]
    if element_type(y) != element_type(result):
        y = b.cast(y, element_type(result))
    if y.type != result.type:
        # The two types may differ in which sizes are static.
        y = Rewriter.replace_value_with_new_type(y, result.type)
    result.replace_all_uses_with(y)
    rewriter.erase(op)


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
        b = InsertingBuilder(rewriter, [op])
        factor = _inverse_root(b, op.variance, op.epsilon.value.data)
        if op.scale is not None:
            factor = b.mul(op.scale, factor)
        centre = b.mul(op.mean, factor)
        shift = b.neg(centre) if op.bias is None else b.sub(op.bias, centre)
        y = _affine(b, op.x, factor, shift, _vector(op.x, op.axis_from_front))
        _replace(op, y, b, rewriter)


@Exactness.OPEN
class BatchNormTrainingIsPrimitives(RewritePattern):
    """Standardize the channels, if the statistics are unused."""

    # batch_norm_training(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means over all dimensions but that of the channels
    @rooted
    def match_and_rewrite(self, op: graph.BatchNormTrainingOp, rewriter: PatternRewriter) -> None:
        if op.mean.uses or op.variance.uses:
            return
        b = InsertingBuilder(rewriter, [op])
        epsilon = op.epsilon.value.data
        y = _standardized(b, _computed(b, op.x), op.normalized_axes, epsilon)
        y = _affine(b, y, op.scale, op.bias, _vector(op.x, op.axis_from_front))
        _replace(op, y, b, rewriter)


@Exactness.OPEN
class LayerNormIsPrimitives(RewritePattern):
    """Standardize along an axis and those after it."""

    # layer_norm(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means along the axes
    @rooted
    def match_and_rewrite(self, op: graph.LayerNormOp, rewriter: PatternRewriter) -> None:
        b = InsertingBuilder(rewriter, [op])
        y = _standardized(b, _computed(b, op.x), op.normalized_axes, op.epsilon.value.data)
        _replace(op, _affine(b, y, op.scale, op.bias), b, rewriter)


@Exactness.OPEN
class InstanceNormIsPrimitives(RewritePattern):
    """Standardize each channel of each element of the batch."""

    # instance_norm(x) == (x - m) * rsqrt(mean((x - m)^2) + epsilon) * scale + bias
    #     for m = mean(x), the means over all dimensions but those of batch and channels
    @rooted
    def match_and_rewrite(self, op: graph.InstanceNormOp, rewriter: PatternRewriter) -> None:
        b = InsertingBuilder(rewriter, [op])
        y = _standardized(b, _computed(b, op.x), op.normalized_axes, op.epsilon.value.data)
        y = _affine(b, y, op.scale, op.bias, _vector(op.x, op.axis_from_front))
        _replace(op, y, b, rewriter)


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
        b = InsertingBuilder(rewriter, [op])
        groups = [op.groups.value.data, op.channels_of_group]
        apart = b.reshape(_computed(b, op.x), [*[0] * axis, *groups, *trailing])
        axes = [i for i in range(1, len(sizes) + 1) if i != axis]
        y = _standardized(b, apart, axes, op.epsilon.value.data)
        y = _affine(b, y, op.scale, op.bias, [*groups, *[1] * len(trailing)])
        _replace(op, b.reshape(y, [*[0] * axis, sizes[axis], *trailing]), b, rewriter)


@Exactness.OPEN
class RmsNormIsPrimitives(RewritePattern):
    """Divide by the root mean square along an axis and those after it."""

    # rms_norm(x) == x * rsqrt(mean(x^2) + epsilon) * scale
    @rooted
    def match_and_rewrite(self, op: graph.RmsNormOp, rewriter: PatternRewriter) -> None:
        b = InsertingBuilder(rewriter, [op])
        x = _computed(b, op.x)
        square = _mean_square(b, x, op.normalized_axes)
        inverse = _inverse_root(b, square, op.epsilon.value.data)
        _replace(op, _affine(b, b.mul(x, inverse), op.scale, None), b, rewriter)


@Exactness.OPEN
class L2NormalizeIsPrimitives(RewritePattern):
    """Divide by the Euclidean norm."""

    # l2_normalize(x) == x * rsqrt(max(sum(x^2), epsilon))
    @rooted
    def match_and_rewrite(self, op: graph.L2NormalizeOp, rewriter: PatternRewriter) -> None:
        b = InsertingBuilder(rewriter, [op])
        x = _computed(b, op.x)
        total = b.reduce(b.mul(x, x), "sum", op.normalized_axes, keepdims=True)
        bounded = b.max(total, op.epsilon.value.data)
        _replace(op, b.mul(x, b.rsqrt(bounded)), b, rewriter)


@dataclass(frozen=True)
class GraphSimplifyInferencePass(ModulePass):
    """Replace dropout by its operand, and normalisations and composites by primitive operators.

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
    their neighbours. So does a composite (`CompositeOp`), but for one that other passes match, such
    as `graph.gelu`, and one for which a table of `graph-legalize` has a rule or a kernel.

    Requires: nothing.
    Leaves: no other composite, no `graph.batch_norm` but in 16 bits, no `graph.dropout` but between
        different types, no normalisation but a `graph.batch_norm_training` whose statistics are
        used and a `graph.group_norm` with two symbolic sizes after the channels, or without
        elements.
    """

    name = "graph-simplify-inference"
    budget = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: list[RewritePattern] = [
            DropoutIsIdentity(),
            CompositeIsItsBody(ctx),
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
