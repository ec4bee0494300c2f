"""`Sequential`: a sequence of layers, and their module on a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype_names import dtype_named
from ...core.errors import InputError, explain
from ...core.module import Module
from ...core.specs import SparseSpec, TensorSpec
from ...dialects.graph.matrices import with_remaining_self_loops
from ...dialects.graph.ops_select import WHOLE_END
from ...dialects.sparse_tensor import is_sparse
from ..arrays import is_scipy
from ..builder import Builder, Value
from .graph import DTYPES, EdgeListSpec, Graph, GraphSpec
from .layers import Context, Layer

Spec = TensorSpec | SparseSpec
GraphInput = GraphSpec | EdgeListSpec


class Sequential:
    """A model: each layer is applied to the result of the one before it.

    Raises:
        InputError: if there is no layer, or an argument is not a layer.
    """

    def __init__(self, *layers: Layer) -> None:
        if not layers:
            raise _error("there is no layer")
        for layer in layers:
            if not isinstance(layer, Layer):
                got = getattr(layer, "__name__", type(layer).__name__)
                raise _error("not a layer", "GCNConv(...), Linear(...), ReLU(), ...", got)
        self.layers = layers

    def to_module(self, graph: Graph | GraphInput, features: Any, *, name: str = "main") -> Module:
        """The model on a graph and features, each a constant or an argument of the program.

        Args:
            graph: a `Graph`, which becomes a constant, or a `GraphSpec` for an argument in CSR, or
                an `EdgeListSpec` for one that is an edge list.
            features: an array of shape (N, in) or a `scipy.sparse` matrix, which becomes a
                constant (the matrix stays sparse), or a `TensorSpec` or `SparseSpec` for an
                argument. None for the number of nodes stands for that of the graph.
            name: the name of the program.

        Returns:
            A program whose arguments are the graph and the features, in this order, unless they are
            constants, and whose result has shape (N, out). It computes in the element type of the
            features. Constant features are promoted with the weights as in NumPy, where integers
            count as f32.

        Raises:
            InputError: if graph, features and layers do not fit together.
        """
        if not isinstance(graph, (Graph, GraphSpec, EdgeListSpec)):
            expected = "gnn.Graph, gnn.GraphSpec or gnn.EdgeListSpec"
            raise _error("not a graph", expected, type(graph).__name__)
        spec = self._spec(features)
        nodes = _nodes(graph, spec)
        builder = Builder(name)
        given = _graph(builder, graph, nodes, spec.dtype)
        x = _features(builder, features, spec, nodes)
        adjacency = given[0] if len(given) == 1 else _sorted(builder, given, x, nodes, spec.dtype)
        context = Context(builder, adjacency, _with_self_loops(builder, graph, spec.dtype))
        for position, layer in enumerate(self.layers):
            x = layer.emit(context, x, f"{type(layer).__name__.lower()}_{position}")
        if is_sparse(x.ssa.type):
            raise _error("the layers leave the features sparse")
        builder.output(x, "output")
        return builder.module()

    def _spec(self, features: Any) -> Spec:
        """The shape, format and element type of the features, constant or not."""
        if isinstance(features, (TensorSpec, SparseSpec)):
            spec = features
        elif is_scipy(features):
            spec = SparseSpec(tuple(features.shape), self._promoted(features.dtype), features.nnz)
        elif isinstance(features, np.ndarray):
            spec = TensorSpec(features.shape, self._promoted(features.dtype))
        else:
            expected = "an array, a scipy.sparse matrix, TensorSpec or SparseSpec"
            raise _error("not features", expected, type(features).__name__)
        if len(spec.shape) != 2:
            raise _error("features are not a matrix", "(nodes, features)", tuple(spec.shape))
        if spec.dtype not in DTYPES:
            raise _error("features have the wrong dtype", "f32 or f64", spec.dtype)
        if spec.shape[1] is None or isinstance(spec.shape[1], str):
            raise _error("the width of the features is not known", "a number", spec.shape[1])
        return spec

    def _promoted(self, dtype: np.dtype) -> str:
        """The common element type of constant features and the weights."""
        if dtype.kind not in "fiub":
            raise _error("features have the wrong dtype", "numbers", dtype)
        weights = [w for layer in self.layers for w in _weights(layer)]
        floats = [d for d in (dtype, *(w.dtype for w in weights)) if d.kind == "f"]
        promoted = np.result_type(*floats) if floats else np.dtype(np.float32)
        name = next((name for name in DTYPES if dtype_named(name) == promoted), None)
        if name is None:
            raise _error("features have the wrong dtype", "f32 or f64", promoted)
        return name


def _weights(layer: Layer) -> list[np.ndarray]:
    own = [value for value in vars(layer).values() if isinstance(value, np.ndarray)]
    return own + [weight for part in layer.parts for weight in _weights(part)]


def _error(fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain("Sequential", fact, expected=expected, got=got))


def _nodes(graph: Graph | GraphInput, spec: Spec) -> int | str:
    """The number of nodes: that of the graph, else that of the features, else a symbol."""
    rows = spec.shape[0]
    known = graph.num_nodes
    if known is None:
        return "nodes" if rows is None else rows
    if isinstance(rows, int) and rows != known:
        raise _error("features and graph differ in nodes", f"{known} rows", rows)
    return known


def _graph(
    builder: Builder, graph: Graph | GraphInput, nodes: int | str, dtype: str
) -> tuple[Value, ...]:
    """The adjacency matrix, or an edge list and the weights of the edges, if any."""
    if isinstance(graph, Graph):
        return (builder.constant(graph.to_csr(dtype), "adjacency"),)
    if graph.dtype not in (None, dtype):
        raise _error("graph and features differ in dtype", dtype, graph.dtype)
    edges = "edges" if graph.num_edges is None else graph.num_edges
    if isinstance(graph, GraphSpec):
        return (builder.input("graph", SparseSpec((nodes, nodes), dtype, edges)),)
    ends = builder.input("edge_index", (2, edges), graph.index_dtype)
    sources, targets = (_row(builder, ends, number) for number in range(2))
    if not graph.weighted:
        return sources, targets
    return sources, targets, builder.input("edge_weight", (edges,), dtype)


def _row(builder: Builder, ends: Value, number: int) -> Value:
    """The sources, or the targets, of an edge list."""
    row = builder.slice(ends, starts=[number, 0], ends=[number + 1, WHOLE_END])
    return builder.reshape(row, shape=[-1])


def _sorted(
    builder: Builder, edges: tuple[Value, ...], x: Value, nodes: int | str, dtype: str
) -> Value:
    """The adjacency matrix of an edge list."""
    sources, targets, *weights = edges
    size = x if isinstance(nodes, str) else nodes
    values = weights[0] if weights else None
    matrix, _ = builder.csr_from_edges(targets, sources, (size, size), values, dtype)
    return matrix


def _with_self_loops(
    builder: Builder, graph: Graph | GraphInput, dtype: str
) -> Callable[[], Value] | None:
    """A function that returns the constant matrix with self loops, created on first use."""
    if not isinstance(graph, Graph):
        return None

    @functools.cache
    def make() -> Value:
        matrix = with_remaining_self_loops(graph.to_csr(dtype))
        return builder.constant(matrix, "adjacency_with_loops")

    return make


def _features(builder: Builder, features: Any, spec: Spec, nodes: int | str) -> Value:
    if not isinstance(features, (TensorSpec, SparseSpec)):
        constant = features.astype(np.float32) if features.dtype.kind != "f" else features
        return builder.constant(constant, "features", spec.dtype)
    shape = (nodes, spec.shape[1])
    if isinstance(spec, SparseSpec):
        entries = "entries" if spec.nnz is None else spec.nnz
        return builder.input("features", SparseSpec(shape, spec.dtype, entries))
    return builder.input("features", TensorSpec(shape, spec.dtype))
