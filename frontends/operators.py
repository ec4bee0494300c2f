"""Operators as methods of a `Builder`: those of `graph`, and those of any dialect by its name.

`operators.pyi`, which `make public` writes, has the signatures for editors and type checkers.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import explain
from ..core.registry import dialects
from ..dialects.graph.dialect import Graph
from ..dialects.graph.interfaces import GraphOp
from .operands import operands_of

if TYPE_CHECKING:
    from xdsl.ir import Dialect

    from .values import Operand

Apply = Callable[..., Any]
"""`Builder.apply`."""


class GraphOperators:
    """The operators of the `graph` dialect as methods."""

    apply: Apply

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The operator called `name` as a method."""
        return _method(self.apply, "Builder", _graph_operators(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_graph_operators()})

    @property
    def op(self) -> DialectOperators:
        """The operators of other dialects: ``b.op.row.normalize(x)`` is `row.normalize`."""
        return DialectOperators(self.apply)


class DialectOperators:
    """The dialects that are installed, each with its operators as functions."""

    def __init__(self, apply: Apply) -> None:
        self._apply = apply

    def __getattr__(self, name: str) -> OperatorsOf:
        known = dialects()
        if name not in known:
            raise AttributeError(_unknown("Builder", "dialect", name, known))
        return OperatorsOf(self._apply, known[name]())

    def __dir__(self) -> list[str]:
        return sorted(dialects())


class OperatorsOf:
    """The operators of a dialect that a `Builder` can apply."""

    def __init__(self, apply: Apply, dialect: Dialect) -> None:
        self._apply, self._dialect = apply, dialect

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = operators_of(self._dialect)
        return _method(self._apply, f'dialect "{self._dialect.name}"', found, name)

    def __dir__(self) -> list[str]:
        return sorted(operators_of(self._dialect))


def operators_of(dialect: Dialect) -> dict[str, type[GraphOp]]:
    """The operators on tensors of a dialect, by mnemonic."""
    found = [op for op in dialect.operations if issubclass(op, GraphOp)]
    return {op.name.partition(".")[2]: op for op in found}


def signature_of(operator: type[GraphOp]) -> inspect.Signature:
    """The signature of the method of an operator: operands, attributes and `name`."""
    _, _, constructor = operands_of(operator)
    named = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
    taken = [
        parameter.replace(annotation=parameter.empty)
        for parameter in constructor.parameters.values()
        if parameter.name != "result_type" and parameter.kind != parameter.VAR_KEYWORD
    ]
    return inspect.Signature([*taken, named])


@functools.cache
def _graph_operators() -> Mapping[str, type[GraphOp]]:
    return operators_of(Graph)


def _method(
    apply: Apply, subject: str, known: Mapping[str, type[GraphOp]], name: str
) -> Callable[..., Any]:
    if name not in known:
        raise AttributeError(_unknown(subject, "operator", name, known))
    operator = known[name]

    def method(*args: Operand, name: str | None = None, **kwargs: Operand) -> Any:
        return apply(operator, *args, name=name, **kwargs)

    method.__name__, method.__doc__ = name, operator.__doc__
    method.__signature__ = signature_of(operator)  # type: ignore[attr-defined]
    return method


def _unknown(subject: str, what: str, name: str, known: Mapping[str, object]) -> str:
    near = ", ".join(difflib.get_close_matches(name, known, 3))
    return explain(subject, f'no {what} "{name}"', hint=f"nearest: {near}" if near else None)
