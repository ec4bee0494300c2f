"""Graph neural networks into the `graph` dialect: `Graph`, `GCNConv`, `Sequential`, ...

It may import: networkx and SciPy, `dialects` and `core`.
In: a graph and layers with their weights; out: a `Module` whose adjacency stays sparse.
"""
