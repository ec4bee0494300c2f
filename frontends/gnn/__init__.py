"""Graph neural networks into the `graph` dialect: `Graph`, `GCNConv`, `Sequential`, ...

It may import: networkx and SciPy, `dialects` and `core`.
In: a graph and layers with their weights; out: a `Module` whose adjacency stays sparse.
"""

from .graph import Graph, GraphSpec
from .layers import Dropout, GCNConv, Layer, Linear, ReLU
from .sequential import Sequential

__all__ = ["Dropout", "GCNConv", "Graph", "GraphSpec", "Layer", "Linear", "ReLU", "Sequential"]
