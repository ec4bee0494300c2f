"""LSTM, GRU and RNN of ONNX in NumPy, one step of one sequence after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Function = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))"""
    return 1 / (1 + np.exp(-x))


@dataclass
class Layer:
    """A recurrent layer; arrays and options as in ONNX, with layout 0.

    Attributes:
        functions: the activations of each direction.
    """

    kind: str
    w: Array
    r: Array
    bias: Array | None = None
    direction: str = "forward"
    lengths: Array | None = None
    states: Sequence[Array] = ()
    peepholes: Array | None = None
    functions: Sequence[Function] = ()
    clip: float = np.inf
    input_forget: bool = False
    linear_before_reset: bool = False
    _hidden: int = field(init=False)

    def run(self, x: Array) -> list[Array]:
        """All hidden states and the last ones of each state."""
        steps, batch = x.shape[:2]
        directions, self._hidden = self.r.shape[0], self.r.shape[2]
        states = 2 if self.kind == "LSTM" else 1
        y = np.zeros((steps, directions, batch, self._hidden), x.dtype)
        last = [np.zeros((directions, batch, self._hidden), x.dtype) for _ in range(states)]
        for number in range(directions):
            backward = self.direction == "reverse" or number == 1
            for sequence in range(batch):
                length = steps if self.lengths is None else self.lengths[sequence]
                state = [s[number, sequence] for s in self.states]
                state += [np.zeros(self._hidden, x.dtype)] * (states - len(state))
                order = range(length - 1, -1, -1) if backward else range(length)
                for step in order:
                    state = self._step(number, x[step, sequence], *state)
                    y[step, number, sequence] = state[0]
                for total, value in zip(last, state, strict=True):
                    total[number, sequence] = value
        return [y, *last]

    def _step(self, number: int, x: Array, h: Array, c: Array | None = None) -> list[Array]:
        w, r, n = self.w[number], self.r[number], self._hidden
        bias = np.zeros(2 * len(w), x.dtype) if self.bias is None else self.bias[number]
        of_x, of_h = w @ x + bias[: len(w)], r @ h + bias[len(w) :]
        usual = {"LSTM": [sigmoid, np.tanh, np.tanh], "GRU": [sigmoid, np.tanh], "RNN": [np.tanh]}
        chosen = list(self.functions) or usual[self.kind] * 2
        count = len(usual[self.kind])
        f, *others = (self._clipped(g) for g in chosen[number * count : (number + 1) * count])
        if self.kind == "RNN":
            return [f(of_x + of_h)]
        if self.kind == "GRU":
            z, reset = f(of_x[:n] + of_h[:n]), f(of_x[n : 2 * n] + of_h[n : 2 * n])
            rest = of_h[2 * n :]
            if self.linear_before_reset:
                rest = reset * rest
            else:
                rest = r[2 * n :] @ (reset * h) + bias[5 * n :]
            return [(1 - z) * others[0](of_x[2 * n :] + rest) + z * h]
        assert c is not None
        i, o, forget, u = np.split(of_x + of_h, 4)
        p = np.zeros((3, n)) if self.peepholes is None else np.split(self.peepholes[number], 3)
        i = f(i + p[0] * c)
        forget = 1 - i if self.input_forget else f(forget + p[2] * c)
        after = forget * c + i * others[0](u)
        return [f(o + p[1] * after) * others[1](after), after]

    def _clipped(self, function: Function) -> Function:
        return lambda x: function(np.clip(x, -self.clip, self.clip))
