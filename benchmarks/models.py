"""Models that are only compiled, or whose time does not depend on their weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import stepwell as sw
from stepwell.frontends import gnn


class Weights:
    """Random weights, the same in each run."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def array(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def scaled(self, *shape: int) -> np.ndarray:
        """Weights [out, in, ...] that keep the scale of what they are applied to."""
        array = self.array(*shape)
        return array / np.float32(np.sqrt(array.size / shape[0]))

    def positive(self, *shape: int) -> np.ndarray:
        return self.random.uniform(0.5, 2.0, shape).astype(np.float32)


def perceptron(batch: int | str, *widths: int) -> sw.Module:
    """Dense layers with a bias, and relu between them."""
    b, w = sw.Builder("main"), Weights()
    x = b.input("x", (batch, widths[0]), "f32")
    for layer, (k, n) in enumerate(pairwise(widths)):
        x = b.dense(b.relu(x) if layer else x, w.scaled(n, k), bias=w.scaled(n))
    b.output(x, name="y")
    return b.module()


def gcn(features: int, hidden: int, classes: int) -> gnn.Sequential:
    """Two graph convolutions with a relu between them."""
    w = Weights()
    first = gnn.GCNConv(w.array(features, hidden), w.array(hidden))
    second = gnn.GCNConv(w.array(hidden, classes), w.array(classes))
    return gnn.Sequential(first, gnn.ReLU(), second)
