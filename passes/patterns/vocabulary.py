"""The words of a pattern: operators by name, constraints, alternatives, optional operands."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Any

from xdsl.ir import Operation, SSAValue

from ...core.errors import CompileError, explain
from ...core.patterns.terms import (
    Constrained,
    Constraint,
    Kind,
    Number,
    OneOf,
    Operand,
    Operator,
    Optional,
    Term,
    Wildcard,
    term_of,
)
from ...core.registry import dialects
from ...dialects.graph.dialect import Graph
from ...dialects.graph.interfaces import FusionKind, GraphOp
from ...dialects.graph.op_builder import parameters_of

OPERATORS: dict[str, type[GraphOp]] = {
    op.name.partition(".")[2]: op for op in Graph.operations if issubclass(op, GraphOp)
}
"""The operators of the `graph` dialect by mnemonic."""


def value(
    term: Operand | None = None,
    *,
    dtype: str | Sequence[str] | None = None,
    shape: Sequence[int | EllipsisType | None] | None = None,
    rank: int | None = None,
    constant: bool | None = None,
    uses: int | None = None,
    when: Callable[[SSAValue], bool] | None = None,
) -> Term:
    """A value with properties; of a `term`, the same value with these properties as well.

    Args:
        term: a term that the value also matches; by default any.
        dtype: its element type, such as "f32", or the allowed ones.
        shape: its sizes; None fits any size, a leading ``...`` any dimensions.
        rank: the number of its dimensions.
        constant: whether it is known at compile time.
        uses: the number of its uses.
        when: a predicate of the value.
    """
    constraint = Constraint(
        dtypes=() if dtype is None else (dtype,) if isinstance(dtype, str) else tuple(dtype),
        shape=None if shape is None else tuple(shape),
        rank=rank,
        constant=constant,
        uses=uses,
        when=when,
    )
    return Wildcard(constraint) if term is None else Constrained(term_of(term), constraint)


def constant(number: Number | None = None) -> Term:
    """A constant; with a number, a literal all of whose elements have this value."""
    return Wildcard(Constraint(constant=True, number=number))


def one_of(*alternatives: Operand) -> Term:
    """One of several terms: the first with which the whole pattern matches."""
    if len(alternatives) < 2:
        raise CompileError(
            explain("one_of", "alternatives", expected="2 or more", got=len(alternatives))
        )
    return OneOf(tuple(map(term_of, alternatives)))


def optional(term: Operand) -> Term:
    """An operand that may be absent; a match then binds it to None."""
    return Optional(term_of(term))


def op(
    kind: Kind | str | tuple[Kind | str, ...] | list[Kind | str],
    /,
    *operands: Any,
    uses: int | None = None,
    name: str | None = None,
    **attributes: Any,
) -> Operator:
    """Any operator of a kind, including those of plug-ins and other dialects.

    Args:
        kind: its name ("swish.silu"), its class or a base class, how it fuses
            (`FusionKind`), or several of these.
        operands: terms in the order of the operands; ``...`` at the end for any others.
        uses: the number of uses of its results.
        name: its name in a match.
        attributes: values, or predicates of values; attributes not named here may be anything.

    Raises:
        CompileError: if there is no such operator, or it has no such attribute.
    """
    kinds = tuple(_kind(one) for one in (kind if isinstance(kind, (tuple, list)) else (kind,)))
    return _operator(kinds, [_operand(o) for o in operands], attributes, uses, name)


def call(operator: type[GraphOp]) -> Callable[..., Operator]:
    """An operator as a function of a pattern, with the arguments of its constructor."""
    parameters = parameters_of(operator)

    def term(
        *args: Any, uses: int | None = None, name: str | None = None, **kwargs: Any
    ) -> Operator:
        rest = args[-1:] == (...,)
        try:
            given = args[:-1] if rest else args
            bound = parameters.bind_term(given, kwargs).arguments
        except TypeError as error:
            raise CompileError(explain(operator.name, str(error))) from error
        operands = [
            _operand(bound.pop(key)) if key in bound else None for key in parameters.operands
        ]
        while operands and operands[-1] is None:
            operands.pop()
        return _operator((operator,), [*operands, *([...] if rest else [])], bound, uses, name)

    term.__name__, term.__doc__ = operator.name.partition(".")[2], operator.__doc__
    return term


def named(mnemonic: str) -> type[GraphOp]:
    """The operator of the `graph` dialect with this mnemonic.

    Raises:
        UnknownOperatorError: if there is none.
    """
    if mnemonic not in OPERATORS:
        raise UnknownOperatorError(mnemonic, OPERATORS)
    return OPERATORS[mnemonic]


class UnknownOperatorError(CompileError, AttributeError):
    """A pattern names an unknown operator; the message has the nearest names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = ", ".join(difflib.get_close_matches(name, list(known), 3))
        hint = f"nearest: {near}" if near else None
        super().__init__(explain("pattern", f'no operator "{name}"', hint=hint))


def _kind(kind: object) -> Kind:
    if isinstance(kind, FusionKind) or (isinstance(kind, type) and issubclass(kind, Operation)):
        return kind
    if not isinstance(kind, str):
        fact, expected = "wrong kind", "a name, a class of operations or a FusionKind"
        raise CompileError(explain("pattern", fact, expected=expected, got=repr(kind)))
    available = dialects()
    prefix = kind.partition(".")[0]
    operations = {o.name: o for o in available[prefix]().operations} if prefix in available else {}
    if kind not in operations:
        own = [f"graph.{name}" for name in OPERATORS]
        raise UnknownOperatorError(kind, dict.fromkeys([*operations, *own]))
    return operations[kind]


def _operand(operand: Any) -> Any:
    if operand is None or operand is ...:
        return operand
    if isinstance(operand, (list, tuple)):
        return tuple(map(term_of, operand))
    return term_of(operand)


def _operator(
    kinds: tuple[Kind, ...],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    uses: int | None,
    name: str | None,
) -> Operator:
    if ... in operands[:-1]:
        raise CompileError(explain("pattern", "... must come last among the operands"))
    result = Operator(kinds, tuple(operands), attributes, uses, name)
    for kind in kinds:
        definition = getattr(kind, "get_irdl_definition", None)
        if definition is None or isinstance(kind, (str, FusionKind)) or not hasattr(kind, "name"):
            continue
        known = [*definition().properties, *definition().attributes]
        for attribute in attributes:
            if attribute not in known:
                fact = f'no attribute "{attribute}"'
                expected = ", ".join(known) or "none"
                raise CompileError(explain(kind.name, fact, expected=expected))
        count, most = len(operands) - (... in operands), len(definition().operands)
        if count > most:
            fact = "too many operands"
            raise CompileError(explain(kind.name, fact, expected=most, got=count))
    return result
