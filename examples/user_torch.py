"""Torch and torch-geometric: a model as its author wrote it, for batches of any size."""

import numpy as np
import torch
import torch_geometric.nn as pyg

import stepwell as sw

layers = [
    (pyg.GCNConv(8, 16), "x, edges -> x"),
    (torch.nn.ReLU(), "x -> x"),
    (pyg.GraphNorm(16), "x, batch -> x"),
    (pyg.global_mean_pool, "x, batch -> x"),
    (torch.nn.Linear(16, 2), "x -> x"),
]
model = pyg.Sequential("x, edges, batch", layers).eval()
for sizes in [3, 2, 2], [4, 1, 6, 2]:  # the nodes of each graph of a batch
    batch = torch.repeat_interleave(torch.tensor(sizes))
    inputs = torch.randn(len(batch), 8), torch.randint(0, len(batch), (2, 20)), batch
    if len(sizes) == 3:
        exe = sw.compile(sw.from_torch(model, inputs, dynamic=True))
    np.testing.assert_allclose(exe(*inputs), model(*inputs).detach(), atol=1e-5)
    print(len(sizes), "graphs as in torch:", *exe.outputs)
