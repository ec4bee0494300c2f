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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType, f32, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    OperandDef,
    OptOperandDef,
    RangeLengthConstraint,
    RangeOf,
    VarOperandDef,
)

from ...core.dtype_names import is_cut
from ...core.dtypes import ELEMENT_TYPES, dtype_of, element_type_of
from ...core.errors import explain
from ...core.ir.provenance import fuse, named
from ...core.registry import dialects, own_dialects
from .attrs import TensorConstraint
from .interfaces import GraphOp, element_type
from .ops.sources.constant import ConstantOp
from .traits import AddedByPasses

if TYPE_CHECKING:
    from xdsl.builder import Builder
    from xdsl.ir import Dialect, Operation

    from ...core.ir.weights import WeightStore

LARGEST_LITERAL = 16
"""The largest constant, in elements, that is not in the weight store."""

V = TypeVar("V")
"""A value of a builder: an operand or a result."""
Apply = Callable[..., Any]
"""`OpBuilder.apply`."""


class OpBuilder(ABC, Generic[V]):
    """Adds operators where they are needed.

    Every operator of the `graph` dialect is a method under its mnemonic with the arguments of its
    constructor. A number for an operand becomes a constant of the element type of the first operand
    that is a value; without one, of i64. For indices and sizes it is of i64, for conditions of i1.
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
        return _method(self.apply, type(self).__name__, graph_operators(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *graph_operators()})

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

        def operand(value: SSAValue | float, _: str, own: Attribute | None) -> SSAValue:
            if isinstance(value, SSAValue):
                return value
            kind = own or like
            if is_cut(value, dtype_of(kind)):
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
        self._parameters = known = parameters_of(operator)
        self._bound = known.bind(args, kwargs)
        for name, argument in self._bound.arguments.items():
            fills = known.signature.parameters[name].default is None or name in known.optional
            if argument is None and not fills:
                raise TypeError(f"{name} is None")
            if name in known.variadic and not isinstance(argument, (list, tuple)):
                self._bound.arguments[name] = [argument]
            elif name not in known.operands and isinstance(argument, str):
                self._bound.arguments[name] = ELEMENT_TYPES.get(argument, argument)

    @property
    def operands(self) -> list[Any]:
        """The operands that are given; those of a list are operands of their own."""
        return self._given(self._parameters.operands)

    @property
    def typed(self) -> list[Any]:
        """The operands whose element types depend on each other."""
        names = self._parameters.operands
        return self._given(name for name in names if name not in self._parameters.own_types)

    @property
    def attributes(self) -> dict[str, Any]:
        """The arguments that are not operands, by their names."""
        names = self._parameters.operands
        return {name: v for name, v in self._bound.arguments.items() if name not in names}

    def _given(self, names: Iterable[str]) -> list[Any]:
        lists = (
            (v, name in self._parameters.variadic)
            for name in names
            if (v := self._bound.arguments.get(name)) is not None
        )
        return [v for given, several in lists for v in (given if several else [given])]

    def convert(self, function: Callable[[Any, str, Attribute | None], Any]) -> None:
        """Replace each operand by what a function makes of it.

        It also gets the operand's name, and its element type if that is independent of the others.
        """
        self._bound = self._converted(function)

    def build(self, value_of: Callable[[Any], SSAValue]) -> GraphOp:
        """The operator, with an IR value for each operand.

        Raises:
            VerifyException: if they do not fit together.
        """
        bound = self._converted(lambda operand, *_: value_of(operand))
        return self._operator(*bound.args, **bound.kwargs)

    def _converted(
        self, function: Callable[[Any, str, Attribute | None], Any]
    ) -> inspect.BoundArguments:
        arguments = dict(self._bound.arguments)
        for name in self._parameters.operands:
            operand, own = arguments.get(name), self._parameters.own_types.get(name)
            if operand is not None and name in self._parameters.variadic:
                arguments[name] = [function(element, name, own) for element in operand]
            elif operand is not None:
                arguments[name] = function(operand, name, own)
        return inspect.BoundArguments(self._bound.signature, OrderedDict(arguments))


class OperatorParameters(NamedTuple):
    """The parameters of the constructor of an operator, and those that are operands."""

    signature: inspect.Signature
    operands: tuple[str, ...]
    optional: frozenset[str]
    variadic: frozenset[str]
    own_types: Mapping[str, Attribute]
    """Operands whose element type is independent of the others', with that of a number.

    They are indices, sizes or conditions beside operands that may be floats, or only have a size.
    """

    def bind(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """The parameters that arguments are for.

        Raises:
            TypeError: if they are not those of the constructor.
        """
        return self._bound(self.signature.bind, args, kwargs)

    def bind_term(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """The same for a term that matches an operator: it need not state all of them.

        Raises:
            TypeError: if they are not those of the constructor.
        """
        return self._bound(self._written.bind_partial, args, kwargs)

    @property
    def _written(self) -> inspect.Signature:
        """The parameters that people write: the type of the result follows from the others."""
        known = self.signature.parameters
        return inspect.Signature([known[name] for name in known if name != "result_type"])

    def _bound(
        self,
        bind: Callable[..., inspect.BoundArguments],
        args: Iterable[Any],
        kwargs: Mapping[str, Any],
    ) -> inspect.BoundArguments:
        try:
            return bind(*args, **kwargs)
        except TypeError as error:
            known = ", ".join(self._written.parameters)
            raise TypeError(f"{error}; it takes {known}") from None


@functools.cache
def parameters_of(operator: type[GraphOp]) -> OperatorParameters:
    """The parameters of the constructor of an operator."""
    operands = dict(operator.get_irdl_definition().operands)
    signature = inspect.signature(operator.__init__)
    optional = {name for name, kind in operands.items() if isinstance(kind, OptOperandDef)}
    variadic = {name for name, kind in operands.items() if isinstance(kind, VarOperandDef)}
    allowed = {name: _element_types(operand) for name, operand in operands.items()}
    others = [types for types in allowed.values() if types is not None]
    floats = any(f32 in types for types in others)
    own_types: dict[str, Attribute] = {}
    for name, types in allowed.items():
        if types is None and others:
            own_types[name] = i64
        elif types and floats and f32 not in types and (i64 in types or i1 in types):
            own_types[name] = i64 if i64 in types else i1
    return OperatorParameters(
        signature.replace(parameters=list(signature.parameters.values())[1:]),
        tuple(operands),
        frozenset(optional),
        frozenset(variadic - optional),
        own_types,
    )


def _element_types(operand: OperandDef) -> Sequence[Attribute] | None:
    """The element types that an operand may have; None if only its size matters."""
    constraint = operand.constr
    if isinstance(constraint, RangeLengthConstraint):
        constraint = constraint.constraint
    match constraint:
        case RangeOf(TensorConstraint(elements, storage)):
            return None if storage == "any" else elements
        case RangeOf(EqAttrConstraint(TensorType() as type)):
            return [type.element_type]
    return []


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
    """The operators on tensors of a dialect that builders have as methods, by mnemonic."""
    found = [op for op in dialect.operations if issubclass(op, GraphOp)]
    return {op.name.partition(".")[2]: op for op in found if not op.has_trait(AddedByPasses)}


@functools.cache
def signature_of(operator: type[GraphOp]) -> inspect.Signature:
    """The signature of the method of an operator: operands, attributes and `name`."""
    named = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
    taken = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters_of(operator).signature.parameters.values()
        if parameter.name != "result_type" and parameter.kind != parameter.VAR_KEYWORD
    ]
    return inspect.Signature([*taken, named])


@functools.cache
def graph_operators() -> Mapping[str, type[GraphOp]]:
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
