"""Training a two-layer GCN on Cora with sparse features, beside torch-geometric.

    python benchmarks/training.py [--data FOLDER] [--threads 1] [--epochs 200] [--seeds 5]

The model, the loss and Adam are the same: layers of torch-geometric, 16 hidden channels, dropout
of 0.5 on features and hidden values. torch-geometric runs eagerly, with the features as a CSR
tensor; the other one is compiled by `torch.compile(backend="stepwell")`, with the features as a
`stepwell.nn.SparseMatrix`. An epoch is results, loss, gradients and a step of Adam. Epochs of both
take turns in one process; the time is that of the processor, which does not count other processes,
and of the clock, which also measures the parts of an epoch. The folder, by default that of
STEPWELL_DATA, has `cora.npz`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
import torch_geometric.nn as pyg
from cases import words

from stepwell.nn import SparseLinear, SparseMatrix

functional: Any = torch.nn.functional


class Cora:
    """The papers, their words with rows that sum to 1, and their citations."""

    def __init__(self, folder: Path) -> None:
        data = np.load(folder / "cora.npz")
        self.features = words(data)
        self.edges = torch.from_numpy(data["edge_index"].astype(np.int64))
        self.labels = torch.from_numpy(data["labels"])
        self.train, self.test = (torch.from_numpy(data[f"{n}_idx"]) for n in ("train", "test"))


class Network(torch.nn.Module):
    """Two convolutions; the graph and the features are buffers."""

    edges_: Any
    labels_: Any
    train_: Any

    def __init__(self, data: Cora, sparse: bool) -> None:
        super().__init__()
        width = data.features.shape[1]
        self.first, self.second = pyg.GCNConv(width, 16), pyg.GCNConv(16, 7)
        for name in ("edges", "labels", "train"):
            self.register_buffer(name + "_", getattr(data, name).clone())
        self.sparse = sparse
        if sparse:
            self.features = SparseMatrix.of(data.features)
            self.first.lin = SparseLinear(width, 16, bias=False, dropout=0.5)
        else:
            csr = data.features
            rows, columns, values = map(torch.from_numpy, (csr.indptr, csr.indices, csr.data))
            self.features_ = torch.sparse_csr_tensor(
                rows, columns, values, csr.shape, check_invariants=False
            )

    def words(self) -> Any:
        """The features, with dropout: `SparseLinear` has its own."""
        if self.sparse:
            return self.features
        csr = self.features_
        values = functional.dropout(csr.values(), 0.5, self.training)
        parts = csr.crow_indices(), csr.col_indices(), values
        return torch.sparse_csr_tensor(*parts, csr.shape, check_invariants=False)

    def forward(self) -> Any:
        hidden = self.first(self.words(), self.edges_).relu()
        hidden = functional.dropout(hidden, 0.5, self.training)
        return self.second(hidden, self.edges_)

    def loss(self) -> Any:
        """The loss of the papers to train with."""
        return functional.cross_entropy(self()[self.train_], self.labels_[self.train_])


class Epoch(NamedTuple):
    """Times of an epoch in seconds: by the processor, by the clock, and those of its parts."""

    processor: float
    clock: float
    results: float
    gradients: float
    adam: float


class Training:
    """A network, its compiled or eager loss, and Adam."""

    def __init__(self, data: Cora, compiled: bool) -> None:
        self.network, self.data = Network(data, compiled), data
        self.loss: Callable[[], Any] = self.network.loss
        if compiled:
            torch._dynamo.reset()
            self.loss = torch.compile(self.network.loss, backend="stepwell")
        groups = [
            {"params": self.network.first.parameters(), "weight_decay": 5e-4},
            {"params": self.network.second.parameters(), "weight_decay": 0.0},
        ]
        self.adam = torch.optim.Adam(groups, lr=0.01, fused=True)

    def epoch(self) -> Epoch:
        """Train for an epoch."""
        processor, start = time.process_time(), time.perf_counter()
        self.adam.zero_grad()
        loss = self.loss()
        results = time.perf_counter()
        loss.backward()
        gradients = time.perf_counter()
        self.adam.step()
        end = time.perf_counter()
        parts = results - start, gradients - results, end - gradients
        return Epoch(time.process_time() - processor, end - start, *parts)

    def accuracy(self) -> float:
        """The share of the papers of the test set whose subject is found."""
        self.network.eval()
        with torch.no_grad():
            right = self.network().argmax(1) == self.data.labels
        self.network.train()
        return float(right[self.data.test].float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("STEPWELL_DATA", ".")))
    for name, default in (("threads", 1), ("epochs", 200), ("seeds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["STEPWELL_NUM_THREADS"] = str(args.threads)
    torch.set_num_threads(args.threads)
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    data = Cora(args.data)
    times: dict[str, list[Epoch]] = {"stepwell": [], "torch-geometric": []}
    found: dict[str, list[float]] = {name: [] for name in times}
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        both = {name: Training(data, name == "stepwell") for name in times}
        for training in both.values():
            training.epoch()
        for _ in range(args.epochs - 1):
            for name, training in both.items():
                times[name].append(training.epoch())
        for name, training in both.items():
            found[name].append(training.accuracy())
    for what in ("processor", "clock"):
        own = {n: [getattr(t, what) for t in values] for n, values in times.items()}
        for name, values in own.items():
            print(f"{name}: an epoch takes {_text(values)} by the {what}, median (minimum)")
        ratios = [f(own["torch-geometric"]) / f(own["stepwell"]) for f in (median, min)]
        print(f"ratio: {ratios[0]:.2f} ({ratios[1]:.2f})")
    for name, values in times.items():
        parts = (
            f"{part} {_text([getattr(t, part) for t in values])}" for part in Epoch._fields[2:]
        )
        print(f"{name}: {', '.join(parts)}")
    for name, values in found.items():
        spread = stdev(values) if len(values) > 1 else 0.0
        each = ", ".join(f"{100 * value:.1f}" for value in values)
        print(f"{name}: accuracy {100 * mean(values):.1f} +- {100 * spread:.1f} % ({each})")


def _text(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e3:.2f} ms ({min(seconds) * 1e3:.2f} ms)"


if __name__ == "__main__":
    main()
