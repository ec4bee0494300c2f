"""Models on graphs whose nodes and edges are of several types.

A type of nodes is a name, a type of edges a triple: the type of its sources, a name, and the type
of its targets. Each type of nodes has features, each type of edges a graph of its own.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.boundary.specs import Key
from ...core.errors import InputError
from ...core.ir.module import Module
from ...core.ir.public_function import state_paths
from ..builder import Builder, Value
from .context import Context
from .graph import EdgeListSpec, Graph, GraphSpec
from .inputs import GivenEdges, GraphInput, Relation, Spec, features_of, spec_of
from .layers import Convolution, Layer, apply
from .sequential import weights_of
from .weights import error, one_of

EdgeType = tuple[str, str, str]
Features = Mapping[str, Value]
_JOINED: dict[str, Callable[[Builder, Sequence[Value]], Value]] = {
    "sum": lambda b, values: functools.reduce(b.add, values),
    "mean": lambda b, values: functools.reduce(b.add, values) * (1 / len(values)),
    "max": lambda b, values: functools.reduce(b.max, values),
    "min": lambda b, values: functools.reduce(b.min, values),
    "cat": lambda b, values: b.concat(list(values), axis=1),
}


@dataclass(frozen=True)
class HeteroContext:
    """The builder to which layers append operators, and the edges of each type."""

    builder: Builder
    edges: Mapping[EdgeType, Context]


class HeteroLayer(ABC):
    """A layer of a `HeteroSequential` that sees all types of nodes."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Layer, ...]:
        """The layers that this one consists of."""

    @abstractmethod
    def emit_all(self, context: HeteroContext, xs: Features, name: str) -> dict[str, Value]:
        """Append the operators of the layer on the features of each type of nodes.

        Raises:
            InputError: if the layer does not fit the types or the features.
        """


class HeteroConv(HeteroLayer):
    """A convolution for each type of edges; what arrives at a type of nodes is combined.

    Types of nodes at which no edges arrive have no features after it, as in torch-geometric.

    Args:
        convs: for each type of edges (source, name, target) its layer. One between two types takes
            nodes of two sets: `SAGEConv`, `GraphConv`, `GATConv`, `GATv2Conv`, `TransformerConv`,
            `GINConv`, `GINEConv`, `EdgeConv`, `RGCNConv` or a `MessagePassing`.
        aggr: "sum", "mean", "max" or "min" of what arrives by edges of several types, or "cat" for
            one beside the other.

    Raises:
        InputError: if there is no layer, a key is no type of edges, or for an unknown `aggr`.
    """

    def __init__(self, convs: Mapping[EdgeType, Layer], aggr: str = "sum") -> None:
        _check_layers("HeteroConv", convs)
        for kind, layer in convs.items():
            _check_edge_type("HeteroConv", kind)
            if not isinstance(layer, Layer):
                raise error("HeteroConv", "not a layer", "SAGEConv(...), ...", type(layer).__name__)
        self.convs = dict(convs)
        self.aggr = one_of("HeteroConv", "aggr", aggr, list(_JOINED))

    @property
    def parts(self) -> tuple[Layer, ...]:
        return tuple(self.convs.values())

    def emit_all(self, context: HeteroContext, xs: Features, name: str) -> dict[str, Value]:
        arrived: dict[str, list[Value]] = {}
        for kind, layer in self.convs.items():
            edges = _known("HeteroConv", "graph of edges", kind, context.edges)
            first, last = (_known("HeteroConv", "features of", kind[n], xs) for n in (0, 2))
            own = f"{name}.{'__'.join(kind)}"
            if kind[0] == kind[2]:
                made = apply(edges, layer, first, own)
            elif isinstance(layer, Convolution):
                with context.builder.node(own):
                    made = layer.convolve(edges, first, last, own)
            else:
                fact = f"{type(layer).__name__} takes nodes of one type"
                raise error("HeteroConv", fact, got=f"edges {kind}")
            arrived.setdefault(kind[2], []).append(made)
        with context.builder.node(name):
            join = functools.partial(_JOINED[self.aggr], context.builder)
            return {node: join(values) for node, values in arrived.items()}


class PerType(HeteroLayer):
    """A layer of its own for each type of nodes; other types have no features after it.

    Args:
        layers: for each type of nodes its layer, such as a `Linear`.

    Raises:
        InputError: if there is no layer, or a value is not a layer.
    """

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        _check_layers("PerType", layers)
        for layer in layers.values():
            if not isinstance(layer, Layer):
                raise error("PerType", "not a layer", "Linear(...), ...", type(layer).__name__)
        self.layers = dict(layers)

    @property
    def parts(self) -> tuple[Layer, ...]:
        return tuple(self.layers.values())

    def emit_all(self, context: HeteroContext, xs: Features, name: str) -> dict[str, Value]:
        nodes, found = Context(context.builder), dict[str, Value]()
        for kind, layer in self.layers.items():
            x = _known("PerType", "features of", kind, xs)
            found[kind] = apply(nodes, layer, x, f"{name}.{kind}")
        return found


class HeteroSequential:
    """A model on a graph with several types of nodes and edges.

    Each layer is applied to the result of the one before it: a `HeteroConv`, a `PerType`, or a
    layer without neighbours, such as `ReLU`, which all types of nodes go through.

    Raises:
        InputError: if there is no layer, or an argument is not a layer.
    """

    def __init__(self, *layers: Layer | HeteroLayer) -> None:
        if not layers:
            raise _error("there is no layer")
        for layer in layers:
            if not isinstance(layer, (Layer, HeteroLayer)):
                got = getattr(layer, "__name__", type(layer).__name__)
                raise _error("not a layer", "HeteroConv(...), ReLU(), ...", got)
        self.layers = layers

    def to_module(
        self,
        graphs: Mapping[EdgeType, Graph | GraphInput],
        features: Mapping[str, Any],
        *,
        edge_attr: Mapping[EdgeType, Any] | None = None,
        outputs: Sequence[str] | None = None,
        name: str = "main",
    ) -> Module:
        """The model on graphs and features, each a constant or an argument of the program.

        Args:
            graphs: for each type of edges an `EdgeListSpec` or a `GraphSpec` for an argument, or a
                `Graph`, which becomes a constant, where sources and targets are of one type. The
                matrix of a `GraphSpec` has a row for each target and a column for each source.
            features: for each type of nodes an array of shape (N, in), which becomes a constant, or
                a `TensorSpec` for an argument.
            edge_attr: the features of edges of some types, as for `Sequential.to_module`.
            outputs: the types of nodes whose features are the results; by default all that the last
                layer has.
            name: the name of the program.

        Returns:
            A program whose arguments are the graphs, the features, then those of edges, each in the
            order given here, and whose results have the names of types of nodes. The argument of a
            graph is called ``author__writes__paper__edge_index``. A call also takes dictionaries as
            models of torch-geometric do: ``exe(x_dict, edge_index_dict, edge_attr_dict)``.

        Raises:
            InputError: if graphs, features and layers do not fit together.
        """
        builder, attrs = Builder(name), edge_attr or {}
        weights = [
            weight for layer in self.layers for p in _parts(layer) for weight in weights_of(p)
        ]
        specs = {kind: spec_of(given, weights) for kind, given in features.items()}
        if len({spec.dtype for spec in specs.values()}) > 1:
            raise _error("features differ in dtype", got=[spec.dtype for spec in specs.values()])
        for kind in attrs:
            _known("HeteroSequential", "graph of edges", kind, graphs)
        sizes = _sizes(specs)
        relations = dict(_relations(graphs, specs, sizes, attrs))
        given = {kind: GivenEdges(builder, relation) for kind, relation in relations.items()}
        xs = {
            kind: features_of(builder, features[kind], spec, sizes[kind], kind)
            for kind, spec in specs.items()
        }
        for edges in given.values():
            edges.take_features()
        contexts = {kind: edges.context(xs[kind[0]], xs[kind[2]]) for kind, edges in given.items()}
        found = self._emit(HeteroContext(builder, contexts), xs)
        for kind in found if outputs is None else outputs:
            builder.output(_known("HeteroSequential", "features of", kind, found), kind)
        module = builder.module()
        state_paths(module.main, _paths(xs, relations))
        return module

    def _emit(self, context: HeteroContext, xs: Features) -> Features:
        nodes = Context(context.builder)
        for number, layer in enumerate(self.layers):
            name = f"{type(layer).__name__.lower()}_{number}"
            if isinstance(layer, HeteroLayer):
                xs = layer.emit_all(context, xs, name)
            else:
                xs = {kind: apply(nodes, layer, x, f"{name}.{kind}") for kind, x in xs.items()}
        return xs


def _parts(layer: Layer | HeteroLayer) -> tuple[Layer, ...]:
    return layer.parts if isinstance(layer, HeteroLayer) else (layer,)


def _relations(
    graphs: Mapping[EdgeType, Graph | GraphInput],
    specs: Mapping[str, Spec],
    sizes: Mapping[str, int | str],
    attrs: Mapping[EdgeType, Any],
) -> Iterator[tuple[EdgeType, Relation]]:
    """The edges of each type, and the numbers of nodes at their ends."""
    if not graphs:
        raise _error("there is no graph")
    for kind, graph in graphs.items():
        _check_edge_type("HeteroSequential", kind)
        if not isinstance(graph, (Graph, GraphSpec, EdgeListSpec)):
            expected = "gnn.EdgeListSpec, gnn.GraphSpec or gnn.Graph"
            raise _error(f"not a graph of edges {kind}", expected, type(graph).__name__)
        spec, _ = (_known("HeteroSequential", "features of", kind[n], specs) for n in (0, 2))
        sources, targets, fixed = sizes[kind[0]], sizes[kind[2]], graph.num_nodes
        if fixed is not None and {sources, targets} != {fixed}:
            fact = f"the graph of edges {kind} does not have as many nodes as their types"
            raise _error(fact, f"{sources} and {targets}", fixed)
        name = "__".join(kind)
        symbol = _symbols(map("__".join, graphs), "edges")[name]
        relation = Relation(graph, spec.dtype, sources, targets, f"{name}__", attrs.get(kind))
        yield kind, replace(relation, symbol=symbol)


def _paths(
    features: Iterable[str], relations: Mapping[EdgeType, Relation]
) -> dict[str, tuple[Key, ...]]:
    """The places of arguments in the dictionaries that models of torch-geometric take."""
    found: dict[str, tuple[Key, ...]] = {kind: ("x_dict", kind) for kind in features}
    for kind, relation in relations.items():
        for name in ("edge_index", "edge_weight", "edge_attr"):
            found[f"{relation.prefix}{name}"] = (f"{name}_dict", kind)
        found[f"{relation.prefix}graph"] = ("edge_index_dict", kind)
    return found


def _sizes(specs: Mapping[str, Spec]) -> dict[str, int | str]:
    """The number of nodes of each type."""
    symbols = _symbols(specs, "nodes")
    sizes = {kind: spec.shape[0] for kind, spec in specs.items()}
    return {kind: symbols[kind] if size is None else size for kind, size in sizes.items()}


def _symbols(names: Iterable[str], what: str) -> dict[str, str]:
    """A symbolic size for each name, which differs from all others."""
    found = dict[str, str]()
    for name in names:
        plain = re.sub(r"\W", "_", name)
        symbol = f"{plain}_{what}" if plain[:1].isalpha() else f"{what}_{plain}"
        found[name] = f"{symbol}_{len(found)}" if symbol in found.values() else symbol
    return found


def _check_layers(subject: str, layers: object) -> None:
    """Refuse what is not a dictionary with a layer in it."""
    if not isinstance(layers, Mapping):
        raise error(subject, "not a dictionary of layers", "{type: layer}", type(layers).__name__)
    if not layers:
        raise error(subject, "there is no layer")


def _check_edge_type(subject: str, kind: object) -> None:
    names = kind if isinstance(kind, tuple) else ()
    if len(names) != 3 or not all(isinstance(name, str) for name in names):
        raise error(subject, "not a type of edges", "(source, name, target)", repr(kind))


def _known(subject: str, what: str, kind: Any, known: Mapping[Any, Any]) -> Any:
    if kind not in known:
        expected = ", ".join(map(str, known))
        raise error(subject, f"{what} {kind} not given", expected)
    return known[kind]


def _error(fact: str, expected: object = None, got: object = None) -> InputError:
    return error("HeteroSequential", fact, expected, got)
