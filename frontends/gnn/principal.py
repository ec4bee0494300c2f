"""`PNAConv`: several aggregations of the same messages, scaled by the numbers of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count, takewhile
from typing import Any, Self

import numpy as np

from ...dialects.graph.ops.moves.select import WHOLE_END
from ..builder import Builder, Value
from .activations import ReLU
from .context import Context
from .layers import Layer, Linear, apply, chained, layers_of, linear_of_pair
from .weights import error, from_state, number, one_of, require_dense

_KINDS = {
    **{kind: kind for kind in ("sum", "mean", "max", "min", "var", "std", "prod")},
    "add": "sum",
    "mul": "prod",
}
_LEAST_DEVIATION = math.sqrt(1e-5)
"""torch-geometric's standard deviation is 0 up to here."""

_SCALES: Mapping[str, Callable[[Builder, Value, float, float], Value | float]] = {
    "identity": lambda b, degree, linear, logarithmic: 1.0,
    "amplification": lambda b, degree, linear, logarithmic: b.log(degree + 1.0) / logarithmic,
    "attenuation": lambda b, degree, linear, logarithmic: (
        logarithmic / b.log(b.clip(degree, minimum=1.0) + 1.0)
    ),
    "linear": lambda b, degree, linear, logarithmic: degree / linear,
    "inverse_linear": lambda b, degree, linear, logarithmic: linear / b.clip(degree, minimum=1.0),
}
"""What a node with so many edges multiplies by, given the means of them and of their logarithms."""


class PNAConv(Layer):
    """Principal neighbourhood aggregation of Corso et al. (2020).

    Each tower sends pre([x_i, x_j, e_ij]) along edges, combines what arrives by each of
    `aggregators`, multiplies that by each of `scalers`, and its result is post([x_i, ...]); `lin`
    is applied to those of all towers beside one another.

    Args:
        pre: for each tower the layers of its messages, from 2 F features, or 3 F with `edge`.
        post: for each tower the layers of its result, from (aggregators x scalers + 1) F features.
        lin: weight (out, out) and bias (out,) of the last layer.
        aggregators: "sum" (or "add"), "mean", "max", "min", "var", "std" or "prod" (or "mul").
        scalers: "identity", "amplification", "attenuation", "linear" or "inverse_linear".
        avg_deg: the mean number of neighbours, and that of the logarithm of this number plus 1:
            torch-geometric's ``aggr_module.avg_deg_lin`` and ``aggr_module.avg_deg_log``.
        edge: weight (F, D) and bias (F,) of a linear layer of the features of edges; None for
            messages without them.
        divide_input: whether each tower gets a part of the features; else all of them.

    Raises:
        InputError: for wrong shapes or dtypes, an unknown name, or other than one `pre` and one
            `post` for each tower.
    """

    def __init__(
        self,
        pre: Sequence[Layer | Sequence[Layer]],
        post: Sequence[Layer | Sequence[Layer]],
        lin: tuple[np.ndarray, np.ndarray | None],
        aggregators: Sequence[str],
        scalers: Sequence[str],
        *,
        avg_deg: tuple[float, float],
        edge: tuple[np.ndarray, np.ndarray] | None = None,
        divide_input: bool = False,
    ) -> None:
        if not len(pre) or len(pre) != len(post):
            fact = "pre and post do not have the layers of each tower"
            raise error("PNAConv", fact, f"{max(1, len(pre))} of each", f"{len(pre)}, {len(post)}")
        self.pre = tuple(layers_of("PNAConv", nn) for nn in pre)
        self.post = tuple(layers_of("PNAConv", nn) for nn in post)
        self.lin = linear_of_pair("PNAConv", "lin", lin)
        for what, names in (("aggregators", aggregators), ("scalers", scalers)):
            if not names or isinstance(names, str):
                raise error("PNAConv", f"{what} is no list of names", got=repr(names))
        known = list(_KINDS)
        self.aggregators = [
            _KINDS[one_of("PNAConv", "aggregator", name, known)] for name in aggregators
        ]
        self.scalers = [one_of("PNAConv", "scaler", name, list(_SCALES)) for name in scalers]
        linear, logarithmic = (number("PNAConv", "avg_deg", value) for value in avg_deg)
        self.avg_deg = linear, logarithmic
        self.edge = None if edge is None else linear_of_pair("PNAConv", "edge", edge)
        self.divide_input = divide_input

    @classmethod
    def from_state_dict(
        cls, state: Mapping[str, Any], prefix: str = "", /, *args: Any, **options: Any
    ) -> Self:
        """The layer with the weights of torch-geometric's; see `Layer.from_state_dict`.

        Args:
            state, prefix, args: as there.
            options: `aggregators`, `scalers` and `divide_input`, and `act`, the layer between
                several of `pre` or `post`, by default `ReLU`.

        Raises:
            InputError: if weights are missing, or are none of this layer.
        """
        act = options.pop("act", None) or ReLU()
        towers = [f"{prefix}{nns}." for nns in ("pre_nns", "post_nns")]
        own = {name: value for name, value in state.items() if not name.startswith(tuple(towers))}
        table = {
            "lin": "lin.weight lin.bias",
            "edge": "edge_encoder.weight edge_encoder.bias",
            "avg_deg": "aggr_module.avg_deg_lin aggr_module.avg_deg_log",
        }
        found = from_state("PNAConv", table, own, prefix)
        pre, post = (_towers(state, start, act) for start in towers)
        return cls._made(prefix, args, {**found, "pre": pre, "post": post, **options})

    @property
    def parts(self) -> tuple[Layer, ...]:
        own = (self.lin,) if self.edge is None else (self.lin, self.edge)
        return (*own, *(layer for nn in (*self.pre, *self.post) for layer in nn))

    def emit(self, context: Context, x: Value, name: str) -> Value:
        require_dense("PNAConv", f'layer "{name}"', x)
        edge = None
        if self.edge is not None:
            given = context.edges("PNAConv", name, self.edge.weight.shape[1])
            edge = apply(context, self.edge, given, f"{name}.edge_encoder")
        scales = self._scales(context, x)
        results = [
            self._tower(context, part, edge, scales, number, name)
            for number, part in enumerate(self._divided(context.builder, x, name))
        ]
        y = results[0] if len(results) == 1 else context.builder.concat(results, axis=1)
        return apply(context, self.lin, y, f"{name}.lin")

    def _divided(self, b: Builder, x: Value, name: str) -> list[Value]:
        """The features that each tower gets."""
        towers, width = len(self.pre), x.shape[1]
        if not self.divide_input or towers == 1:
            return [x] * towers
        if not isinstance(width, int) or width % towers:
            fact = f'the towers of layer "{name}" do not divide the features'
            raise error("PNAConv", fact, f"a multiple of {towers}", width)
        part = width // towers
        return [
            b.slice(x, starts=[0, start], ends=[WHOLE_END, start + part])
            for start in range(0, width, part)
        ]

    def _tower(
        self,
        context: Context,
        x: Value,
        edge: Value | None,
        scales: Sequence[Value | float],
        tower: int,
        name: str,
    ) -> Value:
        b = context.builder
        ends = [context.at_targets(x), context.at_sources(x), *([] if edge is None else [edge])]
        sent = chained(context, self.pre[tower], b.concat(ends, axis=1), f"{name}.pre_{tower}")
        arrived = [self._combined(context, sent, kind) for kind in self.aggregators]
        scaled = [y if isinstance(scale, float) else y * scale for scale in scales for y in arrived]
        every = b.concat([x, *scaled], axis=1)
        return chained(context, self.post[tower], every, f"{name}.post_{tower}")

    @staticmethod
    def _combined(context: Context, sent: Value, kind: str) -> Value:
        y = context.combined(sent, kind)
        if kind != "std":
            return y
        return context.builder.where(context.builder.less_equal(y, _LEAST_DEVIATION), 0.0, y)

    def _scales(self, context: Context, x: Value) -> list[Value | float]:
        """For each scaler what it multiplies the rows by, (N, 1)."""
        b = context.builder
        if set(self.scalers) == {"identity"}:
            return [1.0] * len(self.scalers)
        numbers = context.at_targets(context.numbers(x))
        ones = b.reshape(b.cast(b.equal(numbers, numbers), x.dtype), [-1, 1])
        degree = context.combined(ones, "sum")
        return [_SCALES[name](b, degree, *self.avg_deg) for name in self.scalers]


def _towers(state: Mapping[str, Any], start: str, act: Layer) -> list[list[Layer]]:
    """The layers of each tower: those with weights, and an activation between them."""
    numbers = takewhile(lambda n: f"{start}{n}.0.weight" in state, count())
    return [_tower(state, f"{start}{number}.", act) for number in numbers]


def _tower(state: Mapping[str, Any], start: str, act: Layer) -> list[Layer]:
    places = takewhile(lambda n: f"{start}{n}.weight" in state, count(step=2))
    linears = [Linear.from_state_dict(state, f"{start}{place}.") for place in places]
    return [layer for linear in linears for layer in (act, linear)][1:]
