"""`OpBuilder`: the operators of `graph` as methods, for all places that operators are added to.

A function that composes operators takes a builder `b`, and so works for a program in Python, for a
node of a model that is imported, and in a rewrite:

    def logit(b: OpBuilder[V], x: V) -> V:
        return b.log(b.div(x, b.sub(1, x)))

`op_builder.pyi`, which `make public` writes, has the signatures for editors and type checkers.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import OptOperandDef

from ...core.dtypes import ELEMENT_TYPES, dtype_of, element_type_of
from ...core.errors import explain
from ...core.provenance import fuse, named
from ...core.registry import dialects, own_dialects
from .attrs import is_float
from .interfaces import GraphOp, element_type
from .ops_constant import ConstantOp

if TYPE_CHECKING:
    from xdsl.builder import Builder
    from xdsl.ir import Dialect, Operation

    from ...core.weights import WeightStore

LARGEST_LITERAL = 16
"""The largest constant, in elements, that is not in the weight store."""

V = TypeVar("V")
"""A value of a builder: an operand or a result."""
Apply = Callable[..., Any]
"""`OpBuilder.apply`."""

OF_OWN_TYPE = frozenset(
    {"condition", "count", "indices", "indptr", "sizes", "sources", "start", "step", "targets"}
)
"""Operands whose element type is independent of that of the others."""


class OpBuilder(ABC, Generic[V]):
    """Adds operators where they are needed.

    Every operator of the `graph` dialect is a method under its mnemonic with the arguments of its
    constructor. A number for an operand becomes a constant of the element type of the first operand
    that is a value; for indices and the like, or without a value, of i64.
    """

    @abstractmethod
    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Add an operator, such as one of a plug-in, with the arguments of its constructor.

        Args:
            operator: its class.
            name: the name of the model's node in messages.

        Returns:
            Its result; a tuple if it has several.
        """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The operator called `name` as a method."""
        return _method(self.apply, type(self).__name__, _graph_operators(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_graph_operators()})

    @property
    def op(self) -> DialectOperators:
        """The operators of other dialects: ``b.op.row.normalize(x)`` is `row.normalize`."""
        return DialectOperators(self.apply)


class InsertingBuilder(OpBuilder[SSAValue]):
    """Inserts operators into IR, such as those that a rewrite replaces others by.

    Args:
        builder: where they are inserted; a `PatternRewriter` is one.
        sources: the operations whose locations they get.
        weights: where large constants are stored.
    """

    def __init__(
        self,
        builder: Builder,
        sources: Iterable[Operation],
        weights: WeightStore | None = None,
    ) -> None:
        self._builder = builder
        self._location = fuse(sources)
        self._weights = weights

    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        arguments = Arguments(operator, args, kwargs)
        kinds = (element_type(v) for v in arguments.typed if isinstance(v, SSAValue))
        like = next(kinds, i64)

        def operand(value: SSAValue | float, own: bool) -> SSAValue:
            if isinstance(value, SSAValue):
                return value
            kind = i64 if own else like
            if not is_float(kind) and not float(value).is_integer():
                raise TypeError(f"{operator.name}: {value} is not of type {kind}")
            return self.constant(np.array(value, dtype_of(kind)))

        arguments.convert(operand)
        op = arguments.build(lambda value: value)
        self._insert(op, self._location if name is None else named(name))
        return op.results[0] if len(op.results) == 1 else tuple(op.results)

    def insert(self, op: GraphOp, sources: Iterable[Operation] | None = None) -> SSAValue:
        """Insert an operator, and return its first result.

        Args:
            op: the operator.
            sources: the operations whose locations it gets; by default those of the builder.
        """
        return self._insert(op, self._location if sources is None else fuse(sources))

    def constant(self, array: np.ndarray, name: str = "constant") -> SSAValue:
        """A constant: in the text if it is small, else in the weight store."""
        if self._weights is None or array.size <= LARGEST_LITERAL:
            return self.insert(ConstantOp.literal(array))
        type = TensorType(element_type_of(array.dtype), array.shape)
        return self.insert(ConstantOp.resource(self._weights.add(name, array), type))

    def _insert(self, op: GraphOp, location: LocationAttr) -> SSAValue:
        op.location = location
        return self._builder.insert(op).results[0]


class Arguments:
    """The arguments of the constructor of an operator, whose operands are not IR values yet.

    Raises:
        TypeError: if the constructor does not take them.
    """

    def __init__(
        self, operator: type[GraphOp], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._operator = operator
        self._names, _, signature = operands_of(operator)
        self._bound = signature.bind(*args, **kwargs)
        for name, argument in self._bound.arguments.items():
            if isinstance(argument, str) and argument in ELEMENT_TYPES:
                self._bound.arguments[name] = ELEMENT_TYPES[argument]

    @property
    def operands(self) -> list[Any]:
        """The operands that are given; those of a list are operands of their own."""
        return self._given(self._names)

    @property
    def typed(self) -> list[Any]:
        """The operands whose element types depend on each other."""
        return self._given(name for name in self._names if name not in OF_OWN_TYPE)

    def _given(self, names: Iterable[str]) -> list[Any]:
        given = (self._bound.arguments.get(name) for name in names)
        lists = (v if isinstance(v, (list, tuple)) else [v] for v in given)
        return [v for values in lists for v in values if v is not None]

    def convert(self, function: Callable[[Any, bool], Any]) -> None:
        """Replace each operand by what a function makes of it.

        It also gets whether the element type is independent of that of the others.
        """
        self._bound = self._converted(function)

    def build(self, value_of: Callable[[Any], SSAValue]) -> GraphOp:
        """The operator, with an IR value for each operand.

        Raises:
            VerifyException: if they do not fit together.
        """
        bound = self._converted(lambda operand, _: value_of(operand))
        return self._operator(*bound.args, **bound.kwargs)

    def _converted(self, function: Callable[[Any, bool], Any]) -> inspect.BoundArguments:
        arguments = dict(self._bound.arguments)
        for name in self._names:
            operand, own = arguments.get(name), name in OF_OWN_TYPE
            if isinstance(operand, (list, tuple)):
                arguments[name] = [function(element, own) for element in operand]
            elif operand is not None:
                arguments[name] = function(operand, own)
        return inspect.BoundArguments(self._bound.signature, OrderedDict(arguments))


@functools.cache
def operands_of(
    operator: type[GraphOp],
) -> tuple[tuple[str, ...], frozenset[str], inspect.Signature]:
    """The operands of an operator, the optional ones, and the signature of its constructor."""
    operands = operator.get_irdl_definition().operands
    names = tuple(name for name, _ in operands)
    optional = frozenset(name for name, kind in operands if isinstance(kind, OptOperandDef))
    signature = inspect.signature(operator.__init__)
    return names, optional, signature.replace(parameters=list(signature.parameters.values())[1:])


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
    """The operators of a dialect that a builder can apply."""

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
    return operators_of(own_dialects()["graph"]())


def _method(
    apply: Apply, subject: str, known: Mapping[str, type[GraphOp]], name: str
) -> Callable[..., Any]:
    if name not in known:
        raise AttributeError(_unknown(subject, "operator", name, known))
    operator = known[name]

    def method(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        return apply(operator, *args, name=name, **kwargs)

    method.__name__, method.__doc__ = name, operator.__doc__
    method.__signature__ = signature_of(operator)  # type: ignore[attr-defined]
    return method


def _unknown(subject: str, what: str, name: str, known: Mapping[str, object]) -> str:
    near = ", ".join(difflib.get_close_matches(name, known, 3))
    return explain(subject, f'no {what} "{name}"', hint=f"nearest: {near}" if near else None)
