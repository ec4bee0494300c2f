"""Elementwise operators of ONNX, activations among them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.ops_activations import SELU_ALPHA, SELU_GAMMA
from ..importing.dtypes import element_type
from ..importing.elementwise import clip, power, reciprocal
from ..importing.low_bits import converted
from ..importing.values import Value
from .nodes import Node
from .registry import converts

_LARGEST = float(np.finfo(np.float32).max)  # the default bounds of Clip, which have no effect


def _register_unary() -> None:
    operators: dict[str, type[GraphOp]] = {
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
        "Acos": graph.AcosOp,
        "Acosh": graph.AcoshOp,
        "Asin": graph.AsinOp,
        "Asinh": graph.AsinhOp,
        "Atan": graph.AtanOp,
        "Atanh": graph.AtanhOp,
        "Cosh": graph.CoshOp,
        "Sinh": graph.SinhOp,
        "Tan": graph.TanOp,
        "Abs": graph.AbsOp,
        "Sign": graph.SignOp,
        "Ceil": graph.CeilOp,
        "Floor": graph.FloorOp,
        "Round": graph.RoundOp,
        "Softplus": graph.SoftplusOp,
        "Softsign": graph.SoftsignOp,
    }
    for operator, build in operators.items():
        converts(operator, since=1)(_unary(build))
    converts("HardSwish", since=14)(_unary(graph.HardSwishOp))
    converts("Mish", since=18)(_unary(graph.MishOp))


def _unary(build: type[GraphOp]) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return node.apply(build, node.input(0))

    return convert


def _register_binary() -> None:
    operators: dict[str, type[GraphOp]] = {
        "Add": graph.AddOp,
        "Sub": graph.SubOp,
        "Mul": graph.MulOp,
        "Div": graph.DivOp,
    }
    for operator, build in operators.items():
        converts(operator, since=7)(_binary(build))


def _binary(build: type[GraphOp]) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return node.apply(build, node.input(0), node.input(1))

    return convert


def _register_variadic() -> None:
    operators: dict[str, type[GraphOp]] = {
        "Sum": graph.AddOp,
        "Max": graph.MaxOp,
        "Min": graph.MinOp,
    }
    for operator, build in operators.items():
        converts(operator, since=1)(_variadic(build))


def _variadic(build: type[GraphOp]) -> Callable[[Node], Value]:
    def convert(node: Node) -> Value:
        return functools.reduce(lambda a, b: node.apply(build, a, b), node.variadic())

    return convert


_register_unary()
_register_binary()
_register_variadic()


@converts("Mean", since=1)
def mean(node: Node) -> Value:
    # mean(a, b, c) == (a + b + c) / 3
    total = _variadic(graph.AddOp)(node)
    return node.div(total, len(node.inputs))


@converts("Pow", since=7)
def pow_(node: Node) -> Value:
    return power(node, node.input(0), node.input(1))


@converts("Reciprocal", since=1)
def one_over(node: Node) -> Value:
    return reciprocal(node, node.input(0))


@converts("Cast", since=6)
def cast_to(node: Node) -> Value:
    return _cast(node, node.attr_dtype("to"))


@converts("CastLike", since=15)
def cast_like(node: Node) -> Value:
    return _cast(node, node.input(1).dtype)


def _cast(node: Node, dtype: np.dtype) -> Value:
    saturate = bool(node.attr_int("saturate", 1))
    mode = node.attr_string("round_mode", "up")
    return converted(node, node.input(0), dtype, saturate=saturate, round_mode=mode)


@converts("BitCast", since=26)
def bit_cast(node: Node) -> Value:
    return node.bitcast(node.input(0), target=element_type(node.attr_dtype("to")))


@converts("LeakyRelu", since=1)
def leaky_relu(node: Node) -> Value:
    return node.leaky_relu(node.input(0), alpha=node.attr_float("alpha", 0.01))


@converts("PRelu", since=7)
def leaky_relu_of_slopes(node: Node) -> Value:
    return node.prelu(node.input(0), node.input(1))


@converts("Elu", since=1)
def exponential_linear(node: Node) -> Value:
    return node.elu(node.input(0), node.attr_float("alpha", 1.0))


@converts("Selu", since=1)
def scaled_elu(node: Node) -> Value:
    defaults = (SELU_ALPHA, SELU_GAMMA) if node.opset >= 6 else (1.6732, 1.0507)
    alpha, gamma = map(node.attr_float, ("alpha", "gamma"), defaults)
    return node.selu(node.input(0), alpha, gamma)


@converts("Celu", since=12)
def continuous_elu(node: Node) -> Value:
    return node.celu(node.input(0), node.attr_float("alpha", 1.0))


@converts("HardSigmoid", since=1)
def piecewise_sigmoid(node: Node) -> Value:
    alpha, beta = node.attr_float("alpha", 0.2), node.attr_float("beta", 0.5)
    return node.hard_sigmoid(node.input(0), alpha, beta)


@converts("Swish", since=24)
def sigmoid_linear(node: Node) -> Value:
    # swish(x, a) == x * sigmoid(a * x)
    x, alpha = node.input(0), node.attr_float("alpha", 1.0)
    return node.silu(x) if alpha == 1 else node.mul(x, node.sigmoid(node.mul(x, alpha)))


@converts("Gelu", since=20)
def gelu(node: Node) -> Value:
    approximate = node.attr_string("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.broken('attribute "approximate" is unknown', "none or tanh", approximate)
    return node.gelu(node.input(0), approximate=approximate)


@converts("Clip", since=1)
def clip_to_attributes(node: Node) -> Value:
    low, high = node.attr_float("min", -_LARGEST), node.attr_float("max", _LARGEST)
    return _clipped(node, node.input(0), None if low <= -_LARGEST else low, high)


@converts("Clip", since=11)
def clip_to_operands(node: Node) -> Value:
    x, low, high = node.input(0), node.optional(1), node.optional(2)
    for bound in (low, high):
        if bound is not None and bound.rank != 0 and bound.shape != (1,):
            raise node.broken("a bound is not a scalar", "rank 0", f"rank {bound.rank}")
    fixed = [None if bound is None else _number(bound) for bound in (low, high)]
    if all(b is None or f is not None for b, f in zip((low, high), fixed, strict=True)):
        return _clipped(node, x, *fixed)
    # clip(x, low, high) == min(max(x, low), high)
    if low is not None:
        x = node.max(x, _as_scalar(node, low))
    if high is not None:
        x = node.min(x, _as_scalar(node, high))
    return x


def _number(bound: Value) -> float | int | None:
    """The known number of a bound; None if it is only known at run time, or is NaN."""
    if bound.contents is None or bound.is_symbolic:
        return None
    number = bound.contents.reshape(()).item()
    return None if number != number else number


def _as_scalar(node: Node, bound: Value) -> Value:
    return node.reshape(bound, shape=()) if bound.rank else bound


def _clipped(node: Node, x: Value, low: float | None, high: float | None) -> Value:
    if x.dtype.kind == "f":
        high = None if high is not None and high >= _LARGEST else high
    return clip(node, x, low, high)
