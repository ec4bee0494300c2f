"""Elementwise operators of ATen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ....core.dtype_names import is_real
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing import elementwise as composed
from ...importing import special
from ...importing.nodes import ModelNode
from ...importing.values import Value
from ..dtypes import numpy_dtype
from ..nodes import Node, rounds_once
from ..registry import converts

_FLOAT_UNARY: dict[str, type[GraphOp]] = {
    "exp": graph.ExpOp,
    "log": graph.LogOp,
    "sqrt": graph.SqrtOp,
    "rsqrt": graph.RsqrtOp,
    "tanh": graph.TanhOp,
    "sigmoid": graph.SigmoidOp,
    "erf": graph.ErfOp,
    "sin": graph.SinOp,
    "cos": graph.CosOp,
    "acos": graph.AcosOp,
    "acosh": graph.AcoshOp,
    "asin": graph.AsinOp,
    "asinh": graph.AsinhOp,
    "atan": graph.AtanOp,
    "atanh": graph.AtanhOp,
    "cosh": graph.CoshOp,
    "sinh": graph.SinhOp,
    "expm1": graph.Expm1Op,
    "log1p": graph.Log1pOp,
    "tan": graph.TanOp,
    "hardsigmoid": graph.HardSigmoidOp,
    "hardswish": graph.HardSwishOp,
    "log_sigmoid": graph.LogSigmoidOp,
    "mish": graph.MishOp,
    "selu": graph.SeluOp,
    "silu": graph.SiluOp,
    "softsign": graph.SoftsignOp,
}
_UNARY: dict[str, type[GraphOp]] = {"neg": graph.NegOp, "abs": graph.AbsOp}
_ROUNDING: dict[str, type[GraphOp]] = {
    "ceil": graph.CeilOp,
    "floor": graph.FloorOp,
    "round": graph.RoundOp,
}
_COMPOSED: dict[str, Callable[[ModelNode, Value], Value]] = {
    "digamma": special.digamma,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "i0": special.i0,
    "lgamma": special.lgamma,
    "reciprocal": composed.reciprocal,
    "special_erfcx": special.erfcx,
    "special_i0e": special.i0e,
}


def _register() -> None:
    for name, build in _UNARY.items():
        converts(f"aten.{name}.default")(_unary(build))
    for name, build in _FLOAT_UNARY.items():
        converts(f"aten.{name}.default")(_unary(build))
    for name, build in _ROUNDING.items():
        converts(f"aten.{name}.default")(_rounded(build))
    for name, compose in _COMPOSED.items():
        converts(f"aten.{name}.default")(_composed(compose))


def _unary(build: type[GraphOp]) -> Callable[[Node, Value], Value]:
    def convert(node: Node, x: Value) -> Value:
        return node.apply(build, node.operand(x, node.dtype))

    return convert


def _rounded(build: type[GraphOp]) -> Callable[[Node, Value], Value]:
    def convert(node: Node, x: Value) -> Value:
        return node.apply(build, x) if is_real(x.dtype) else x

    return convert


def _composed(compose: Callable[[ModelNode, Value], Value]) -> Callable[[Node, Value], Value]:
    @rounds_once
    def convert(node: Node, x: Value) -> Value:
        return compose(node, node.wide(x))

    return convert


_register()


@converts("aten.log2.default")
@rounds_once
def log2(node: Node, x: Value) -> Value:
    return composed.logarithm(node, node.wide(x), 2)


@converts("aten.log10.default")
@rounds_once
def log10(node: Node, x: Value) -> Value:
    return composed.logarithm(node, node.wide(x), 10)


@converts("aten.exp2.default")
@rounds_once
def exp2(node: Node, x: Value) -> Value:
    x = node.wide(x)
    return node.exp(node.mul(x, math.log(2)))


@converts("aten.square.default")
def square(node: Node, x: Value) -> Value:
    return node.mul(x, x)


@converts("aten.trunc.default")
def trunc(node: Node, x: Value) -> Value:
    return composed.truncated(node, x) if is_real(x.dtype) else x


@converts("aten.relu.default")
def relu(node: Node, x: Value) -> Value:
    return node.relu(x)


# Arithmetic of two operands


@converts("aten.add.Tensor", "aten.add.Scalar", "_operator.add")
@rounds_once
def add(node: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    left, right = _scaled_pair(node, a, b, alpha)
    return node.apply(graph.LogicalOrOp if left.dtype == np.bool_ else graph.AddOp, left, right)


@converts("aten.sub.Tensor", "aten.sub.Scalar", "_operator.sub")
@rounds_once
def sub(node: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    return node.sub(*_scaled_pair(node, a, b, alpha))


@converts("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(node: Node, a: Any, b: Any, alpha: Any = 1) -> Value:
    return sub(node, b, a, alpha)


@converts("aten.mul.Tensor", "aten.mul.Scalar", "_operator.mul")
@rounds_once
def mul(node: Node, a: Any, b: Any) -> Value:
    left, right = _exact_pair(node, a, b)
    build = graph.LogicalAndOp if left.dtype == np.bool_ else graph.MulOp
    return node.apply(build, left, right)


def _pair(node: Node, a: Any, b: Any) -> list[Value]:
    """Both operands in the type of the result, to which torch also rounds a number."""
    return [node.operand(x, node.dtype) for x in (a, b)]


def _exact_pair(node: Node, a: Any, b: Any) -> list[Value]:
    """Both operands, in the type that torch computes in if that of the result changes a number."""
    if all(_fits(node, x) for x in (a, b)):
        return _pair(node, a, b)
    return [node.wide(x) for x in (a, b)]


def _fits(node: Node, x: Any) -> bool:
    """Whether torch, too, has an operand of a product or quotient in the type of the result."""
    if isinstance(x, Value):
        return x.rank > 0 or x.dtype == node.dtype
    if isinstance(x, Dim) and not x.is_static:
        return False
    number = np.array(x.value if isinstance(x, Dim) else x)
    with np.errstate(over="ignore"):
        wide, narrow = number.astype(node.computing), number.astype(node.dtype)
    return narrow.astype(node.computing) == wide


def _scaled_pair(node: Node, a: Any, b: Any, alpha: Any) -> list[Value]:
    """The operands of a sum, the second one times alpha; only the sum is rounded."""
    if alpha == 1:
        return _pair(node, a, b)
    operands = (*_pair(node, a, b), node.operand(alpha, node.dtype))
    left, right, factor = (node.wide(x) for x in operands)
    return [left, node.mul(right, factor)]


def times(node: Node, x: Value, factor: Any) -> Value:
    if factor == 1:
        return x
    return node.mul(x, node.operand(factor, x.dtype))


@converts("aten.gcd.default")
def gcd(node: Node, a: Value, b: Value) -> Value:
    return composed.cast(node, special.gcd(node, *_wide_pair(node, a, b)), node.dtype)


@converts("aten.lcm.default")
def lcm(node: Node, a: Value, b: Value) -> Value:
    return composed.cast(node, special.lcm(node, *_wide_pair(node, a, b)), node.dtype)


def _wide_pair(node: Node, a: Value, b: Value) -> list[Value]:
    """Both operands in a type that C computes in, of 32 bits or more."""
    wide = np.promote_types(node.dtype, np.int32)
    return [node.operand(x, wide) for x in (a, b)]


@converts("aten.ldexp.Tensor")
def ldexp(node: Node, x: Value, exponent: Value) -> Value:
    # As in torch, 2^n may overflow where x * 2^n does not.
    x, exponent = _pair(node, x, exponent)
    return node.mul(x, node.pow(2, exponent))


@converts("aten.nextafter.default")
def nextafter(node: Node, a: Value, b: Value) -> Value:
    return special.nextafter(node, a, b)


@converts("aten.positive.default", "aten.conj_physical.default")
def itself(node: Node, x: Value) -> Value:
    return x


@converts("aten.angle.default")
@rounds_once
def angle(node: Node, x: Value) -> Value:
    # pi where x < 0, else 0, and NaN stays
    x = node.wide(x)
    zero = node.scalar(0, x)
    turned = node.where(node.less(x, zero), math.pi, zero)
    return node.where(composed.is_nan(node, x), x, turned)


@converts("aten.div.Tensor", "aten.div.Scalar")
@rounds_once
def div(node: Node, a: Any, b: Any) -> Value:
    return node.div(*_exact_pair(node, a, b))


@converts("aten.div.Tensor_mode", "aten.div.Scalar_mode")
@rounds_once
def div_rounded(node: Node, a: Any, b: Any, rounding_mode: str | None = None) -> Value:
    left, right = (node.wide(x) for x in (a, b))
    if rounding_mode is None:
        return node.div(left, right)
    floor = rounding_mode == "floor"
    if not is_real(left.dtype):
        if floor:
            return composed.floor_quotient(node, left, right)
        return node.div(left, right)
    if floor:
        return composed.floor_quotient_of_floats(node, left, right)
    quotient = node.div(left, right)
    if all(isinstance(x, Value) and x.rank for x in (a, b)):
        # That of two tensors is rounded before it is cut off.
        quotient = composed.cast(node, quotient, node.dtype)
    return composed.truncated(node, quotient)


@converts("aten.floor_divide.default")
def floor_divide(node: Node, a: Any, b: Any) -> Value:
    return div_rounded(node, a, b, "floor")


@converts("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(node: Node, a: Any, b: Any) -> Value:
    return composed.modulo(node, *_pair(node, a, b))


@converts("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(node: Node, a: Any, b: Any) -> Value:
    return composed.remainder(node, *_pair(node, a, b))


@converts("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def pow_(node: Node, a: Any, b: Any) -> Value:
    base, exponent = _pair(node, a, b)
    return node.pow(base, exponent)


@converts("aten.maximum.default")
def maximum(node: Node, a: Value, b: Value) -> Value:
    return node.max(*_pair(node, a, b))


@converts("aten.minimum.default")
def minimum(node: Node, a: Value, b: Value) -> Value:
    return node.min(*_pair(node, a, b))


@converts("aten.lerp.Scalar", "aten.lerp.Tensor")
@rounds_once
def lerp(node: Node, a: Value, b: Value, weight: Any) -> Value:
    # a + weight * (b - a)
    left, right, factor = (node.wide(x) for x in (a, b, weight))
    step = node.mul(factor, node.sub(right, left))
    return node.add(left, step)


@converts("aten.addcmul.default")
@rounds_once
def addcmul(node: Node, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    summand, left, right = (node.wide(part) for part in (x, a, b))
    product = times(node, node.mul(left, right), value)
    return node.add(summand, product)


@converts("aten.addcdiv.default")
@rounds_once
def addcdiv(node: Node, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    summand, left, right = (node.wide(part) for part in (x, a, b))
    quotient = times(node, node.div(left, right), value)
    return node.add(summand, quotient)


# Bounds


@converts("aten.clamp.default")
def clamp(node: Node, x: Value, low: Any = None, high: Any = None) -> Value:
    x = node.operand(x, node.dtype)
    if all(bound is None or isinstance(bound, (int, float)) for bound in (low, high)):
        return composed.clip(node, x, low, high)
    return clamp_to_tensors(node, x, low, high)


@converts("aten.clamp.Tensor", "aten.clamp_min.Tensor")
def clamp_to_tensors(node: Node, x: Value, low: Any = None, high: Any = None) -> Value:
    # clamp(x, low, high) == min(max(x, low), high)
    x = node.operand(x, node.dtype)
    if low is not None:
        x = node.max(x, node.operand(low, node.dtype))
    return x if high is None else node.min(x, node.operand(high, node.dtype))


@converts("aten.clamp_min.default")
def clamp_min(node: Node, x: Value, low: Any) -> Value:
    return clamp(node, x, low)


@converts("aten.clamp_max.default")
def clamp_max(node: Node, x: Value, high: Any) -> Value:
    return clamp(node, x, None, high)


@converts("aten.clamp_max.Tensor")
def clamp_max_to_tensor(node: Node, x: Value, high: Value) -> Value:
    return clamp_to_tensors(node, x, None, high)


# Element types


@converts("aten._to_copy.default", "aten.to.dtype")
def to_copy(node: Node, x: Value, dtype: Any = None) -> Value:
    return x if dtype is None else composed.cast(node, x, numpy_dtype(dtype))


@converts("prims.convert_element_type.default")
def convert_element_type(node: Node, x: Value, dtype: Any) -> Value:
    return composed.cast(node, x, numpy_dtype(dtype))


@converts(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
    "aten.dropout.default",
)
def same(node: Node, x: Value, *settings: Any) -> Value:
    if len(settings) > 1 and settings[1]:
        raise node.unsupported("dropout of training", "evaluation mode")
    return x
