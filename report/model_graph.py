"""The operators of a model as a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import ConstantLike

from ..core.ir.public_function import specs_of
from ..dialects.sparse_tensor import is_sparse
from .document import ModelEdge, ModelGraph, ModelOperator
from .marking import Marks, printed

_LINE = re.compile(r":\d+$")
"""The end of the name of a node without a name: that of a line of Python."""


def model_graph(main: func.FuncOp, marks: Marks, nodes: Sequence[str]) -> ModelGraph:
    """The operators of a function at the level of the graph dialect.

    Args:
        main: the function.
        marks: the numbers of nodes.
        nodes: their names.
    """
    block, text = main.body.block, printed(main)
    lines = {op: text.line(line) for line, op in text.begun if op.parent is block}
    inputs, outputs = specs_of(main)
    numbers: dict[SSAValue, int] = {}
    operators: list[ModelOperator] = []
    edges: list[ModelEdge] = []

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
            add(_operator(op, marks, nodes, lines[op]), op.results, _read(op))
    return ModelGraph(tuple(operators), tuple(edges))


def _end(name: str, kind: str, text: str) -> ModelOperator:
    return ModelOperator(name, kind, text, (), (), (), ())


def _operator(op: Operation, marks: Marks, names: Sequence[str], text: str) -> ModelOperator:
    nodes = tuple(dict.fromkeys(node for inner in op.walk() for node in marks.of(inner).nodes))
    name = names[nodes[0]] if nodes else op.name
    types = tuple(_type(result.type) for result in op.results)
    return ModelOperator(name, op.name, text, types, nodes, (), module_path(name))


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
