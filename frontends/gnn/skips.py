"""Models that are not a chain: skips around layers, and results of several layers together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..builder import Value
from .context import Context
from .layers import Layer, apply, checked, linear_of_pair, named
from .weights import check_width, error, one_of, shaped


class Residual(Layer):
    """Layers with a skip around them: what they make of x, plus x.

    Args:
        layers: the layers, one after the other.
        shortcut: a layer for the skip, such as a `Linear` where widths differ; by default x itself.

    Raises:
        InputError: if there is no layer, or an argument is not a layer.
    """

    def __init__(self, *layers: Layer, shortcut: Layer | None = None) -> None:
        self.inner = checked("Residual", layers)
        self.shortcut = shortcut
        if shortcut is not None:
            checked("Residual", (shortcut,))

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.inner if self.shortcut is None else (*self.inner, self.shortcut)

    def emit(self, context: Context, x: Value, name: str) -> Value:
        y = x
        for layer, own in named(self.inner, name):
            y = apply(context, layer, y, own)
        if self.shortcut is not None:
            x = apply(context, self.shortcut, x, f"{name}.shortcut")
        if None not in (x.shape[1], y.shape[1]) and x.shape[1] != y.shape[1]:
            fact = f'the result of layer "{name}" and its input differ in width'
            raise error("Residual", fact, f"{x.shape[1]}, or a shortcut", y.shape[1])
        return y + x


class JumpingKnowledge(Layer):
    """Layers one after the other, whose results all are the result (Xu et al., 2018).

    Args:
        layers: the layers; a `Sequential` for several that count as one, such as a convolution and
            its activation.
        mode: "cat" for the results beside one another, "max" for the largest of each feature,
            "lstm" for their mean weighted by attention: the softmax of scores, which a linear layer
            computes of the states of a bidirectional LSTM over the layers.
        lstm: the weights of torch's LSTM of H units for each direction, forward and then backward:
            of its input (4 H, F) and of its state (4 H, H), and the biases of both, (4 H,).
        att: weight (1, 2 H) and bias (1,) of the linear layer.

    Raises:
        InputError: if there is no layer, an argument is not a layer, for an unknown `mode`, for
            weights with another mode than "lstm" or none with it, or for wrong shapes or dtypes.
    """

    _state = {
        "lstm": " ".join(
            f"lstm.{kind}_l0{end}"
            for end in ("", "_reverse")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ),
        "att": "att.weight att.bias",
    }

    def __init__(
        self,
        layers: Sequence[Layer],
        mode: str = "cat",
        *,
        lstm: Sequence[np.ndarray] | None = None,
        att: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        given = tuple(layers) if isinstance(layers, Iterable) else (layers,)
        self.inner = checked("JumpingKnowledge", given)
        self.mode = one_of("JumpingKnowledge", "mode", mode, ("cat", "max", "lstm"))
        if {lstm is None, att is None} != {mode != "lstm"}:
            fact = f'weights do not go with mode "{mode}"'
            expected = "lstm and att" if mode == "lstm" else "none"
            got = [name for name, given in (("lstm", lstm), ("att", att)) if given is not None]
            raise error("JumpingKnowledge", fact, expected, ", ".join(got) or "none")
        if lstm is not None and att is not None:
            self.att = linear_of_pair("JumpingKnowledge", "att", att)
            # The weights of torch's LSTM, as `Builder.lstm` takes those of two directions.
            if len(lstm) != 8:
                fact = "lstm does not have the weights of two directions"
                raise error("JumpingKnowledge", fact, "8 arrays", len(lstm))
            gates, width = shaped("JumpingKnowledge", "lstm", lstm[0], (None, None)).shape
            units = gates // 4
            shapes = ((4 * units, width), (4 * units, units), (4 * units,), (4 * units,))
            ordered = [
                _gates_in_order(shaped("JumpingKnowledge", "lstm", array, shape))
                for array, shape in zip(lstm, (*shapes, *shapes), strict=True)
            ]
            forward, backward = ordered[:4], ordered[4:]
            biases = [np.concatenate(own[2:]) for own in (forward, backward)]
            inputs, states = (np.stack([forward[n], backward[n]]) for n in (0, 1))
            self.input, self.state, self.bias = inputs, states, np.stack(biases)
            shaped("JumpingKnowledge", "att", self.att.weight, (1, 2 * self.state.shape[2]))

    @property
    def parts(self) -> tuple[Layer, ...]:
        return (*self.inner, self.att) if self.mode == "lstm" else self.inner

    def emit(self, context: Context, x: Value, name: str) -> Value:
        results = list[Value]()
        for layer, own in named(self.inner, name):
            x = apply(context, layer, x, own)
            results.append(x)
        b = context.builder
        if self.mode == "cat":
            return b.concat(results, axis=1)
        widths = {value.shape[1] for value in results}
        if len(widths) > 1:
            fact = f'results in layer "{name}" differ in width'
            raise error("JumpingKnowledge", fact, "one width", sorted(map(str, widths)))
        if self.mode == "lstm":
            return self._attended(context, results, name)
        largest = results[0]
        for value in results[1:]:
            largest = b.max(largest, value)
        return largest

    def _attended(self, context: Context, results: Sequence[Value], name: str) -> Value:
        """The mean of the results of layers, weighted by attention."""
        b, units, width = context.builder, self.state.shape[2], self.input.shape[2]
        check_width("JumpingKnowledge", name, results[0], width)
        steps = b.concat([b.reshape(x, [1, -1, width]) for x in results], axis=0)
        kinds = {"weight_ih": self.input, "weight_hh": self.state, "bias": self.bias}
        weights = [b.constant(w, f"{name}.lstm.{kind}", steps.dtype) for kind, w in kinds.items()]
        states, _, _ = b.lstm(steps, *weights, direction="bidirectional")
        beside = b.reshape(b.transpose(states, [0, 2, 1, 3]), [len(results), -1, 2 * units])
        shares = b.softmax(apply(context, self.att, beside, f"{name}.att"), axis=0)
        return b.reduce(steps * shares, "sum", [0], False)


def _gates_in_order(array: np.ndarray) -> np.ndarray:
    """The rows of torch's gates input, forget, cell, output in the order of `Builder.lstm`."""
    first, forget, cell, output = np.split(array, 4)
    return np.concatenate([first, output, forget, cell])
