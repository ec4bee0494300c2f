"""Graph neural networks into the `graph` dialect: `Graph`, `GCNConv`, `GATConv`, `Sequential`, ...

It may import: networkx and SciPy, `importing`, `dialects` and `core`.
In: a graph and layers with their weights; out: a `Module` whose adjacency stays sparse.
"""

from typing import TYPE_CHECKING

from .activations import (
    CELU,
    ELU,
    GELU,
    SELU,
    Hardswish,
    LeakyReLU,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from .attention import GATConv, GATv2Conv, TransformerConv
from .convolutions import GCNConv, GINConv, GraphConv, SAGEConv
from .graph import BatchSpec, EdgeListSpec, Graph, GraphSpec
from .hetero import HeteroConv, HeteroSequential, PerType
from .layers import Dropout, Layer, Linear
from .message_passing import EdgeConv, GINEConv, MessagePassing
from .norms import BatchNorm, GraphNorm, InstanceNorm, LayerNorm, PairNorm
from .pooling import GlobalAddPool, GlobalMaxPool, GlobalMeanPool
from .principal import PNAConv
from .propagation import APPNP, ARMAConv, ChebConv, SGConv, TAGConv
from .relations import RGCNConv
from .sequential import Sequential
from .skips import JumpingKnowledge, Residual

if not TYPE_CHECKING:
    # Type checkers would take any name for a layer of another package.
    from .others import __getattr__ as __getattr__

__all__ = [
    "APPNP",
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "ARMAConv",
    "BatchNorm",
    "BatchSpec",
    "ChebConv",
    "Dropout",
    "EdgeConv",
    "EdgeListSpec",
    "GATConv",
    "GATv2Conv",
    "GCNConv",
    "GINConv",
    "GINEConv",
    "GlobalAddPool",
    "GlobalMaxPool",
    "GlobalMeanPool",
    "Graph",
    "GraphConv",
    "GraphNorm",
    "GraphSpec",
    "Hardswish",
    "HeteroConv",
    "HeteroSequential",
    "InstanceNorm",
    "JumpingKnowledge",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MessagePassing",
    "Mish",
    "PNAConv",
    "PReLU",
    "PairNorm",
    "PerType",
    "RGCNConv",
    "ReLU",
    "ReLU6",
    "Residual",
    "SAGEConv",
    "SGConv",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "TAGConv",
    "Tanh",
    "TransformerConv",
]
