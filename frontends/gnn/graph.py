"""`Graph`: a directed weighted graph, as the matrix that message passing multiplies by.

Row i of the matrix holds the edges *into* node i: entry (i, j) is the weight of the edge from j to
i. That is torch-geometric's ``adj_t``, and the transpose of the matrices of networkx and
`scipy.sparse.csgraph`, whose entry (i, j) is the edge from i to j.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.boundary.arrays import is_integer, refuse_mask, row_pointers
from ...core.display import displayed
from ...core.dtype_names import dtype_named
from ...core.errors import InputError, explain
from ...dialects.graph.ops.sparse.matrices import with_values
from ..arrays import is_scipy

if TYPE_CHECKING:
    import networkx
    from scipy.sparse import csr_array

DTYPES = ("f32", "f64")
"""SciPy has sparse matrices of these element types, and none of float16."""
_INDEX_LIMIT = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph of N nodes, created by `from_networkx`, `from_edge_index` or `from_scipy`.

    `adjacency` is an N x N CSR matrix of float32 or float64 values and int32 indices, with sorted
    columns in each row. Repeated edges are stored separately, in the given order: in a matrix
    product their weights add up, and a mean, a softmax or a number of neighbours counts each. Self
    loops, entries of weight 0 and nodes without edges are kept. `nodes` names the rows in order.

    `edge_order`, of shape (E,), has for each stored entry the position of its edge where the graph
    comes from: the column of `edge_index`, the number of the edge of a networkx graph, or that of
    the entry in the COO form of a matrix. ``features[graph.edge_order]`` are the features of edges
    in the order of stored entries. None if edges are stored as they came.
    """

    adjacency: csr_array
    nodes: Sequence[Hashable]
    edge_order: np.ndarray | None = None

    @property
    def num_nodes(self) -> int:
        """N, the number of rows and of columns of the adjacency matrix."""
        return int(self.adjacency.shape[0])

    @property
    def num_edges(self) -> int:
        """The number of stored entries; an undirected edge counts twice, a self loop once."""
        return int(self.adjacency.nnz)

    def _repr_html_(self) -> str:
        return displayed(self)

    def to_csr(self, dtype: str = "f32") -> csr_array:
        """The adjacency matrix with values of `dtype`: "f32" or "f64".

        Raises:
            InputError: for any other `dtype`.
        """
        if dtype not in DTYPES:
            raise _error("unknown dtype", expected="f32 or f64", got=dtype)
        # `csr_array.astype` sums duplicate entries.
        values = self.adjacency.data.astype(dtype_named(dtype), copy=False)
        return with_values(self.adjacency, values)

    @staticmethod
    def from_networkx(
        graph: networkx.Graph,
        *,
        weight: str | None = None,
        nodelist: Sequence[Hashable] | None = None,
    ) -> Graph:
        """Convert a networkx graph, directed or not, including multigraphs.

        An undirected edge becomes one in each direction. The weight of an edge is its attribute
        `weight`, or 1. Rows are in the order of `nodelist`, by default that of ``graph.nodes``.

        Raises:
            InputError: if `graph` is not a networkx graph, `nodelist` is not an order of its
                nodes, or an edge lacks the attribute or has one that is not a number.
        """
        edges = getattr(graph, "edges", None)
        if edges is None or not hasattr(graph, "is_directed"):
            raise _error("not a networkx graph", got=type(graph).__name__)
        nodes = tuple(graph.nodes if nodelist is None else nodelist)
        position = {node: row for row, node in enumerate(nodes)}
        if len(position) != len(nodes) or position.keys() != set(graph.nodes):
            known = len(position.keys() & set(graph.nodes))
            raise _error(
                "nodelist is not an order of the graph's nodes",
                expected=f"each of the {len(graph.nodes)} nodes once",
                got=f"{len(nodes)} entries, {known} nodes among them",
            )
        triples = [(position[u], position[v], w) for u, v, w in edges(data=weight, default=None)]
        numbers = list(range(len(triples)))
        if not graph.is_directed():
            back = [(i, (v, u, w)) for i, (u, v, w) in enumerate(triples) if u != v]
            numbers += [i for i, _ in back]
            triples += [triple for _, triple in back]
        sources = np.array([t[0] for t in triples], dtype=np.int64)
        targets = np.array([t[1] for t in triples], dtype=np.int64)
        weights = None
        if weight is not None:
            weights = _attribute(weight, nodes, triples)
        made = _assemble(sources, targets, weights, nodes)
        return replace(made, edge_order=np.array(numbers, np.int32)[made.edge_order])

    @staticmethod
    def from_edge_index(
        edge_index: np.ndarray | Sequence[Sequence[int]],
        num_nodes: int,
        edge_weight: np.ndarray | Sequence[float] | None = None,
    ) -> Graph:
        """Convert torch-geometric's edge list: integers of shape (2, E), sources then targets.

        `edge_weight` has shape (E,); without it, all weights are 1.

        Raises:
            InputError: if a shape or dtype is wrong or an index is not in [0, num_nodes).
        """
        if not is_integer(num_nodes) or num_nodes < 0:
            raise _error("num_nodes is wrong", expected="a count", got=repr(num_nodes))
        if num_nodes > _INDEX_LIMIT:
            raise _error("too many nodes for 32-bit indices", got=num_nodes)
        count = int(num_nodes)
        refuse_mask("Graph", edge_index)
        edges = np.asarray(edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise _error("edge_index has the wrong shape", expected="(2, E)", got=edges.shape)
        if edges.size and edges.dtype.kind not in "iu":
            raise _error("edge_index has the wrong dtype", expected="integers", got=edges.dtype)
        if edges.size and not (0 <= int(edges.min()) and int(edges.max()) < count):
            bad = edges[(edges < 0) | (edges >= count)][0]
            raise _error("edge_index is out of range", expected=f"0 to {count - 1}", got=int(bad))
        weights = None if edge_weight is None else _weights(edge_weight, edges.shape[1])
        return _assemble(edges[0], edges[1], weights, range(count))

    @staticmethod
    def from_scipy(matrix: Any) -> Graph:
        """Convert a square `scipy.sparse` matrix whose entry (i, j) is the edge from i to j.

        This is the convention of networkx, `scipy.sparse.csgraph` and torch-geometric's
        ``from_scipy_sparse_matrix``; for a symmetric matrix both directions are the same.

        Raises:
            InputError: if it is not sparse, square and of real numbers, or inconsistent.
        """
        if not is_scipy(matrix):
            raise _error("not a scipy.sparse matrix", got=type(matrix).__name__)
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise _error("the matrix is not square", expected="(N, N)", got=matrix.shape)
        try:
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)
            entries = matrix.tocoo()
        except (ValueError, TypeError, IndexError) as error:
            raise _error(f"the matrix is inconsistent: {error}") from error
        index = np.stack([entries.row, entries.col])
        return Graph.from_edge_index(index, matrix.shape[0], entries.data)


@dataclass(frozen=True)
class GraphSpec:
    """A graph that is an argument of the compiled program.

    `num_nodes` and `num_edges` fix its sizes; None makes them symbolic. `num_edges` counts stored
    entries of the adjacency matrix. `dtype` is the type of the edge weights, by default that of the
    features, and `indptr_dtype` that of the row pointers: "i64" for more than 2^31 - 1 edges.
    """

    num_nodes: int | None = None
    num_edges: int | None = None
    dtype: str | None = None
    indptr_dtype: str = "i32"

    def __post_init__(self) -> None:
        _check_spec(self)
        _check_index_dtype("GraphSpec", "indptr_dtype", self.indptr_dtype)


@dataclass(frozen=True)
class EdgeListSpec:
    """A graph that is an argument of the compiled program as an edge list, in any order.

    The argument is torch-geometric's ``edge_index``, integers of shape (2, E): sources, then
    targets. With `weighted`, the weights of the edges are the next argument, a vector of E floats;
    else all are 1. Each call sorts the edges, which is checked and compiled code. A negative index
    counts from the last node.

    `num_nodes` and `num_edges` fix the sizes; None makes them symbolic. `dtype` is the type of the
    weights, by default that of the features, and `index_dtype` that of the indices.
    """

    num_nodes: int | None = None
    num_edges: int | None = None
    dtype: str | None = None
    weighted: bool = False
    index_dtype: str = "i64"

    def __post_init__(self) -> None:
        _check_spec(self)
        _check_index_dtype("EdgeListSpec", "index_dtype", self.index_dtype)


@dataclass(frozen=True)
class BatchSpec:
    """The graph of each node as an argument, where a program takes several graphs as one.

    The argument is torch-geometric's ``batch``, a vector of integers from 0 on, in any order. Pools
    and norms then work on each graph.

    `num_graphs` fixes the number of graphs; None makes it the largest number plus one, in each
    call. `dtype` is the type of the numbers.
    """

    num_graphs: int | None = None
    dtype: str = "i64"

    def __post_init__(self) -> None:
        if self.num_graphs is not None and (not is_integer(self.num_graphs) or self.num_graphs < 1):
            fact, expected = "num_graphs is wrong", "a count of 1 or more, or None"
            raise InputError(explain("BatchSpec", fact, expected=expected, got=self.num_graphs))
        _check_index_dtype("BatchSpec", "dtype", self.dtype)


def _check_index_dtype(subject: str, what: str, dtype: str) -> None:
    if dtype not in ("i32", "i64"):
        fact = f"unknown {what}"
        raise InputError(explain(subject, fact, expected="i32 or i64", got=dtype))


def _check_spec(spec: GraphSpec | EdgeListSpec) -> None:
    subject = type(spec).__name__
    for name, size in (("num_nodes", spec.num_nodes), ("num_edges", spec.num_edges)):
        if size is not None and (not is_integer(size) or size < 0):
            fact = f"{name} is wrong"
            raise InputError(explain(subject, fact, expected="a count or None", got=size))
    if spec.dtype is not None and spec.dtype not in DTYPES:
        raise InputError(explain(subject, "unknown dtype", expected="f32 or f64", got=spec.dtype))


def _error(fact: str, expected: object = None, got: object = None) -> InputError:
    return InputError(explain("Graph", fact, expected=expected, got=got))


def _weights(values: object, count: int) -> np.ndarray:
    """Edge weights of shape (count,): float64 is kept, all else becomes float32."""
    refuse_mask("Graph", values)
    try:
        weights = np.asarray(values)
    except ValueError as error:
        raise _error(f"edge weights are not an array: {error}") from error
    if weights.shape != (count,):
        raise _error("edge weights have the wrong shape", expected=(count,), got=weights.shape)
    if weights.size and weights.dtype.kind not in "biuf":
        raise _error("edge weights have the wrong dtype", expected="numbers", got=weights.dtype)
    return weights.astype(np.float64 if weights.dtype == np.float64 else np.float32)


def _attribute(
    name: str, nodes: tuple[Hashable, ...], triples: list[tuple[int, int, Any]]
) -> np.ndarray:
    for u, v, w in triples:
        if not isinstance(w, (int, float, np.number)) or isinstance(w, complex):
            fact = "is missing" if w is None else f"is not a number but {w!r}"
            raise _error(f'attribute "{name}" of edge ({nodes[u]!r}, {nodes[v]!r}) {fact}')
    return _weights(np.array([t[2] for t in triples], dtype=np.float64), len(triples))


def _assemble(
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None,
    nodes: Sequence[Hashable],
) -> Graph:
    """The graph with edges stored by row (target), sorted by column (source)."""
    from scipy.sparse import csr_array

    if len(sources) > _INDEX_LIMIT:
        raise _error("too many edges for 32-bit indices", got=len(sources))
    count, edges = len(nodes), len(sources)
    is_narrow = 2 * count.bit_length() + edges.bit_length() < _KEY_BITS
    sort = _sorted_as_numbers if is_narrow else _sorted_by_counting
    indptr, indices, order = sort(sources, targets, count)
    values = np.ones(edges, dtype=np.float32) if weights is None else weights[order]
    return Graph(csr_array((values, indices, indptr), shape=(count, count)), nodes, order)


_KEY_BITS = 64


def _sorted_as_numbers(
    sources: np.ndarray, targets: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row pointers, columns and positions of edges sorted by target, source and position.

    NumPy sorts integers with vector instructions: one has all three, in its bits.
    """
    edges = len(sources)
    for_node, for_edge = count.bit_length(), edges.bit_length()
    key = targets.astype(np.int64)
    indptr = row_pointers(key, count, np.int32)
    key <<= for_node
    key |= sources.astype(np.int64, copy=False)
    key <<= for_edge
    key |= np.arange(edges)
    key.sort()
    order = (key & ((1 << for_edge) - 1)).astype(np.int32)
    key >>= for_edge
    key &= (1 << for_node) - 1
    return indptr, key.astype(np.int32), order


def _sorted_by_counting(
    sources: np.ndarray, targets: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by two counting sorts, by source and then by target.

    SciPy's conversion from rows to columns is one, and stable; that from a COO matrix sums
    duplicate entries.
    """
    from scipy.sparse import csr_array

    edges = len(sources)
    sources, targets = sources.astype(np.int32), targets.astype(np.int32)
    starts = np.arange(edges + 1, dtype=np.int32)
    by_source = csr_array((targets, sources, starts), shape=(edges, count)).tocsc()
    outgoing = (by_source.indices, by_source.data, by_source.indptr)
    incoming = csr_array(outgoing, shape=(count, count)).tocsc()
    return incoming.indptr, incoming.indices, incoming.data
