"""The pages of what `import stepwell` and its layers have, from their docstrings."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any

from ...dialects.graph.op_builder import graph_operators
from ...frontends import gnn
from .documents import document_of
from .markdown import code, page, summary, table
from .operations import call_of, is_method, shapes_of

_GROUPS: dict[str, tuple[str, ...]] = {
    "Models": (
        *("from_onnx", "from_torch", "from_sklearn", "from_mlir", "Builder", "Module"),
        *("bind_params", "TensorSpec", "SparseSpec", "ValueSpec", "WeightStore"),
    ),
    "Programs": ("compile", "Executable", "export", "load", "Target", "progress"),
    "Passes and schedules": (
        *(
            "pipeline",
            "run_passes",
            "PassHook",
            "patterns",
            "to_mixed_precision",
            "schedule",
            "tune",
        ),
        *("bisect", "reduce", "Universe"),
    ),
    "Kernels and functions": ("kernel", "register_function"),
    "Kernels of GPUs": ("emulate", "Emulation", "assemble", "Assembly"),
    "Large graphs": ("partition", "Partition", "distribute", "out_of_core"),
    "Errors": (
        *("StepwellError", "InputError", "CompileError", "ImportModelError", "UnsupportedError"),
        *("TargetError", "MiscompilationError", "InternalError", "EmulationError", "DeviceError"),
    ),
}

_PACKAGE = importlib.import_module("...", __package__)
_RETURNED = (
    _PACKAGE.Executable,
    _PACKAGE.Emulation,
    _PACKAGE.Assembly,
    _PACKAGE.Partition,
)
"""Classes whose objects functions return: nobody calls their constructors."""

_IN_PARTS = (_PACKAGE.Builder,)
"""Classes that are cut into several, which users do not meet."""

_OPERATORS = """\
Every operator of the [dialect `graph`](graph.md) is a method, with the arguments of its
constructor, and `name=`, the name of the model's node in messages. Operands are values, arrays of
NumPy and SciPy, or numbers. A method returns the result, several as a tuple. The shapes are those
of the operator's example, in the order of its operands; n is a size that only a call has."""

_LAYERS = """\
`from stepwell.frontends import gnn`: layers, graphs, and inputs of models that are graphs; see
[graph networks](../graph-networks.md)."""

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)
_TITLES = {"Args": "argument", "Attributes": "attribute", "Raises": "raises"}
_ITEM = re.compile(r"^(\S.*?): ", re.MULTILINE)
_WIDTH = 80
_PAGE = re.compile(r"`?\bdocs/([\w/-]+)\.md`?")


def python_page() -> str:
    """The page of the names in `stepwell.__all__`."""
    listed = {name for names in _GROUPS.values() for name in names}
    if listed != set(_PACKAGE.__all__):
        raise ValueError(f"not in one group: {sorted(listed ^ set(_PACKAGE.__all__))}")
    return page(
        "# Python",
        "`import stepwell as sw`, and what it has.",
        *(part for title, names in _GROUPS.items() for part in _group(title, names)),
    )


def layers_page() -> str:
    """The page of the names in `stepwell.frontends.gnn`."""
    names = ((f"gnn.{name}", getattr(gnn, name)) for name in gnn.__all__)
    return page("# Layers of graph networks", _LAYERS, *chain.from_iterable(starmap(_entry, names)))


def _group(title: str, names: Sequence[str]) -> Iterator[str]:
    yield f"## {title}"
    for name in names:
        yield from _entry(f"sw.{name}", getattr(_PACKAGE, name))


def _entry(name: str, member: Any) -> Iterator[str]:
    """A function, or a class with its public methods and properties."""
    yield f"### {name} {{ #{name.replace('.', '-')} }}"
    is_class = inspect.isclass(member)
    if callable(member) and not (is_class and issubclass(member, (Exception, *_RETURNED))):
        yield code(_signature(name, member), "python")
    yield from _documentation(member)
    if not is_class:
        return
    shown = _members(member)
    yield table(("property", "what it is"), _properties(shown))
    owner = name.partition(".")[2]
    for key, value in shown.items():
        function = inspect.unwrap(getattr(value, "__func__", value))
        if inspect.isfunction(function) and inspect.getdoc(function):
            yield f"#### {owner}.{key} {{ #{owner}-{key} }}"
            yield code(_signature(f"{owner}.{key}", getattr(member, key)), "python")
            yield from _documentation(function)
    if member is _PACKAGE.Builder:
        yield from _operators()


def _members(owner: type) -> dict[str, Any]:
    """The public members of a class by their names, with those of the classes that it is cut in."""
    package = f"{_PACKAGE.__name__}."
    bases = owner.__mro__[1:]
    parts = [base for base in bases if owner in _IN_PARTS and base.__module__.startswith(package)]
    inherited = {key for base in bases if base not in parts for key in vars(base)}
    found = dict[str, Any]()
    for part in (owner, *parts):
        for key, value in vars(part).items():
            if not key.startswith("_") and key not in inherited:
                found.setdefault(key, value)
    return found


def _operators() -> Iterator[str]:
    """The operators that a builder has as methods."""
    yield "#### Operators of a Builder { #Builder-operators }"
    yield _OPERATORS
    yield table(
        ("call", "what it computes", "shapes"),
        (
            (f"[`{call_of(op)}`](graph.md#{op.name})", document_of(op).summary, shapes_of(op))
            for _, op in sorted(graph_operators().items())
            if is_method(op)
        ),
    )


def _properties(members: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, member in members.items():
        if isinstance(member, (property, functools.cached_property)):
            yield f"`{name}`", _linked(summary(member))


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A call with annotations and defaults, a parameter a line where it does not fit in one."""
    signature = inspect.signature(function)
    known = [p for p in signature.parameters.values() if p.name != "self"]
    parts = [_parameter(parameter) for parameter in known]
    named = [i for i, p in enumerate(known) if p.kind is p.KEYWORD_ONLY]
    if named and not any(p.kind is p.VAR_POSITIONAL for p in known):
        parts.insert(named[0], "*")
    result = signature.return_annotation
    returns = "" if result in (signature.empty, "None") else f" -> {result}"
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returns}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    annotated = parameter.annotation is not parameter.empty
    text = f"{stars}{parameter.name}" + (f": {parameter.annotation}" if annotated else "")
    if parameter.default is parameter.empty:
        return text
    default = repr(parameter.default)
    if default.startswith("<"):
        default = "..."
    return f"{text} = {default}" if annotated else f"{text}={default}"


def _documentation(member: Any) -> Iterator[str]:
    """A docstring in Markdown: its sections as tables."""
    text, *sections = _SECTION.split(inspect.getdoc(member) or "")
    yield _linked(text)
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        content = inspect.cleandoc(body)
        if title in _TITLES:
            _, *items = _ITEM.split(content)
            rows = zip(items[::2], items[1::2], strict=True)
            listed = [(f"`{name}`", _linked(text)) for name, text in rows]
            yield table((_TITLES[title], "when" if title == "Raises" else "what it is"), listed)
        else:
            yield f"{title}: {_linked(content)}"


def _linked(text: str) -> str:
    """Text in which pages of the documentation are links."""
    return _PAGE.sub(r"[\1](../\1.md)", text).replace("``", "`")
