"""Train the karate club GCN of `stepwell demo`: two GCNConv layers, 34-16-2.

Plain NumPy, the gradient written out, and the same weights each time on one machine:

    python examples/train_karate.py

writes `tools/demo_data/karate_gcn.npz`. The graph is networkx's `karate_club_graph` (W. Zachary,
1977) without its weights; a node's features are its own number, one-hot. Only the two nodes that
lead the two sides, 0 and 33, have a label in training: the side of the other 32 members follows
from the edges.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import networkx as nx
import numpy as np

DATA = Path(__file__).resolve().parent.parent / "tools" / "demo_data"
LABELLED = (0, 33)
HIDDEN = 16
STEPS = 200


def propagation(graph: nx.Graph) -> np.ndarray:
    """D^-1/2 (A + I) D^-1/2, dense: what a GCNConv multiplies by (Kipf and Welling, 2017)."""
    loops = np.eye(len(graph))
    for member, other in graph.edges:
        loops[member, other] = loops[other, member] = 1
    scale = 1 / np.sqrt(loops.sum(axis=1))
    return scale[:, None] * loops * scale[None, :]


def forward(p: np.ndarray, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The hidden rows [34, 16] and the logits [34, 2]; one-hot features make X W1 be W1."""
    hidden = np.maximum(p @ weights["w1"] + weights["b1"], 0)
    return hidden, p @ (hidden @ weights["w2"]) + weights["b2"]


def train(p: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Gradient descent with weight decay on the cross entropy of the labelled nodes."""
    random = np.random.default_rng(0)
    weights = {
        "w1": random.normal(0, 0.3, (len(labels), HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": random.normal(0, 0.3, (HIDDEN, 2)),
        "b2": np.zeros(2),
    }
    chosen = list(LABELLED)
    for _ in range(STEPS):
        hidden, logits = forward(p, weights)
        exponentials = np.exp(logits[chosen] - logits[chosen].max(axis=1, keepdims=True))
        d_logits = np.zeros_like(logits)
        d_logits[chosen] = exponentials / exponentials.sum(axis=1, keepdims=True)
        d_logits[chosen, labels[chosen]] -= 1
        d_product = p.T @ d_logits
        d_hidden = (d_product @ weights["w2"].T) * (hidden > 0)
        slopes = {
            "w1": p.T @ d_hidden,
            "b1": d_hidden.sum(axis=0),
            "w2": hidden.T @ d_product,
            "b2": d_logits.sum(axis=0),
        }
        for name, slope in slopes.items():
            weights[name] -= 0.2 * (slope + 5e-3 * weights[name])
    return {name: value.astype(np.float32) for name, value in weights.items()}


def main() -> None:
    """Train, report the accuracy on the members without a label, write the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=DATA / "karate_gcn.npz")
    output: Path = parser.parse_args().output
    graph = nx.karate_club_graph()
    labels = np.array([int(side == "Officer") for _, side in graph.nodes(data="club")])
    p = propagation(graph)
    weights = train(p, labels)
    np.savez_compressed(
        output, w1=weights["w1"], b1=weights["b1"], w2=weights["w2"], b2=weights["b2"]
    )
    right = forward(p, weights)[1].argmax(axis=1) == labels
    others = np.delete(right, LABELLED)
    print(f"{output.name}: {others.sum()} of {others.size} members right ({others.mean():.4f})")


if __name__ == "__main__":
    main()
