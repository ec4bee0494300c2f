"""Graph neural networks into the `graph` dialect: `Graph`, `GCNConv`, `GATConv`, `Sequential`, ...

It may import: networkx and SciPy, `dialects` and `core`.
In: a graph and layers with their weights; out: a `Module` whose adjacency stays sparse.
"""

from .convolutions import GATConv, GINConv, SAGEConv
from .graph import EdgeListSpec, Graph, GraphSpec
from .layers import Dropout, GCNConv, Layer, Linear, ReLU
from .pooling import GlobalAddPool, GlobalMaxPool, GlobalMeanPool
from .sequential import Sequential

__all__ = [
    "Dropout",
    "EdgeListSpec",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GlobalAddPool",
    "GlobalMaxPool",
    "GlobalMeanPool",
    "Graph",
    "GraphSpec",
    "Layer",
    "Linear",
    "ReLU",
    "SAGEConv",
    "Sequential",
]
