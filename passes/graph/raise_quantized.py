"""Products of quantised tensors become products of integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)

from ...core.budgets import SUMS
from ...core.context import CompilerContext, decide, weights_of
from ...core.dtypes import dtype_of, ui8
from ...core.exactness import EXACT, OPEN, states
from ...core.weights import WeightStore
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import elements_of, sizes_of
from ...dialects.graph.op_builder import InsertingBuilder
from .rules.permission import permitted
from .rules.quantized import (
    MoveOfDequantized,
    PadOfDequantized,
    QuantizeWhatWasCut,
    QuantizeWhatWasQuantized,
    is_scale,
    known_elements,
)
from .rules.rooted import rooted

_BYTES = (i8, ui8)
_LARGEST_SUM = (1 << 31) - 1
_QUANTIZED: dict[type[GraphOp], Callable[..., graph.QuantizedContractionOp]] = {
    graph.DenseOp: graph.QuantizedDenseOp,
    graph.MatmulOp: graph.QuantizedMatmulOp,
    graph.ConvOp: graph.QuantizedConvOp,
}


def _builder(ctx: Context, op: GraphOp, rewriter: PatternRewriter) -> InsertingBuilder:
    weights = ctx.weights if isinstance(ctx, CompilerContext) else None
    return InsertingBuilder(rewriter, [op], weights)


def _name(value: SSAValue, what: str) -> str:
    """The name in the weight store of an array derived from a constant."""
    key = value.owner.key if isinstance(value.owner, graph.ConstantOp) else None
    return f"{key or 'constant'}.{what}"


def _weight_axis(op: GraphOp) -> int:
    """The channel axis of the second factor."""
    return rank(op.operands[1]) - 1 if isinstance(op, graph.MatmulOp) else 0


@states(
    EXACT,
    "dense(x - 0, w) == dense(x, w)  for x of 8 bits, which the difference widens",
    "dense(x, w - z) == dense(x, c)  for constants, c of 8 bits if that holds the "
    "difference; likewise matmul and conv",
)
@dataclass
class FactorIsNarrow(RewritePattern):
    """Multiply integers of the smallest type that holds them."""

    weights: WeightStore

    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, graph.DenseOp | graph.MatmulOp | graph.ConvOp):
            return
        for number, factor in enumerate(op.operands[:2]):
            if element_type(factor) != i16:
                continue
            narrow = self._narrow(factor, InsertingBuilder(rewriter, [op], self.weights))
            if narrow is not None:
                op.operands[number] = narrow
                rewriter.handle_operation_modification(op)

    def _narrow(self, factor: SSAValue, b: InsertingBuilder) -> SSAValue | None:
        wide = factor.owner
        if isinstance(wide, graph.SubOp):
            zero = known_elements(wide.rhs, self.weights)
            wide = wide.lhs.owner if zero is not None and not zero.any() else wide
        if isinstance(wide, graph.CastOp) and element_type(wide.x) in _BYTES:
            return wide.x
        elements = known_elements(factor, self.weights)
        if elements is None:
            return None
        narrow = elements.astype(np.int8)
        if np.array_equal(narrow, elements):
            return b.constant(narrow, _name(factor, "shifted"))
        known = isinstance(wide, graph.ConstantOp)
        return None if known else b.constant(elements, _name(factor, "shifted"))


@states(
    EXACT,
    "dense(x - z, w, b) == dense(x, w, b - z * sum(w))  for one integer z of 8 bits "
    "likewise matmul, where the term is added, and conv",
)
@dataclass
class ProductOfShifted(RewritePattern):
    """Move a zero point of the first factor out of the sum, if the second one is constant."""

    ctx: Context

    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, graph.DenseOp | graph.MatmulOp | graph.ConvOp):
            return
        weights, found = weights_of(self.ctx), self._shift(op.operands[0])
        elements = known_elements(op.operands[1], weights)
        if found is None or elements is None:
            return
        (x, zero_point), b = found, _builder(self.ctx, op, rewriter)
        zero = elements_of(zero_point, weights)
        axes = tuple(range(1, elements.ndim))
        matrices = isinstance(op, graph.MatmulOp)
        with np.errstate(all="ignore"):
            sums = -elements.astype(np.int32).sum(
                -2 if matrices else axes, np.int32, keepdims=matrices and elements.ndim > 2
            )
            if zero is not None:
                sums = sums * zero.reshape(()).astype(np.int32)
        bias = None if isinstance(op, graph.MatmulOp) else op.bias
        known = None if bias is None or zero is None else elements_of(bias, weights)
        if known is not None:
            sums, bias = sums + known, None
        decide(self.ctx, op, "a product of stored integers", "its weights are constants")
        term = b.constant(sums, _name(op.operands[1], "sums"))
        if zero is None:
            term = b.mul(term, b.cast(zero_point, i32))
        term = term if bias is None else b.add(bias, term)
        if isinstance(op, graph.ConvOp):
            result = b.insert(graph.ConvOp(x, op.w, term, *op.steps, op.result.type))
        elif isinstance(op, graph.DenseOp):
            result = b.insert(graph.DenseOp(x, op.w, term, op.result.type))
        else:
            product = b.insert(graph.MatmulOp(x, op.b, op.result.type))
            result = b.insert(graph.AddOp(product, term, op.result.type))
        rewriter.replace(op, [], [result])

    def _shift(self, value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
        """The 8-bit value in a difference of 16 bits, and the zero point."""
        sub = value.owner
        if not isinstance(sub, graph.SubOp) or element_type(value) != i16:
            return None
        wide, shift = sub.lhs.owner, sub.rhs.owner
        if not isinstance(wide, graph.CastOp) or element_type(wide.x) not in _BYTES:
            return None
        if any(n != 1 for n in sizes_of(sub.rhs)) or rank(sub.rhs) > 1:
            return None
        if isinstance(shift, graph.CastOp) and element_type(shift.x) in _BYTES:
            return wide.x, shift.x
        zero = elements_of(sub.rhs, weights_of(self.ctx))
        return None if zero is None or abs(int(zero.reshape(()))) > 255 else (wide.x, sub.rhs)


@states(
    OPEN,
    "quantize(dense(dequantize(x), dequantize(w), dequantize(b))) ~ quantized_dense(x, w, "
    "b) for a scale of b that is the product of those of x and w",
)
@dataclass
class QuantizeOfProduct(RewritePattern):
    """Recognise a product between dequantisations and a quantisation."""

    ctx: Context

    @rooted
    def match_and_rewrite(self, op: graph.QuantizeOp, rewriter: PatternRewriter) -> None:
        product = op.x.owner
        if not isinstance(product, graph.DenseOp | graph.MatmulOp | graph.ConvOp):
            return
        x, w, *bias = (operand.owner for operand in product.operands)
        if not isinstance(x, graph.DequantizeOp) or not isinstance(w, graph.DequantizeOp):
            return
        kinds = [element_type(v) for v in (x.x, w.x, op.zero_point)]
        if any(kind not in _BYTES for kind in kinds) or not op.x.has_one_use():
            return
        scaled = (x, w, op)
        weights = weights_of(self.ctx)
        if not all(is_scale(one.scale, weights) for one in scaled) or element_type(op.x) != f32:
            return
        if x.along is not None or op.along is not None:
            return
        if w.along not in (None, _weight_axis(product)):
            return
        sums = None
        if bias:
            if not isinstance(bias[0], graph.DequantizeOp):
                return
            sums = self._sums(bias[0], x, w)
            if sums is None:
                return
        if self._largest(product, x, w, sums) > _LARGEST_SUM:
            why = "a sum may not fit 32 bits"
            decide(self.ctx, product, "a product of floats", why, kind="missed")
            return
        of_x, of_w = (x.x, x.scale, x.zero_point), (w.x, w.scale, w.zero_point)
        steps = product.steps if isinstance(product, graph.ConvOp) else ()
        quantized = _QUANTIZED[type(product)](*of_x, *of_w, op.scale, op.zero_point, sums, *steps)
        b = InsertingBuilder(rewriter, [product, op], weights)
        decide(self.ctx, op, "a product of integers", "its scales are constants")
        rewriter.replace(op, [], quantized.opened(b, lambda operand: operand))
        quantized.drop_all_references()  # it is in no block

    def _sums(
        self, bias: graph.DequantizeOp, x: graph.DequantizeOp, w: graph.DequantizeOp
    ) -> SSAValue | None:
        """The integers of a bias, if its scale is the product of those of x and w."""
        weights = weights_of(self.ctx)
        scale, zero = (elements_of(v, weights) for v in (bias.scale, bias.zero_point))
        own, other = (elements_of(v.scale, weights) for v in (x, w))
        if element_type(bias.x) != i32 or scale is None or zero is None or zero.any():
            return None
        if own is None or other is None:
            return None
        return bias.x if np.all(scale == own * other) else None

    def _largest(
        self,
        product: GraphOp,
        x: graph.DequantizeOp,
        w: graph.DequantizeOp,
        bias: SSAValue | None,
    ) -> int:
        """An upper bound of the sums of products."""
        weights = weights_of(self.ctx)
        elements, zero = known_elements(w.x, weights), elements_of(w.zero_point, weights)
        if elements is None or zero is None:
            sizes = sizes_of(w.x)
            terms = sizes[-2:-1] if isinstance(product, graph.MatmulOp) else sizes[1:]
            if any(n < 0 for n in terms):
                return _LARGEST_SUM + 1
            total = int(np.prod(terms, dtype=object)) * _reach(element_type(w.x), zero)
        else:
            beside = [1] * elements.ndim
            beside[_weight_axis(product)] = -1
            zeros = zero.reshape(beside) if zero.ndim else zero
            magnitude = np.abs(elements.astype(np.int64) - zeros)
            axes = -2 if isinstance(product, graph.MatmulOp) else tuple(range(1, elements.ndim))
            total = int(magnitude.sum(axes).max(initial=0))
        summand = 0
        if bias is not None:
            known = elements_of(bias, weights)
            if known is None:
                return _LARGEST_SUM + 1
            summand = int(np.abs(known.astype(np.int64)).max(initial=0))
        return total * _reach(element_type(x.x), elements_of(x.zero_point, weights)) + summand


def _reach(kind: Attribute, zero: np.ndarray | None) -> int:
    """An upper bound of the distance of an integer of a type from its zero point."""
    limits = np.iinfo(dtype_of(kind))
    if zero is None:
        return int(limits.max) - int(limits.min)
    zeros = zero.astype(np.int64)
    return int(max((limits.max - zeros).max(initial=0), (zeros - limits.min).max(initial=0)))


@dataclass(frozen=True)
class GraphRaiseQuantizedPass(ModulePass):
    """Compute products of quantised tensors in integers.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x2xui8>) -> tensor<?x2xi32> {
      %w = graph.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
      %z = graph.constant dense<5> : tensor<i16>
      %a = graph.cast %x : (tensor<?x2xui8>) -> tensor<?x2xi16>
      %d = graph.sub %a, %z : (tensor<?x2xi16>, tensor<i16>) -> tensor<?x2xi16>
      %y = graph.dense %d, %w : (tensor<?x2xi16>, tensor<2x2xi8>) -> tensor<?x2xi32>
      func.return %y : tensor<?x2xi32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x2xui8>) -> tensor<?x2xi32> {
      %w = graph.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
      %b = graph.constant dense<[5, -35]> : tensor<2xi32>
      %y = graph.dense %x, %w, %b
          : (tensor<?x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<?x2xi32>
      func.return %y : tensor<?x2xi32>
    }
    ```

    A product of floats between ``dequantize`` and ``quantize``, as quantisers emit it, becomes the
    body of a quantised operator. Pads, relu, clip, data movement and pooling in between then work
    on integers. This replaces sums in f32, which depend on their order, by exact ones: each
    element is that of exact arithmetic, or its neighbour where the exact value is within 2^-14 of
    halfway between the two (`docs/rationale/0012-quantised-tensors.md`). A product that may not
    fit 32 bits stays in floats.

    Stored integers are multiplied: the zero point of constant weights is subtracted from them,
    and that of `x` becomes a summand ``-z * sum(w)`` of the bias. All of this wraps around like
    the sum, so that a quantised operator keeps its bits.

    Requires: constant scales of what is recognised; `graph-open-composites`, which opens the
        quantised operators of the model. Runs before `graph-fold-constant`, which would dequantise
        constant weights.
    Leaves: `graph.quantize` and `graph.dequantize` at the boundaries to floats.
    """

    name = "graph-raise-quantized"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        patterns: list[RewritePattern] = [
            QuantizeWhatWasQuantized(weights),
            QuantizeWhatWasCut(weights),
            PadOfDequantized(weights),
            MoveOfDequantized(weights),
            QuantizeOfProduct(ctx),
            FactorIsNarrow(weights),
            ProductOfShifted(ctx),
        ]
        applier = GreedyRewritePatternApplier(permitted(op, patterns), dce_enabled=True)
        PatternRewriteWalker(applier).rewrite_module(op)
