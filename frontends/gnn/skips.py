"""Models that are not a chain: skips around layers, and results of several layers together."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import Value
from .context import Context
from .layers import Layer, apply, checked, named
from .weights import error, one_of


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
        mode: "cat" for the results beside one another, "max" for the largest of each feature.

    Raises:
        InputError: if there is no layer, an argument is not a layer, or for an unknown `mode`.
    """

    def __init__(self, layers: Sequence[Layer], mode: str = "cat") -> None:
        self.inner = checked("JumpingKnowledge", tuple(layers))
        self.mode = one_of("JumpingKnowledge", "mode", mode, ("cat", "max"))

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.inner

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
        largest = results[0]
        for value in results[1:]:
            largest = b.max(largest, value)
        return largest
