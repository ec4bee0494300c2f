"""LSTM and GRU of 100 steps, beside onnxruntime and PyTorch.

    python benchmarks/recurrences.py             # everything, on one thread
    python benchmarks/recurrences.py --only GRU  # some cases

Single precision, as many inputs as hidden units; bytes and the limit are those of the inputs and
results. A ratio is the best peer's time over ours, medians of interleaved rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from moves import Result, show
from onnx import ModelProto
from peers import OURS, Call, installed, library_threads, one_node, onnx_runtime, torch_call

import stepwell as sw
from stepwell.tools.timing import measure

TOLERANCE = 1e-5
"""The largest difference to a peer's result, relative to its largest element."""
STEPS = 100
ROUNDS = 5
GATES = {"LSTM": 4, "GRU": 3}
BLOCKS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Where the gates of PyTorch are among those of ONNX."""


@dataclass(frozen=True)
class Recurrence:
    """A layer with as many inputs as hidden units."""

    kind: str
    hidden: int
    batch: int
    directions: int

    def array(self) -> np.ndarray:
        """The input."""
        rng = np.random.default_rng(0)
        return rng.standard_normal((STEPS, self.batch, self.hidden), np.float32)

    def weights(self) -> list[np.ndarray]:
        """The weights of the input, the recurrent ones, and the biases, as in ONNX."""
        rng, rows = np.random.default_rng(1), GATES[self.kind] * self.hidden
        shapes = [(rows, self.hidden), (rows, self.hidden), (2 * rows,)]
        scale = np.float32(self.hidden**-0.5)
        return [scale * rng.standard_normal((self.directions, *s), np.float32) for s in shapes]

    def model(self) -> ModelProto:
        """The model."""
        direction = "forward" if self.directions == 1 else "bidirectional"
        attributes: dict[str, Any] = {"hidden_size": self.hidden, "direction": direction}
        if self.kind == "GRU":
            attributes["linear_before_reset"] = 1
        return one_node(self.kind, [self.array()], self.weights(), attributes, results=1)

    def peers(self, x: np.ndarray, threads: int) -> dict[str, Call]:
        """The peers that are installed."""
        found = dict[str, Call]()
        if installed("onnxruntime"):
            model = self.model().SerializeToString()
            found["onnxruntime"] = onnx_runtime(model, [x], threads)
        if installed("torch"):
            found["torch"] = torch_call(self._in_torch(), [x], threads)
        return found

    def _in_torch(self) -> Any:
        """The layer in PyTorch, whose results have the directions last."""
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
        return lambda x: layer(x)[0]


RECURRENCES = {
    f"{kind} {hidden}, batch {batch}" + (", two directions" if directions == 2 else ""): Recurrence(
        kind, hidden, batch, directions
    )
    for kind in GATES
    for directions in (1, 2)
    for hidden in (128, 512)
    for batch in (1, 32)
}


def run(name: str, layer: Recurrence, threads: int) -> Result:
    """Time one layer.

    Raises:
        SystemExit: if no peer is installed, or the result of one differs.
    """
    x = layer.array()
    exe = sw.compile(sw.from_onnx(layer.model()), threads=threads)
    peers = layer.peers(x, threads)
    if not peers:
        raise SystemExit(f"{name}: neither onnxruntime nor torch is installed to compare with")
    ours = np.asarray(exe(x))
    merged = ours.transpose(0, 2, 1, 3).reshape(STEPS, layer.batch, -1)
    for peer, call in peers.items():
        other = np.asarray(call())
        if not np.allclose(ours if other.ndim == 4 else merged, other, rtol=0, atol=TOLERANCE):
            raise SystemExit(f"{name}: {peer} has a different result")
    calls: dict[str, Call] = {OURS: lambda: exe(x), **peers}
    with library_threads(threads):
        times = measure(calls, rounds=ROUNDS)
    return Result(name, x.nbytes + ours.nbytes + sum(w.nbytes for w in layer.weights()), times)


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
) -> None:
    """Print the table."""
    show("layer", RECURRENCES, run, threads, only)


if __name__ == "__main__":
    typer.run(main)
