"""A graph on disk: an edge list and features in files, in parts that run one after another."""

import numpy as np

import stepwell as sw
from stepwell.frontends import gnn

rng = np.random.default_rng(0)
np.save("edges.npy", rng.integers(0, 5000, (2, 40_000)))  # sources and targets, as from elsewhere
np.save("features.npy", rng.standard_normal((5000, 32), np.float32))
w1, w2 = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 4), np.float32)

parts = sw.partition("edges.npy", 4, out="parts", num_nodes=5000)
model = gnn.Sequential(gnn.GCNConv(w1), gnn.ReLU(), gnn.GCNConv(w2))
module = model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 32), "f32"))
exe = sw.out_of_core(module, parts, memory=64 << 20)
exe("features.npy", out="embeddings.npy")

graph = gnn.Graph.from_edge_index(np.load("edges.npy"), 5000)
whole = sw.compile(module)(graph, np.load("features.npy"))
np.testing.assert_allclose(np.load("embeddings.npy"), whole, rtol=1e-4, atol=1e-4)
print("the same embeddings of", len(whole), "nodes as in memory, in 4 parts")
