"""Fold a constant scale before or after a product into the weights of the product."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)

from ...core.ir.context import decide, weights_of
from ...core.ir.typed import owned, tensor_type
from ...core.ir.weights import WeightStore
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import SPECIAL, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PadMode
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import elements_of, is_constant, is_regular, sizes_of
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.rules import rule
from ...dialects.graph.traits import Homogeneous
from .rules.permission import permitted
from .rules.recorded import recorded
from .rules.rooted import rooted

_Product = graph.DenseOp | graph.MatmulOp | graph.ConvOp
_DEPTH = 8
"""The number of operators through which a scale is moved."""
_CONSTANTS = "the scale and the weights are constants"


@dataclass
class Scale:
    """A constant factor for each index along one axis, or one factor for all elements."""

    value: SSAValue
    elements: np.ndarray
    axis: int | None
    """The axis, counted from the back: -1 is the last one; None for a single factor."""

    @property
    def size(self) -> int:
        """The number of factors."""
        return self.elements.size

    @property
    def positive(self) -> bool:
        """Whether all factors are greater than 0."""
        return bool(np.all(self.elements > 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the factors without leading ones."""
        return (self.size, *[1] * (-1 - (self.axis or -1)))

    def runs_along(self, axis: int) -> bool:
        """Whether it scales along this negative axis, or all elements."""
        return self.axis in (None, axis)

    def passes_pad(self, pad: graph.PadOp) -> bool:
        """Whether it commutes with a pad: the padding is 0 or is scaled as well."""
        whole = self.axis is None or pad.margins[self.axis] == (0, 0)
        return whole and (pad.mode.data != PadMode.CONSTANT or pad.number == 0)

    def grows(self, summand: SSAValue) -> bool:
        """Whether scaling a constant adds elements to it."""
        sizes = np.broadcast_shapes(sizes_of(summand), self.shape)
        return math.prod(sizes) > max(math.prod(sizes_of(summand)), self.size)


class Rebuilding:
    """Rebuilds operators before the one that is rewritten."""

    def __init__(self, scale: Scale, rewriter: PatternRewriter) -> None:
        owner = scale.value.owner
        self.scale = scale
        self._rewriter = rewriter
        self._sources = [owner] if isinstance(owner, Operation) else []

    def at(self, *sources: Operation) -> InsertingBuilder:
        """Builds operators that stand for some, and for the scale."""
        return InsertingBuilder(self._rewriter, [*sources, *self._sources])

    def like(self, op: GraphOp, operands: list[SSAValue]) -> SSAValue:
        """The same operator on other operands."""
        copy = op.clone()
        copy.operands = operands
        return self.at(op).insert(copy)

    def factors(self, *shape: int) -> SSAValue:
        """The factors as a tensor of this shape; a single factor has all sizes 1."""
        sizes = shape if self.scale.size > 1 else (1,) * len(shape)
        if sizes_of(self.scale.value) == sizes:
            return self.scale.value
        return self.at().reshape(self.scale.value, list(sizes))

    def scaled(self, constant: SSAValue, *shape: int) -> SSAValue:
        """A constant times the factors, which are reshaped to `shape`."""
        owner = cast(Operation, constant.owner)
        return self.at(owner).mul(constant, self.factors(*shape))


def _is_private_constant(value: SSAValue) -> bool:
    """Whether scaling a constant leaves no second copy of it in the program."""
    return is_constant(value) and (value.has_one_use() or graph.splat_of(value) is not None)


def _scale_of(op: graph.MulOp, weights: WeightStore) -> tuple[SSAValue, Scale] | None:
    """The operand that `op` scales, and the scale."""
    if element_type(op.result) not in (f32, f64) or not rank(op.result):
        return None
    for x, factors in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        elements = elements_of(factors, weights)
        if elements is None or is_constant(x) or x.type != op.result.type:
            continue
        axes = [axis - elements.ndim for axis, size in enumerate(elements.shape) if size != 1]
        if elements.size and len(axes) <= 1 and np.all(np.isfinite(elements)):
            return x, Scale(factors, elements, axes[0] if axes else None)
    return None


def _absorbs(value: SSAValue, scale: Scale, depth: int = _DEPTH) -> bool:
    """Whether a scale of `value` can be folded into the weights of the products that make it."""
    op = value.owner
    if not value.has_one_use() or not depth:
        return False
    if isinstance(op, _Product):
        weighed = all(is_constant(operand) for operand in op.operands[1:])
        fits = scale.runs_along(_channels(value))
        return fits and weighed and _is_private_constant(op.operands[1])
    if isinstance(op, graph.PadOp):
        return scale.passes_pad(op) and _absorbs(op.x, scale, depth - 1)
    if isinstance(op, graph.SpmmOp):
        return _absorbs(op.x, scale, depth - 1)
    if isinstance(op, graph.NegOp):
        return _absorbs(op.x, scale, depth - 1)
    if isinstance(op, GraphOp) and op.has_trait(Homogeneous):
        return scale.positive and _absorbs(op.operands[0], scale, depth - 1)
    if not isinstance(op, graph.AddOp | graph.SubOp):
        return False
    computed = [v for v in (op.lhs, op.rhs) if not is_constant(v)]
    if not computed or any(scale.grows(v) for v in (op.lhs, op.rhs) if is_constant(v)):
        return False
    return all(v.type == value.type and _absorbs(v, scale, depth - 1) for v in computed)


def _channels(result: SSAValue) -> int:
    """The axis, counted from the back, of the rows of the weights of a product."""
    return 1 - rank(result) if isinstance(result.owner, graph.ConvOp) else -1


def _absorb(value: SSAValue, to: Rebuilding) -> SSAValue:
    """Rebuild `value` with the scale in its weights."""
    op = cast(GraphOp, value.owner)
    if isinstance(op, graph.ConstantOp):
        return to.scaled(value, *to.scale.shape)
    if isinstance(op, graph.DenseOp | graph.ConvOp):
        w = to.scaled(op.w, to.scale.size, *[1] * (rank(op.w) - 1))
        biases = [] if op.bias is None else [to.scaled(op.bias, to.scale.size)]
        return to.like(op, [op.x, w, *biases])
    if isinstance(op, graph.MatmulOp):
        return to.like(op, [op.a, to.scaled(op.b, to.scale.size)])
    if isinstance(op, graph.SpmmOp):
        return to.like(op, [op.a, _absorb(op.x, to)])
    operands = [_absorb(operand, to) for operand in op.operands]
    return to.like(op, operands)


def _gives(value: SSAValue, weights: WeightStore, depth: int = _DEPTH) -> Scale | None:
    """The scale of `value`, if it commutes with the operators after it."""
    op = value.owner
    if not value.has_one_use() or not depth:
        return None
    if isinstance(op, graph.MulOp):
        found = _scale_of(op, weights)
        return None if found is None else found[1]
    if isinstance(op, GraphOp) and op.has_trait(Homogeneous):
        scale = _gives(op.operands[0], weights, depth - 1)
        return scale if scale is not None and scale.positive else None
    if isinstance(op, graph.PadOp):
        scale = _gives(op.x, weights, depth - 1)
        return scale if scale is not None and scale.passes_pad(op) else None
    if isinstance(op, graph.AddOp) and is_constant(op.rhs) and op.lhs.type == value.type:
        scale, summand = _gives(op.lhs, weights, depth - 1), elements_of(op.rhs, weights)
        if scale is None or summand is None or not is_regular(scale.elements):
            return None
        if scale.grows(op.rhs):
            return None
        with np.errstate(all="ignore"):
            return scale if np.all(np.isfinite(summand / scale.elements)) else None
    return None


def _without_scale(value: SSAValue, to: Rebuilding) -> SSAValue:
    """Rebuild `value` without its scale."""
    op = cast(GraphOp, value.owner)
    if isinstance(op, graph.MulOp):
        return op.lhs if op.rhs is to.scale.value else op.rhs
    if isinstance(op, graph.AddOp):
        # x * s + t == (x + t / s) * s
        summand = to.at(op).div(op.rhs, to.factors(*to.scale.shape))
        return to.like(op, [_without_scale(op.lhs, to), summand])
    return to.like(op, [_without_scale(op.operands[0], to)])


@states(
    SPECIAL,
    "dense(x, w, b) * s == dense(x, w * s, b * s)  likewise conv",
    "matmul(x, b) * s == matmul(x, b * s)",
    "pad(x) * s == pad(x * s)  for a pad of zeros",
    "spmm(a, x) * s == spmm(a, x * s)",
    "f(x) * s == f(x * s)  for s > 0 and a homogeneous f, as relu",
    "(x + y) * s == x * s + y * s",
)
@dataclass
class ScaleOfProduct(RewritePattern):
    """Backward: fold a scale of a result into the weights."""

    ctx: Context

    @rooted
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        found = _scale_of(op, weights_of(self.ctx))
        if found is None or not _absorbs(*found):
            return
        value, scale = found
        result = _absorb(value, Rebuilding(scale, rewriter))
        _decide(self.ctx, op, "fold its scale into the weights before it")
        rewriter.replace(op, [], [result])


@states(
    SPECIAL,
    "dense(x * s, w) == dense(x, w * s)  likewise conv",
    "matmul(x * s, b) == matmul(x, s * b)",
    "pad(x * s) == pad(x) * s  for a pad of zeros",
    "f(x * s) == f(x) * s  for s > 0 and a homogeneous f, as relu",
    "x * s + t == (x + t / s) * s",
)
@dataclass
class ProductOfScaled(RewritePattern):
    """Forward: fold a scale of an operand into the weights."""

    ctx: Context

    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, _Product):
            return
        x, w = op.operands[0], op.operands[1]
        scale = _gives(x, weights_of(self.ctx)) if _is_private_constant(w) else None
        if scale is None or not scale.runs_along(_channels(op.results[0])):
            return
        to = Rebuilding(scale, rewriter)
        value = _without_scale(x, to)
        weights = _weights_of_scaled(op, to)
        result = to.like(op, [value, weights, *op.operands[2:]])
        _decide(self.ctx, op, "fold the scale of its operand into its weights")
        rewriter.replace(op, [], [result])


def _weights_of_scaled(op: GraphOp, to: Rebuilding) -> SSAValue:
    """The weights of a product whose operand is no longer scaled."""
    w, size = op.operands[1], to.scale.size
    if isinstance(op, graph.DenseOp):
        return to.scaled(w, size)
    if isinstance(op, graph.MatmulOp):
        return to.scaled(w, size, 1)
    conv = cast(graph.ConvOp, op)
    groups, (filters, channels, *window) = conv.groups.value.data, sizes_of(w)
    ones = [1] * len(window)
    if groups == 1 or size == 1:
        return to.scaled(w, size, *ones)
    # Each filter uses the factors of the channels in its group.
    own = to.at().broadcast_to(
        to.factors(groups, 1, channels), [groups, filters // groups, channels]
    )
    own = to.at().reshape(own, [filters, channels, *ones])
    return to.at(cast(Operation, w.owner)).mul(w, own)


@rule("(t := spmm(c, x)) * d == spmm(scaled, x)  for d of each row, scaled = diag(d) @ c", SPECIAL)
def scale_of_rows(
    b: InsertingBuilder, t: SSAValue, c: SSAValue, d: SSAValue, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    return _scaled_matrix(b, c, d, 0, weights) if t.has_one_use() else None


@rule("spmm(c, t := x * d) == spmm(scaled, x)  for d of each row, scaled = c @ diag(d)", SPECIAL)
def scale_of_columns(
    b: InsertingBuilder, t: SSAValue, c: SSAValue, x: SSAValue, d: SSAValue, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    only = t.has_one_use() and x.type == t.type
    return _scaled_matrix(b, c, d, 1, weights) if only else None


def _scaled_matrix(
    b: InsertingBuilder, matrix: SSAValue, factors: SSAValue, axis: int, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    """A constant matrix whose rows, or columns, are scaled by a constant column."""
    from scipy.sparse import csr_array

    a, elements = owned(matrix, graph.ConstantOp), elements_of(factors, weights)
    if elements is None or not matrix.has_one_use():
        return None
    length = sizes_of(matrix)[axis]
    if elements.shape != (length, 1) or not np.all(np.isfinite(elements)) or length == 1:
        return None
    if a.key is None or a.key not in weights or element_type(matrix) not in (f32, f64):
        return None
    entries = csr_array(a.array(weights))
    column = elements[:, 0]
    factor = column[entries.indices] if axis else np.repeat(column, np.diff(entries.indptr))
    scaled = csr_array((entries.data * factor, entries.indices, entries.indptr), entries.shape)
    key = weights.add(f"{a.key}.scaled", scaled)
    made = graph.ConstantOp.resource(key, tensor_type(matrix), int(entries.nnz))
    return {"scaled": b.insert(made)}


@rule(
    "f(t := x * n, w, *v) == add(f(x, w) * n, *v)  for one factor of each row of an argument",
    SPECIAL,
    f=graph.DenseOp | graph.MatmulOp,
)
def product_of_scaled_rows(op: GraphOp, t: SSAValue, x: SSAValue, n: SSAValue) -> bool:
    """Whether t is an argument x times one factor n for each row, and only a product reads it.

    A copy of x is written and read, where a product takes one more operation for each element:
    worth it unless its rows are more than twice as long as those of x.
    """
    if isinstance(x, OpResult) or x.type != t.type or not t.has_one_use():
        return False
    if element_type(x) not in (f32, f64) or rank(op.results[0]) != rank(x):
        return False
    width, terms = sizes_of(op.results[0])[-1], sizes_of(x)[-1]
    return sizes_of(n)[-1:] in ((), (1,)) and 0 <= width <= 2 * terms


def _decide(ctx: Context, op: GraphOp, what: str) -> None:
    decide(ctx, op, what, _CONSTANTS)


class GraphFoldScaleAxisPass(ModulePass):
    """Fold a constant scale along an axis into the weights of an adjacent product.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
      %d = graph.dense %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      %r = graph.relu %d : (tensor<?x2xf32>) -> tensor<?x2xf32>
      %y = graph.mul %r, %s : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
      func.return %y : tensor<?x2xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %s = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
      %c = graph.reshape %s shape = [2, 1] : (tensor<2xf32>) -> tensor<2x1xf32>
      %v = graph.mul %w, %c : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
      %d = graph.dense %x, %v : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      %y = graph.relu %d : (tensor<?x2xf32>) -> tensor<?x2xf32>
      func.return %y : tensor<?x2xf32>
    }
    ```

    For `conv` the axis is that of the channels. A scale moves through a pad of zeros, through a
    relu if it is positive, and through a sum if the other summand is a constant or absorbs it as
    well. A column that scales the rows of ``spmm(a, x)`` or of `x` is folded into the stored values
    of a constant `a`. Scales in 16 bits are kept: the weights would be rounded again. Factors of
    rows need not be constant where ``dense(x * n, w)`` scales an argument: ``dense(x, w) * n``
    stores no copy of it.

    Requires: weights in the context for scales that are not literals.
    Order: preceded by `graph-canonicalize-ops`, which puts constants second; followed by
        `graph-canonicalize-ops`, which makes a bias of a shift without its scale; followed by
        `graph-fold-constant`, which evaluates the new operators on constants.
    Leaves: scales of values or weights with other users, and negative ones around a relu.
    """

    name = "graph-fold-scale-axis"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules: list[RewritePattern] = [ScaleOfProduct(ctx), ProductOfScaled(ctx)]
        for each in (scale_of_rows, scale_of_columns):
            rules.append(recorded(each.with_given(weights=weights_of(ctx)), ctx, _CONSTANTS))
        why = "a scaled copy of an argument would be stored"
        rules.append(recorded(product_of_scaled_rows, ctx, why))
        applier = GreedyRewritePatternApplier(permitted(op, rules), dce_enabled=True)
        PatternRewriteWalker(applier).rewrite_module(op)
