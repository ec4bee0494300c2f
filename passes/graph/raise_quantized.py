"""Products of quantised tensors become products of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from ...core.dtypes import dtype_of, ui8
from ...core.ir.context import decide, weights_of
from ...core.ir.typed import owned
from ...core.ir.weights import WeightStore
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import EXACT, OPEN
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import elements_of, sizes_of
from ...dialects.graph.nests.recording import Recorder
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.plan.uses import Uses
from ...dialects.graph.rules import on_operands, rule
from .rules import quantized
from .rules.permission import permitted
from .rules.quantized import is_scale, known_elements

_BYTES = (i8, ui8)
_LARGEST_SUM = (1 << 31) - 1
_Product = graph.DenseOp | graph.MatmulOp | graph.ConvOp
_QUANTIZED: dict[type[GraphOp], Callable[..., graph.QuantizedContractionOp]] = {
    graph.DenseOp: graph.QuantizedDenseOp,
    graph.MatmulOp: graph.QuantizedMatmulOp,
    graph.ConvOp: graph.QuantizedConvOp,
}


def _name(value: SSAValue, what: str) -> str:
    """The name in the weight store of an array derived from a constant."""
    key = value.owner.key if isinstance(value.owner, graph.ConstantOp) else None
    return f"{key or 'constant'}.{what}"


def _weight_axis(op: GraphOp) -> int:
    """The channel axis of the second factor."""
    return rank(op.operands[1]) - 1 if isinstance(op, graph.MatmulOp) else 0


def _narrowed(
    b: InsertingBuilder, factor: SSAValue, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    """A factor of 16 bits as `narrow`, in the smallest type that holds it."""
    if element_type(factor) != i16:
        return None
    wide = factor.owner
    if isinstance(wide, graph.SubOp):
        zero = known_elements(wide.rhs, weights)
        wide = wide.lhs.owner if zero is not None and not zero.any() else wide
    if isinstance(wide, graph.CastOp) and element_type(wide.x) in _BYTES:
        return {"narrow": wide.x}
    elements = known_elements(factor, weights)
    if elements is None:
        return None
    narrow = elements.astype(np.int8)
    if np.array_equal(narrow, elements):
        return {"narrow": b.constant(narrow, _name(factor, "shifted"))}
    known = isinstance(wide, graph.ConstantOp)
    return None if known else {"narrow": b.constant(elements, _name(factor, "shifted"))}


_NARROW = "  for n of 8 bits, which are widened or less 0, or all elements of a constant"


@rule(f"f(n, *y) == f(narrow, *y){_NARROW}", EXACT, f=_Product)
def first_factor_is_narrow(
    b: InsertingBuilder, n: SSAValue, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    return _narrowed(b, n, weights)


@rule(f"f(x, n, *v) == f(x, narrow, *v){_NARROW}", EXACT, f=_Product)
def second_factor_is_narrow(
    b: InsertingBuilder, n: SSAValue, weights: WeightStore
) -> Mapping[str, SSAValue] | None:
    return _narrowed(b, n, weights)


@rule(
    "f(t := cast(x) - z, w, *v) == f(x, w, *v) - z * sum(w)  for one integer z of 8 bits and "
    "constant weights; the term is added to v, where f takes that",
    EXACT,
    f=_Product,
)
def product_of_shifted(
    b: InsertingBuilder,
    op: graph.DenseOp | graph.MatmulOp | graph.ConvOp,
    t: SSAValue,
    x: SSAValue,
    z: SSAValue,
    w: SSAValue,
    weights: WeightStore,
    ctx: Context,
) -> SSAValue | None:
    if element_type(t) != i16 or element_type(x) not in _BYTES:
        return None
    if any(n != 1 for n in sizes_of(z)) or rank(z) > 1:
        return None
    zero, elements = elements_of(z, weights), known_elements(w, weights)
    wide = z.owner
    if isinstance(wide, graph.CastOp) and element_type(wide.x) in _BYTES:
        z, zero = wide.x, elements_of(wide.x, weights)
    elif zero is None or abs(int(zero.reshape(()))) > 255:
        return None
    if elements is None:
        return None
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
    decide(ctx, op, "a product of stored integers", "its weights are constants")
    term = b.constant(sums, _name(w, "sums"))
    if zero is None:
        term = b.mul(term, b.cast(z, i32))
    term = term if bias is None else b.add(bias, term)
    if isinstance(op, graph.MatmulOp):
        return b.add(b.insert(on_operands(op, [x, w])), term)
    return b.insert(on_operands(op, [x, w, term]))


@rule(
    "quantize(y := f(m := dequantize(x, r, h), n := dequantize(w, t, k), *v), s, z) == quantized_f("
    "x, w, *v)  for a v whose scale is r * t; sums of integers have no order",
    OPEN,
    f=_Product,
)
def quantize_of_product(
    b: InsertingBuilder,
    op: graph.QuantizeOp,
    f: graph.DenseOp | graph.MatmulOp | graph.ConvOp,
    y: SSAValue,
    m: SSAValue,
    n: SSAValue,
    v: tuple[SSAValue, ...],
    weights: WeightStore,
    ctx: Context,
) -> SSAValue | None:
    x, w = (owned(value, graph.DequantizeOp) for value in (m, n))
    kinds = [element_type(value) for value in (x.x, w.x, op.zero_point)]
    if any(kind not in _BYTES for kind in kinds) or not y.has_one_use():
        return None
    if not all(is_scale(one.scale, weights) for one in (x, w, op)) or element_type(y) != f32:
        return None
    if x.along is not None or op.along is not None or w.along not in (None, _weight_axis(f)):
        return None
    sums = _sums(v[0], x, w, weights) if v else None
    if v and sums is None:
        return None
    if _largest(f, x, w, sums, weights) > _LARGEST_SUM:
        decide(ctx, f, "a product of floats", "a sum may not fit 32 bits", kind="missed")
        return None
    of_x, of_w = (x.x, x.scale, x.zero_point), (w.x, w.scale, w.zero_point)
    steps = f.steps if isinstance(f, graph.ConvOp) else ()
    made = _QUANTIZED[type(f)](*of_x, *of_w, op.scale, op.zero_point, sums, *steps)
    decide(ctx, op, "a product of integers", "its scales are constants")
    (result,) = made.opened(b, lambda operand: operand)
    made.drop_all_references()  # it is in no block
    return result


def _sums(
    bias: SSAValue, x: graph.DequantizeOp, w: graph.DequantizeOp, weights: WeightStore
) -> SSAValue | None:
    """The integers of a bias, if its scale is the product of those of x and w."""
    made = bias.owner
    if not isinstance(made, graph.DequantizeOp):
        return None
    scale, zero = (elements_of(v, weights) for v in (made.scale, made.zero_point))
    own, other = (elements_of(v.scale, weights) for v in (x, w))
    if element_type(made.x) != i32 or scale is None or zero is None or zero.any():
        return None
    if own is None or other is None:
        return None
    return made.x if np.all(scale == own * other) else None


def _largest(
    product: GraphOp,
    x: graph.DequantizeOp,
    w: graph.DequantizeOp,
    bias: SSAValue | None,
    weights: WeightStore,
) -> int:
    """An upper bound of the sums of products."""
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


_RULES = (
    quantize_of_product,
    first_factor_is_narrow,
    second_factor_is_narrow,
    product_of_shifted,
)


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

    Requires: constant scales of what is recognised.
    Order: preceded by `graph-open-composites`, which opens the quantised operators of the model;
        before `graph-fold-constant`, which would dequantise constant weights.
    Leaves: `graph.quantize` and `graph.dequantize` at the boundaries to floats.
    """

    name = "graph-raise-quantized"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        given = {"weights": weights_of(ctx), "uses": Uses(Recorder()), "ctx": ctx}
        patterns = [rule.with_given(**given) for rule in (*quantized.RULES, *_RULES)]
        applier = GreedyRewritePatternApplier(permitted(op, patterns), dce_enabled=True)
        PatternRewriteWalker(applier).rewrite_module(op)
