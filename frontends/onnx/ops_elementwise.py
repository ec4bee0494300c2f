"""Elementwise operators of ONNX, and activations composed of them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...dialects.graph import ops as graph
from .dtypes import element_type
from .nodes import Builds, Node
from .registry import converts
from .values import Value

_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875
_LARGEST = float(np.finfo(np.float32).max)  # the default bounds of Clip, which have no effect


def _register_unary() -> None:
    operators: dict[str, Builds] = {
        "Neg": graph.NegOp,
        "Exp": graph.ExpOp,
        "Log": graph.LogOp,
        "Sqrt": graph.SqrtOp,
        "Tanh": graph.TanhOp,
        "Sigmoid": graph.SigmoidOp,
        "Relu": graph.ReluOp,
        "Erf": graph.ErfOp,
        "Sin": graph.SinOp,
        "Cos": graph.CosOp,
        "Abs": graph.AbsOp,
        "Sign": graph.SignOp,
        "Ceil": graph.CeilOp,
        "Floor": graph.FloorOp,
        "Round": graph.RoundOp,
    }
    for operator, build in operators.items():
        converts(operator, since=1)(_unary(build))


def _unary(build: Builds) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return node.emit(build, node.input(0))

    return convert


def _register_binary() -> None:
    operators: dict[str, Builds] = {
        "Add": graph.AddOp,
        "Sub": graph.SubOp,
        "Mul": graph.MulOp,
        "Div": graph.DivOp,
    }
    for operator, build in operators.items():
        converts(operator, since=7)(_binary(build))


def _binary(build: Builds) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return node.emit(build, node.input(0), node.input(1))

    return convert


def _register_variadic() -> None:
    operators: dict[str, Builds] = {
        "Sum": graph.AddOp,
        "Max": graph.MaxOp,
        "Min": graph.MinOp,
    }
    for operator, build in operators.items():
        converts(operator, since=6)(_variadic(build))


def _variadic(build: Builds) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return functools.reduce(lambda a, b: node.emit(build, a, b), node.variadic())

    return convert


_register_unary()
_register_binary()
_register_variadic()


@converts("Mean", since=6)
def mean(node: Node) -> Value:
    # mean(a, b, c) == (a + b + c) / 3
    total = _variadic(graph.AddOp)(node)
    return node.emit(graph.DivOp, total, node.scalar(len(node.inputs), total))


@converts("Pow", since=7)
def pow_(node: Node) -> Value:
    base, exponent = node.input(0), node.input(1)
    if base.dtype == exponent.dtype:
        return node.emit(graph.PowOp, base, exponent)
    if base.dtype.kind == "f":
        return node.emit(graph.PowOp, base, cast(node, exponent, base.dtype))
    # The result has the type of the base, but the power is computed in the common type.
    wide = np.promote_types(base.dtype, exponent.dtype)
    power = node.emit(graph.PowOp, cast(node, base, wide), cast(node, exponent, wide))
    return cast(node, power, base.dtype)


@converts("Reciprocal", since=6)
def reciprocal(node: Node) -> Value:
    x = node.input(0)
    return node.emit(graph.DivOp, node.scalar(1, x), x)


def absolute(node: Node, x: Value) -> Value:
    """|x|."""
    return node.emit(graph.AbsOp, x)


@converts("Cast", since=6)
def cast_to(node: Node) -> Value:
    node.ignore("saturate", "round_mode")  # only for 8-bit floats
    return cast(node, node.input(0), node.attr_dtype("to"))


@converts("CastLike", since=15)
def cast_like(node: Node) -> Value:
    node.ignore("saturate", "round_mode")
    return cast(node, node.input(0), node.input(1).dtype)


def cast(node: Node, x: Value, dtype: np.dtype) -> Value:
    """`x` cast to `dtype`; `x` itself if it has this dtype."""
    if x.dtype == dtype:
        return x
    return node.emit(graph.CastOp, x, target=element_type(dtype))


@converts("LeakyRelu", since=6)
def leaky_relu(node: Node) -> Value:
    return node.emit(graph.LeakyReluOp, node.input(0), alpha=node.attr_float("alpha", 0.01))


@converts("PRelu", since=7)
def prelu(node: Node) -> Value:
    # prelu(x, s) == max(x, 0) + s * min(x, 0)
    x, slope = node.input(0), node.input(1)
    positive, negative = _halves(node, x)
    return node.emit(graph.AddOp, positive, node.emit(graph.MulOp, slope, negative))


@converts("Elu", since=6)
def elu(node: Node) -> Value:
    return _elu(node, node.input(0), node.attr_float("alpha", 1.0))


@converts("Selu", since=6)
def selu(node: Node) -> Value:
    # selu(x) == gamma * elu(x, alpha)
    alpha, gamma = node.attr_float("alpha", _SELU_ALPHA), node.attr_float("gamma", _SELU_GAMMA)
    y = _elu(node, node.input(0), alpha)
    return node.emit(graph.MulOp, y, node.scalar(gamma, y))


@converts("Celu", since=12)
def celu(node: Node) -> Value:
    # celu(x, a) == max(x, 0) + min(a * (exp(x / a) - 1), 0)
    x, alpha = node.input(0), node.attr_float("alpha", 1.0)
    scaled = node.emit(graph.DivOp, x, node.scalar(alpha, x))
    curve = _times_expm1(node, scaled, alpha)
    below = node.emit(graph.MinOp, curve, node.scalar(0, x))
    return node.emit(graph.AddOp, node.emit(graph.ReluOp, x), below)


def _elu(node: Node, x: Value, alpha: float) -> Value:
    # elu(x, a) == max(x, 0) + a * (exp(min(x, 0)) - 1)
    positive, negative = _halves(node, x)
    return node.emit(graph.AddOp, positive, _times_expm1(node, negative, alpha))


def _halves(node: Node, x: Value) -> tuple[Value, Value]:
    """max(x, 0) and min(x, 0)."""
    return node.emit(graph.ReluOp, x), node.emit(graph.MinOp, x, node.scalar(0, x))


def _times_expm1(node: Node, x: Value, factor: float) -> Value:
    """factor * (exp(x) - 1)."""
    less = node.emit(graph.SubOp, node.emit(graph.ExpOp, x), node.scalar(1, x))
    return node.emit(graph.MulOp, less, node.scalar(factor, x))


@converts("HardSigmoid", since=6)
def hard_sigmoid(node: Node) -> Value:
    alpha, beta = node.attr_float("alpha", 0.2), node.attr_float("beta", 0.5)
    return _hard_sigmoid(node, node.input(0), alpha, beta)


@converts("HardSwish", since=14)
def hard_swish(node: Node) -> Value:
    # hard_swish(x) == x * hard_sigmoid(x, 1/6, 1/2)
    x = node.input(0)
    return node.emit(graph.MulOp, x, _hard_sigmoid(node, x, 1 / 6, 0.5))


def _hard_sigmoid(node: Node, x: Value, alpha: float, beta: float) -> Value:
    # hard_sigmoid(x, a, b) == min(max(a * x + b, 0), 1)
    scaled = node.emit(graph.MulOp, x, node.scalar(alpha, x))
    line = node.emit(graph.AddOp, scaled, node.scalar(beta, x))
    return node.emit(graph.ClipOp, line, minimum=0.0, maximum=1.0)


@converts("Softplus", since=1)
def softplus(node: Node) -> Value:
    return _softplus(node, node.input(0))


@converts("Mish", since=18)
def mish(node: Node) -> Value:
    # mish(x) == x * tanh(softplus(x))
    x = node.input(0)
    return node.emit(graph.MulOp, x, node.emit(graph.TanhOp, _softplus(node, x)))


def _softplus(node: Node, x: Value) -> Value:
    # log(1 + exp(x)) == max(x, 0) + log(1 + exp(-|x|)), where exp cannot overflow
    positive, negative = _halves(node, x)
    closeness = node.emit(graph.ExpOp, node.emit(graph.SubOp, negative, positive))
    rest = node.emit(graph.LogOp, node.emit(graph.AddOp, closeness, node.scalar(1, x)))
    return node.emit(graph.AddOp, positive, rest)


@converts("Softsign", since=1)
def softsign(node: Node) -> Value:
    # softsign(x) == x / (1 + |x|)
    x = node.input(0)
    return node.emit(graph.DivOp, x, node.emit(graph.AddOp, absolute(node, x), node.scalar(1, x)))


@converts("Swish", since=24)
def swish(node: Node) -> Value:
    # swish(x, a) == x * sigmoid(a * x)
    x, alpha = node.input(0), node.attr_float("alpha", 1.0)
    scaled = x if alpha == 1 else node.emit(graph.MulOp, x, node.scalar(alpha, x))
    return node.emit(graph.MulOp, x, node.emit(graph.SigmoidOp, scaled))


@converts("Gelu", since=20)
def gelu(node: Node) -> Value:
    approximate = node.attr_string("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.broken('attribute "approximate" is unknown', "none or tanh", approximate)
    return node.emit(graph.GeluOp, node.input(0), approximate=approximate)


@converts("Clip", since=6)
def clip_to_attributes(node: Node) -> Value:
    low, high = node.attr_float("min", -_LARGEST), node.attr_float("max", _LARGEST)
    return _clip(node, node.input(0), None if low <= -_LARGEST else low, high)


@converts("Clip", since=11)
def clip(node: Node) -> Value:
    x, low, high = node.input(0), node.optional(1), node.optional(2)
    for bound in (low, high):
        if bound is not None and bound.rank != 0 and bound.shape != (1,):
            raise node.broken("a bound is not a scalar", "rank 0", f"rank {bound.rank}")
    fixed = [None if bound is None else _number(bound) for bound in (low, high)]
    if all(b is None or f is not None for b, f in zip((low, high), fixed, strict=True)):
        return _clip(node, x, *fixed)
    # clip(x, low, high) == min(max(x, low), high)
    if low is not None:
        x = node.emit(graph.MaxOp, x, _as_scalar(node, low))
    if high is not None:
        x = node.emit(graph.MinOp, x, _as_scalar(node, high))
    return x


def _number(bound: Value) -> float | int | None:
    """The known number of a bound; None if it is only known at run time, or is NaN."""
    if bound.contents is None or bound.is_symbolic:
        return None
    number = bound.contents.reshape(()).item()
    return None if number != number else number


def _as_scalar(node: Node, bound: Value) -> Value:
    return node.emit(graph.ReshapeOp, bound, shape=()) if bound.rank else bound


def _clip(node: Node, x: Value, low: float | None, high: float | None) -> Value:
    if x.dtype.kind == "f":
        high = None if high is not None and high >= _LARGEST else high
    if low is None and high is None:
        return x
    return node.emit(graph.ClipOp, x, minimum=low, maximum=high)
