"""Graphs of `torch.fx` in core ATen, as `torch.compile` gives them to a backend.

Unlike an exported program such a graph takes its weights as inputs, and is one part of a model: its
inputs and results include sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.algebra.dims import Dim
from ...core.errors import StepwellError
from ...core.ir.module import Module
from ...core.ir.provenance import named
from ..importing.diagnostics import UnsupportedNodeError
from ..importing.program import module_of
from ..importing.shapes import transposed
from ..importing.values import Value
from .folding import folded
from .importer import Importer
from .library import library
from .nodes import Node
from .registry import load_conversions
from .results import ProgramResult, order_of, results_of
from .signature import TorchInput, read_input, unused


@dataclass(frozen=True)
class TorchGraph:
    """A graph that has been read.

    Attributes:
        module: the module; None if a part of the graph is not supported.
        inputs: for each input of the module, its position among the inputs of the graph.
        problems: the names of the nodes that are not supported, with the reasons.
        results: for each result of the graph, what the module computes, or its number if that is
            known.
    """

    module: Module | None
    inputs: tuple[int, ...]
    problems: Mapping[str, str]
    results: tuple[ProgramResult | int, ...] = ()


def read_graph(
    owner: Any, constants: Mapping[int, Any] | None = None, names: Mapping[str, str] | None = None
) -> TorchGraph:
    """Read the graph of a module of `torch.fx`.

    Args:
        owner: the module; its nodes have their results as fake tensors in ``meta["val"]``.
        constants: tensors for some of the inputs, by position; they are read without a copy.
        names: what the user calls inputs, by the names of their nodes.
    """
    load_conversions()
    try:
        return _GraphImporter(owner, names or {}).run(constants or {})
    except (StepwellError, UnsupportedNodeError) as error:
        nodes = [node.name for node in owner.graph.nodes if node.op == "call_function"]
        return TorchGraph(None, (), dict.fromkeys(nodes, str(error)))


class _GraphImporter(Importer):
    def __init__(self, owner: Any, names: Mapping[str, str]) -> None:
        super().__init__(owner, _ranges(owner))
        self.names = names
        self.given = [node for node in owner.graph.nodes if node.op == "placeholder"]
        self.results: list[ProgramResult | int] = []

    def run(self, constants: Mapping[int, Any]) -> TorchGraph:
        for number, tensor in constants.items():
            self.values[self.given[number]] = self.constant(str(self.given[number].name), tensor)
        self._fold({self.given[number]: tensor for number, tensor in constants.items()})
        inputs = self._inputs()
        self.arguments(inputs)
        self.convert_nodes()
        results = self._results()
        found = {
            fx.name: f"{target}: {reason}"
            for (target, reason, _), nodes in self.problems.targets.items()
            for fx in nodes
        }
        positions = tuple(self.given.index(spec.fx) for spec in inputs)
        if found:
            return TorchGraph(None, positions, found)
        specs = [(i.name, i.shape) for i in inputs]
        module = module_of(self.body, self.weights, specs, results, self.emitter.multiples)
        return TorchGraph(module, positions, found, tuple(self.results))

    def _inputs(self) -> list[TorchInput]:
        """The tensors that the graph takes, constants aside; first, their sizes get names."""
        tensors = [
            (fx, fx.meta["val"])
            for fx in self.given
            if hasattr(fx.meta.get("val"), "shape") and fx not in self.values
        ]
        taken: set[str] = set()
        for simple in (True, False):
            for fx, value in tensors:
                self._name_sizes(fx, value, simple, taken)
        inputs: list[TorchInput] = []
        for fx, value in tensors:
            try:
                found = read_input(fx, value, taken, self.sizes)
                inputs.append(replace(found, name=self.names.get(fx.name, fx.name)))
            except UnsupportedNodeError as error:
                for user in fx.users:
                    self.problems.node(user, error)
        return inputs

    def _name_sizes(self, fx: Any, value: Any, simple: bool, taken: set[str]) -> None:
        """Name the symbols among the sizes of a tensor, or what is computed of symbols."""
        for axis, size in enumerate(value.shape):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if expression is None or expression.is_Integer or expression.is_Symbol != simple:
                continue
            if not self.sizes.knows(str(expression)):
                self.sizes.name(str(expression), Dim.symbol(unused(f"{fx.name}_{axis}", taken)))

    def _fold(self, constants: Mapping[Any, Any]) -> None:
        """Take the results of nodes that depend on constants of indices alone, and their sizes."""
        torch = library()
        for fx, value in folded(self.owner, constants).items():
            pairs = [(fx.meta.get("val"), value)]
            if isinstance(value, torch.Tensor):
                self.values[fx] = self.constant(fx.name, value)
                pairs = list(zip(pairs[0][0].shape, value.shape, strict=True))
            elif isinstance(value, (tuple, list)):
                self.values[fx] = [self.constant(fx.name, part) for part in value]
            for size, number in pairs:
                expression = getattr(getattr(size, "node", None), "expr", None)
                if expression is not None and type(number) is int:
                    self.sizes.name(str(expression), Dim.of(number))

    def resolved(self, argument: Any) -> Any:
        """Arguments with values in the place of nodes; a size is that of a tensor so far."""
        is_input = getattr(argument, "op", None) == "placeholder" and argument not in self.values
        value = argument.meta.get("val") if is_input else None
        if is_input and not hasattr(value, "shape"):
            found = self.sizes.dim(value) if type(value).__name__ in ("SymInt", "int") else None
            if found is None:
                raise UnsupportedNodeError("takes a number that is no size")
            self.values[argument] = found
        return super().resolved(argument)

    def _results(self) -> list[tuple[str, Value]]:
        results: list[tuple[str, Value]] = []
        for number, fx in enumerate(results_of(self.owner.graph)):
            if fx not in self.values:
                continue
            try:
                if (value := self._result(fx)) is not None:
                    results.append((f"result{number}", value))
            except UnsupportedNodeError as error:
                self.problems.node(fx, error)
        return results

    def _result(self, fx: Any) -> Value | None:
        """What the program computes for a result; None for a size that is known."""
        value, is_number = self.values[fx], type(fx.meta["val"]).__name__ == "SymFloat"
        node = Node(fx, self.values, self.emitter, self.sizes, self)
        if isinstance(value, Dim):
            if value.is_static:
                self.results.append(value.value)
                return None
            value, is_number = node.number(value), True
        if not isinstance(value, Value):
            raise UnsupportedNodeError("its result is no tensor")
        order = None if is_number else order_of(fx)
        value = value if order is None else transposed(node, value, order)
        self.emitter.ssa(value, named(fx.name))
        self.results.append(ProgramResult(order, is_number, value.dtype))
        return value


def _ranges(owner: Any) -> Mapping[Any, Any]:
    """The bounds of the symbols of a graph."""
    for fx in owner.graph.nodes:
        value = fx.meta.get("val")
        for size in (value, *getattr(value, "shape", ())):
            if type(size).__name__ == "SymInt":
                return size.node.shape_env.var_to_range
    return {}
