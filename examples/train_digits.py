"""Train the digits MLP of `stepwell demo`: 64-128-10 with relu, softmax and cross entropy.

Plain NumPy, the gradient written out, and the same weights each time on one machine:

    python examples/train_digits.py

reads `tools/demo_data/digits.npz` (its README names the source) and writes
`tools/demo_data/digits_mlp.npz`. The first 1297 images are for training; the last 500, mostly
by other writers, are for testing, and only the printed accuracy uses them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "tools" / "demo_data"
TRAIN = 1297
HIDDEN = 128
EPOCHS = 60
BATCH = 32


def forward(x: np.ndarray, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The hidden layer [batch, 128] and the logits [batch, 10] of images [batch, 64]."""
    hidden = np.maximum(x @ weights["w0"].T + weights["b0"], 0)
    return hidden, hidden @ weights["w1"].T + weights["b1"]


def gradient(
    x: np.ndarray, labels: np.ndarray, weights: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The gradient of the mean cross entropy with respect to every weight."""
    hidden, logits = forward(x, weights)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    d_logits = exponentials / exponentials.sum(axis=1, keepdims=True)
    d_logits[np.arange(len(labels)), labels] -= 1
    d_logits /= len(labels)
    d_hidden = (d_logits @ weights["w1"]) * (hidden > 0)
    return {
        "w0": d_hidden.T @ x,
        "b0": d_hidden.sum(axis=0),
        "w1": d_logits.T @ hidden,
        "b1": d_logits.sum(axis=0),
    }


def train(x: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Gradient descent with momentum 0.9 and a rate that falls from 0.1 to 0 along a cosine."""
    random = np.random.default_rng(0)
    weights = {
        "w0": random.normal(0, np.sqrt(2 / 64), (HIDDEN, 64)),
        "b0": np.zeros(HIDDEN),
        "w1": random.normal(0, np.sqrt(2 / HIDDEN), (10, HIDDEN)),
        "b1": np.zeros(10),
    }
    velocity = {name: np.zeros_like(value) for name, value in weights.items()}
    for epoch in range(EPOCHS):
        rate = 0.05 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for batch in np.array_split(random.permutation(len(x)), len(x) // BATCH):
            slopes = gradient(x[batch], labels[batch], weights)
            for name, slope in slopes.items():
                velocity[name] = 0.9 * velocity[name] - rate * (slope + 1e-3 * weights[name])
                weights[name] += velocity[name]
    return {name: value.astype(np.float32) for name, value in weights.items()}


def main() -> None:
    """Train, report the accuracy on the test images, write the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=DATA / "digits_mlp.npz")
    output: Path = parser.parse_args().output
    with np.load(DATA / "digits.npz") as data:
        x = data["images"].reshape(-1, 64) / 16.0
        labels = data["labels"].astype(np.int64)
    weights = train(x[:TRAIN], labels[:TRAIN])
    np.savez_compressed(
        output, w0=weights["w0"], b0=weights["b0"], w1=weights["w1"], b1=weights["b1"]
    )
    right = forward(x[TRAIN:].astype(np.float32), weights)[1].argmax(axis=1) == labels[TRAIN:]
    print(f"{output.name}: {right.sum()} of {right.size} test images right ({right.mean():.4f})")


if __name__ == "__main__":
    main()
