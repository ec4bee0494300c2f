"""Normalisation of features, at inference: over nodes, over the nodes of a graph, or of each node.

Each is torch-geometric's layer of the same name. Where a program takes a batch of graphs, those
that normalise over a graph do so for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..builder import Value
from .context import Context
from .layers import Layer
from .weights import floats, number, one_of, require_dense, shaped


class _Norm(Layer):
    """A norm with a vector of weights and one of biases, or without them."""

    def __init__(self, weight: Any, bias: Any, eps: Any) -> None:
        subject, self.width = type(self).__name__, None
        self.weight = self._vector("weight", weight)
        self.bias = self._vector("bias", bias)
        self.eps = number(subject, "eps", eps)

    def _vector(self, what: str, values: Any) -> np.ndarray | None:
        """A vector with a number for each feature, or None."""
        if values is None:
            return None
        subject = type(self).__name__
        vector = shaped(subject, what, floats(subject, what, values), (self.width,))
        self.width = len(vector)
        return vector

    def _given(self, context: Context, x: Value, name: str, what: str) -> Value | None:
        """A vector of weights as a constant; None if there is none."""
        values = getattr(self, what)
        if values is None:
            return None
        return context.builder.constant(values, f"{name}.{what}", x.dtype)

    def _scaled(self, context: Context, x: Value, name: str) -> Value:
        """x weight + bias."""
        weight, bias = (self._given(context, x, name, what) for what in ("weight", "bias"))
        x = x if weight is None else x * weight
        return x if bias is None else x + bias


class BatchNorm(_Norm):
    """Batch normalisation of Ioffe and Szegedy (2015), with the statistics of training.

    (x - running_mean) / sqrt(running_var + eps) * weight + bias, for each feature.

    Args:
        running_mean: shape (F,).
        running_var: shape (F,).
        weight: shape (F,), or None.
        bias: shape (F,), or None.
        eps: the number that is added to variances.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {key: f"module.{key}" for key in ("running_mean", "running_var", "weight", "bias")}

    def __init__(
        self,
        running_mean: np.ndarray,
        running_var: np.ndarray,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        *,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(weight, bias, eps)
        self.running_mean = self._vector("running_mean", running_mean)
        self.running_var = self._vector("running_var", running_var)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("BatchNorm", f'layer "{name}"', x)
        keys = ("weight", "bias", "running_mean", "running_var")
        given = [self._given(context, x, name, key) for key in keys]
        return context.builder.batch_norm(x, *given, epsilon=self.eps)


class LayerNorm(_Norm):
    """Layer normalisation of Ba, Kiros and Hinton (2016), over a graph or over each node.

    Features are standardised, times weight plus bias.

    Args:
        weight: shape (F,), or None.
        bias: shape (F,), or None.
        eps: the number that is added to variances; by "graph", for a program without a batch, to
            the standard deviation, as torch-geometric does.
        mode: "graph" for the mean and variance of all features of all nodes of a graph, "node" for
            those of the features of each node.

    Raises:
        InputError: for wrong shapes or dtypes, or an unknown `mode`.
    """

    _state = {"weight": "weight", "bias": "bias"}

    def __init__(
        self,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        *,
        eps: float = 1e-5,
        mode: str = "graph",
    ) -> None:
        super().__init__(weight, bias, eps)
        self.mode = one_of("LayerNorm", "mode", mode, ("graph", "node"))

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("LayerNorm", f'layer "{name}"', x)
        b = context.builder
        if self.mode == "node":
            weight, bias = (self._given(context, x, name, what) for what in ("weight", "bias"))
            return b.layer_norm(x, weight, bias, axis=1, epsilon=self.eps)
        rest = x - _mean(context, x)
        variance = _mean(context, rest * rest)
        if context.batch is None:
            return self._scaled(context, rest / (b.sqrt(variance) + self.eps), name)
        return self._scaled(context, rest * b.rsqrt(variance + self.eps), name)


class GraphNorm(_Norm):
    """Normalisation of Cai et al. (2021), of each feature over the nodes of a graph.

    With y = x - mean_scale mean(x): y / sqrt(mean(y^2) + eps) * weight + bias.

    Args:
        weight: shape (F,), or None.
        bias: shape (F,), or None.
        mean_scale: shape (F,), or None for 1.
        eps: the number that is added to variances.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {"weight": "weight", "bias": "bias", "mean_scale": "mean_scale"}

    def __init__(
        self,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        mean_scale: np.ndarray | None = None,
        *,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(weight, bias, eps)
        self.mean_scale = self._vector("mean_scale", mean_scale)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense(type(self).__name__, f'layer "{name}"', x)
        mean, scale = context.mean_of_graph(x), self._given(context, x, name, "mean_scale")
        y = x - (mean if scale is None else mean * scale)
        variance = context.mean_of_graph(y * y)
        return self._scaled(context, y * context.builder.rsqrt(variance + self.eps), name)


class InstanceNorm(GraphNorm):
    """Normalisation of Ulyanov et al. (2016), of each feature over the nodes of a graph.

    (x - mean) / sqrt(variance + eps) * weight + bias: torch-geometric's layer without
    ``track_running_stats``.

    Args:
        weight: shape (F,), or None.
        bias: shape (F,), or None.
        eps: the number that is added to variances.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {"weight": "weight", "bias": "bias"}

    def __init__(
        self,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        *,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(weight, bias, eps=eps)


class PairNorm(Layer):
    """Normalisation of Zhao and Akoglu (2020), by which nodes stay apart.

    With y = x - mean(x) over the nodes of a graph: scale y / sqrt(mean |y|^2 + eps), or
    scale y / (|y| + eps) of each node.

    Args:
        scale: the scale.
        scale_individually: whether each node has its own length.
        eps: the number that is added to lengths.

    Raises:
        InputError: if `scale` or `eps` is not a number.
    """

    def __init__(
        self, scale: float = 1.0, scale_individually: bool = False, *, eps: float = 1e-5
    ) -> None:
        self.scale, self.eps = number("PairNorm", "scale", scale), number("PairNorm", "eps", eps)
        self.scale_individually = scale_individually

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("PairNorm", f'layer "{name}"', x)
        b, y = context.builder, x - context.mean_of_graph(x)
        length = b.reduce(y * y, "sum", [1], True)
        if self.scale_individually:
            return y * self.scale / (b.sqrt(length) + self.eps)
        return y * self.scale * b.rsqrt(context.mean_of_graph(length) + self.eps)


def _mean(context: Context, x: Value) -> Value:
    """The mean of all features of all nodes of each graph."""
    return context.mean_of_graph(context.builder.reduce(x, "mean", [1], True))
