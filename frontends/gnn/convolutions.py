"""Graph convolutions that gather from neighbours: attention, sample and aggregate, isomorphism.

Each is torch-geometric's layer of the same name, at inference, with its weights as arrays. They use
only the sparsity pattern of the adjacency matrix: a repeated edge counts as several edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.errors import InputError, explain
from ...dialects.sparse_tensor import is_sparse
from ..builder import Value
from .layers import Context, Layer, Linear, bias_of, check_width, floats, matrix_of

_AGGREGATES = {"mean": "mean", "sum": "sum", "add": "sum", "max": "max", "min": "min"}


class GATConv(Layer):
    """Graph attention of Velickovic et al. (2018), with H heads of C features each.

    With h = x W^T, the score of the edge from j to i is
    leaky_relu(att_src . h_j + att_dst . h_i), its weight p the softmax over the scores of all edges
    into i, and the result of i the sum of p h_j, plus the bias.

    Args:
        weight: W, shape (H C, in).
        att_src: shape (1, H, C) or (H, C), which determines H and C.
        att_dst: the same shape.
        bias: shape (H C,), or (C,) without `concat`, or None.
        concat: whether heads are concatenated; otherwise they are averaged.
        negative_slope: the slope of the leaky_relu.
        add_self_loops: whether each node attends to itself exactly once, regardless of its loops.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    def __init__(
        self,
        weight: np.ndarray,
        att_src: np.ndarray,
        att_dst: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        concat: bool = True,
        negative_slope: float = 0.2,
        add_self_loops: bool = True,
    ) -> None:
        self.weight = matrix_of("GATConv", weight)
        self.att_src = _attention("att_src", att_src)
        self.att_dst = _attention("att_dst", att_dst)
        if self.att_src.shape != self.att_dst.shape:
            fact = "att_src and att_dst differ in shape"
            raise _error("GATConv", fact, self.att_src.shape, self.att_dst.shape)
        self.heads, self.channels = self.att_src.shape
        if self.weight.shape[0] != self.heads * self.channels:
            fact = f"the weight does not fit {self.heads} heads of {self.channels}"
            raise _error("GATConv", fact, self.heads * self.channels, self.weight.shape[0])
        self.concat = concat
        self.bias = bias_of("GATConv", bias, self.weight.shape[0] if concat else self.channels)
        self.negative_slope = float(negative_slope)
        self.add_self_loops = add_self_loops

    def emit(self, context: Context, x: Value, name: str) -> Value:
        b = context.builder
        h = Linear(self.weight).emit(context, x, name)
        h = b.reshape(h, [-1, self.heads, self.channels], name=name)
        source, target = (
            b.reduce(h * b.constant(part, f"{name}.{key}", x.dtype), "sum", [2], name=name)
            for key, part in (("att_src", self.att_src), ("att_dst", self.att_dst))
        )
        if self.add_self_loops and context.with_self_loops is None:
            y = self._beside_self_loops(context, h, source, target, name)
        else:
            loops = context.with_self_loops if self.add_self_loops else None
            a = context.adjacency if loops is None else loops()
            scores = b.sddmm(a, target, source, "add", name=name)
            scores = b.leaky_relu(scores, self.negative_slope, name=name)
            y = b.aggregate(a, h, b.edge_softmax(a, scores, name=name), name=name)
        if self.concat:
            y = b.reshape(y, [-1, self.heads * self.channels], name=name)
        else:
            y = b.reduce(y, "mean", [1], name=name)
        return y if self.bias is None else y + b.constant(self.bias, f"{name}.bias", x.dtype)

    def _beside_self_loops(
        self, context: Context, h: Value, source: Value, target: Value, name: str
    ) -> Value:
        """The heads, for nodes that attend to themselves in a graph known only at run time."""
        b, a = context.builder, context.adjacency
        scores = b.sddmm(a, target, source, "add", name=name)
        scores = b.leaky_relu(scores, self.negative_slope, name=name)
        own = b.leaky_relu(source + target, self.negative_slope, name=name)
        shares = b.edge_softmax(a, scores, own, name=name)
        rest = b.reshape(b.own_softmax(a, scores, own, name=name), [-1, self.heads, 1], name=name)
        return b.aggregate(a, h, shares, name=name) + rest * h


class SAGEConv(Layer):
    """GraphSAGE of Hamilton et al. (2017): aggregate(x_j) W_l^T + b + x_i W_r^T.

    Args:
        weight_l: W_l, shape (out, in), for the aggregated neighbours.
        bias: b, shape (out,), or None.
        weight_r: W_r, shape (out, in), for the node itself, or None to omit that term
            (torch-geometric's ``root_weight=False``).
        aggr: "mean", "sum" (or "add"), "max" or "min"; a node without neighbours gets 0.
        normalize: whether each row of the result is divided by its Euclidean norm.
        project: weight (in, in) and bias (in,) of torch-geometric's ``project=True``: neighbours
            send relu(x W^T + b).

    Raises:
        InputError: for wrong shapes or dtypes, or an unknown `aggr`.
    """

    def __init__(
        self,
        weight_l: np.ndarray,
        bias: np.ndarray | None = None,
        weight_r: np.ndarray | None = None,
        *,
        aggr: str = "mean",
        normalize: bool = False,
        project: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        if aggr not in _AGGREGATES:
            raise _error("SAGEConv", "unknown aggr", ", ".join(_AGGREGATES), repr(aggr))
        self.left = Linear(weight_l, bias)
        self.right = None if weight_r is None else Linear(weight_r)
        if self.right is not None and self.right.weight.shape != self.left.weight.shape:
            fact = "weight_l and weight_r differ in shape"
            raise _error("SAGEConv", fact, self.left.weight.shape, self.right.weight.shape)
        self.project = None if project is None else Linear(*project)
        self.aggr = _AGGREGATES[aggr]
        self.normalize = normalize

    @property
    def parts(self) -> tuple[Layer, ...]:
        return tuple(p for p in (self.left, self.right, self.project) if p is not None)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        b = context.builder
        sent = x
        if self.project is not None:
            sent = b.relu(self.project.emit(context, x, f"{name}.lin"), name=name)
        left = self.left
        out, width = left.weight.shape
        # Aggregation commutes with the product, so the narrower rows are aggregated.
        if self.aggr in ("sum", "mean") and (is_sparse(sent.ssa.type) or out < width):
            narrow = Linear(left.weight).emit(context, sent, f"{name}.lin_l")
            y = b.aggregate(context.adjacency, narrow, kind=self.aggr, name=name)
            if left.bias is not None:
                y = y + b.constant(left.bias, f"{name}.lin_l.bias", x.dtype)
        else:
            _require_dense("SAGEConv", f'aggr "{self.aggr}" in layer "{name}"', sent)
            check_width("SAGEConv", name, sent, width)
            arrived = b.aggregate(context.adjacency, sent, kind=self.aggr, name=name)
            y = left.emit(context, arrived, f"{name}.lin_l")
        if self.right is not None:
            y = y + self.right.emit(context, x, f"{name}.lin_r")
        if not self.normalize:
            return y
        length = b.sqrt(b.reduce(y * y, "sum", [1], True, name=name), name=name)
        return y / b.clip(length, minimum=1e-12, name=name)


class GINConv(Layer):
    """Graph isomorphism of Xu et al. (2019): nn((1 + eps) x_i + sum of x_j).

    Args:
        nn: the layers applied to the sum, in order.
        eps: the additional weight of the node itself.

    Raises:
        InputError: if `nn` is not a layer or a list of layers.
    """

    def __init__(self, nn: Layer | Sequence[Layer], eps: float = 0.0) -> None:
        self.nn = (nn,) if isinstance(nn, Layer) else tuple(nn)
        for layer in self.nn:
            if not isinstance(layer, Layer):
                raise _error("GINConv", "nn must hold layers only", "a layer", type(layer))
        self.eps = float(eps)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.nn

    def emit(self, context: Context, x: Value, name: str) -> Value:
        _require_dense("GINConv", f'layer "{name}"', x)
        b = context.builder
        y = b.aggregate(context.adjacency, x, name=name) + x * (1.0 + self.eps)
        for number, layer in enumerate(self.nn):
            y = layer.emit(context, y, f"{name}.nn_{number}")
        return y


def _attention(what: str, array: np.ndarray) -> np.ndarray:
    values = floats("GATConv", what, array)
    if values.ndim == 3 and values.shape[0] == 1:
        values = values[0]
    if values.ndim != 2:
        raise _error("GATConv", f"{what} has the wrong shape", "(1, heads, out)", values.shape)
    return values


def _require_dense(subject: str, what: str, x: Value) -> None:
    if is_sparse(x.ssa.type):
        raise _error(subject, f"{what} gets sparse features", "dense ones")


def _error(subject: str, fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain(subject, fact, expected=expected, got=got))
