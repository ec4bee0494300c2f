"""Graph networks: a GCN on any graph, its kernels, and where its time goes."""

import numpy as np

import stepwell as sw
from stepwell.frontends import gnn

rng = np.random.default_rng(0)
w1, w2 = rng.standard_normal((8, 16), np.float32), rng.standard_normal((16, 3), np.float32)
model = gnn.Sequential(gnn.GCNConv(w1), gnn.ReLU(), gnn.GCNConv(w2))
module = model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 8), "f32"))
exe = sw.compile(module)

edge_index = rng.integers(0, 100, (2, 600))  # sources and targets, as torch-geometric has them
features = rng.standard_normal((100, 8), np.float32)
logits = exe(edge_index, features)
graph = gnn.Graph.from_edge_index(edge_index, 100)
assert np.array_equal(logits, exe(graph, features))
np.testing.assert_allclose(logits, module.run_reference(graph, features), rtol=1e-4, atol=1e-4)
print(exe.explain())
print(exe.profile(edge_index, features, repeat=20))
print("classes of the first nodes:", logits[:5].argmax(1))
