"""A graph convolutional network on Cora: 2708 papers, their words and citations, 7 subjects.

python examples/cora_gcn.py [FOLDER]

The folder, by default that of the variable STEPWELL_DATA, has two files. `cora.npz`: the words of
each paper as a CSR matrix (x_indptr, x_indices, x_shape), the citations (edge_index, both ways),
labels and test_idx. `gcn_cora_weights.npz`: W1, b1, W2, b2, trained on features whose rows sum to
1. Without them, `stepwell demo` runs a GCN on a small graph that is included.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends import gnn

FOLDER = Path(
    os.environ.get("STEPWELL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    if not (folder / name).exists():
        raise SystemExit(f"{name} is not in {folder}; give the folder that has it")
    return dict(np.load(folder / name))


def main(folder: Path) -> None:
    data, w = load(folder, "cora.npz"), load(folder, "gcn_cora_weights.npz")
    nodes, words = data["x_shape"]
    counts = np.diff(data["x_indptr"])
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    features = csr_array((shares, data["x_indices"], data["x_indptr"]), shape=(nodes, words))
    graph = gnn.Graph.from_edge_index(data["edge_index"], int(nodes))

    model = gnn.Sequential(gnn.GCNConv(w["W1"], w["b1"]), gnn.ReLU(), gnn.GCNConv(w["W2"], w["b2"]))
    spec = sw.SparseSpec(features.shape, "f32", nnz=features.nnz)
    module = model.to_module(graph, features=spec)  # the graph is a constant, the features are not
    print(module)

    exe = sw.compile(module)
    print(exe.ir("fused"))
    logits = exe(features)
    np.testing.assert_allclose(logits, module.run_reference(features), rtol=0, atol=1e-4)
    print("logits of the first papers\n", logits[:3])
    right = (logits.argmax(axis=1) == data["labels"])[data["test_idx"]]
    print(f"accuracy {right.mean():.3f} on {right.size} papers of the test set")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
