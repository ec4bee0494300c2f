"""Pages with the operations and attributes of a dialect."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Dialect, ParametrizedAttribute

from ...core.registry import own_dialects
from ...dialects.graph.composite import CompositeOp
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.op_builder import signature_of
from ...dialects.graph.traits import AddedByPasses
from ...dialects.loop.ops import KernelOp
from ...dialects.sparse_tensor import is_sparse
from ...report.pseudo_code import pseudo_code
from .constraints import property_type, value_type
from .documents import Document, document_of
from .examples import example_of, kernel_example_of, parsed
from .markdown import code, folded, page, table
from .programs import program_example_of
from .semantics import numpy_source, source_of

_HIDDEN = frozenset({"operandSegmentSizes", "resultSegmentSizes"})
"""Properties that the text of an operation does not show."""

_NOT_APPLIED = frozenset({"graph.call_dps", "graph.call_packed", "graph.constant"})
"""Operators that have a method of another name in the builder, or are written by passes alone."""


def dialect_page(name: str) -> str:
    """The page of a dialect: its purpose, a table of its operations, and each of them."""
    dialect = own_dialects()[name]()
    families: dict[str, list[Any]] = {}
    for op in dialect.operations:
        families.setdefault(op.__module__, []).append(op)
    everything = sorted(dialect.operations, key=lambda op: op.name)
    listed = [(f"[`{op.name}`](#{op.name})", document_of(op).summary) for op in everything]
    # The docstring of the module that declares the dialect, without its first line.
    declaring = importlib.import_module(f"...dialects.{name}.dialect", __package__)
    purpose = (inspect.getdoc(declaring) or "").partition("\n\n")[2]
    return page(
        f"# The dialect `{name}`",
        purpose,
        table(("operation", "what it does"), listed),
        *(part for module, ops in families.items() for part in _family(module, ops)),
        *_attributes(dialect),
    )


def _family(module: str, operations: list[Any]) -> Iterator[str]:
    """The operations of a file, under what the file says that they are."""
    stated = inspect.getdoc(sys.modules[module]) or ""
    # The first sentence, without what follows a colon.
    sentence = " ".join(stated.partition("\n\n")[0].split()).partition(". ")[0]
    title = sentence.partition(": ")[0].removesuffix(".")
    yield f"## {title}"
    for op in operations:
        yield from _operation(op)


def _operation(op: Any) -> Iterator[str]:
    document, definition = document_of(op), op.get_irdl_definition()
    yield f"### `{op.name}` {{ #{op.name} }}"
    yield document.prose
    if is_method(op):
        yield f"`{call_of(op)}`"
    rows = [
        *((f"`{name}`", "operand", value_type(kind)) for name, kind in definition.operands),
        *(
            (f"`{name}`", "attribute", property_type(kind))
            for name, kind in definition.properties.items()
            if name not in _HIDDEN
        ),
        *((f"`{name}`", "result", value_type(kind)) for name, kind in definition.results),
    ]
    yield table(("name", "", "type"), rows)
    if definition.assembly_format is not None:
        yield folded("Syntax", code(f"{op.name} {definition.assembly_format}"))
    is_composite = issubclass(op, CompositeOp)
    if is_composite:
        yield folded("In other operators", code(source_of(op.body), "python"))
    if issubclass(op, GraphOp) and not (is_composite and op.reference is CompositeOp.reference):
        yield folded("In NumPy", code(numpy_source(op), "python"))
    yield from _run(document)


def is_method(op: Any) -> bool:
    """Whether an operation is a method of builders, with the arguments of its constructor."""
    applied = issubclass(op, GraphOp) and not op.has_trait(AddedByPasses)
    return applied and op.name not in _NOT_APPLIED


def call_of(op: Any) -> str:
    """The call of a builder that adds an operator: its arguments with their defaults."""
    parameters = str(signature_of(op))[1:-1].removesuffix(", *, name=None")
    return f"b.{op.name.partition('.')[2]}({parameters})"


def shapes_of(op: Any) -> str:
    """The shapes of the operands and results in the first example of an operator."""
    for ir in document_of(op).examples:
        for example in parsed(ir):
            if example.name == op.name:
                given, made = (
                    ", ".join(_shape(v.type) for v in values)
                    for values in (example.operands, example.results)
                )
                return f"{given} → {made}" if given else made
    return ""


def _shape(kind: Any) -> str:
    if not isinstance(kind, TensorType):
        return str(kind)
    sizes = ["n" if size == DYNAMIC_INDEX else str(size) for size in kind.get_shape()]
    return f"{'CSR ' if is_sparse(kind) else ''}[{', '.join(sizes)}]"


def _run(document: Document) -> Iterator[str]:
    """What the examples of an operator compute."""
    readers = {"program": program_example_of, "kernel": kernel_example_of, "example": example_of}
    for ir in document.examples:
        found = ((noun, example) for noun, read in readers.items() if (example := read(ir)))
        noun, example = next(found, ("", None))
        if example is None or not example.shown():
            continue
        if noun == "kernel":
            (kernel,) = parsed(ir)
            assert isinstance(kernel, KernelOp)
            yield folded("As NumPy", code("\n".join(line for line, _ in pseudo_code(kernel))))
        on = "On these operands the" if example.inputs else "The"
        yield f"{on} {noun} {'ends with' if example.error else 'gives'}"
        yield code(example.shown(), "text" if example.error else "python")


def _attributes(dialect: Dialect) -> Iterator[str]:
    kinds = [kind for kind in dialect.attributes if issubclass(kind, ParametrizedAttribute)]
    others = [kind for kind in dialect.attributes if kind not in kinds]
    if dialect.attributes:
        yield "## Attributes and types"
    for kind in sorted([*kinds, *others], key=lambda kind: kind.name):
        yield f"### `{kind.name}` {{ #{kind.name} }}"
        yield document_of(kind).prose
