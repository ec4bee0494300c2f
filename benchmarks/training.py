"""Training a two-layer GCN on Cora with sparse features, beside torch-geometric.

The model, the loss and Adam are the same: layers of torch-geometric, 16 hidden channels, dropout
of 0.5 on features and hidden values. torch-geometric runs eagerly, with the features as a CSR
tensor; the other one is compiled by `torch.compile(backend="stepwell")`, with the features as a
`stepwell.nn.SparseMatrix`. An epoch is results, loss, gradients and a step of Adam. Epochs of both
take turns in one process; the time is that of the processor, which does not count other processes,
and of the clock, which also measures the parts of an epoch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
import torch_geometric.nn as pyg
from cases import load, words
from harness import Row, Table
from peers import OURS

from stepwell.nn import SparseLinear, SparseMatrix

functional: Any = torch.nn.functional


class Cora:
    """The papers, their words with rows that sum to 1, and their citations."""

    def __init__(self, data: Mapping[str, np.ndarray]) -> None:
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


def rows(
    name: str, data: str, *, threads: int = 1, epochs: int = 200, seeds: int = 5
) -> Iterator[Row]:
    os.environ["STEPWELL_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    cora = Cora(load(data))
    times: dict[str, list[Epoch]] = {OURS: [], "torch-geometric": []}
    found: dict[str, list[float]] = {name: [] for name in times}
    for seed in range(seeds):
        torch.manual_seed(seed)
        both = {name: Training(cora, name == OURS) for name in times}
        for training in both.values():
            training.epoch()
        for _ in range(epochs - 1):
            for name, training in both.items():
                times[name].append(training.epoch())
        for name, training in both.items():
            found[name].append(training.accuracy())
    for part in Epoch._fields:
        own = {name: [getattr(epoch, part) for epoch in many] for name, many in times.items()}
        middle, least = (f(own["torch-geometric"]) / f(own[OURS]) for f in (median, min))
        cells = {n: f"{median(s) * 1e3:.2f} ms ({min(s) * 1e3:.2f} ms)" for n, s in own.items()}
        yield {"of": f"an epoch, {part}", **cells, "ratio": f"{middle:.2f} ({least:.2f})"}
    for number in range(seeds):
        shown = {name: f"{100 * values[number]:.1f} %" for name, values in found.items()}
        yield {"of": f"accuracy, seed {number}", **shown}
    shown = {
        name: f"{100 * mean(values):.1f} +- {100 * (stdev(values) if seeds > 1 else 0):.1f} %"
        for name, values in found.items()
    }
    yield {"of": "accuracy", **shown}


TABLES = [Table("network", {"GCN on Cora": "cora.npz"}, rows)]
