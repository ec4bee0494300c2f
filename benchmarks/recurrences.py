"""LSTM and GRU of 100 steps, beside onnxruntime and PyTorch.

Single precision, as many inputs as hidden units; bytes and the limit are those of the inputs,
weights and results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Case, Make, Table, run
from onnx_writer import Node

STEPS = 100
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Where the gates of PyTorch are among those of ONNX."""


def recurrence(kind: str, hidden: int, batch: int, directions: int) -> Case:
    """A layer with as many inputs as hidden units."""
    x = np.random.default_rng(0).standard_normal((STEPS, batch, hidden), np.float32)
    rng, rows = np.random.default_rng(1), len(GATES[kind]) * hidden
    scale = np.float32(hidden**-0.5)
    # The weights of the input, the recurrent ones, and the biases, as in ONNX.
    shapes = (rows, hidden), (rows, hidden), (2 * rows,)
    weights = tuple(scale * rng.standard_normal((directions, *s), np.float32) for s in shapes)
    attributes: dict[str, Any] = {"hidden_size": hidden}
    attributes["direction"] = "forward" if directions == 1 else "bidirectional"
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    proto = Node(kind, attributes, weights, results=1).model([x])
    layers = list[Callable[..., Any]]()

    def in_torch(torch: Any, x: Any, *own: Any) -> Any:
        if not layers:
            layers.append(of_torch(torch, kind, hidden, *own))
        # ONNX has the directions before the batch.
        return layers[0](x)[0].unflatten(2, (directions, -1)).movedim(2, 1)

    return Case([x], proto, torch=in_torch, weights=weights, flops=0)


def of_torch(torch: Any, kind: str, hidden: int, w: Any, r: Any, bias: Any) -> Callable[..., Any]:
    layer = getattr(torch.nn, kind)(hidden, hidden, bidirectional=len(w) == 2)
    biases = bias.reshape(len(w), 2, -1)
    state = dict[str, Any]()
    for number, suffix in zip(range(len(w)), ("", "_reverse"), strict=False):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for name, own in zip(names, (w[number], r[number], *biases[number]), strict=True):
            blocks = own.reshape(len(GATES[kind]), hidden, *own.shape[1:])
            state[f"{name}_l0{suffix}"] = blocks[list(GATES[kind])].reshape(own.shape)
    layer.load_state_dict(state)
    return layer


CASES: dict[str, Make] = {
    f"{kind} {hidden}, batch {batch}" + ", two directions" * (directions - 1): partial(
        recurrence, kind, hidden, batch, directions
    )
    for kind in GATES
    for directions in (1, 2)
    for hidden in (128, 512)
    for batch in (1, 32)
}
TABLES = [Table("layer", CASES, partial(run, rounds=5))]
