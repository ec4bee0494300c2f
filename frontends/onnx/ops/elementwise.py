"""Elementwise operators of ONNX: functions, comparisons, logic, bits, activations."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ....dialects.graph.ops.elementwise.activations import SELU_ALPHA, SELU_GAMMA
from ...importing.dtypes import element_type
from ...importing.elementwise import clip, power, reciprocal
from ...importing.low_bits import converted
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_LARGEST = float(np.finfo(np.float32).max)  # the default bounds of Clip, which have no effect


_OPERATORS: dict[str, tuple[int, int, type[GraphOp]]] = {
    "Neg": (1, 1, graph.NegOp),
    "Exp": (1, 1, graph.ExpOp),
    "Log": (1, 1, graph.LogOp),
    "Sqrt": (1, 1, graph.SqrtOp),
    "Tanh": (1, 1, graph.TanhOp),
    "Sigmoid": (1, 1, graph.SigmoidOp),
    "Relu": (1, 1, graph.ReluOp),
    "Erf": (1, 1, graph.ErfOp),
    "Sin": (1, 1, graph.SinOp),
    "Cos": (1, 1, graph.CosOp),
    "Acos": (1, 1, graph.AcosOp),
    "Acosh": (1, 1, graph.AcoshOp),
    "Asin": (1, 1, graph.AsinOp),
    "Asinh": (1, 1, graph.AsinhOp),
    "Atan": (1, 1, graph.AtanOp),
    "Atanh": (1, 1, graph.AtanhOp),
    "Cosh": (1, 1, graph.CoshOp),
    "Sinh": (1, 1, graph.SinhOp),
    "Tan": (1, 1, graph.TanOp),
    "Abs": (1, 1, graph.AbsOp),
    "Sign": (1, 1, graph.SignOp),
    "Ceil": (1, 1, graph.CeilOp),
    "Floor": (1, 1, graph.FloorOp),
    "Round": (1, 1, graph.RoundOp),
    "Not": (1, 1, graph.LogicalNotOp),
    "Softplus": (1, 1, graph.SoftplusOp),
    "Softsign": (1, 1, graph.SoftsignOp),
    "HardSwish": (14, 1, graph.HardSwishOp),
    "Mish": (18, 1, graph.MishOp),
    "BitwiseNot": (18, 1, graph.BitwiseNotOp),
    "Add": (7, 2, graph.AddOp),
    "Sub": (7, 2, graph.SubOp),
    "Mul": (7, 2, graph.MulOp),
    "Div": (7, 2, graph.DivOp),
    "PRelu": (7, 2, graph.PreluOp),
    "Equal": (7, 2, graph.EqualOp),
    "Less": (7, 2, graph.LessOp),
    "LessOrEqual": (12, 2, graph.LessEqualOp),
    "Greater": (7, 2, graph.GreaterOp),
    "GreaterOrEqual": (12, 2, graph.GreaterEqualOp),
    "And": (7, 2, graph.LogicalAndOp),
    "Or": (7, 2, graph.LogicalOrOp),
    "Xor": (7, 2, graph.LogicalXorOp),
    "BitwiseAnd": (18, 2, graph.BitwiseAndOp),
    "BitwiseOr": (18, 2, graph.BitwiseOrOp),
    "BitwiseXor": (18, 2, graph.BitwiseXorOp),
    "Where": (9, 3, graph.WhereOp),
}
"""Operators of the dialect under other names: the first opset and the number of operands."""


def _direct(count: int, build: type[GraphOp]) -> Callable[[Node], Value]:
    return lambda node: node.apply(build, *map(node.input, range(count)))


for _name, (_since, _count, _build) in _OPERATORS.items():
    converts(_name, since=_since)(_direct(_count, _build))


def _joined(build: type[GraphOp]) -> Callable[[Node], Value]:
    """The conversion of an operator of any number of operands."""
    return lambda node: functools.reduce(lambda a, b: node.apply(build, a, b), node.variadic())


for _name, _build in (("Sum", graph.AddOp), ("Max", graph.MaxOp), ("Min", graph.MinOp)):
    converts(_name, since=1)(_joined(_build))


@converts("BitShift", since=11)
def bit_shift(node: Node) -> Value:
    direction = node.attr_string("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.broken("direction is unknown", "LEFT or RIGHT", direction)
    build = graph.ShiftLeftOp if direction == "LEFT" else graph.ShiftRightOp
    return node.apply(build, node.input(0), node.input(1))


@converts("Mean", since=1)
def mean(node: Node) -> Value:
    # mean(a, b, c) == (a + b + c) / 3
    total = _joined(graph.AddOp)(node)
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
