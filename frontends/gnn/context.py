"""The graph of a program under construction, as layers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..builder import Builder, Value
from .weights import error


@dataclass(frozen=True)
class Batch:
    """Several graphs in one.

    Attributes:
        members: the matrix (G, N) that has an entry for each node of each graph.
        numbers: the number of the graph of each node, (N,).
    """

    members: Value
    numbers: Value


@dataclass(frozen=True)
class Context:
    """The builder to which layers append operators, and the graph.

    Attributes:
        builder: the builder.
        matrix: the adjacency matrix, where layers may send messages.
        with_self_loops: returns the matrix with exactly one self loop for each node, whose weights
            have no meaning; None where it is not known before the program runs.
        weighted: whether an edge may have another weight than 1.
        edge_attr: the features of edges, (E, D), in the order of the entries of the matrix.
        edge_type: the type of each edge, integers (E,), in the order of `ends`.
        ends: returns the source and the target of each edge, integers (E,).
        order: for each entry of the matrix the position of its edge in `ends`; None if it is its
            own.
        batch: the graphs that the nodes belong to; None for one graph.
    """

    builder: Builder
    matrix: Value | None = None
    with_self_loops: Callable[[], Value] | None = None
    weighted: bool = True
    edge_attr: Value | None = None
    edge_type: Value | None = None
    ends: Callable[[], tuple[Value, Value]] | None = None
    order: Value | None = None
    batch: Batch | None = None

    @property
    def adjacency(self) -> Value:
        """The adjacency matrix (CSR): row i has the weights of the edges into node i.

        Raises:
            InputError: if there are no edges.
        """
        if self.matrix is None:
            fact = "a layer sends messages along edges of no type"
            raise error("HeteroSequential", fact, "HeteroConv({...: layer})")
        return self.matrix

    def at_sources(self, x: Value) -> Value:
        """For each edge the slice of x (M, ...) of its source: (E, ...)."""
        return self.builder.at_entries(self.adjacency, x, axis=1)

    def at_targets(self, x: Value) -> Value:
        """For each edge the slice of x (N, ...) of its target: (E, ...)."""
        return self.builder.at_entries(self.adjacency, x, axis=0)

    @property
    def edge_weight(self) -> Value | None:
        """The weight of each edge, (E,); None if all are 1."""
        return self.builder.entries(self.adjacency) if self.weighted else None

    def types(self) -> Value | None:
        """The type of each edge, (E,), in the order of the entries of the matrix; None if none."""
        if self.edge_type is None or self.order is None:
            return self.edge_type
        return self.builder.gather(self.edge_type, self.order, axis=0)

    def numbers(self, nodes: Value) -> Value:
        """The numbers of nodes with these values, (N,), in f64, in which they are exact."""
        b = self.builder
        return b.cast(b.arange(b.dim(nodes, 0)), "f64")

    def edges(self, subject: str, name: str, width: int | None) -> Value:
        """The features of edges, for a layer that takes so many columns of them.

        Raises:
            InputError: if there are none, or they are of another width.
        """
        if self.edge_attr is None:
            fact = f'layer "{name}" needs features of edges'
            raise error(subject, fact, "edge_attr=... of to_module", "none")
        if width is not None and self.edge_attr.shape[1] != width:
            fact = f'the weight of layer "{name}" does not fit the features of edges'
            raise error(subject, fact, f"{self.edge_attr.shape[1]} inputs", width)
        return self.edge_attr

    def combined(self, messages: Value, kind: str) -> Value:
        """For each target what arrives, (E, ...), combined: (N, ...)."""
        return self.builder.reduce_entries(self.adjacency, messages, kind=kind)

    def mean_of_graph(self, x: Value) -> Value:
        """For each node the mean of the rows of x (N, F) in its graph, (N, F) or (1, F)."""
        b = self.builder
        if self.batch is None:
            return b.reduce(x, "mean", [0], True)
        means = b.aggregate(self.batch.members, x, kind="mean")
        return b.gather(means, self.batch.numbers, axis=0)
