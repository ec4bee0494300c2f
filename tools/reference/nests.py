"""The page of what an operator is given to say how it is computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ...dialects.graph import scalars
from ...dialects.graph.nests.nest import LocalBuffer, Nest, Scalars, WritingNest
from .markdown import page, table

_INTRODUCTION = """\
An [operator](../adding-an-operator.md#loops-of-its-own) says how it is computed in terms of a nest:
`value_at(nest, index)` returns the scalar at an index, `write(nest)` opens loops and writes all
elements. Indices are affine expressions, scalars are values of SSA."""

_SCALARS = """\
The functions of `stepwell.dialects.graph.scalars` take the nest, in which they place their
operations. Where they take a `kind`, it is the element type that says how integers are compared
and divided; the scalars are in the type in which it is computed."""


def nests_page() -> str:
    """The page of nests, of local buffers, and of functions of scalars."""
    functions = [
        (name, function)
        for name, function in vars(scalars).items()
        if inspect.isfunction(function) and function.__module__ == scalars.__name__
    ]
    return page(
        "# Nests",
        _INTRODUCTION,
        "## In `value_at` and in `write`",
        _calls("nest", [*_methods(Scalars), *_methods(Nest)]),
        "## In `write`",
        _calls("nest", _methods(WritingNest)),
        "What `nest.local` returns:",
        _calls("buffer", _methods(LocalBuffer)),
        "## Functions of scalars",
        _SCALARS,
        _calls("scalars", functions),
    )


def _methods(kind: type) -> list[tuple[str, Callable[..., Any]]]:
    return [(name, method) for name, method in vars(kind).items() if inspect.isfunction(method)]


def _calls(owner: str, functions: Iterable[tuple[str, Callable[..., Any]]]) -> str:
    """A table of calls, each with the first paragraph of its docstring."""
    rows = [
        (f"`{owner}.{name}({_parameters(function)})`", _summary(function))
        for name, function in functions
        if not name.startswith("_")
    ]
    return table(("call", "what it does"), rows)


def _parameters(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    named = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return ", ".join(map(str, named))


def _summary(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n\n")[0]
