"""Graph neural networks into the `graph` dialect: `Graph`, `GCNConv`, `Linear`, `Sequential` and their like.

It may import: networkx and SciPy, `dialects` and `core`.
In: a graph and layers with their weights; out: a `Module` in which the adjacency stays sparse.
"""
