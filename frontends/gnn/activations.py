"""Activations: layers that are a function of the features alone.

Each is written once, as a function of features and parameters; `activation` makes the layer of it.
What they compute is that of torch's module of the same name, and written in the operators that
models of torch and ONNX become, too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from ...dialects.graph import ops as graph
from ..builder import Builder, Value
from ..importing import elementwise as composed
from ..importing.nodes import Builds
from .context import Context
from .layers import Layer
from .weights import error, floats

P = ParamSpec("P")


class Node:
    """Appends the operators of an activation to a builder, as a node of an imported model does."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def emit(self, build: Builds, *operands: Value | float, **attributes: Any) -> Value:
        """Append an operator."""
        return self._builder.apply(build, *operands, **attributes)  # type: ignore[arg-type]

    def scalar(self, number: float, like: Value) -> Value:
        """A number of the element type of `like`."""
        return self._builder.constant(number, dtype=like.dtype)


class Activation(Layer):
    """A function of the features; its parameters are those of the layer."""

    _function: Callable[..., Value]
    _signature: inspect.Signature

    def __init__(self, *args: Any, **parameters: Any) -> None:
        subject, bound = type(self).__name__, self._signature.bind(*args, **parameters)
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            setattr(self, key, _checked(subject, key, value, self._signature.parameters[key]))
        self._parameters = tuple(bound.arguments)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        b, given = context.builder, {key: getattr(self, key) for key in self._parameters}
        for key, value in given.items():
            if isinstance(value, np.ndarray):
                given[key] = b.constant(value, f"{name}.{key}", x.dtype)
        return type(self)._function(Node(b), x, **given)


def activation(function: Callable[Concatenate[Node, Value, P], Value]) -> Callable[P, Activation]:
    """The layer that a function of features is.

    Its parameters after the node and the features are those of the layer: numbers, texts or arrays;
    an array is a weight.
    """
    whole = inspect.signature(function)
    signature = whole.replace(
        parameters=[p for p in whole.parameters.values() if p.name not in ("node", "x")],
        return_annotation=inspect.Signature.empty,
    )

    @functools.wraps(Activation.__init__)
    def make(self: Activation, *args: Any, **parameters: Any) -> None:
        Activation.__init__(self, *args, **parameters)

    make.__signature__ = signature  # type: ignore[attr-defined]
    arrays = {p: p for p in signature.parameters if "ndarray" in str(signature.parameters[p])}
    members = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__init__": make,
        "_function": staticmethod(function),
        "_signature": signature,
        "_state": arrays,
    }
    return type(function.__name__, (Activation,), members)


def _checked(subject: str, key: str, value: Any, parameter: inspect.Parameter) -> Any:
    """The value of a parameter, of the kind that its default has; without default, an array."""
    if parameter.default is parameter.empty:
        return floats(subject, key, value)
    kind = str if isinstance(parameter.default, str) else (int, float)
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = "a text" if kind is str else "a number"
        raise error(subject, f"wrong {key}", expected, repr(value))
    return value


@activation
def ReLU(node: Node, x: Value) -> Value:
    """max(x, 0)."""
    return node.emit(graph.ReluOp, x)


@activation
def ReLU6(node: Node, x: Value) -> Value:
    """min(max(x, 0), 6)."""
    return composed.clip(node, x, 0, 6)


@activation
def LeakyReLU(node: Node, x: Value, negative_slope: float = 0.01) -> Value:
    """x, and negative_slope x for negative x."""
    return node.emit(graph.LeakyReluOp, x, alpha=float(negative_slope))


@activation
def PReLU(node: Node, x: Value, weight: np.ndarray) -> Value:
    """x, and weight x for negative x; the weight has one number, or one for each feature."""
    return composed.prelu(node, x, weight)  # type: ignore[arg-type]


@activation
def ELU(node: Node, x: Value, alpha: float = 1.0) -> Value:
    """x, and alpha (exp(x) - 1) for negative x."""
    return composed.elu(node, x, alpha)


@activation
def SELU(node: Node, x: Value) -> Value:
    """1.0507 times ELU of alpha 1.67326, whose results stay standardised."""
    return composed.selu(node, x)


@activation
def CELU(node: Node, x: Value, alpha: float = 1.0) -> Value:
    """max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""
    return composed.celu(node, x, alpha)


@activation
def GELU(node: Node, x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function of x; `approximate` is "none" or "tanh"."""
    return node.emit(graph.GeluOp, x, approximate=approximate)


@activation
def SiLU(node: Node, x: Value) -> Value:
    """x sigmoid(x), also called swish."""
    return composed.swish(node, x)


@activation
def Mish(node: Node, x: Value) -> Value:
    """x tanh(softplus(x))."""
    return composed.mish(node, x)


@activation
def Hardswish(node: Node, x: Value) -> Value:
    """x min(max(x / 6 + 1/2, 0), 1)."""
    return composed.hard_swish(node, x)


@activation
def Sigmoid(node: Node, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return node.emit(graph.SigmoidOp, x)


@activation
def Tanh(node: Node, x: Value) -> Value:
    """The hyperbolic tangent."""
    return node.emit(graph.TanhOp, x)


@activation
def Softplus(node: Node, x: Value, beta: float = 1.0) -> Value:
    """log(1 + exp(beta x)) / beta."""
    if beta == 1:
        return composed.softplus(node, x)
    factor = node.scalar(beta, x)
    y = composed.softplus(node, node.emit(graph.MulOp, x, factor))
    return node.emit(graph.DivOp, y, factor)


@activation
def Softmax(node: Node, x: Value, dim: int = -1) -> Value:
    """exp(x) over its sum along a dimension."""
    return node.emit(graph.SoftmaxOp, x, axis=dim)


@activation
def LogSoftmax(node: Node, x: Value, dim: int = -1) -> Value:
    """The logarithm of `Softmax`."""
    return node.emit(graph.LogSoftmaxOp, x, axis=dim)
