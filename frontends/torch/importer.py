"""`from_torch`: a model of PyTorch becomes a module of the `graph` dialect."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.ir import Block

from ...core.algebra.dims import Dim, Shape
from ...core.errors import ImportModelError, InputError, explain
from ...core.ir.module import Module
from ...core.ir.provenance import named
from ...core.ir.public_function import state_example, state_paths
from ...core.ir.weights import WeightStore
from ...dialects.graph.sizes.guards import GUARDS, guards_attribute
from ..importing.diagnostics import BlockedError, Problem, UnsupportedNodeError, unsupported
from ..importing.emitter import Emitter, hint
from ..importing.program import module_of
from ..importing.values import Value, static_shape
from .callables import as_source, as_tensors
from .conditions import conditions
from .dtypes import array_of, numpy_dtype
from .exporting import exported
from .naming import argument_paths, automatic_shapes, given_sizes
from .nodes import Node
from .places import described
from .registry import closest, conversion, load_conversions
from .signature import TorchInput, output_names, read_inputs
from .sizes import TorchSizes
from .sparse import sparse_arguments


def from_torch(
    model: Any,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    dynamic: bool = False,
) -> Module:
    """Read a model of PyTorch.

    The model is exported with `torch.export`. Its inputs are the tensors in `args` and `kwargs`,
    flattened as torch flattens them, under the names of the exported program; a call takes them
    like that, or in dictionaries and sequences as the model does. Other arguments are constants.
    Weights go to the weight store under their qualified names, without a copy: a change of the
    model's weights after this call may or may not reach the module.

    Args:
        model: a `torch.nn.Module` in evaluation mode, a method of one (`net.encode`), a function, a
            `torch.export.ExportedProgram`, or the path of a ``.pt2`` file. A file can hold code:
            read only files that you trust.
        args: example inputs of a module or a function by position, tensors or arrays; their values
            do not matter. One tensor need not be in a tuple.
        kwargs: example inputs by name.
        dynamic_shapes: the dimensions of inputs that differ between calls, as
            `torch.export.export` takes them. A `torch.export.Dim` gives a dimension its name.
        dynamic: whether all dimensions of tensors differ between calls, as far as the model allows.
            As in `torch.compile`, a size that is 1 in the example stays 1.

    Raises:
        InputError: if the arguments do not fit the model, or it is in training mode.
        ImportModelError: if torch is not installed or cannot export the model, or if the program
            has unsupported operators (with all of them, each with the closest supported one).
    """
    model, args, kwargs = as_source(model), as_tensors(args), as_tensors(kwargs)
    if hasattr(args, "detach"):
        args = (args,)
    if dynamic:
        if dynamic_shapes is not None:
            raise InputError(explain("from_torch", "dynamic and dynamic_shapes exclude each other"))
        dynamic_shapes = automatic_shapes(model, args, kwargs)
    program = exported(model, args, kwargs, dynamic_shapes)
    given: dict[str, Any] = {}
    if dynamic_shapes is not None:
        given = given_sizes(model, program, args or (), kwargs or {}, dynamic_shapes)
    load_conversions()
    module = _ProgramImporter(program).run(given, sparse_arguments(args or (), kwargs or {}))
    if args is not None and dynamic_shapes is None:
        state_example(module.main)
    return module


@dataclass
class Problems:
    """The unsupported parts of a program: operators by target and reason."""

    parts: list[Problem] = field(default_factory=list)
    targets: dict[tuple[str, str, str | None], list[Any]] = field(default_factory=dict)

    def node(self, fx: Any, error: UnsupportedNodeError) -> None:
        self.targets.setdefault((str(fx.target), error.reason, error.closest), []).append(fx)

    def check(self) -> None:
        """Report all problems."""
        found = list(self.parts)
        for (target, reason, near), nodes in self.targets.items():
            count = "" if len(nodes) == 1 else f" {len(nodes)} times"
            first = "in " if len(nodes) == 1 else "first in "
            found.append(
                Problem(f"{target}{count}, {first}{described(nodes[0])}", None, reason, near)
            )
        if found:
            raise unsupported("from_torch", found)


class Importer:
    """Converts the nodes of a graph in core ATen.

    Args:
        owner: the module of `torch.fx` that has the graph, and the tensors that it names.
        ranges: the bounds of the symbols of the graph.
    """

    def __init__(self, owner: Any, ranges: Mapping[Any, Any]) -> None:
        self.owner = owner
        self.weights = WeightStore()
        self.problems = Problems()
        self.sizes = TorchSizes(ranges)
        self.values: dict[Any, Any] = {}
        self.arrays: dict[Any, Value] = {}

    def convert_nodes(self) -> None:
        """Convert all nodes between the inputs and the outputs."""
        for fx in self.owner.graph.nodes:
            if fx in self.values:
                continue
            if fx.op == "call_function":
                self._convert(fx)
            elif fx.op == "get_attr":
                self._attribute(fx)

    # Inputs and weights

    def arguments(self, inputs: Sequence[TorchInput]) -> None:
        """Create the body of the program, with one argument for each input."""
        self.body = Block(arg_types=[i.type for i in inputs])
        taken = {name for spec in inputs for dim in spec.shape for name in dim.symbols}
        self.emitter = Emitter(self.body, self.weights, taken)
        for dim, equal in self.sizes.derived.items():
            self.emitter.multiples.note(dim, equal)
        for spec, argument in zip(inputs, self.body.args, strict=True):
            argument.location = named(spec.name)
            hint(argument, spec.name)
            value = Value(spec.name, spec.dtype, spec.shape, ssa=argument)
            known = spec.fx.meta["val"]
            if hasattr(known, "shape"):
                self.values[spec.fx] = value
            else:
                # The node of a number stands for a size.
                size = self.emitter.size_of(self.emitter.ssa(value, named(spec.name)))
                self.sizes.name(str(known.node.expr), size)
                self.values[spec.fx] = size
            if spec.entries is None:
                self.emitter.hold(value)

    def constant(self, name: str, tensor: Any) -> Value:
        """A tensor under a name; one that several names have in common is one weight."""
        array = array_of(tensor, f'"{name}"')
        key = (array.ctypes.data, array.shape, array.strides, array.dtype)
        if array.size and key in self.arrays:
            return self.arrays[key]
        if not array.flags.c_contiguous:
            array = np.array(array, order="C")
        self.weights.add(name, array)
        value = Value(name, array.dtype, static_shape(array), array, stored=True)
        self.arrays[key] = value
        return value

    def _attribute(self, fx: Any) -> None:
        found = self.owner
        for part in str(fx.target).split("."):
            found = getattr(found, part, None)
        if hasattr(found, "detach"):
            self.values[fx] = self.constant(str(fx.target), found)
        elif hasattr(found, "graph"):
            self.values[fx] = found

    # Nodes

    def _convert(self, fx: Any) -> None:
        """Convert a node, or remember why it cannot be."""
        try:
            self.values[fx] = self._converted(fx)
        except BlockedError:
            return
        except UnsupportedNodeError as error:
            self.problems.node(fx, error)

    def _converted(self, fx: Any) -> Any:
        known = self._size(fx)
        if known is not None:
            return known
        target = _name_of(fx.target)
        convert = conversion(target)
        if convert is None:
            raise UnsupportedNodeError("no conversion", closest(target))
        args, kwargs = self.resolved(fx.args), self.resolved(fx.kwargs)
        self._check_graphs(args)
        for name in _LAYOUT:
            kwargs.pop(name, None)
        node = Node(fx, self.values, self.emitter, self.sizes, self)
        args = [node.dimension(arg) if type(arg).__name__ == "SymInt" else arg for arg in args]
        try:
            inspect.signature(convert).bind(node, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedNodeError(f"its arguments are not supported ({error})") from error
        return self._checked(node, convert(node, *args, **kwargs))

    # Subgraphs

    def _check_graphs(self, args: Sequence[Any]) -> None:
        """Report the operators without conversions in all graphs among arguments.

        Raises:
            BlockedError: if there are any.
        """
        graphs = [arg.graph for arg in args if hasattr(arg, "graph")]
        calls = [fx for graph in graphs for fx in graph.nodes if fx.op == "call_function"]
        operators = [fx for fx in calls if hasattr(fx.target, "_schema")]
        missing = [fx for fx in operators if conversion(_name_of(fx.target)) is None]
        for fx in missing:
            near = closest(_name_of(fx.target))
            self.problems.node(fx, UnsupportedNodeError("no conversion", near))
        if missing:
            raise BlockedError

    def inlined(self, owner: Any, given: Sequence[Any]) -> list[Any]:
        """Convert the graph of a module for values of its inputs; returns its results.

        Raises:
            BlockedError: if a result needs that of an unsupported node.
        """
        outer = self.owner, self.values
        self.owner, self.values = owner, {}
        try:
            inputs = [fx for fx in owner.graph.nodes if fx.op == "placeholder"]
            for fx, value in zip(inputs, given, strict=True):
                self.values[fx] = value
                self._learn(value, fx.meta.get("val"))
            self.convert_nodes()
            (results,) = owner.graph.output_node().args
            found = self.resolved(results)
            return found if isinstance(found, list) else [found]
        finally:
            self.owner, self.values = outer

    def in_region(self, owner: Any, given: Sequence[Any]) -> list[Any]:
        """The same in a region: nothing outside of it can use what is computed there."""
        with self._scope():
            return self.inlined(owner, [_apart(value) for value in given])

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """What becomes known of values within the context is forgotten after it."""
        outer = self.arrays, self.sizes, self.emitter.holders
        self.arrays = {key: _apart(value) for key, value in self.arrays.items()}
        self.sizes, self.emitter.holders = self.sizes.copy(), dict(self.emitter.holders)
        try:
            yield
        finally:
            self.arrays, self.sizes, self.emitter.holders = outer

    def _learn(self, value: Any, known: Any) -> None:
        """Name the symbols of what torch knows of a value."""
        if isinstance(value, Value) and hasattr(known, "shape"):
            self.sizes.learn(value.shape, known.shape)
        elif isinstance(value, Dim):
            self.sizes.learn((value,), (known,))

    def _size(self, fx: Any) -> Any:
        """The result of a node that computes with sizes alone; None if there is more to it."""
        value = fx.meta.get("val")
        if isinstance(value, (bool, float)):
            return value
        if type(value).__name__ == "SymBool":
            return self.sizes.relation(value) or value
        if isinstance(value, int) or type(value).__name__ == "SymInt":
            # What is no dimension may still be part of a demand, which is not converted.
            found = self.sizes.dim(value)
            return value if found is None and not hasattr(fx.target, "_schema") else found
        return None

    def resolved(self, argument: Any) -> Any:
        """Arguments with values in the place of nodes."""
        if isinstance(argument, (tuple, list)):
            return [self.resolved(part) for part in argument]
        if isinstance(argument, Mapping):
            return {name: self.resolved(part) for name, part in argument.items()}
        if not hasattr(argument, "op"):
            return argument
        if argument not in self.values:
            raise BlockedError
        return self.values[argument]

    def _checked(self, node: Node, result: Any) -> Any:
        """The results, which have the types and shapes that torch gives them."""
        given = list(result) if isinstance(result, (list, tuple)) else [result]
        for value, known in zip(given, node.results, strict=False):
            if isinstance(value, Value) and hasattr(known, "shape"):
                self._compare(node, value, known)
            self._learn(value, known)
            if not isinstance(value, Value) or not hasattr(known, "shape"):
                continue
            if not value.name:
                value.name = node.fx.name
            if value.ssa is not None:
                hint(value.ssa, node.fx.name)
                self.emitter.hold(value)
        return result

    def _compare(self, node: Node, value: Value, known: Any) -> None:
        dtype, shape = numpy_dtype(known.dtype), self.sizes.shape(known.shape)
        if value.dtype != dtype:
            raise node.unsupported(f"its result is {value.dtype.name} instead of {dtype.name}")
        pairs = zip(value.shape, shape, strict=False)
        apart = any(b is not None and (a - b).is_static and a != b for a, b in pairs)
        if apart or len(value.shape) != len(shape):
            raise node.unsupported(f"its result has shape {_text(value.shape)} here")


class _ProgramImporter(Importer):
    """The importer of exported programs."""

    def __init__(self, program: Any) -> None:
        super().__init__(program.graph_module, program.range_constraints)
        self.program = program
        self.signature = program.graph_signature

    def run(self, given: Mapping[str, Any], sparse: Collection[int]) -> Module:
        names = {symbol: dim.__name__ for symbol, dim in given.items()}
        inputs, problems = read_inputs(self.program, names, self.sizes, sparse)
        self.problems.parts += problems
        self.arguments(inputs)
        self._constants()
        self.convert_nodes()
        outputs = self._outputs(self.program.graph.output_node())
        self.problems.check()
        shapes = [(i.name, i.shape) for i in inputs]
        entries = {i.name: i.entries for i in inputs if i.entries is not None}
        module = module_of(
            self.body, self.weights, shapes, outputs, self.emitter.multiples, entries
        )
        state_paths(module.main, argument_paths(self.program))
        least = {symbol: int(dim.min) for symbol, dim in given.items()}
        if guards := conditions(self.program, self.sizes, least):
            module.main.attributes[GUARDS] = guards_attribute(guards)
        return module

    def _constants(self) -> None:
        """The parameters, buffers and constant tensors of the program, by their qualified names."""
        names: dict[str, str] = {}
        nodes = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        for spec in self.signature.input_specs:
            if spec.target is None or spec.arg.name not in nodes:
                continue
            fx = nodes[spec.arg.name]
            tensor = self.program.state_dict.get(spec.target)
            if tensor is None:
                tensor = self.program.constants.get(spec.target)
            try:
                if not hasattr(tensor, "detach"):
                    raise UnsupportedNodeError("an object that is no tensor", "a tensor")
                # What is not in the state has no name for callers, and so keeps its elements.
                held = tensor if spec.target in self.program.state_dict else tensor.clone()
                self.values[fx] = value = self.constant(spec.target, held)
                if held is tensor and value.contents is not None:
                    names[spec.target] = self.weights.add(spec.target, value.contents)
            except UnsupportedNodeError as error:
                self.problems.parts.append(
                    Problem(f'constant "{spec.target}"', None, error.reason, error.closest)
                )
        self.weights.names = names

    def _outputs(self, fx: Any) -> list[tuple[str, Value]]:
        outputs: list[tuple[str, Value]] = []
        specs, nodes = self.signature.output_specs, fx.args[0]
        names = output_names(self.program)
        for spec, result in zip(specs, nodes, strict=True):
            if spec.kind.name == "TOKEN":
                continue
            if spec.kind.name != "USER_OUTPUT":
                what = f'the model changes "{spec.target}" in each call'
                self.problems.parts.append(Problem(what, None, "state is not supported", None))
                continue
            name = next(names)
            if result is None or (hasattr(result, "op") and result not in self.values):
                continue
            try:
                outputs.append((name, self._output(name, result)))
            except UnsupportedNodeError as error:
                self.problems.parts.append(
                    Problem(f'output "{name}"', None, error.reason, error.closest)
                )
        if not outputs and not self.problems.targets and not self.problems.parts:
            raise ImportModelError(explain("from_torch", "the model returns no tensor"))
        return outputs

    def _output(self, name: str, result: Any) -> Value:
        value = self.resolved(result)
        if isinstance(value, Dim) or type(value).__name__ == "SymInt":
            node = Node(result, self.values, self.emitter, self.sizes, self)
            value = node.number(node.dimension(value))
        if not isinstance(value, Value):
            if not isinstance(value, (bool, int, float)):
                raise UnsupportedNodeError(f"{value!r} as a result", "tensors and numbers")
            array = np.array(value, np.float32 if isinstance(value, float) else None)
            value = Value(name, array.dtype, (), array)
        self.emitter.ssa(value, named(name))
        return value


def _apart(value: Any) -> Any:
    """A value for another region: a constant is one of its own there."""
    is_constant = isinstance(value, Value) and value.contents is not None
    return replace(value, ssa=None) if is_constant else value


_LAYOUT = ("device", "layout", "memory_format", "pin_memory", "non_blocking")
"""Arguments of operators that say where elements are, which has no meaning in the IR."""


def _name_of(target: Any) -> str:
    """The name of an operator, or of a function of Python such as ``_operator.mul``."""
    return str(target) if hasattr(target, "_schema") else f"{target.__module__}.{target.__name__}"


def _text(shape: Shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
