"""Graph convolutions with attention: messages are weighted by a softmax over the edges of a node.

Each is torch-geometric's layer of the same name, at inference, with its weights as arrays. They use
only the sparsity pattern of the adjacency matrix: a repeated edge counts as several edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..builder import Value
from .context import Context
from .layers import Convolution, Layer, Linear, add_bias, apply, linear, linear_of_pair
from .weights import bias_of, error, floats, matrix_of, shaped, whole


@dataclass(frozen=True)
class ScoreEnds:
    """What a score is computed of: the ends of edges, and their features."""

    at_sources: Callable[[Value], Value]
    at_targets: Callable[[Value], Value]
    edge_attr: Value | None


def _mean_without_loops(context: Context, nodes: Value, attr: Value) -> Value:
    """The mean of the features of the edges into each node that are no self loops; else 0."""
    b = context.builder
    numbers = context.numbers(nodes)
    is_loop = b.equal(context.at_sources(numbers), context.at_targets(numbers))
    counted = b.cast(b.logical_not(is_loop), attr.dtype)
    counted = b.reshape(counted, [-1, 1])
    total, count = (context.combined(part, "sum") for part in (attr * counted, counted))
    return total / b.clip(count, minimum=1.0)


class _Attention(Convolution):
    """What layers with several heads have in common."""

    heads: int
    channels: int
    concat: bool
    add_self_loops: bool = False

    def _has_loops(self, subject: str, one_set: bool) -> bool:
        """Whether nodes attend to themselves."""
        if self.add_self_loops and not one_set:
            fact = "nodes of two sets have no self loops"
            raise error(subject, fact, "add_self_loops=False", "add_self_loops=True")
        return self.add_self_loops

    def _apart(self, context: Context, y: Value) -> Value:
        """The features of each head."""
        return context.builder.reshape(y, [-1, self.heads, self.channels])

    def _joined(self, context: Context, y: Value) -> Value:
        """Heads one after the other, or their mean."""
        if self.concat:
            return context.builder.reshape(y, [-1, self.heads * self.channels])
        return context.builder.reduce(y, "mean", [1])

    def _attended(
        self,
        context: Context,
        sent: Value,
        score: Callable[[ScoreEnds], Value],
        edges: bool,
        loops: bool,
    ) -> Value:
        """For each target what its sources send, weighted by the softmax over its edges.

        Args:
            context: the edges.
            sent: what sources send, (M, H, C).
            score: the scores (E, H) of the edges with these ends.
            edges: whether scores depend on features of edges.
            loops: whether each node attends to itself exactly once, regardless of its loops; the
                features of its loop are the mean of those of the edges into it, without its loops.
        """
        b, a = context.builder, context.adjacency
        attr = context.edge_attr if edges else None
        if not loops:
            ends = ScoreEnds(context.at_sources, context.at_targets, attr)
            return b.aggregate(a, sent, score(ends), kind="softmax")
        if attr is None and context.with_self_loops is not None:
            a = context.with_self_loops()
            ends = ScoreEnds(lambda x: b.at_entries(a, x, 1), lambda x: b.at_entries(a, x, 0), None)
            return b.aggregate(a, sent, score(ends), kind="softmax")
        mean = None if attr is None else _mean_without_loops(context, sent, attr)
        own = score(ScoreEnds(lambda x: x, lambda x: x, mean))
        scores = score(ScoreEnds(context.at_sources, context.at_targets, attr))
        shares = b.edge_softmax(a, scores, own)
        rest = b.reshape(b.own_softmax(a, scores, own), [-1, self.heads, 1])
        return b.aggregate(a, sent, shares) + rest * sent


class GATConv(_Attention):
    """Graph attention of Velickovic et al. (2018), with H heads of C features each.

    With h = x W^T, the score of the edge from j to i is
    leaky_relu(att_src . h_j + att_dst . h_i), its weight p the softmax over the scores of all edges
    into i, and the result of i the sum of p h_j, plus the bias. Features e of edges add
    att_edge . e W_e^T to the sum in the score.

    Args:
        weight: W, shape (H C, in).
        att_src: shape (1, H, C) or (H, C), which determines H and C.
        att_dst: the same shape.
        bias: shape (H C,), or (C,) without `concat`, or None.
        weight_dst: W of the targets, shape (H C, in), where nodes are of two sets.
        weight_edge: W_e, shape (H C, D), for edges with D features, or None.
        att_edge: the shape of `att_src`, with `weight_edge`.
        concat: whether heads are concatenated; otherwise they are averaged.
        negative_slope: the slope of the leaky_relu.
        add_self_loops: whether each node attends to itself exactly once, regardless of its loops.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {
        "weight": "lin.weight|lin_src.weight",
        "weight_dst": "lin_dst.weight",
        **{key: key for key in ("att_src", "att_dst", "att_edge", "bias")},
        "weight_edge": "lin_edge.weight",
    }

    def __init__(
        self,
        weight: np.ndarray,
        att_src: np.ndarray,
        att_dst: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        weight_dst: np.ndarray | None = None,
        weight_edge: np.ndarray | None = None,
        att_edge: np.ndarray | None = None,
        concat: bool = True,
        negative_slope: float = 0.2,
        add_self_loops: bool = True,
    ) -> None:
        self.weight = matrix_of("GATConv", weight)
        self.att_src = _attention("GATConv", "att_src", att_src)
        self.att_dst = _attention("GATConv", "att_dst", att_dst)
        if self.att_src.shape != self.att_dst.shape:
            fact = "att_src and att_dst differ in shape"
            raise error("GATConv", fact, self.att_src.shape, self.att_dst.shape)
        self.heads, self.channels = self.att_src.shape
        width = self.heads * self.channels
        if self.weight.shape[0] != width:
            fact = f"the weight does not fit {self.heads} heads of {self.channels}"
            raise error("GATConv", fact, width, self.weight.shape[0])
        self.weight_dst = None
        if weight_dst is not None:
            self.weight_dst = shaped("GATConv", "weight_dst", weight_dst, (width, None))
        self.concat = concat
        self.bias = bias_of("GATConv", bias, width if concat else self.channels)
        self.negative_slope = float(negative_slope)
        self.add_self_loops = add_self_loops
        self.edge = self._edge(weight_edge, att_edge)

    def _edge(self, weight: np.ndarray | None, att: np.ndarray | None) -> np.ndarray | None:
        """What features of edges are multiplied by: att_edge . (e W_e^T) of each head."""
        if weight is None and att is None:
            return None
        if weight is None or att is None:
            raise error("GATConv", "weight_edge and att_edge belong together", got="one of them")
        heads = _attention("GATConv", "att_edge", att)
        if heads.shape != self.att_src.shape:
            fact = "att_src and att_edge differ in shape"
            raise error("GATConv", fact, self.att_src.shape, heads.shape)
        width = self.heads * self.channels
        matrix = shaped("GATConv", "weight_edge", weight, (width, None))
        return np.einsum("hcd,hc->hd", matrix.reshape(*heads.shape, -1), heads)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        b = context.builder
        x = apply(context, linear("GATConv", "weight", self.weight), sources, name)
        h = other = self._apart(context, x)
        if sources is not targets or self.weight_dst is not None:
            own = self.weight if self.weight_dst is None else self.weight_dst
            layer = linear("GATConv", "weight_dst", own)
            other = self._apart(context, apply(context, layer, targets, f"{name}.lin_dst"))
        source, target = (
            b.reduce(y * b.constant(part, f"{name}.{key}", h.dtype), "sum", [2])
            for y, key, part in ((h, "att_src", self.att_src), (other, "att_dst", self.att_dst))
        )
        if self.edge is not None:
            context.edges("GATConv", name, self.edge.shape[1])

        def score(ends: ScoreEnds) -> Value:
            total = ends.at_sources(source) + ends.at_targets(target)
            if self.edge is not None:
                weight = b.constant(self.edge, f"{name}.edge", h.dtype)
                total = total + b.dense(ends.edge_attr, weight)
            return b.leaky_relu(total, self.negative_slope)

        loops = self._has_loops("GATConv", sources is targets)
        y = self._attended(context, h, score, self.edge is not None, loops)
        return add_bias(context, self._joined(context, y), self.bias, name)


class GATv2Conv(_Attention):
    """Graph attention of Brody et al. (2022): like `GATConv`, but for the score.

    With l = x W_l^T + b_l and r = x W_r^T + b_r, the score of the edge from j to i is
    att . leaky_relu(l_j + r_i + e W_e^T) for features e of the edge, and the result of i the sum of
    p l_j.

    Args:
        weight_l: W_l, shape (H C, in).
        weight_r: W_r, shape (H C, in), or None for W_l and b_l (torch-geometric's
            ``share_weights=True``).
        att: shape (1, H, C) or (H, C), which determines H and C.
        bias_l: b_l, shape (H C,), or None.
        bias_r: b_r, the same shape, or None.
        bias, weight_edge, concat, negative_slope, add_self_loops: as for `GATConv`.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {
        **{f"weight_{side}": f"lin_{side}.weight" for side in ("l", "r", "edge")},
        **{f"bias_{side}": f"lin_{side}.bias" for side in ("l", "r")},
        "att": "att",
        "bias": "bias",
    }

    def __init__(
        self,
        weight_l: np.ndarray,
        weight_r: np.ndarray | None,
        att: np.ndarray,
        bias_l: np.ndarray | None = None,
        bias_r: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        *,
        weight_edge: np.ndarray | None = None,
        concat: bool = True,
        negative_slope: float = 0.2,
        add_self_loops: bool = True,
    ) -> None:
        self.att = _attention("GATv2Conv", "att", att)
        self.heads, self.channels = self.att.shape
        width = self.heads * self.channels

        def own(what: str, weight: Any, bias: Any = None, bias_name: str = "") -> Linear:
            matrix = shaped("GATv2Conv", what, weight, (width, None))
            return linear("GATv2Conv", what, matrix, bias, bias_name)

        self.left = self.right = own("weight_l", weight_l, bias_l, "bias_l")
        if weight_r is not None:
            self.right = own("weight_r", weight_r, bias_r, "bias_r")
        self.edge = None if weight_edge is None else own("weight_edge", weight_edge)
        self.concat = concat
        self.bias = bias_of("GATv2Conv", bias, width if concat else self.channels)
        self.negative_slope = float(negative_slope)
        self.add_self_loops = add_self_loops

    @property
    def parts(self) -> tuple[Layer, ...]:
        return tuple(p for p in (self.left, self.right, self.edge) if p is not None)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        b, edge = context.builder, self.edge
        left = right = self._apart(context, apply(context, self.left, sources, f"{name}.lin_l"))
        if self.right is not self.left or sources is not targets:
            right = self._apart(context, apply(context, self.right, targets, f"{name}.lin_r"))
        att = b.constant(self.att, f"{name}.att", left.dtype)
        if edge is not None:
            context.edges("GATv2Conv", name, edge.weight.shape[1])

        def score(ends: ScoreEnds) -> Value:
            total = ends.at_sources(left) + ends.at_targets(right)
            if edge is not None and ends.edge_attr is not None:
                made = apply(context, edge, ends.edge_attr, f"{name}.lin_edge")
                total = total + self._apart(context, made)
            return b.reduce(b.leaky_relu(total, self.negative_slope) * att, "sum", [2])

        loops = self._has_loops("GATv2Conv", sources is targets)
        y = self._attended(context, left, score, edge is not None, loops)
        return add_bias(context, self._joined(context, y), self.bias, name)


class TransformerConv(_Attention):
    """Attention of Shi et al. (2021), with H heads of C features each.

    With a query q_i, a key k_j and a value v_j, each a linear layer of the features, and with the
    features e W_e^T of the edge, its weight p is the softmax of q_i . (k_j + e W_e^T) / sqrt(C)
    over all edges into i, and the result of i the sum of p (v_j + e W_e^T), plus the skip layer of
    i, unless there is none. With `weight_beta` w the result y and the skip s are weighted: s g +
    y (1 - g) for g = sigmoid(w . [y, s, y - s]).

    Args:
        query: weight (H C, in) and bias (H C,) or None.
        key: the same.
        value: the same.
        skip: weight (H C, in) or, without `concat`, (C, in), and its bias or None; None to omit
            that term (torch-geometric's ``root_weight=False``).
        heads: H.
        weight_edge: W_e, shape (H C, D), for edges with D features, or None.
        weight_beta: w, shape (1, 3 H C), or (1, 3 C) without `concat`, or None.
        concat: whether heads are concatenated; otherwise they are averaged.

    Raises:
        InputError: for wrong shapes or dtypes.
    """

    _state = {
        **{key: f"lin_{key}.weight lin_{key}.bias" for key in ("query", "key", "value", "skip")},
        **{f"weight_{key}": f"lin_{key}.weight" for key in ("edge", "beta")},
    }

    def __init__(
        self,
        query: tuple[np.ndarray, np.ndarray | None],
        key: tuple[np.ndarray, np.ndarray | None],
        value: tuple[np.ndarray, np.ndarray | None],
        skip: tuple[np.ndarray, np.ndarray | None] | None = None,
        *,
        heads: int = 1,
        weight_edge: np.ndarray | None = None,
        weight_beta: np.ndarray | None = None,
        concat: bool = True,
    ) -> None:
        subject = "TransformerConv"
        pairs = (("query", query), ("key", key), ("value", value))
        self.query, self.key, self.value = (linear_of_pair(subject, *pair) for pair in pairs)
        self.heads, self.concat = whole(subject, "heads", heads), concat
        width = self.query.weight.shape[0]
        self.channels = width // self.heads
        if self.heads * self.channels != width:
            raise error(subject, "heads do not divide the queries", f"a divisor of {width}", heads)
        for what, part in (("key", self.key), ("value", self.value)):
            shaped(subject, what, part.weight, (width, None))
        out = width if concat else self.channels
        self.skip = None if skip is None else linear_of_pair(subject, "skip", skip)
        if self.skip is not None:
            shaped(subject, "skip", self.skip.weight, (out, None))
        self.edge = self.beta = None
        if weight_edge is not None:
            matrix = shaped(subject, "weight_edge", weight_edge, (width, None))
            self.edge = linear(subject, "weight_edge", matrix)
        if weight_beta is not None:
            if self.skip is None:
                raise error(subject, "weight_beta requires skip")
            matrix = shaped(subject, "weight_beta", weight_beta, (1, 3 * out))
            self.beta = linear(subject, "weight_beta", matrix)

    @property
    def parts(self) -> tuple[Layer, ...]:
        made = (self.query, self.key, self.value, self.skip, self.edge, self.beta)
        return tuple(part for part in made if part is not None)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        query, key, value = (
            self._apart(context, apply(context, part, x, f"{name}.lin_{what}"))
            for what, part, x in (
                ("query", self.query, targets),
                ("key", self.key, sources),
                ("value", self.value, sources),
            )
        )
        # The scale is that of the queries, of which there are fewer than edges.
        y = self._arrived(context, query * (1 / math.sqrt(self.channels)), key, value, name)
        y = self._joined(context, y)
        if self.skip is None:
            return y
        skip = apply(context, self.skip, targets, f"{name}.lin_skip")
        if self.beta is None:
            return y + skip
        b = context.builder
        three = b.concat([y, skip, y - skip], axis=1)
        gate = b.sigmoid(apply(context, self.beta, three, f"{name}.lin_beta"))
        return gate * skip + (1.0 - gate) * y

    def _arrived(
        self, context: Context, query: Value, key: Value, value: Value, name: str
    ) -> Value:
        """The weighted sum of what arrives at each node."""
        b, a = context.builder, context.adjacency
        asked, keys = context.at_targets(query), context.at_sources(key)
        if self.edge is None:
            scores = b.reduce(asked * keys, "sum", [2])
            return b.aggregate(a, value, scores, kind="softmax")
        attr = context.edges("TransformerConv", name, self.edge.weight.shape[1])
        edge = self._apart(context, apply(context, self.edge, attr, f"{name}.lin_edge"))
        scores = b.reduce(asked * (keys + edge), "sum", [2])
        shares = b.reshape(b.edge_softmax(a, scores), [-1, self.heads, 1])
        return context.combined(shares * (context.at_sources(value) + edge), "sum")


def _attention(subject: str, what: str, array: np.ndarray) -> np.ndarray:
    values = floats(subject, what, array)
    if values.ndim == 3 and values.shape[0] == 1:
        values = values[0]
    if values.ndim != 2:
        raise error(subject, f"{what} has the wrong shape", "(1, heads, out)", values.shape)
    return values
