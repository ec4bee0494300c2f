"""Graph layers as torch-geometric's are exported: gathers, scatters, and nothing sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import floats

WIDTH = 32
MANY = 2**63 - 1


def small(*shape: int) -> np.ndarray:
    return 0.3 * floats(*shape)


W, V = small(WIDTH, WIDTH), small(WIDTH, WIDTH)
HEADS = 4
SCORES = small(1, HEADS, WIDTH // HEADS), small(1, HEADS, WIDTH // HEADS)


class Messages:
    """The functions of `torch_geometric.utils` that layers use, on a symbolic graph."""

    def __init__(
        self,
        b: sw.Builder,
        x: Value,
        edge_index: Value | None = None,
        segments: Value | None = None,
    ) -> None:
        self.b, self.x = b, x
        if segments is not None:
            self.sources = self.targets = segments
        if edge_index is not None:
            self.sources, self.targets = (
                b.reshape(b.slice(edge_index, starts=[n, 0], ends=[n + 1, MANY]), [-1])
                for n in range(2)
            )

    def like(self, x: Value, shape: Sequence[int], number: float) -> Value:
        """A number in a shape whose first size is that of x: `x.new_full`."""
        b = self.b
        apart = b.reshape(x, [-1, x.shape[1], 1]) if len(x.shape) == 2 else b.reshape(x, [-1, 1, 1])
        none = b.slice(apart, starts=[0, 0, 0], ends=[MANY, MANY, 0])
        zeros = b.cast(b.reduce(none, "sum", axes=[1, 2]), "f32")
        first = b.constant(np.full((1, *shape), number, np.float32))
        return b.sub(first, b.reshape(zeros, [-1, *[1] * len(shape)]))

    def expanded(self, index: Value, values: Value) -> Value:
        """`index.view(-1, 1).expand_as(values)`."""
        rest = values.shape[1:]
        view = self.b.reshape(index, [-1, *[1] * len(rest)])
        return self.b.broadcast_to(view, [-1, *rest]) if rest else index

    def scatter(self, values: Value, reduce: str = "sum") -> Value:
        """`torch_geometric.utils.scatter` by targets."""
        b, index, rest = self.b, self.expanded(self.targets, values), values.shape[1:]
        zeros = self.like(self.x, rest, 0.0)
        if reduce == "max":
            # Without what is there, which stays where nothing arrives.
            lowest, ones = self.like(self.x, rest, -np.inf), self.like(values, rest, 1.0)
            largest = b.scatter_elements(lowest, index, values, axis=0, kind="max")
            count = b.scatter_elements(zeros, index, ones, axis=0, kind="add")
            return b.where(b.greater(count, np.float32(0)), largest, zeros)
        total = b.scatter_elements(zeros, index, values, axis=0, kind="add")
        if reduce == "sum":
            return total
        ones = self.like(self.targets, (), 1.0)
        none = self.like(self.x, (), 0.0)
        count = b.scatter_elements(none, self.targets, ones, axis=0, kind="add")
        return total / self.expanded(b.clip(count, minimum=1.0), total)

    def softmax(self, scores: Value) -> Value:
        """`torch_geometric.utils.softmax` by targets."""
        b = self.b
        largest = b.gather(self.scatter(scores, "max"), self.targets, axis=0)
        e = b.exp(scores - largest)
        return e / b.gather(self.scatter(e) + 1e-16, self.targets, axis=0)


def gcn(b: sw.Builder, x: Value, edge_index: Value) -> Value:
    m = Messages(b, x, edge_index)
    weights = m.like(m.targets, (), 1.0)
    degree = b.scatter_elements(m.like(x, (), 0.0), m.targets, weights, axis=0, kind="add")
    power = b.pow(degree, -0.5)
    power = b.where(b.equal(power, np.float32(np.inf)), np.float32(0), power)
    ends = [b.gather(power, ends, axis=0) for ends in (m.sources, m.targets)]
    norm = ends[0] * weights * ends[1]
    h = b.dense(x, W)
    return m.scatter(b.reshape(norm, [-1, 1]) * b.gather(h, m.sources, axis=0))


def sage(b: sw.Builder, x: Value, edge_index: Value) -> Value:
    m = Messages(b, x, edge_index)
    y = m.scatter(b.gather(x, m.sources, axis=0), "mean")
    return b.dense(y, W) + b.dense(x, V)


def gin(b: sw.Builder, x: Value, edge_index: Value) -> Value:
    m = Messages(b, x, edge_index)
    return b.dense(b.relu(b.dense(m.scatter(b.gather(x, m.sources, axis=0)) + x * 1.5, W)), V)


def gat(b: sw.Builder, x: Value, edge_index: Value) -> Value:
    m = Messages(b, x, edge_index)
    h = b.reshape(b.dense(x, W), [-1, HEADS, WIDTH // HEADS])
    source, target = (b.reduce(h * b.constant(part), "sum", [2]) for part in SCORES)
    scores = b.gather(source, m.sources, axis=0) + b.gather(target, m.targets, axis=0)
    weights = m.softmax(b.leaky_relu(scores, 0.2))
    sent = b.reshape(weights, [-1, HEADS, 1]) * b.gather(h, m.sources, axis=0)
    return b.reshape(m.scatter(sent), [-1, WIDTH])


def edge_conv(b: sw.Builder, x: Value, edge_index: Value) -> Value:
    m = Messages(b, x, edge_index)
    own, other = (b.gather(x, ends, axis=0) for ends in (m.targets, m.sources))
    pair = b.concat([own, other - own], axis=1)
    hidden = b.relu(b.dense(pair, np.concatenate([W, V], axis=1)))
    return m.scatter(b.relu(b.dense(hidden, W)), "max")


LAYERS: dict[str, Callable[[sw.Builder, Value, Value], Value]] = {
    "gcn": gcn,
    "sage": sage,
    "gin": gin,
    "gat": gat,
    "edge_conv": edge_conv,
}


def model(*names: str) -> sw.Module:
    """Layers one after the other, on any graph."""
    b = sw.Builder()
    x = b.input("x", ("nodes", WIDTH))
    edge_index = b.input("edge_index", (2, "edges"), "i64")
    for name in names:
        x = LAYERS[name](b, x, edge_index)
    b.output(x)
    return b.module()
