"""The operators of a model as a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import ConstantLike

from ..core.ir.public_function import specs_of
from ..core.ir.weights import WeightStore
from ..dialects.graph.ops.sources.constant import ConstantOp
from ..dialects.sparse_tensor import is_sparse
from .document import ModelEdge, ModelGraph, ModelOperator
from .marking import Marks, printed
from .weights import weight_of

_LINE = re.compile(r":\d+$")
"""The end of the name of a node without a name: that of a line of Python."""

_LONGEST = 200
"""The letters of an attribute, such as a table, that are shown."""


def model_graph(
    main: func.FuncOp, marks: Marks, nodes: Sequence[str], weights: WeightStore
) -> ModelGraph:
    """The operators of a function at the level of the graph dialect.

    Args:
        main: the function.
        marks: the numbers of nodes.
        nodes: their names.
        weights: the elements of constants.

    Raises:
        CompileError: if a constant has no elements there.
    """
    block, text = main.body.block, printed(main)
    lines = {op: text.line(line) for line, op in text.begun if op.parent is block}
    inputs, outputs = specs_of(main)
    numbers: dict[SSAValue, int] = {}
    operators: list[ModelOperator] = []
    edges: list[ModelEdge] = []
    constants: dict[ConstantOp, int] = {}

    def add(
        operator: ModelOperator, results: Sequence[SSAValue], operands: Iterator[SSAValue]
    ) -> None:
        known = dict.fromkeys(value for value in operands if value in numbers)
        edges.extend(ModelEdge(numbers[v], len(operators), _type(v.type)) for v in known)
        numbers.update(dict.fromkeys(results, len(operators)))
        operators.append(operator)

    for argument, spec in zip(block.args, inputs, strict=True):
        add(_end(spec.name, "input", str(spec)), [argument], iter(()))
    for op in block.ops:
        if isinstance(op, func.ReturnOp):
            for value, spec in zip(op.operands, outputs, strict=True):
                add(_end(spec.name, "output", str(spec)), [], iter([value]))
        elif not op.has_trait(ConstantLike):
            read = tuple(
                (name, constants.setdefault(value.owner, len(constants)))
                for name, value in _operands(op)
                if isinstance(value.owner, ConstantOp)
            )
            operator = replace(_operator(op, marks, nodes, lines[op]), weights=read)
            add(operator, op.results, _read(op))
    names = {key: name for name, key in weights.names.items()}
    found = (
        weight_of(names.get(op.key or "", op.key or "literal"), _type(op.type), op.array(weights))
        for op in constants
    )
    return ModelGraph(tuple(operators), tuple(edges), tuple(found))


def _end(name: str, kind: str, text: str) -> ModelOperator:
    return ModelOperator(name, kind, text, (), (), (), ())


def _operator(op: Operation, marks: Marks, names: Sequence[str], text: str) -> ModelOperator:
    nodes = tuple(dict.fromkeys(node for inner in op.walk() for node in marks.of(inner).nodes))
    name = names[nodes[0]] if nodes else op.name
    types = tuple(_type(result.type) for result in op.results)
    attributes = tuple((key, _value(value)) for key, value in op.properties.items())
    return ModelOperator(
        name, op.name, text, types, nodes, (), module_path(name), attributes=attributes
    )


def _operands(op: Operation) -> Iterator[tuple[str, SSAValue]]:
    """The operands of an operation with their names, without those that are absent."""
    definition = op.get_irdl_definition() if isinstance(op, IRDLOperation) else None
    for name, _ in [] if definition is None else definition.operands:
        value = getattr(op, name)
        values = () if value is None else (value,) if isinstance(value, SSAValue) else value
        yield from ((name, one) for one in values)


def _value(attribute: Attribute) -> str:
    """An attribute as people write it: a number without its type, a text without quotes."""
    match attribute:
        case IntegerAttr(value=value, type=type):
            return str(bool(value.data)).lower() if type == i1 else str(value.data)
        case FloatAttr(value=value):
            return str(value.data)
        case StringAttr(data=text):
            return text
        case DenseArrayBase():
            return str(list(cast("DenseArrayBase[Any]", attribute).get_values()))
        case ArrayAttr(data=parts):
            return f"[{', '.join(map(_value, parts))}]"
        case _:
            text = str(attribute)
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _read(op: Operation) -> Iterator[SSAValue]:
    """The values that an operation, or one in its regions, reads."""
    for inner in op.walk():
        yield from inner.operands


def _type(kind: Attribute) -> str:
    """A type in few letters: ``64x128 f32``."""
    if not isinstance(kind, TensorType):
        return str(kind)
    dims = "x".join("?" if size < 0 else str(size) for size in kind.get_shape())
    sparse = " sparse" if is_sparse(kind) else ""
    return f"{dims} {kind.element_type}{sparse}".strip()


def module_path(name: str) -> tuple[str, ...]:
    """The modules of a model that a node is in, from its name.

    Exporters write them in front of it: ``/layer1/layer1.0/conv1/Conv``, ``layer1.0.conv1``.
    """
    if _LINE.search(name):
        return ()
    parts = [part for part in re.split(r"[/]" if "/" in name else r"[.]", name) if part]
    return tuple(parts[:-1])
