"""An ONNX model becomes a module of the `graph` dialect."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block

from ...core.errors import ImportModelError
from ...core.ir.module import Module
from ...core.ir.provenance import named
from ...core.ir.weights import WeightStore
from ...core.pipelines.decisions import Decision
from ..importing.diagnostics import (
    BlockedError,
    BranchError,
    LeftToDefinitionError,
    Problem,
    UnsupportedNodeError,
    unsupported,
)
from ..importing.dtypes import tensor_type
from ..importing.emitter import Emitter, hint
from ..importing.program import module_of
from ..importing.values import Value, static_shape
from .diagnostics import broken
from .dtypes import is_text, number_of_texts, numpy_dtype
from .files import ExternalData
from .functions import definition, functions_of, with_defaults
from .loading import default_domain, load, opsets
from .nodes import Node
from .ordering import label, ordered
from .registry import converter, load_conversions
from .results import check_counts, converted, wanted
from .schemas import schema_of
from .scopes import NameScope, attributes_of
from .sequences import Tensors, element_of, joined, results_of
from .signature import OnnxInput, Shapes, declared_sizes, read_inputs
from .tensors import array_of, check_together, numbers_of_texts
from .texts import with_texts

_MOST_NODES = 200_000  # after the functions of the model are expanded
_DEEPEST_CALL = 64


def import_model(
    source: object, name: str, data: ExternalData, shapes: Shapes | None = None
) -> Module:
    """The module of a model; see `stepwell.from_onnx`.

    Args:
        source: a `ModelProto`, or the bytes of one.
        name: what the bytes are, for errors.
        data: the external data.
        shapes: the shapes of inputs.

    Raises:
        ImportModelError: if the model is not valid ONNX, or has unsupported nodes.
    """
    load_conversions()
    return _Importer(load(source, name), data).run(shapes)


class _Importer:
    def __init__(self, model: ModelProto, data: ExternalData) -> None:
        self.model = model
        self.data = data
        self.weights = WeightStore()
        self.problems: list[Problem] = []
        self.withheld: list[Problem] = []
        """Results that cannot be expressed, which are problems where an output needs one."""
        self.functions = functions_of(model)
        self.nodes_left = _MOST_NODES
        self.decisions: list[Decision] = []
        self.texts: dict[str, int] = {}
        """The strings of the model, and their numbers."""

    def run(self, shapes: Shapes | None) -> Module:
        graph = self.model.graph
        scope = NameScope(opsets(self.model.opset_import), declared=declared_sizes(graph))
        self._initialisers(graph, scope)
        inputs, tensors = read_inputs(graph, set(scope.values), shapes)
        self.problems += tensors.problems
        names = [info.name for info in graph.output]
        if not names:
            raise broken("the graph has no outputs")
        for name, count in Counter(names).items():
            if not name:
                raise broken("an output has no name")
            if count > 1:
                raise broken(f'output "{name}" is listed twice')
        self._arguments(graph, inputs, tensors, scope)
        self._convert_all(ordered(graph.node, scope.values), scope)
        outputs = self._outputs(graph, scope)
        for spec in inputs if not self.texts else ():
            if spec.is_text:
                error = UnsupportedNodeError("strings that the model compares with none")
                self._problem(f'input "{spec.name}"', error)
        if self.problems:
            raise unsupported("onnx", self.problems)
        given = [(i.name, i.shape) for i in inputs]
        texts = tuple(self.texts)
        labels = {i.name: texts for i in inputs if i.is_text} | {name: texts for name, _ in outputs}
        multiples = self.emitter.multiples
        module = module_of(self.body, self.weights, given, outputs, multiples, labels=labels)
        module.decisions = tuple(self.decisions)
        return module

    # Constants and arguments

    def _initialisers(self, graph: GraphProto, scope: NameScope) -> None:
        check_together(graph.initializer)
        for tensor in graph.initializer:
            if not tensor.name:
                raise broken("an initialiser has no name")
            if tensor.name in scope.values:
                raise broken(f'value "{tensor.name}" is defined twice', origin="initialisers")
            if tensor.data_type == TensorProto.STRING:
                array = numbers_of_texts(tensor, self.texts, f'onnx: initialiser "{tensor.name}"')
                facts = array.dtype, static_shape(array), array
                scope.values[tensor.name] = Value(tensor.name, *facts, stored=True, is_text=True)
                continue
            try:
                array = array_of(tensor, self.data, f'onnx: initialiser "{tensor.name}"')
            except UnsupportedNodeError as error:
                self._problem(f'initialiser "{tensor.name}"', error)
                scope.values[tensor.name] = None
                continue
            shape = static_shape(array)
            scope.values[tensor.name] = Value(tensor.name, array.dtype, shape, array, stored=True)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            error = UnsupportedNodeError("sparse tensors are not supported", "dense initialisers")
            self._problem(f'sparse initialiser "{name}"', error)
            scope.values[name] = None

    def _arguments(
        self, graph: GraphProto, inputs: Sequence[OnnxInput], tensors: Tensors, scope: NameScope
    ) -> None:
        """Create the body of the program, with one argument for each input."""
        usable: list[tuple[OnnxInput, TensorType]] = []
        for info in graph.input:
            scope.values.setdefault(info.name, None)
        for spec in inputs:
            try:
                usable.append((spec, tensor_type(spec.dtype, spec.shape)))
            except UnsupportedNodeError as error:
                self._problem(f'input "{spec.name}"', error)
        self.body = Block(arg_types=[kind for _, kind in usable])
        taken = {name for spec, _ in usable for dim in spec.shape for name in dim.symbols}
        self.emitter = Emitter(self.body, self.weights, taken, self.texts)
        made: dict[str, Value] = {}
        for (spec, _), argument in zip(usable, self.body.args, strict=True):
            argument.location = named(spec.name)
            hint(argument, spec.name)
            value = Value(spec.name, spec.dtype, spec.shape, ssa=argument, is_text=spec.is_text)
            made[spec.name] = value
            self.emitter.hold(value)
        scope.values |= {name: value for name, value in made.items() if name in scope.values}
        scope.values |= {name: joined(own, made) for name, own in tensors.of.items()}

    def _problem(self, part: str, error: UnsupportedNodeError) -> None:
        self.problems.append(Problem(part, None, error.reason, error.closest))

    # Nodes

    def _convert_all(self, nodes: Sequence[NodeProto], scope: NameScope) -> None:
        self.nodes_left -= len(nodes)
        if self.nodes_left < 0:
            raise broken(f"more than {_MOST_NODES} nodes once functions are expanded")
        for proto in nodes:
            try:
                results = self._convert(proto, scope)
            except BlockedError:
                results = []
            except BranchError as error:
                if error.error is not None:
                    raise error.error from error
                self.problems += error.problems
                results = []
            except UnsupportedNodeError as error:
                self.problems.append(self._problem_of(proto, scope, error))
                results = []
            self._define(proto, results, scope)

    def _problem_of(
        self, proto: NodeProto, scope: NameScope, error: UnsupportedNodeError
    ) -> Problem:
        domain = default_domain(proto.domain)
        operator = f"{domain}.{proto.op_type}" if domain else proto.op_type
        what = f"{operator} (opset {scope.opsets.get(domain)})"
        part = f'node "{scope.prefix}{label(proto)}"'
        return Problem(part, what, error.reason, error.closest)

    def _define(self, proto: NodeProto, results: Sequence[Value | None], scope: NameScope) -> None:
        for index, name in enumerate(proto.output):
            if not name:
                continue
            value = results[index] if index < len(results) else None
            if value is not None and not value.name:
                value.name = name
                if value.ssa is not None:
                    hint(value.ssa, name)
            if value is not None and value.ssa is not None:
                self.emitter.hold(value)
            scope.values[name] = value

    def _convert(self, proto: NodeProto, scope: NameScope) -> Sequence[Value | None]:
        """The results of a node; empty if an operand is the result of an unsupported node."""
        domain = default_domain(proto.domain)
        name = scope.prefix + label(proto)
        attributes = attributes_of(proto, name, scope)
        read = [n if n not in scope.absent else "" for n in proto.input]
        inputs = [scope.values[n] if n else None for n in read]
        blocked = any(n and value is None for n, value in zip(read, inputs, strict=True))
        function = self.functions.get((domain, proto.op_type, proto.overload))
        if function is not None:
            call = NameScope(opsets(function.opset_import), {}, name + "/", depth=scope.depth + 1)
            if blocked:
                return []
            self._call(function, inputs, attributes, call)
            return call.results(function.output)
        opset = scope.opsets.get(domain)
        if opset is None:
            raise broken(f'domain "{domain}" is not imported', origin=f'node "{name}"')
        schema = schema_of(domain, proto.op_type, opset)
        check_counts(proto, name, schema)
        convert = functools.partial(self._subgraph, scope=scope, name=name)
        branch = functools.partial(self._branch, scope=scope, name=name)
        facts = self.emitter, self.data, convert, branch, scope.declared
        node = Node(proto, name, opset, inputs, attributes, *facts)
        try:
            results = with_texts(node, converted(node, domain, blocked=blocked))
            reasons = map(UnsupportedNodeError, node.withheld.values())
            self.withheld += [self._problem_of(proto, scope, reason) for reason in reasons]
            subject, facts = f'{proto.op_type} "{name}"', ((name,), "graph", "from_onnx")
            made = [Decision(subject, *remark, *facts) for remark in node.remarks]
            # The body of a loop is converted several times.
            self.decisions += [one for one in made if one not in self.decisions]
            return results
        except UnsupportedNodeError as error:
            has_conversion = converter(domain, proto.op_type, opset) is not None
            if has_conversion and not isinstance(error, LeftToDefinitionError):
                raise
            if blocked or schema is None:
                raise
            body = definition(schema, proto, attributes, inputs, opset)
            if body is None:
                raise
            imports = {**scope.opsets, **opsets(body.opset_import)}
            call = NameScope(imports, {}, name + "/", depth=scope.depth + 1)
            results = self._expanded(body, inputs, with_defaults(schema, attributes), call, error)
            return wanted(node, results)

    def _expanded(
        self,
        body: FunctionProto,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        scope: NameScope,
        error: UnsupportedNodeError,
    ) -> list[Value | None]:
        """The results of a node without a conversion, by ONNX's definition of its operator.

        Raises:
            UnsupportedNodeError: if the definition needs what is not supported.
        """
        before, name = len(self.problems), scope.prefix[:-1]
        self._call(body, inputs, attributes, scope)
        if found := self.problems[before:]:
            del self.problems[before:]
            needed = f"{found[0].what or found[0].part} of its definition: {found[0].reason}"
            raise UnsupportedNodeError(f"{error.reason}; {needed}", error.closest)
        why = "ONNX defines it by other operators, and there is no conversion of its own"
        if isinstance(error, LeftToDefinitionError):
            why = f"ONNX defines it by other operators: {error.reason}"
        self.decisions.append(
            Decision(f'{body.name} "{name}"', "expanded", why, None, (name,), "graph", "from_onnx")
        )
        return [scope.values.get(name) for name in body.output]

    def _call(
        self,
        function: FunctionProto,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, AttributeProto],
        scope: NameScope,
    ) -> None:
        """Expand a function in place: its values are those of `scope` afterwards."""
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

    def _subgraph(
        self, graph: GraphProto, inputs: Sequence[Value], scope: NameScope, name: str
    ) -> list[Value]:
        """Convert a subgraph of a node in the current region; returns its outputs.

        Raises:
            BlockedError: if an output is the result of an unsupported node.
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
            raise BlockedError
        return results

    def _branch(
        self, graph: GraphProto, inputs: Sequence[Value], scope: NameScope, name: str
    ) -> list[Value]:
        """Convert a subgraph that need not be taken, like `_subgraph`.

        Raises:
            BranchError: if it is not valid, or has unsupported nodes.
        """
        before, withheld = len(self.problems), len(self.withheld)
        decisions, multiples = len(self.decisions), self.emitter.multiples.copy()
        error, results, blocked = None, list[Value](), False
        try:
            results = self._subgraph(graph, inputs, scope, name)
        except BlockedError:
            blocked = True
        except ImportModelError as raised:
            if self.nodes_left < 0:
                raise
            error = raised
        found = self.problems[before:] or (self.withheld[withheld:] if blocked else [])
        if blocked and not found:
            raise BlockedError  # of a value from outside
        if not found and error is None:
            return results
        del self.problems[before:], self.withheld[withheld:], self.decisions[decisions:]
        self.emitter.multiples = multiples
        failed = BranchError(found, error)
        subject = f'branch "{graph.name}" of "{name}"'
        facts = "left out", f"it cannot be converted: {failed}", None, (name,), "graph", "from_onnx"
        self.decisions.append(Decision(subject, *facts, kind="missed"))
        raise failed

    # The program

    def _outputs(self, graph: GraphProto, scope: NameScope) -> list[tuple[str, Value]]:
        outputs: list[tuple[str, Value]] = []
        blocked = False
        for info in graph.output:
            if info.name not in scope.values:
                raise broken(f'value "{info.name}" is not defined', origin="outputs")
            value = scope.values[info.name]
            if value is None:
                blocked = True
                continue
            try:
                parts = results_of(info.name, value)
                for name, part in parts:
                    self.emitter.ssa(part, named(name))
                    _check_declared(info, part)
                outputs += parts
            except UnsupportedNodeError as error:
                self._problem(f'output "{info.name}"', error)
        if blocked and not self.problems:
            self.problems += self.withheld
        return outputs


def _check_declared(info: ValueInfoProto, value: Value) -> None:
    """Compare the element type of an output with the declared one, if any."""
    kind = element_of(info.type)
    declared = number_of_texts(kind.tensor_type.elem_type)
    if is_text(kind) != value.is_text and kind.tensor_type.elem_type:
        raise UnsupportedNodeError("strings that are made in the model", "labels and their moves")
    if declared and numpy_dtype(declared) != value.dtype:
        raise broken(
            f'output "{info.name}" has another element type',
            expected=numpy_dtype(declared).name,
            got=value.dtype.name,
        )
