"""`MessagePassing`: convolutions whose message is written with the `Builder`, and some that are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..builder import Builder, Value
from .context import Context
from .layers import Convolution, Layer, chained, layers_of, linear_of_pair
from .weights import AGGREGATES, error, number, one_of, require_dense

_KINDS = {**AGGREGATES, "prod": "prod", "mul": "prod", "var": "var", "std": "std"}
SOFTMAX = "softmax"


class MessagePassing(Convolution):
    """A convolution of your own: for each edge a message, which are combined for each node.

    A subclass defines `message`, and `update` where the result is not what arrives. Both are called
    once, when the program is built, and append operators to a `Builder`; arrays among their
    operands are weights. They see the nodes as tensors [N, F] and the edges as tensors [E, ...]:

        class Gated(gnn.MessagePassing):
            def __init__(self, weight):
                super().__init__(aggr="mean")
                self.weight = weight  # (F, D)

            def message(self, b, x_i, x_j, edge_attr):
                return b.sigmoid(b.dense(edge_attr, self.weight)) * x_j

            def update(self, b, arrived, x):
                return b.relu(arrived + x)

    A `message` that names `edge_weight` or `edge_type` gets these too, in any order after `x_j`;
    without those names, weights and types of edges have no effect.

    Args:
        aggr: how messages are combined: "sum" (or "add"), "mean", "max", "min", "prod" (or "mul"),
            "var", "std", or "softmax"; several of them one after the other along the last axis. A
            node without edges gets 0, and 1 by "prod". With "softmax" `message` returns a pair:
            messages (E, F) and scores (E,), or (E, H, C) and (E, H); messages are weighted by the
            softmax of the scores of the edges of a node, and summed. Messages alone are their own
            scores.

    Raises:
        InputError: for an unknown `aggr`.
    """

    def __init__(self, aggr: str | Sequence[str] = "sum") -> None:
        subject = type(self).__name__
        kinds = tuple(aggr) if isinstance(aggr, (list, tuple)) else (aggr,)
        if not kinds:
            raise error(subject, "there is no aggr", ", ".join((*_KINDS, SOFTMAX)))
        names = [one_of(subject, "aggr", kind, (*_KINDS, SOFTMAX)) for kind in kinds]
        if len(names) > 1 and SOFTMAX in names:
            raise error(subject, "softmax does not go with another aggr", SOFTMAX, kinds)
        self.aggr = tuple(_KINDS.get(name, name) for name in names)

    def message(self, b: Builder, x_i: Value, x_j: Value, edge_attr: Value | None) -> Any:
        """What is sent along each edge, (E, ...); by default `x_j`.

        Args:
            b: the builder.
            x_i: the features of the target of each edge, (E, F).
            x_j: those of its source.
            edge_attr: the features of the edges, (E, D), or None where the program has none. A
                subclass may leave it out, and name `edge_weight`, (E,), which is None where all
                weights are 1, and `edge_type`, integers (E,), or None where there are none.
        """
        return x_j

    def update(self, b: Builder, arrived: Value, x: Value) -> Value:
        """The new features of the nodes, (N, ...); by default what arrived.

        Args:
            b: the builder.
            arrived: the messages of each node, combined, (N, ...).
            x: the features of the targets, (N, F).
        """
        return arrived

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        subject, b = type(self).__name__, context.builder
        require_dense(subject, f'layer "{name}"', sources)
        ends = context.at_targets(targets), context.at_sources(sources)
        args, named = _of_edges(self.message, context)
        made = _called(subject, "message", self.message, b, *ends, *args, **named)
        if self.aggr == (SOFTMAX,):
            arrived = self._attended(context, made)
        else:
            message = _value(subject, "message", made)
            parts = [context.combined(message, kind) for kind in self.aggr]
            arrived = parts[0] if len(parts) == 1 else b.concat(parts, axis=-1)
        return _value(
            subject, "update", _called(subject, "update", self.update, b, arrived, targets)
        )

    def _attended(self, context: Context, made: Any) -> Value:
        """Messages weighted by the softmax of their scores, summed."""
        subject, b = type(self).__name__, context.builder
        pair = made if isinstance(made, tuple) else (made, made)
        if len(pair) != 2:
            raise error(subject, "message returns the wrong values", "messages, scores", len(pair))
        message, scores = (_value(subject, "message", part) for part in pair)
        ranks = len(message.shape), len(scores.shape)
        if ranks[1] > ranks[0]:
            raise error(subject, "scores have more dimensions than messages", ranks[0], ranks[1])
        shares = b.edge_softmax(context.adjacency, scores)
        if ranks[1] < ranks[0]:
            sizes = [-1, *(scores.shape[1:]), *[1] * (ranks[0] - ranks[1])]
            shares = b.reshape(shares, sizes)
        return context.combined(message * shares, "sum")


def _of_edges(
    message: Callable[..., Any], context: Context
) -> tuple[list[Value | None], dict[str, Value | None]]:
    """What a message gets of the edges, by position and by name: features may have any name."""
    known = {
        "edge_attr": lambda: context.edge_attr,
        "edge_weight": lambda: context.edge_weight,
        "edge_type": context.types,
    }
    names = inspect.signature(message).parameters
    named = {name: make() for name, make in known.items() if name in names}
    # The three before are the builder and both ends.
    is_whole = "edge_attr" in named or len(names) - len(named) == 3
    return [] if is_whole else [context.edge_attr], named


def _called(subject: str, what: str, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a method of a subclass returns.

    Raises:
        InputError: if it takes other arguments.
    """
    signature = inspect.signature(method)
    try:
        signature.bind(*args, **named)
    except TypeError as problem:
        own = getattr(MessagePassing, what)
        expected = ", ".join(list(inspect.signature(own).parameters)[1:])
        got = ", ".join(signature.parameters)
        raise error(subject, f"{what} has the wrong parameters", expected, got) from problem
    return method(*args, **named)


def _value(subject: str, what: str, made: Any) -> Value:
    """What a method of a subclass returns, if it is a value."""
    if isinstance(made, Value):
        return made
    got = type(made).__name__
    raise error(subject, f"{what} returns no value of the builder", "a Value", got)


class EdgeConv(Convolution):
    """Edge convolution of Wang et al. (2019): aggregate(nn([x_i, x_j - x_i])).

    Args:
        nn: the layers applied to each edge, in order.
        aggr: "max", "sum" (or "add"), "mean" or "min"; a node without neighbours gets 0.

    Raises:
        InputError: if `nn` is not a layer or a list of layers, or for an unknown `aggr`.
    """

    def __init__(self, nn: Layer | Sequence[Layer], aggr: str = "max") -> None:
        self.nn = layers_of("EdgeConv", nn)
        self.aggr = AGGREGATES[one_of("EdgeConv", "aggr", aggr, list(AGGREGATES))]

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.nn

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        require_dense("EdgeConv", f'layer "{name}"', sources)
        own, other = context.at_targets(targets), context.at_sources(sources)
        pair = context.builder.concat([own, other - own], axis=1)
        return context.combined(chained(context, self.nn, pair, f"{name}.nn"), self.aggr)


class GINEConv(Convolution):
    """GIN with features of edges, of Hu et al. (2020): nn((1 + eps) x_i + sum of relu(x_j + e_ij)).

    Args:
        nn: the layers applied to the sum, in order.
        eps: the additional weight of the node itself.
        edge: weight (in, D) and bias (in,) of a linear layer of the features of edges
            (torch-geometric's ``edge_dim``); None where these have as many columns as nodes have.

    Raises:
        InputError: if `nn` is not a layer or a list of layers, or for wrong shapes or dtypes.
    """

    _state = {"eps": "eps", "edge": "lin.weight lin.bias"}

    def __init__(
        self,
        nn: Layer | Sequence[Layer],
        eps: float = 0.0,
        edge: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.nn = layers_of("GINEConv", nn)
        self.eps = number("GINEConv", "eps", eps)
        self.edge = None if edge is None else linear_of_pair("GINEConv", "edge", edge)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.nn if self.edge is None else (*self.nn, self.edge)

    def convolve(self, context: Context, sources: Value, targets: Value, name: str) -> Value:
        require_dense("GINEConv", f'layer "{name}"', sources)
        layers = () if self.edge is None else (self.edge,)
        width = sources.shape[1] if self.edge is None else self.edge.weight.shape[1]
        edge = chained(context, layers, context.edges("GINEConv", name, width), f"{name}.lin")
        message = context.builder.relu(context.at_sources(sources) + edge)
        arrived = context.combined(message, "sum")
        return chained(context, self.nn, arrived + targets * (1.0 + self.eps), f"{name}.nn")
