"""What a step of a recurrent layer computes: LSTM, GRU and RNN.

The formulas are those of ONNX; x, h and the gates are rows of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..dialects.graph.ops.moves.select import WHOLE_END
from .values import Value

Activation = Callable[[Value], Value]


@dataclass
class Parameters:
    """The weights of one direction.

    Attributes:
        hidden: the number of hidden units.
        recurrent: the transposed recurrent weights, HxGH.
        w_bias: the biases of the product with the input, GH.
        r_bias: those of the product with the state, GH.
        peepholes: the weights of the cell state in the gates input, output and forget, H each.
        factor: a function of the hidden state, whose result is multiplied by the recurrent weights.
    """

    hidden: int
    recurrent: Value
    w_bias: Value | None = None
    r_bias: Value | None = None
    peepholes: Sequence[Value] | None = None
    factor: Activation | None = None


class Cell(ABC):
    """A step of a recurrent layer in one direction.

    Args:
        b: the builder.
        parameters: the weights.
        activations: as many as `defaults` returns.
        clip: the limit of their arguments, [-clip, clip].
    """

    GATES: ClassVar[int]

    def __init__(
        self,
        b: Any,
        parameters: Parameters,
        activations: Sequence[Activation],
        clip: float | None,
    ) -> None:
        self.b, self.own, self._activations, self._clip = b, parameters, activations, clip

    @staticmethod
    @abstractmethod
    def defaults(b: Any) -> list[Activation]:
        """The activations where none are given."""

    @abstractmethod
    def step(self, given: Value, *state: Value) -> tuple[Value, ...]:
        """The next state.

        Args:
            given: the product of the input with the weights, and `input_bias`, BxGH.
            state: the hidden state first, 1xBxH each.
        """

    def input_bias(self) -> Value | None:
        """The biases that do not depend on the state, GH."""
        if self.own.w_bias is None or self.own.r_bias is None:
            return None
        return self.own.w_bias + self.own.r_bias

    def activated(self, number: int, x: Value) -> Value:
        """An activation of x."""
        if self._clip is not None:
            x = self.b.clip(x, minimum=-self._clip, maximum=self._clip)
        return self._activations[number](x)


class Rnn(Cell):
    """h' = f(x + h R)"""

    GATES = 1

    @staticmethod
    def defaults(b: Any) -> list[Activation]:
        """tanh."""
        return [b.tanh]

    def step(self, given: Value, *state: Value) -> tuple[Value, ...]:
        """The next hidden state."""
        return (self.activated(0, self.b.matmul(state[0], self.own.recurrent) + given),)


class Lstm(Cell):
    """i, o, f, u = gates of x + h R; c' = f c + i u; h' = o h(c')"""

    GATES = 4

    def __init__(self, *arguments: Any, input_forget: bool = False) -> None:
        super().__init__(*arguments)
        self._input_forget = input_forget

    @staticmethod
    def defaults(b: Any) -> list[Activation]:
        """sigmoid for gates, tanh for the cell gate and the cell state."""
        return [b.sigmoid, b.tanh, b.tanh]

    def step(self, given: Value, *state: Value) -> tuple[Value, ...]:
        """The next hidden and cell states."""
        h, c = state
        factor = h if self.own.factor is None else self.own.factor(h)
        i, o, f, u = columns(self.b, self.b.matmul(factor, self.own.recurrent) + given, 4)
        taken = self.activated(0, self._peeped(i, 0, c))
        kept = 1.0 - taken if self._input_forget else self.activated(0, self._peeped(f, 2, c))
        c = kept * c + taken * self.activated(1, u)
        return self.activated(0, self._peeped(o, 1, c)) * self.activated(2, c), c

    def _peeped(self, gate: Value, number: int, c: Value) -> Value:
        return gate if self.own.peepholes is None else gate + self.own.peepholes[number] * c


class Gru(Cell):
    """z, r = gates of x + h R; h' = (1 - z) n + z h

    n = g(x + (r h) R) or g(x + r (h R)).
    """

    GATES = 3

    def __init__(self, *arguments: Any, linear_before_reset: bool = False) -> None:
        super().__init__(*arguments)
        self._linear = linear_before_reset
        size, weights = self.own.hidden, self.own.recurrent
        if not linear_before_reset:
            self._gates = self.b.slice(weights, starts=[0, 0], ends=[size, 2 * size])
            self._hidden = self.b.slice(weights, starts=[0, 2 * size], ends=[size, 3 * size])

    @staticmethod
    def defaults(b: Any) -> list[Activation]:
        """sigmoid for gates, tanh for the hidden gate."""
        return [b.sigmoid, b.tanh]

    def input_bias(self) -> Value | None:
        """The biases that the reset gate does not scale."""
        if not self._linear or self.own.r_bias is None:
            return super().input_bias()
        size = self.own.hidden
        gates = self.b.slice(self.own.r_bias, starts=[0], ends=[2 * size])
        return self.own.w_bias + self.b.pad(gates, low=[0], high=[size])

    def step(self, given: Value, *state: Value) -> tuple[Value, ...]:
        """The next hidden state."""
        (h,) = state
        after = self._after(given, h) if self._linear else self._before(given, h)
        update, candidate = after
        return ((1.0 - update) * candidate + update * h,)

    def _after(self, given: Value, h: Value) -> tuple[Value, Value]:
        """The update gate and the candidate, with the reset gate applied after the product."""
        product = self.b.matmul(h, self.own.recurrent)
        (x, y, n), (z, r, rest) = columns(self.b, given, 3), columns(self.b, product, 3)
        if self.own.r_bias is not None:
            rest = rest + columns(self.b, self.own.r_bias, 3)[2]
        reset = self.activated(0, y + r)
        return self.activated(0, x + z), self.activated(1, n + reset * rest)

    def _before(self, given: Value, h: Value) -> tuple[Value, Value]:
        """The same with the reset gate in front of the product."""
        x, y, n = columns(self.b, given, 3)
        z, r = columns(self.b, self.b.matmul(h, self._gates), 2)
        product = self.b.matmul(self.activated(0, y + r) * h, self._hidden)
        return self.activated(0, x + z), self.activated(1, n + product)


def columns(b: Any, x: Value, parts: int) -> list[Value]:
    """Equal parts of the last dimension."""
    *outer, width = x.shape
    assert width is not None
    whole = [WHOLE_END if size is None else size for size in outer]
    size, starts = width // parts, [0] * len(outer)
    return [
        b.slice(x, starts=[*starts, n * size], ends=[*whole, (n + 1) * size]) for n in range(parts)
    ]
