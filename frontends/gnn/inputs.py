"""What a model on a graph takes: the graph, the features, and what edges and graphs have.

Each is a constant or an argument of the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.boundary.arrays import refuse_mask
from ...core.boundary.specs import SparseSpec, TensorSpec
from ...core.dtype_names import dtype_named
from ...core.errors import InputError, explain
from ...dialects.graph.ops.moves.select import WHOLE_END
from ...dialects.graph.ops.sparse.matrices import rows_of, with_remaining_self_loops
from ..arrays import is_scipy
from ..builder import Builder, Value
from .context import Batch, Context
from .graph import DTYPES, BatchSpec, EdgeListSpec, Graph, GraphSpec

Spec = TensorSpec | SparseSpec
GraphInput = GraphSpec | EdgeListSpec


@dataclass(frozen=True)
class Relation:
    """The edges from nodes of one set to those of another, or the same.

    Attributes:
        graph: the graph.
        prefix: what the names of its arguments begin with.
        dtype: the element type of its weights.
        sources: the number of nodes where edges begin.
        targets: the number of those where they end.
        edge_attr: the features of edges, an array or a spec; or None.
        edge_type: the type of each edge, an array or a spec; or None.
        symbol: the number of edges, where it differs from call to call.
    """

    graph: Graph | GraphInput
    dtype: str
    sources: int | str
    targets: int | str
    prefix: str = ""
    edge_attr: Any = None
    edge_type: Any = None
    symbol: str = "edges"

    @property
    def edges(self) -> int | str:
        """The number of edges."""
        given = self.graph.num_edges
        return self.symbol if given is None else given


def error(fact: str, expected: object = None, got: object = None) -> InputError:
    """An error of a model."""
    return InputError(explain("Sequential", fact, expected=expected, got=got))


def spec_of(features: Any, weights: Sequence[np.ndarray]) -> Spec:
    """The shape, format and element type of features, constant or not.

    Raises:
        InputError: if they are no matrix of floats.
    """
    if isinstance(features, (TensorSpec, SparseSpec)):
        spec = features
    elif is_scipy(features):
        promoted = _promoted(features.dtype, weights)
        spec = SparseSpec(tuple(features.shape), promoted, features.nnz)
    elif isinstance(features, np.ndarray):
        spec = TensorSpec(features.shape, _promoted(features.dtype, weights))
    else:
        expected = "an array, a scipy.sparse matrix, TensorSpec or SparseSpec"
        raise error("not features", expected, type(features).__name__)
    if len(spec.shape) != 2:
        raise error("features are not a matrix", "(nodes, features)", tuple(spec.shape))
    if spec.dtype not in DTYPES:
        raise error("features have the wrong dtype", "f32 or f64", spec.dtype)
    if spec.shape[1] is None or isinstance(spec.shape[1], str):
        raise error("the width of the features is not known", "a number", spec.shape[1])
    return spec


def _promoted(dtype: np.dtype, weights: Sequence[np.ndarray]) -> str:
    """The common element type of constant features and weights."""
    if dtype.kind not in "fiub":
        raise error("features have the wrong dtype", "numbers", dtype)
    floats = [d for d in (dtype, *(w.dtype for w in weights)) if d.kind == "f"]
    promoted = np.result_type(*floats) if floats else np.dtype(np.float32)
    name = next((name for name in DTYPES if dtype_named(name) == promoted), None)
    if name is None:
        raise error("features have the wrong dtype", "f32 or f64", promoted)
    return name


def nodes_of(graph: Graph | GraphInput, spec: Spec) -> int | str:
    """The number of nodes: that of the graph, else that of the features, else a symbol."""
    rows, known = spec.shape[0], graph.num_nodes
    if known is None:
        return "nodes" if rows is None else rows
    if isinstance(rows, int) and rows != known:
        raise error("features and graph differ in nodes", f"{known} rows", rows)
    return known


def features_of(
    builder: Builder, features: Any, spec: Spec, nodes: int | str, name: str = "features"
) -> Value:
    """The features of nodes, as a constant or an argument."""
    if not isinstance(features, (TensorSpec, SparseSpec)):
        constant = features.astype(np.float32) if features.dtype.kind != "f" else features
        return builder.constant(constant, name, spec.dtype)
    shape = (nodes, spec.shape[1])
    if isinstance(spec, SparseSpec):
        entries = "entries" if spec.nnz is None else spec.nnz
        return builder.input(name, SparseSpec(shape, spec.dtype, entries))
    return builder.input(name, TensorSpec(shape, spec.dtype))


class GivenEdges:
    """The edges of a relation in a program: first the arguments, then what follows from them.

    Arguments come in the order in which the methods are called.
    """

    def __init__(self, builder: Builder, relation: Relation) -> None:
        self.builder, self.relation = builder, relation
        graph, dtype = relation.graph, relation.dtype
        if not isinstance(graph, Graph) and graph.dtype not in (None, dtype):
            raise error("graph and features differ in dtype", dtype, graph.dtype)
        self.matrix: Value | None = None
        self.list: tuple[Value, Value, Value | None] | None = None
        self.order: Value | None = None
        if isinstance(graph, Graph):
            self.matrix = builder.constant(graph.to_csr(dtype), f"{relation.prefix}adjacency")
        elif isinstance(graph, GraphSpec):
            sizes = (relation.targets, relation.sources)
            spec = SparseSpec(sizes, dtype, relation.edges, graph.indptr_dtype)
            self.matrix = builder.input(f"{relation.prefix}graph", spec)
        else:
            shape = (2, relation.edges)
            ends = builder.input(f"{relation.prefix}edge_index", shape, graph.index_dtype)
            sources, targets = (_row(builder, ends, number) for number in range(2))
            weights = None
            if graph.weighted:
                name = f"{relation.prefix}edge_weight"
                weights = builder.input(name, (relation.edges,), relation.dtype)
            self.list = sources, targets, weights
        self._attr: Value | None = None
        self._type: Value | None = None

    def take_features(self) -> None:
        """The features and the types of edges, as constants or arguments."""
        relation, builder = self.relation, self.builder
        if relation.edge_attr is not None:
            name = f"{relation.prefix}edge_attr"
            self._attr = _of_edges(builder, name, relation.edge_attr, relation, 2)
        if relation.edge_type is not None:
            name = f"{relation.prefix}edge_type"
            self._type = _of_edges(builder, name, relation.edge_type, relation, 1)

    def context(self, sources: Value, targets: Value) -> Context:
        """The edges as layers see them, between nodes with these features."""
        graph, weighted = self.relation.graph, True
        if isinstance(graph, EdgeListSpec):
            weighted = graph.weighted
        elif isinstance(graph, Graph):
            weighted = bool(np.any(graph.adjacency.data != 1))
        matrix = self._matrix(sources, targets)
        attr = self._attr
        if attr is not None and self.order is not None:
            with self.builder.node(f"{self.relation.prefix}edge_attr"):
                attr = self.builder.gather(attr, self.order, axis=0)
        return Context(
            self.builder,
            matrix,
            self._with_self_loops(sources),
            weighted,
            attr,
            self._type,
            functools.partial(self._ends, sources, targets),
            self.order,
        )

    def _matrix(self, sources: Value, targets: Value) -> Value:
        """The adjacency matrix."""
        if self.list is None:
            assert self.matrix is not None
            return self.matrix
        first, last, weights = self.list
        relation, b = self.relation, self.builder
        sizes = (
            targets if isinstance(relation.targets, str) else relation.targets,
            sources if isinstance(relation.sources, str) else relation.sources,
        )
        with b.node(f"{relation.prefix}edge_index"):
            matrix, self.order = b.csr_from_edges(last, first, sizes, weights, relation.dtype)
        return matrix

    def _ends(self, sources: Value, targets: Value) -> tuple[Value, Value]:
        """The source and the target of each edge, in the order of their types."""
        if self.list is not None:
            return self.list[:2]
        b, graph = self.builder, self.relation.graph
        if isinstance(graph, Graph):
            first, last = graph.adjacency.indices, rows_of(graph.adjacency)
            return b.constant(first, "sources"), b.constant(last, "targets")
        assert self.matrix is not None
        # The numbers of nodes are exact in f64.
        numbers = [b.cast(b.arange(b.dim(x, 0)), "f64") for x in (targets, sources)]
        last, first = (b.at_entries(self.matrix, x, axis) for axis, x in enumerate(numbers))
        return b.cast(first, "i64"), b.cast(last, "i64")

    def _with_self_loops(self, nodes: Value) -> Callable[[], Value] | None:
        """A function that makes the matrix with self loops on first use."""
        graph, builder, dtype = self.relation.graph, self.builder, self.relation.dtype
        if isinstance(graph, GraphSpec):
            return None

        @functools.cache
        def make() -> Value:
            if isinstance(graph, Graph):
                matrix = with_remaining_self_loops(graph.to_csr(dtype))
                return builder.constant(matrix, f"{self.relation.prefix}adjacency_with_loops")
            assert self.list is not None
            sources, targets, _ = self.list
            with builder.node(f"{self.relation.prefix}edge_index"):
                indptr, indices, _ = builder.sort_edges_with_loops(targets, sources, nodes)
                ones = builder.cast(builder.equal(indices, indices), dtype)
                return builder.assemble(indptr, indices, ones, nodes)

        return make


def _row(builder: Builder, ends: Value, number: int) -> Value:
    """The sources, or the targets, of an edge list."""
    row = builder.slice(ends, starts=[number, 0], ends=[number + 1, WHOLE_END])
    return builder.reshape(row, shape=[-1])


def _of_edges(builder: Builder, name: str, given: Any, relation: Relation, rank: int) -> Value:
    """Features (rank 2) or types (rank 1) of edges, as a constant or an argument."""
    kinds, what = ("f", "floats") if rank == 2 else ("iu", "integers")
    edges = relation.edges
    if isinstance(given, TensorSpec):
        shape, numbers = given.shape, given.dtype.strip("u").startswith("f" if rank == 2 else "i")
    else:
        refuse_mask("Sequential", given)
        given = np.asarray(given)
        shape, numbers = given.shape, given.dtype.kind in kinds
    wanted = (edges, *[None] * (rank - 1))
    if len(shape) != rank or (isinstance(edges, int) and shape[0] not in (None, edges)):
        raise error(f"{name} has the wrong shape", wanted, tuple(shape))
    if not numbers:
        raise error(f"{name} has the wrong dtype", what, given.dtype)
    if rank == 2 and (shape[1] is None or isinstance(shape[1], str)):
        raise error(f"the width of {name} is not known", "a number", shape[1])
    # What is given is in the order of the edges, which entries of a graph may not have.
    order = relation.graph.edge_order if isinstance(relation.graph, Graph) else None
    if isinstance(given, TensorSpec):
        dtype = relation.dtype if rank == 2 else given.dtype
        value = builder.input(name, (edges, *shape[1:]), dtype)
        if order is None or np.array_equal(order, np.arange(len(order))):
            return value
        with builder.node(name):
            return builder.gather(value, builder.constant(order, "edge_order"), axis=0)
    dtype = relation.dtype if rank == 2 else "i64"
    if isinstance(edges, str):
        raise error(f"{name} is a constant, but the graph is not", "a TensorSpec", shape)
    return builder.constant(given if order is None else given[order], name, dtype)


def batch_of(builder: Builder, given: Any, x: Value, nodes: int | str) -> Batch | None:
    """The graphs of a batch, of which each node has the number; None for one graph."""
    if given is None:
        return None
    if not isinstance(given, BatchSpec):
        raise error("not a batch", "gnn.BatchSpec", type(given).__name__)
    numbers = builder.input("batch", (nodes,), given.dtype)
    with builder.node("batch"):
        # A value with a slice for each graph.
        if given.num_graphs is not None:
            graphs = builder.constant(np.zeros(given.num_graphs, np.int8), "graphs")
        else:
            largest = builder.cast(builder.reduce(numbers, "max", [0], neutral=True), "i64")
            # No node has a graph where there is none.
            graphs = builder.arange(builder.max(largest, -1) + 1)
        indptr, _, order = builder.sort_edges(numbers, numbers, graphs, graphs)
        ones = builder.cast(builder.equal(order, order), x.dtype)
        return Batch(builder.assemble(indptr, order, ones, numbers), numbers)
