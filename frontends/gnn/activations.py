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

from ..builder import Builder, Value
from ..importing.elementwise import clip
from .context import Context
from .layers import Layer
from .weights import error, floats

P = ParamSpec("P")


class Activation(Layer):
    """A function of the features; its parameters are those of the layer."""

    _function: Callable[..., Value]
    _signature: inspect.Signature

    def __init__(self, *args: Any, **parameters: Any) -> None:
        subject = type(self).__name__
        try:
            bound = self._signature.bind(*args, **parameters)
        except TypeError as problem:
            raise TypeError(f"{subject}: {problem}") from None
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            setattr(self, key, _checked(subject, key, value, self._signature.parameters[key]))
        self._parameters = tuple(bound.arguments)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        b, given = context.builder, {key: getattr(self, key) for key in self._parameters}
        for key, value in given.items():
            if isinstance(value, np.ndarray):
                given[key] = b.constant(value, f"{name}.{key}", x.dtype)
        return type(self)._function(b, x, **given)


def activation(
    function: Callable[Concatenate[Builder, Value, P], Value],
) -> Callable[P, Activation]:
    """The layer that a function of features is.

    Its parameters after the builder and the features are those of the layer: numbers, texts or
    arrays; an array is a weight.
    """
    whole = inspect.signature(function)
    signature = whole.replace(
        parameters=[p for p in whole.parameters.values() if p.name not in ("b", "x")],
        return_annotation=inspect.Signature.empty,
    )

    @functools.wraps(Activation.__init__)
    def make(self: Activation, *args: Any, **parameters: Any) -> None:
        Activation.__init__(self, *args, **parameters)

    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    make.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[this, *signature.parameters.values()]
    )
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
def ReLU(b: Builder, x: Value) -> Value:
    """max(x, 0)."""
    return b.relu(x)


@activation
def ReLU6(b: Builder, x: Value) -> Value:
    """min(max(x, 0), 6)."""
    return clip(b, x, 0, 6)


@activation
def LeakyReLU(b: Builder, x: Value, negative_slope: float = 0.01) -> Value:
    """x, and negative_slope x for negative x."""
    return b.leaky_relu(x, alpha=float(negative_slope))


@activation
def PReLU(b: Builder, x: Value, weight: np.ndarray) -> Value:
    """x, and weight x for negative x; the weight has one number, or one for each feature."""
    return b.prelu(x, weight)


@activation
def ELU(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    """x, and alpha (exp(x) - 1) for negative x."""
    return b.elu(x, alpha=float(alpha))


@activation
def SELU(b: Builder, x: Value) -> Value:
    """1.0507 times ELU of alpha 1.67326, whose results stay standardised."""
    return b.selu(x)


@activation
def CELU(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    """max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""
    return b.celu(x, alpha=float(alpha))


@activation
def GELU(b: Builder, x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function of x; `approximate` is "none" or "tanh"."""
    return b.gelu(x, approximate=approximate)


@activation
def SiLU(b: Builder, x: Value) -> Value:
    """x sigmoid(x), also called swish."""
    return b.silu(x)


@activation
def Mish(b: Builder, x: Value) -> Value:
    """x tanh(softplus(x))."""
    return b.mish(x)


@activation
def Hardswish(b: Builder, x: Value) -> Value:
    """x min(max(x / 6 + 1/2, 0), 1)."""
    return b.hard_swish(x)


@activation
def Sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return b.sigmoid(x)


@activation
def Tanh(b: Builder, x: Value) -> Value:
    """The hyperbolic tangent."""
    return b.tanh(x)


@activation
def Softplus(b: Builder, x: Value, beta: float = 1.0) -> Value:
    """log(1 + exp(beta x)) / beta."""
    if beta == 1:
        return b.softplus(x)
    return b.div(b.softplus(b.mul(x, beta)), beta)


@activation
def Softmax(b: Builder, x: Value, dim: int = -1) -> Value:
    """exp(x) over its sum along a dimension."""
    return b.softmax(x, axis=dim)


@activation
def LogSoftmax(b: Builder, x: Value, dim: int = -1) -> Value:
    """The logarithm of `Softmax`."""
    return b.log_softmax(x, axis=dim)
