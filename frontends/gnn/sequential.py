"""`Sequential`: a sequence of layers, and their module on a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.ir.module import Module
from ...dialects.sparse_tensor import is_sparse
from ..builder import Builder, Value
from .context import Context
from .graph import EdgeListSpec, Graph, GraphSpec
from .inputs import (
    GivenEdges,
    GraphInput,
    Relation,
    batch_of,
    error,
    features_of,
    nodes_of,
    spec_of,
)
from .layers import Layer, apply, checked, named


class Sequential(Layer):
    """A model: each layer is applied to the result of the one before it.

    It is a layer itself, for the parts of other layers.

    Raises:
        InputError: if there is no layer, or an argument is not a layer.
    """

    def __init__(self, *layers: Layer) -> None:
        self.layers = checked("Sequential", layers)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return self.layers

    def emit(self, context: Context, x: Value, name: str) -> Value:
        for layer, own in named(self.layers, name):
            x = apply(context, layer, x, own)
        return x

    def to_module(
        self,
        graph: Graph | GraphInput,
        features: Any,
        *,
        edge_attr: Any = None,
        edge_type: Any = None,
        batch: Any = None,
        name: str = "main",
    ) -> Module:
        """The model on a graph and features, each a constant or an argument of the program.

        Args:
            graph: a `Graph`, which becomes a constant, or a `GraphSpec` for an argument in CSR, or
                an `EdgeListSpec` for one that is an edge list.
            features: an array of shape (N, in) or a `scipy.sparse` matrix, which becomes a
                constant (the matrix stays sparse), or a `TensorSpec` or `SparseSpec` for an
                argument. None for the number of nodes stands for that of the graph.
            edge_attr: the features of the edges, for layers that take them: a `TensorSpec` of
                shape (E, D) for an argument, or an array where the graph is a constant. They are in
                the order of the edge list, that of an argument or that where a `Graph` comes from;
                for a `GraphSpec` in the order of the matrix's entries
                (``edge_attr[graph.edge_order]``).
            edge_type: the type of each edge, integers of shape (E,), given in the same way.
            batch: a `BatchSpec` where the program takes several graphs as one, with the number of
                the graph of each node as an argument.
            name: the name of the program.

        Returns:
            A program whose arguments are the graph, the features, `edge_attr`, `edge_type` and
            `batch`, in this order, unless they are constants or not given, and whose result has
            shape (N, out), or (G, out) after a pool. It computes in the element type of the
            features. Constant features are promoted with the weights as in NumPy, where integers
            count as f32.

        Raises:
            InputError: if graph, features and layers do not fit together.
        """
        if not isinstance(graph, (Graph, GraphSpec, EdgeListSpec)):
            expected = "gnn.Graph, gnn.GraphSpec or gnn.EdgeListSpec"
            raise error("not a graph", expected, type(graph).__name__)
        spec = spec_of(features, weights_of(self))
        nodes, builder = nodes_of(graph, spec), Builder(name)
        relation = Relation(graph, spec.dtype, nodes, nodes, "", edge_attr, edge_type)
        edges = GivenEdges(builder, relation)
        x = features_of(builder, features, spec, nodes)
        edges.take_features()
        context = edges.context(x, x)
        x = self.emit(replace(context, batch=batch_of(builder, batch, x, nodes)), x, "")
        if is_sparse(x.ssa.type):
            raise error("the layers leave the features sparse")
        builder.output(x, "output")
        return builder.module()


def weights_of(layer: Layer) -> list[np.ndarray]:
    """The weights of a layer and of its parts."""
    own = [value for value in vars(layer).values() if isinstance(value, np.ndarray)]
    return own + [weight for part in layer.parts for weight in weights_of(part)]
