"""`LSTM`, `GRU` and `RNN`, which `Builder` makes of a product and a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Block

from ....core.algebra.dims import Dim, Shape
from ....dialects.graph.interfaces import text
from ...builder import Builder
from ...importing.selection import checked_sizes
from ...importing.shapes import reshaped
from ...importing.values import Value
from ...values import Value as Built
from ..nodes import Node
from ..registry import converts

LSTM_OPERANDS = {"h": 5, "c": 6, "peepholes": 7}
"""The numbers of optional operands of an LSTM, by the arguments of `Builder.lstm`."""
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True)
class _Activation:
    """An activation; a default of None says that it has no such parameter."""

    apply: Callable[..., Built]
    alpha: float | None = None
    beta: float | None = None


_FUNCTIONS = {
    "relu": _Activation(lambda b, x: b.relu(x)),
    "tanh": _Activation(lambda b, x: b.tanh(x)),
    "sigmoid": _Activation(lambda b, x: b.sigmoid(x)),
    "affine": _Activation(lambda b, x, alpha, beta: x * alpha + beta, 1.0, 0.0),
    "leakyrelu": _Activation(lambda b, x, alpha: b.leaky_relu(x, alpha=alpha), 0.01),
    "thresholdedrelu": _Activation(lambda b, x, alpha: b.where(b.greater(x, alpha), x, 0.0), 1.0),
    "scaledtanh": _Activation(lambda b, x, alpha, beta: b.tanh(x * beta) * alpha, 1.0, 1.0),
    "hardsigmoid": _Activation(lambda b, x, *given: b.hard_sigmoid(x, *given), 0.2, 0.5),
    "elu": _Activation(lambda b, x, alpha: b.elu(x, alpha), 1.0),
    "softsign": _Activation(lambda b, x: b.softsign(x)),
    "softplus": _Activation(lambda b, x: b.softplus(x)),
}
"""The activations of ONNX, whose names may be written in any case."""


@converts("LSTM", since=1)
def lstm(node: Node) -> Sequence[Value | None]:
    layer = RecurrentLayer(node, gates=4, activations=3)
    forget = bool(node.attr_int("input_forget"))
    return layer.convert(Builder.lstm, LSTM_OPERANDS, input_forget=forget)


@converts("GRU", since=1)
def gru(node: Node) -> Sequence[Value | None]:
    after = bool(node.attr_int("linear_before_reset"))
    layer = RecurrentLayer(node, gates=3, activations=2)
    return layer.convert(Builder.gru, {"h": 5}, linear_before_reset=after)


@converts("RNN", since=1)
def rnn(node: Node) -> Sequence[Value | None]:
    return RecurrentLayer(node, gates=1, activations=1).convert(Builder.rnn, {"h": 5})


class RecurrentLayer:
    """A recurrent node.

    Args:
        node: the node.
        gates: the number of gates.
        activations: the number of activations of a direction.
        operands: those of ONNX's operator of this kind; by default those of the node.

    Attributes:
        builder: makes the operators of the layer.
    """

    def __init__(
        self,
        node: Node,
        *,
        gates: int,
        activations: int,
        operands: Sequence[Value | None] | None = None,
    ) -> None:
        node.ignore("output_sequence")  # of opset 1: whether Y is of use
        self._operands = list(node.inputs if operands is None else operands)
        self._node, self.builder = node, Builder("layer")
        self._batch_first = node.attr_int("layout") == 1
        self._direction = node.attr_string("direction", "forward")
        if self._direction not in _DIRECTIONS:
            names = ", ".join(_DIRECTIONS)
            raise node.broken('attribute "direction" is unknown', names, self._direction)
        self._directions = _DIRECTIONS[self._direction]
        self._clip = abs(node.attr_float("clip")) if node.has("clip") else None
        self._functions = self._activations(activations * self._directions)
        self._check(gates)

    def convert(
        self, build: Callable[..., Any], optional: Mapping[str, int], **options: Any
    ) -> list[Value]:
        """The results of the node.

        Args:
            build: the method of `Builder`.
            optional: the numbers of optional operands beyond the biases and lengths.
            options: further arguments.
        """
        node = self._node
        x, w, r = (self._operand(number) for number in range(3))
        steps, batch = self._steps_and_batch(x.shape)
        states = {name: self._given(name, number) for name, number in optional.items()}
        first = {name: value for name, value in states.items() if value is not None}
        results = build(
            self.builder,
            self._value(self._turned(x, (1, 0, 2))),
            self._value(w),
            self._value(r),
            self._optional(3),
            lengths=self._optional(4),
            **first,
            direction=self._direction,
            activations=self._functions,
            clip=self._clip,
            **options,
            name=node.name,
        )
        node.take(Block(self.builder.take()))
        hidden, count = r.shape[2], Dim.of(self._directions)
        last = (count, batch, hidden)
        shapes = [(steps, *last), *([last] * (len(results) - 1))]
        values = [
            Value("", x.dtype, shape, ssa=result.ssa)
            for result, shape in zip(results, shapes, strict=True)
        ]
        orders = [(2, 0, 1, 3), *([(1, 0, 2)] * (len(values) - 1))]
        return [self._turned(v, order) for v, order in zip(values, orders, strict=True)]

    def _given(self, name: str, number: int) -> Built | None:
        """An optional operand; states have the batch in front in layout 1."""
        value = self._optional_operand(number)
        if value is None:
            return None
        return self._value(value if name == "peepholes" else self._turned(value, (1, 0, 2)))

    def _turned(self, value: Value, order: Sequence[int]) -> Value:
        """A value of layout 1 as one of layout 0, or back."""
        if not self._batch_first:
            return value
        return self._node.transpose(value, permutation=order)

    def _operand(self, number: int) -> Value:
        """A required operand."""
        value = self._optional_operand(number)
        if value is None or value.items is not None:
            return self._node.input(number)
        return value

    def _optional_operand(self, number: int) -> Value | None:
        return self._operands[number] if number < len(self._operands) else None

    def _optional(self, number: int) -> Built | None:
        value = self._optional_operand(number)
        return None if value is None else self._value(value)

    def _value(self, value: Value) -> Built:
        return Built(self.builder, self._node.ssa(value))

    def _steps_and_batch(self, shape: Shape) -> tuple[Dim, Dim]:
        one, other = shape[:2]
        return (other, one) if self._batch_first else (one, other)

    # Checks

    def _check(self, gates: int) -> None:
        """Compare the shapes and element types of the operands."""
        node = self._node
        x, w, r = (self._operand(number) for number in range(3))
        for number, value in enumerate((x, w, r)):
            if value.rank != 3:
                raise node.broken(f"operand {number} has the wrong rank", 3, value.rank)
        hidden, width = self._hidden(gates, w, r), x.shape[2]
        if node.has("hidden_size") and node.attr_int("hidden_size") != hidden.value:
            got = node.attr_int("hidden_size")
            raise node.broken('attribute "hidden_size" does not fit', hidden, got)
        width = w.shape[2] if not width.is_static else width
        _, batch = self._steps_and_batch(x.shape)
        count, rows = Dim.of(self._directions), Dim.of(gates * hidden.value)
        state = (batch, count, hidden) if self._batch_first else (count, batch, hidden)
        shapes: list[Shape] = [
            (*x.shape[:2], width),
            (count, rows, width),
            (count, rows, hidden),
            (count, Dim.of(2 * rows.value)),
            (batch,),
            state,
            state,
            (count, Dim.of(3 * hidden.value)),
        ]
        for number, (value, shape) in enumerate(zip(self._operands, shapes, strict=False)):
            if value is not None:
                self._check_operand(number, value, shape)
                self._operands[number] = self._pinned(number, value, shape)

    def _hidden(self, gates: int, w: Value, r: Value) -> Dim:
        """The number of hidden units, which one of the weights or an attribute has."""
        if r.shape[2].is_static:
            return r.shape[2]
        for rows in (r.shape[1], w.shape[1]):
            if rows.is_static:
                return Dim.of(rows.value // gates)
        if not self._node.has("hidden_size"):
            raise self._node.unsupported("a symbolic number of hidden units", "hidden_size")
        return Dim.of(self._node.attr_int("hidden_size"))

    def _pinned(self, number: int, value: Value, shape: Shape) -> Value:
        """An operand whose known sizes are static, after a check of each."""
        node, what = self._node, f"sizes of operand {number}"
        known = tuple(b if b.is_static else a for a, b in zip(value.shape, shape, strict=True))
        if known == value.shape:
            return value
        for own, size in zip(value.shape, known, strict=True):
            value = checked_sizes(node, value, size, own, what)
        return reshaped(node, value, known)

    def _check_operand(self, number: int, value: Value, shape: Shape) -> None:
        node, dtype = self._node, self._operand(0).dtype
        fits = value.rank == len(shape) and all(
            a == b or not (a.is_static and b.is_static)
            for a, b in zip(value.shape, shape, strict=False)
        )
        if not fits:
            raise node.broken(
                f"operand {number} has the wrong shape", text(shape), text(value.shape)
            )
        if any(a.is_static and not b.is_static for a, b in zip(value.shape, shape, strict=True)):
            sizes = f"{text(value.shape)}, that of operand 0 symbolic"
            raise node.unsupported(f"the batch of operand {number} is fixed: {sizes}")
        kind = np.dtype(np.int32) if number == 4 else dtype
        if value.dtype != kind:
            fact = f"operand {number} has the wrong element type"
            raise node.broken(fact, kind.name, value.dtype.name)

    # Activations

    def _activations(self, count: int) -> list[Callable[[Built], Built]] | None:
        """The functions that are named; None for the usual ones."""
        node = self._node
        names = node.attr_strings("activations")
        alphas = iter(node.attr_floats("activation_alpha") or ())
        betas = iter(node.attr_floats("activation_beta") or ())
        if names is None:
            return None
        if len(names) != count:
            raise node.broken("wrong number of activations", count, len(names))
        return [self._activation(name, alphas, betas) for name in names]

    def _activation(self, name: str, *given: Any) -> Callable[[Built], Built]:
        """A function, which takes its parameters from the lists if it has them."""
        function = _FUNCTIONS.get(name.lower())
        if function is None:
            raise self._node.unsupported(f"activation {name} is not supported")
        defaults = (function.alpha, function.beta)
        parameters = [
            next(numbers, default)
            for numbers, default in zip(given, defaults, strict=True)
            if default is not None
        ]
        return lambda x: function.apply(self.builder, x, *parameters)
