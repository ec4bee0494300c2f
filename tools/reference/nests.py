"""The page of what an operator is given to say how it is computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ...dialects.graph.nests import scalars
from ...dialects.graph.nests.body import NAMES, KernelBody
from ...dialects.graph.nests.buffers import Buffer
from ...dialects.graph.nests.loops import KernelLoops
from ...dialects.graph.nests.nest import Nest, Places, Scalars
from .markdown import page, summary, table

_INTRODUCTION = """\
An [operator](../adding-an-operator.md#loops-of-its-own) says how it is computed in one of two ways.
`write(k, x, y)` opens loops and writes all elements, in the language of
[`sw.kernel`](../kernels-and-functions.md#what-a-kernel-can-use). `value_at(nest, index)` returns
the scalar at an index: its indices are affine expressions, its scalars are values of SSA."""

_WRITING = """\
Indices take `+ - < <= > >=`, and `* // %` by a number. Scalars take `+ - * / ** < <= > >=`,
negation, and where they are integers or conditions `& | ^ << >>`; beside each may be a number."""

_BUFFERS = """\
A buffer, which is an operand, a result, or what `k.local` returns, has `shape`, `dtype` and `type`,
the type in which its elements are computed; `x[i, j]` reads an element, and `y[i, j] = value`
writes one, once where it is that of a result. It also has:"""

_OF_OPERATORS = ("apply", "place", "scalar", "value")
"""What is offered beside the names of kernels."""

_SCALARS = """\
The functions of `stepwell.dialects.graph.nests.scalars` take the nest, in which they place their
operations. Where they take a `kind`, it is the element type that says how integers are compared
and divided; the scalars are in the type in which it is computed."""


def nests_page() -> str:
    """The page of what loops are written with, of nests, and of functions of scalars."""
    functions = [
        (name, function)
        for name, function in vars(scalars).items()
        if inspect.isfunction(function) and function.__module__ == scalars.__name__
    ]
    names = {*NAMES, *_OF_OPERATORS}
    writing = [*_methods(KernelLoops), *_methods(KernelBody)]
    return page(
        "# Nests",
        _INTRODUCTION,
        "## In `write`",
        _WRITING,
        _calls("k", [(name, method) for name, method in writing if name in names]),
        _BUFFERS,
        _calls("y", _methods(Buffer)),
        "## In `value_at`",
        _calls("nest", [*_methods(Scalars), *_methods(Places), *_methods(Nest)]),
        "## Functions of scalars",
        _SCALARS,
        _calls("scalars", functions),
    )


def _methods(kind: type) -> list[tuple[str, Callable[..., Any]]]:
    return [(name, method) for name, method in vars(kind).items() if inspect.isfunction(method)]


def _calls(owner: str, functions: Iterable[tuple[str, Callable[..., Any]]]) -> str:
    """A table of calls, each with the first paragraph of its docstring."""
    rows = [
        (f"`{owner}.{name}({_parameters(function)})`", summary(function))
        for name, function in functions
        if not name.startswith("_")
    ]
    return table(("call", "what it does"), rows)


def _parameters(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    named = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return ", ".join(map(str, named))
