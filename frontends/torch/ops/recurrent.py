"""Recurrent layers, which `Builder` makes of a product and a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block

from ....core.algebra.dims import Dim
from ...builder import Builder
from ...importing.selection import apart
from ...importing.shapes import reshaped, transposed, unsqueezed
from ...importing.values import Value
from ...values import Value as Built
from ..nodes import Node
from ..registry import converts


@dataclass(frozen=True)
class _Kind:
    """A kind of layer: its method of `Builder`, and torch's gates in the order of that."""

    build: Callable[..., Any]
    gates: tuple[int, ...]


def _gru(b: Builder, *operands: Any, **options: Any) -> Any:
    return b.gru(*operands, **options, linear_before_reset=True)


def _relu(b: Builder, *operands: Any, **options: Any) -> Any:
    activations = [b.relu] * (2 if options["direction"] == "bidirectional" else 1)
    return b.rnn(*operands, **options, activations=activations)


_LSTM = _Kind(Builder.lstm, (0, 3, 1, 2))
_GRU = _Kind(_gru, (1, 0, 2))
_TANH, _RELU = _Kind(Builder.rnn, (0,)), _Kind(_relu, (0,))


@converts("aten.lstm.input", "stepwell.lstm.default")
def lstm(node: Node, x: Value, hx: Sequence[Value], *settings: Any) -> list[Value]:
    return _layers(node, _LSTM, x, hx, *settings)


@converts("aten.gru.input", "stepwell.gru.default")
def gru(node: Node, x: Value, hx: Value, *settings: Any) -> list[Value]:
    return _layers(node, _GRU, x, [hx], *settings)


@converts("aten.rnn_tanh.input", "stepwell.rnn_tanh.default")
def rnn_tanh(node: Node, x: Value, hx: Value, *settings: Any) -> list[Value]:
    return _layers(node, _TANH, x, [hx], *settings)


@converts("aten.rnn_relu.input", "stepwell.rnn_relu.default")
def rnn_relu(node: Node, x: Value, hx: Value, *settings: Any) -> list[Value]:
    return _layers(node, _RELU, x, [hx], *settings)


def _layers(
    node: Node,
    kind: _Kind,
    x: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Value]:
    """The results of all steps of the last layer, and the last states of all layers."""
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if len(params) != each * directions * num_layers:
        raise node.unsupported("projections of an LSTM (proj_size)", "a linear layer behind it")
    if train and dropout:
        raise node.unsupported("dropout of training", "evaluation mode")
    if batch_first:
        x = transposed(node, x, [1, 0, 2])
    parts = [apart(node, state, 0, [directions] * num_layers) for state in states]
    last: list[list[Value]] = [[] for _ in states]
    for layer in range(num_layers):
        first = layer * each * directions
        weights = [params[first + each * d : first + each * (d + 1)] for d in range(directions)]
        x, *after = _layer(node, kind, x, [state[layer] for state in parts], weights)
        for found, state in zip(last, after, strict=True):
            found.append(state)
    y = transposed(node, x, [1, 0, 2]) if batch_first else x
    return [y, *(_joined(node, found) for found in last)]


def _layer(
    node: Node,
    kind: _Kind,
    x: Value,
    states: Sequence[Value],
    weights: Sequence[Sequence[Value]],
) -> list[Value]:
    """One layer: the results of all steps side by side for each direction, and the last states."""
    b = Builder("layer")
    w, r, *biases = (
        _joined(node, [unsqueezed(node, _in_order(node, p, kind), [0]) for p in same])
        for same in zip(*weights, strict=True)
    )
    bias = node.concat(biases, axis=1) if biases else None
    built = kind.build(
        b,
        *(None if value is None else Built(b, node.ssa(value)) for value in (x, w, r, bias)),
        **dict(zip("hc", (Built(b, node.ssa(state)) for state in states), strict=False)),
        direction="bidirectional" if len(weights) == 2 else "forward",
        name=node.name,
    )
    node.take(Block(b.take()))
    steps, batch, hidden = *x.shape[:2], states[0].shape[2]
    last = (Dim.of(len(weights)), batch, hidden)
    y, *after = (
        Value("", x.dtype, shape, ssa=result.ssa)
        for result, shape in zip(built, [(steps, *last), *([last] * len(states))], strict=True)
    )
    y = transposed(node, y, [0, 2, 1, 3])
    return [reshaped(node, y, [steps, batch, hidden * len(weights)]), *after]


def _in_order(node: Node, parameter: Value, kind: _Kind) -> Value:
    """The rows of a parameter with the gates in the order of `Builder`."""
    if len(kind.gates) == 1:
        return parameter
    rows = parameter.shape[0].value // len(kind.gates)
    parts = apart(node, parameter, 0, [rows] * len(kind.gates))
    return node.concat([parts[gate] for gate in kind.gates], axis=0)


def _joined(node: Node, parts: Sequence[Value]) -> Value:
    """Parts along the first axis."""
    return parts[0] if len(parts) == 1 else node.concat(parts, axis=0)
