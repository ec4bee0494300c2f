"""LSTM and GRU of 100 steps, beside onnxruntime and PyTorch.

Single precision, as many inputs as hidden units; bytes and the limit are those of the inputs,
weights and results. A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from harness import Case, Table, run
from onnx import ModelProto
from peers import Call, Node, in_onnx, in_torch

import stepwell as sw

STEPS = 100
GATES = {"LSTM": 4, "GRU": 3}
BLOCKS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Where the gates of PyTorch are among those of ONNX."""


@dataclass(frozen=True)
class Recurrence(Case):
    """A layer with as many inputs as hidden units."""

    kind: str
    hidden: int
    batch: int
    directions: int

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal((STEPS, self.batch, self.hidden), np.float32)]

    def weights(self) -> tuple[np.ndarray, ...]:
        """The weights of the input, the recurrent ones, and the biases, as in ONNX."""
        rng, rows = np.random.default_rng(1), GATES[self.kind] * self.hidden
        shapes = [(rows, self.hidden), (rows, self.hidden), (2 * rows,)]
        scale = np.float32(self.hidden**-0.5)
        return tuple(scale * rng.standard_normal((self.directions, *s), np.float32) for s in shapes)

    def model(self) -> ModelProto:
        """The model of ONNX."""
        direction = "forward" if self.directions == 1 else "bidirectional"
        attributes: dict[str, Any] = {"hidden_size": self.hidden, "direction": direction}
        if self.kind == "GRU":
            attributes["linear_before_reset"] = 1
        return Node(self.kind, attributes, self.weights(), results=1).model(self.arrays())

    def module(self) -> sw.Module:
        return sw.from_onnx(self.model())

    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        found = in_onnx(self.model(), arrays, threads)
        return found | in_torch(self._in_torch, arrays, threads)

    def moved(self, arrays: Sequence[np.ndarray], result: np.ndarray) -> int:
        """The bytes that have to be read and written, those of the weights among them."""
        return super().moved([*arrays, *self.weights()], result)

    @cached_property
    def _layer(self) -> Any:
        """The layer in PyTorch."""
        import torch

        layer = getattr(torch.nn, self.kind)(
            self.hidden, self.hidden, bidirectional=self.directions == 2
        )
        w, r, bias = self.weights()
        biases = bias.reshape(self.directions, 2, -1)
        state = dict[str, Any]()
        for number, suffix in zip(range(self.directions), ("", "_reverse"), strict=False):
            arrays = (w[number], r[number], *biases[number])
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            for name, array in zip(names, arrays, strict=True):
                blocks = array.reshape(GATES[self.kind], self.hidden, *array.shape[1:])
                ordered = blocks[list(BLOCKS[self.kind])].reshape(array.shape)
                state[f"{name}_l0{suffix}"] = torch.from_numpy(ordered)
        layer.load_state_dict(state)
        return layer

    def _in_torch(self, _: Any, x: Any) -> Any:
        """The result of PyTorch, with the directions where ONNX has them."""
        return self._layer(x)[0].unflatten(2, (self.directions, -1)).movedim(2, 1)


RECURRENCES = {
    f"{kind} {hidden}, batch {batch}" + (", two directions" if directions == 2 else ""): Recurrence(
        kind, hidden, batch, directions
    )
    for kind in GATES
    for directions in (1, 2)
    for hidden in (128, 512)
    for batch in (1, 32)
}


TABLES = [Table("layer", RECURRENCES, partial(run, rounds=5))]
