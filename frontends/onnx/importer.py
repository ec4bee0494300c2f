"""`from_onnx`: an ONNX model becomes a module of the `graph` dialect."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)
from onnx.defs import OpSchema
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block

from ...core.module import Module
from ...core.provenance import named
from ...core.weights import WeightStore
from ..importing.diagnostics import Problem, UnsupportedNodeError, unsupported
from ..importing.emitter import Emitter, hint
from ..importing.nodes import LARGEST_FOLDED
from ..importing.program import module_of, tensor_type
from ..importing.values import Value, static_shape
from .diagnostics import broken
from .dtypes import numpy_dtype
from .loading import default_domain, load, opsets
from .nodes import LARGEST_CONSTANT, Node
from .ordering import label, ordered
from .registry import Evaluation, converter, evaluation, load_conversions, not_supported, schema_of
from .signature import Input, Size, declared_sizes, read_inputs
from .tensors import array_of, check_together

_MOST_NODES = 200_000  # after the functions of the model are expanded
_DEEPEST_CALL = 64


def from_onnx(
    source: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Mapping[str, Sequence[Size]] | None = None,
) -> Module:
    """Read an ONNX model.

    Initialisers go to the weight store by name (as constants even if they are also listed as
    inputs), and the names of nodes become the locations of operators. Shapes are inferred from the
    inputs; sizes that the model declares for other values are used where a shape is an operand of
    the call, which they then have to fit. Dropout and batch normalisation have their inference
    semantics.

    Args:
        source: path of a model, a serialised model, or a `ModelProto`, which is not changed.
            External data is only read from the folder of the path.
        shapes: input name -> shape that fixes (int) or renames (str) symbolic dimensions; None
            keeps a dimension. A symbol that is fixed for one input is fixed for all.

    Raises:
        ImportModelError: if the model cannot be read or is not valid ONNX (with the first error),
            or if it has unsupported nodes (with all of them, each with the closest supported
            feature).
    """
    load_conversions()
    model, folder = load(source)
    return _Importer(model, folder).run(shapes)


@dataclass
class _Scope:
    """The names of one graph, or of one call of a function of the model."""

    opsets: Mapping[str, int]
    values: dict[str, Value | None] = field(default_factory=dict)  # None for unsupported nodes
    prefix: str = ""
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)  # operands that a call omits
    depth: int = 0
    declared: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


class _BlockedError(Exception):
    """A node needs the result of an unsupported one, which is reported already."""


class _Importer:
    def __init__(self, model: ModelProto, folder: Path | None) -> None:
        self.model = model
        self.folder = folder
        self.weights = WeightStore()
        self.problems: list[Problem] = []
        self.functions = _functions(model)
        self.nodes_left = _MOST_NODES

    def run(self, shapes: Mapping[str, Sequence[Size]] | None) -> Module:
        graph = self.model.graph
        scope = _Scope(opsets(self.model.opset_import), declared=declared_sizes(graph))
        self._initialisers(graph, scope)
        inputs, problems = read_inputs(graph, set(scope.values), shapes)
        self.problems += problems
        _check_outputs(graph)
        self._arguments(graph, inputs, scope)
        self._convert_all(ordered(graph.node, scope.values), scope)
        outputs = self._outputs(graph, scope)
        if self.problems:
            raise unsupported("onnx", self.problems)
        return module_of(self.body, self.weights, [(i.name, i.shape) for i in inputs], outputs)

    # Constants and arguments

    def _initialisers(self, graph: GraphProto, scope: _Scope) -> None:
        check_together(graph.initializer)
        for tensor in graph.initializer:
            if not tensor.name:
                raise broken("an initialiser has no name")
            if tensor.name in scope.values:
                raise broken(f'value "{tensor.name}" is defined twice', origin="initialisers")
            scope.values[tensor.name] = self._initialiser(tensor)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            error = UnsupportedNodeError("sparse tensors are not supported", "dense initialisers")
            self._problem(f'sparse initialiser "{name}"', error)
            scope.values[name] = None

    def _initialiser(self, tensor: TensorProto) -> Value | None:
        try:
            array = array_of(tensor, self.folder, f'onnx: initialiser "{tensor.name}"')
        except UnsupportedNodeError as error:
            self._problem(f'initialiser "{tensor.name}"', error)
            return None
        return Value(tensor.name, array.dtype, static_shape(array), array, stored=True)

    def _arguments(self, graph: GraphProto, inputs: Sequence[Input], scope: _Scope) -> None:
        """Create the body of the program, with one argument for each input."""
        usable: list[tuple[Input, TensorType]] = []
        for info in graph.input:
            scope.values.setdefault(info.name, None)
        for spec in inputs:
            try:
                usable.append((spec, tensor_type(spec.dtype, spec.shape)))
            except UnsupportedNodeError as error:
                self._problem(f'input "{spec.name}"', error)
        self.body = Block(arg_types=[kind for _, kind in usable])
        taken = {name for spec, _ in usable for dim in spec.shape for name in dim.symbols}
        self.emitter = Emitter(self.body, self.weights, taken)
        for (spec, _), argument in zip(usable, self.body.args, strict=True):
            argument.location = named(spec.name)
            hint(argument, spec.name)
            value = Value(spec.name, spec.dtype, spec.shape, ssa=argument)
            scope.values[spec.name] = value
            self.emitter.hold(value)

    def _problem(self, part: str, error: UnsupportedNodeError, what: str | None = None) -> None:
        self.problems.append(Problem(part, what, error.reason, error.closest))

    # Nodes

    def _convert_all(self, nodes: Sequence[NodeProto], scope: _Scope) -> None:
        self.nodes_left -= len(nodes)
        if self.nodes_left < 0:
            raise broken(f"more than {_MOST_NODES} nodes once functions are expanded")
        for proto in nodes:
            try:
                results = self._convert(proto, scope)
            except _BlockedError:
                results = []
            except UnsupportedNodeError as error:
                opset = scope.opsets.get(default_domain(proto.domain))
                what = f"{_qualified(proto)} (opset {opset})"
                self._problem(f'node "{scope.prefix}{label(proto)}"', error, what)
                results = []
            self._define(proto, results, scope)

    def _define(self, proto: NodeProto, results: Sequence[Value | None], scope: _Scope) -> None:
        for index, name in enumerate(proto.output):
            if not name:
                continue
            value = results[index] if index < len(results) else None
            if value is not None and not value.name:
                value.name = name
                if value.ssa is not None:
                    hint(value.ssa, name)
            scope.values[name] = value

    def _convert(self, proto: NodeProto, scope: _Scope) -> Sequence[Value | None]:
        """The results of a node; empty if an operand is the result of an unsupported node."""
        domain = default_domain(proto.domain)
        name = scope.prefix + label(proto)
        attributes = _attributes(proto, name, scope)
        read = [n if n not in scope.absent else "" for n in proto.input]
        inputs = [scope.values[n] if n else None for n in read]
        blocked = any(n and value is None for n, value in zip(read, inputs, strict=True))
        function = self.functions.get((domain, proto.op_type, proto.overload))
        if function is not None:
            call = _Scope(opsets(function.opset_import), {}, name + "/", depth=scope.depth + 1)
            return [] if blocked else self._call(function, inputs, attributes, call)
        opset = scope.opsets.get(domain)
        if opset is None:
            raise broken(f'domain "{domain}" is not imported', origin=f'node "{name}"')
        _check_counts(proto, name, schema_of(domain, proto.op_type, opset))
        known = converter(domain, proto.op_type, opset)
        evaluate = evaluation(domain, proto.op_type, opset)
        if known is None and evaluate is None:
            raise not_supported(domain, proto.op_type, opset)
        convert = functools.partial(self._subgraph, scope=scope, name=name)
        facts = self.emitter, self.folder, convert, scope.declared
        node = Node(proto, name, opset, inputs, attributes, *facts)
        node.insist(known.only if known is not None else {})
        if blocked:
            return []
        results = _evaluated(node, evaluate, LARGEST_FOLDED if known else LARGEST_CONSTANT)
        if results is not None:
            return _checked(node, results)
        if known is None:
            raise not_supported(domain, proto.op_type, opset)
        converted = known.convert(node)
        return _checked(node, [converted] if isinstance(converted, Value) else list(converted))

    def _call(
        self,
        function: FunctionProto,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        scope: _Scope,
    ) -> list[Value | None]:
        """Expand a function of the model in place."""
        origin = f'node "{scope.prefix[:-1]}"'
        if scope.depth > _DEEPEST_CALL:
            raise broken(f'function "{function.name}" calls itself', origin=origin)
        if len(inputs) > len(function.input):
            raise broken(
                f'function "{function.name}" has too many operands',
                expected=len(function.input),
                got=len(inputs),
                origin=origin,
            )
        scope.values = dict(zip(function.input, inputs, strict=False))
        scope.absent = {n for n in function.input if scope.values.get(n) is None}
        for name in function.input:
            scope.values.setdefault(name, None)
        scope.attributes = {a.name: a for a in function.attribute_proto} | dict(attributes)
        self._convert_all(ordered(function.node, scope.values), scope)
        missing = [n for n in function.output if n not in scope.values or n in scope.absent]
        if missing:
            raise broken(f'value "{missing[0]}" is not defined', origin=origin)
        return [scope.values[name] for name in function.output]

    def _subgraph(
        self, graph: GraphProto, inputs: Sequence[Value], scope: _Scope, name: str
    ) -> list[Value]:
        """Convert a subgraph of a node in the current region; returns its outputs.

        Raises:
            _BlockedError: if an output is the result of an unsupported node.
        """
        origin = f'node "{name}"'
        if scope.depth > _DEEPEST_CALL:
            raise broken("subgraphs are nested too deep", origin=origin)
        if len(inputs) != len(graph.input):
            fact = "the subgraph has another number of inputs"
            raise broken(fact, expected=len(inputs), got=len(graph.input), origin=origin)
        own = {name for node in graph.node for name in node.output}
        own |= {value.name for value in (*graph.input, *graph.initializer)}
        # A constant of another region is no value of this one: each region has its own.
        seen = {
            known: value if value is None or value.contents is None else replace(value, ssa=None)
            for known, value in scope.values.items()
            if known not in own
        }
        depth, declared = scope.depth + 1, declared_sizes(graph)
        inner = replace(scope, values=seen, prefix=f"{name}/", depth=depth, declared=declared)
        self._initialisers(graph, inner)
        for info, value in zip(graph.input, inputs, strict=True):
            inner.values[info.name] = replace(value, name=info.name)
        self._convert_all(ordered(graph.node, inner.values), inner)
        missing = [info.name for info in graph.output if info.name not in inner.values]
        if missing:
            raise broken(f'value "{missing[0]}" is not defined', origin=origin)
        outputs = [inner.values[info.name] for info in graph.output]
        results = [value for value in outputs if value is not None]
        if len(results) < len(outputs):
            raise _BlockedError
        return results

    # The program

    def _outputs(self, graph: GraphProto, scope: _Scope) -> list[tuple[str, Value]]:
        outputs: list[tuple[str, Value]] = []
        for info in graph.output:
            if info.name not in scope.values:
                raise broken(f'value "{info.name}" is not defined', origin="outputs")
            value = scope.values[info.name]
            if value is None:
                continue
            try:
                self.emitter.ssa(value, named(info.name))
                _check_declared(info, value)
            except UnsupportedNodeError as error:
                self._problem(f'output "{info.name}"', error)
            outputs.append((info.name, value))
        return outputs


def _functions(model: ModelProto) -> dict[tuple[str, str, str], FunctionProto]:
    result: dict[tuple[str, str, str], FunctionProto] = {}
    for function in model.functions:
        key = (default_domain(function.domain), function.name, function.overload)
        if key in result:
            raise broken(f'function "{function.name}" is defined twice')
        result[key] = function
    return result


def _attributes(proto: NodeProto, name: str, scope: _Scope) -> dict[str, AttributeProto]:
    """The attributes of a node by name, with references resolved to those of the enclosing call."""
    result: dict[str, AttributeProto] = {}
    for attribute in proto.attribute:
        if attribute.name in result:
            fact = f'attribute "{attribute.name}" is given twice'
            raise broken(fact, subject=f"onnx.{proto.op_type}", origin=f'node "{name}"')
        if not attribute.ref_attr_name:
            result[attribute.name] = attribute
        elif attribute.ref_attr_name in scope.attributes:
            result[attribute.name] = scope.attributes[attribute.ref_attr_name]
    return result


def _check_counts(proto: NodeProto, name: str, schema: OpSchema | None) -> None:
    """Compare the numbers of operands and results with ONNX's declaration of the operator."""
    if schema is None:
        return
    counts = (
        ("operands", len(proto.input), schema.max_input),
        ("results", len(proto.output), schema.max_output),
    )
    for what, count, most in counts:
        if count > most:
            raise broken(
                f"too many {what}",
                subject=f"onnx.{proto.op_type}",
                expected=f"at most {most}",
                got=count,
                origin=f'node "{name}"',
            )


def _evaluated(node: Node, evaluate: Evaluation | None, limit: int) -> list[Value] | None:
    """The results of a node with small, known operands; None if it becomes an operator."""
    operands = [value.contents for value in node.inputs if value is not None]
    if evaluate is None or not operands:
        return None
    if any(contents is None or contents.size > limit for contents in operands):
        return None
    try:
        with np.errstate(all="ignore"):
            result = evaluate(node)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise node.broken(f"operands do not fit: {error}") from error
    if result is None or isinstance(result, Value):
        return None if result is None else [result]
    symbolic = [value.dtype for value in node.inputs if value is not None and value.is_symbolic]
    return [node.known(result, symbolic[0] if result.dtype == object else None)]


def _checked(node: Node, results: Sequence[Value | None]) -> Sequence[Value | None]:
    """`results`, after checks that all attributes were read and all used results are present."""
    unread = node.unread()
    if unread:
        raise node.unsupported(f"attribute {', '.join(unread)} is not supported")
    for index in range(len(node.outputs)):
        if node.wants(index) and (index >= len(results) or results[index] is None):
            raise node.unsupported(f"result {index} is not supported")
    return results


def _check_outputs(graph: GraphProto) -> None:
    names = [info.name for info in graph.output]
    if not names:
        raise broken("the graph has no outputs")
    for name, count in Counter(names).items():
        if not name:
            raise broken("an output has no name")
        if count > 1:
            raise broken(f'output "{name}" is listed twice')


def _check_declared(info: ValueInfoProto, value: Value) -> None:
    """Compare the element type of an output with the declared one, if any."""
    declared = info.type.tensor_type.elem_type
    if declared and numpy_dtype(declared) != value.dtype:
        raise broken(
            f'output "{info.name}" has another element type',
            expected=numpy_dtype(declared).name,
            got=value.dtype.name,
        )


def _qualified(proto: NodeProto) -> str:
    domain = default_domain(proto.domain)
    return f"{domain}.{proto.op_type}" if domain else proto.op_type
