"""The parts of a pattern: terms, each of which matches a value of a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import EllipsisType
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import ConstantLike, OpTrait

from ..dtypes import ELEMENT_TYPES, dtype_of
from ..errors import CompileError, explain

Kind = str | type[Operation] | Enum
"""The operator of a name, those of a class and its subclasses, or those that fuse in one way."""

Number = bool | int | float


class Term:
    """Matches a value. ``+ - * / @ **`` and unary ``-`` are operators, as in a builder.

    A term that occurs several times in a pattern matches the same value each time.
    """

    def __add__(self, other: Operand) -> Operator:
        return Operator(("graph.add",), (self, term_of(other)))

    def __radd__(self, other: Operand) -> Operator:
        return Operator(("graph.add",), (term_of(other), self))

    def __sub__(self, other: Operand) -> Operator:
        return Operator(("graph.sub",), (self, term_of(other)))

    def __rsub__(self, other: Operand) -> Operator:
        return Operator(("graph.sub",), (term_of(other), self))

    def __mul__(self, other: Operand) -> Operator:
        return Operator(("graph.mul",), (self, term_of(other)))

    def __rmul__(self, other: Operand) -> Operator:
        return Operator(("graph.mul",), (term_of(other), self))

    def __truediv__(self, other: Operand) -> Operator:
        return Operator(("graph.div",), (self, term_of(other)))

    def __rtruediv__(self, other: Operand) -> Operator:
        return Operator(("graph.div",), (term_of(other), self))

    def __pow__(self, other: Operand) -> Operator:
        return Operator(("graph.pow",), (self, term_of(other)))

    def __rpow__(self, other: Operand) -> Operator:
        return Operator(("graph.pow",), (term_of(other), self))

    def __matmul__(self, other: Operand) -> Operator:
        return Operator(("graph.matmul", "graph.spmm"), (self, term_of(other)))

    def __neg__(self) -> Operator:
        return Operator(("graph.neg",), (self,))

    def __bool__(self) -> bool:
        fact = "a term is neither true nor false"
        hint = "a pattern has no branches; use one_of, or when="
        raise CompileError(explain("pattern", fact, hint=hint))

    @property
    def parts(self) -> tuple[Term, ...]:
        """The direct subterms."""
        return ()


Operand = Term | Number
"""An operand of an operator of a pattern; a number matches a splat constant."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """The required properties of a value; None means any.

    Args:
        dtypes: its element type is one of these.
        shape: its sizes; None fits any size, and a leading ``...`` any dimensions.
        rank: the number of its dimensions.
        constant: whether it is known at compile time.
        number: the value of all elements of a literal constant.
        uses: the number of its uses.
        when: a predicate that it satisfies.
    """

    dtypes: tuple[str, ...] = ()
    shape: tuple[int | EllipsisType | None, ...] | None = None
    rank: int | None = None
    constant: bool | None = None
    number: Number | None = None
    uses: int | None = None
    when: Callable[[SSAValue], bool] | None = None

    def __post_init__(self) -> None:
        for name in self.dtypes:
            if name not in ELEMENT_TYPES:
                fact, expected = f'unknown element type "{name}"', ", ".join(ELEMENT_TYPES)
                raise CompileError(explain("pattern", fact, expected=expected))
        if self.shape is not None and ... in self.shape[1:]:
            raise CompileError(explain("pattern", "... must come first in a shape", got=self.shape))

    def broken_by(self, value: SSAValue) -> tuple[str, object] | None:
        """The property that a value violates, and what was expected; None if it satisfies all."""
        kind = value.type
        if self.dtypes or self.shape is not None or self.rank is not None:
            if not isinstance(kind, TensorType):
                return f"is {kind}", "a tensor"
            sizes = kind.get_shape()
            if self.dtypes and str(kind.element_type) not in self.dtypes:
                return f"is {kind}", "elements of " + " or ".join(self.dtypes)
            if self.rank is not None and len(sizes) != self.rank:
                return f"is {kind}", f"rank {self.rank}"
            if self.shape is not None and not _fits(sizes, self.shape):
                return f"is {kind}", f"shape {_text(self.shape)}"
        if self.constant is not None and is_constant(value) != self.constant:
            return ("is not a constant", "one") if self.constant else ("is a constant", "none")
        if self.number is not None and not is_number(value, self.number):
            return "is another value", f"a literal constant {self.number}"
        if self.uses is not None and (count := len(list(value.uses))) != self.uses:
            return f"is used {count} times", self.uses
        if self.when is not None and not self.when(value):
            return f"is {kind}", "what `when` accepts"
        return None


def _fits(sizes: tuple[int, ...], shape: tuple[int | EllipsisType | None, ...]) -> bool:
    wanted = shape
    if shape[:1] == (...,):
        wanted = shape[1:]
        sizes = sizes[len(sizes) - len(wanted) :] if len(sizes) >= len(wanted) else ()
    if len(sizes) != len(wanted):
        return False
    return all(
        w is None or (n == w and n != DYNAMIC_INDEX) for n, w in zip(sizes, wanted, strict=True)
    )


def _text(shape: tuple[int | EllipsisType | None, ...]) -> str:
    names = {None: "any", ...: "..."}
    return "[" + ", ".join(str(names.get(n, n)) for n in shape) + "]"  # type: ignore[call-overload]


def is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant of any dialect."""
    return _makes_constants(type(value.owner))


@cache
def _makes_constants(kind: type[Operation] | type[Block]) -> bool:
    return issubclass(kind, Operation) and kind.has_trait(ConstantLike)


def is_number(value: SSAValue, number: Number) -> bool:
    """Whether a value is a literal that is `number` everywhere, which floats are rounded to."""
    splat = getattr(value.owner, "splat", None)
    if splat is None or not isinstance(value.type, TensorType):
        return False
    element = value.type.element_type
    if isinstance(element, IntegerType):
        return splat == number
    rounded = dtype_of(element).type(number).item()
    # 0.0 == -0.0, but they are different literals.
    return splat == rounded and math.copysign(1, splat) == math.copysign(1, rounded)


@dataclass(eq=False)
class Wildcard(Term):
    """Any value that satisfies a constraint."""

    constraint: Constraint = field(default_factory=Constraint)
    name: str | None = None


@dataclass(eq=False)
class Rest(Term):
    """Any number of operands, of which a rule has a tuple."""


@dataclass(eq=False)
class Constrained(Term):
    """A term whose value also satisfies a constraint."""

    term: Term
    constraint: Constraint

    @property
    def parts(self) -> tuple[Term, ...]:
        return (self.term,)


@dataclass(eq=False)
class OneOf(Term):
    """The first alternative with which the whole pattern matches."""

    alternatives: tuple[Term, ...]

    @property
    def parts(self) -> tuple[Term, ...]:
        return self.alternatives


@dataclass(eq=False)
class Optional(Term):
    """A term, or nothing if the operand is optional."""

    term: Term

    @property
    def parts(self) -> tuple[Term, ...]:
        return (self.term,)


@dataclass(eq=False)
class Operator(Term):
    """The first result of an operator.

    Args:
        kinds: the operators, any of which matches.
        operands: a term for each operand in the order of its declaration, a tuple of terms
            for a variadic one, None for one that must be absent. Those left out at the end
            must be absent too, unless the last one is ``...``.
        attributes: required attributes: a value, or a predicate of the value.
        uses: the number of uses of the results.
        name: the name of the operator in a match.
        in_order: whether operands of a commutative operator match as they are written only.
        trait: a trait that the operator has.
    """

    kinds: tuple[Kind, ...]
    operands: tuple[Term | tuple[Term, ...] | EllipsisType | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    uses: int | None = None
    name: str | None = None
    in_order: bool = False
    trait: type[OpTrait] | None = None

    def __getitem__(self, number: int) -> Result:
        """The result with this number."""
        return Result(self, number)

    # Otherwise Python would iterate by `__getitem__`.
    __iter__ = None

    @property
    def parts(self) -> tuple[Term, ...]:
        flat = [t for o in self.operands for t in (o if isinstance(o, tuple) else (o,))]
        return tuple(t for t in flat if isinstance(t, Term))

    @property
    def text(self) -> str:
        """The kinds as text."""
        return " or ".join(_text_of(kind) for kind in self.kinds)

    def is_kind_of(self, op: Operation) -> bool:
        """Whether `op` is one of these operators."""
        known = any(_is_of_kind(op, kind) for kind in self.kinds)
        return known and (self.trait is None or op.has_trait(self.trait))


def _text_of(kind: Kind) -> str:
    if isinstance(kind, str):
        return kind
    return str(kind.value) if isinstance(kind, Enum) else getattr(kind, "name", kind.__name__)


def _is_of_kind(op: Operation, kind: Kind) -> bool:
    if isinstance(kind, str):
        return op.name == kind
    if isinstance(kind, Enum):
        return getattr(op, "fusion", None) == kind
    return isinstance(op, kind)


@dataclass(eq=False)
class Captured:
    """Any value of an attribute, also none, which a match names."""


@dataclass(eq=False)
class Result(Term):
    """A result, by its number, of an operator that has several."""

    operator: Operator
    number: int

    @property
    def parts(self) -> tuple[Term, ...]:
        return (self.operator,)


def term_of(operand: object) -> Term:
    """The term for an operand of a pattern.

    Raises:
        CompileError: if it is neither a term nor a number.
    """
    if isinstance(operand, Term):
        return operand
    if isinstance(operand, Number):
        return Wildcard(Constraint(number=operand))
    fact, got = "wrong operand", type(operand).__name__
    raise CompileError(explain("pattern", fact, expected="a term or a number", got=got))


def may_be(term: Term, op: Operation) -> bool:
    """Whether a term that matches results of operators may match one of `op`."""
    if isinstance(term, OneOf):
        return any(may_be(alternative, op) for alternative in term.alternatives)
    if isinstance(term, Constrained):
        return may_be(term.term, op)
    operator = term.operator if isinstance(term, Result) else term
    return isinstance(operator, Operator) and operator.is_kind_of(op)


def subterms(term: Term) -> Iterator[Term]:
    """A term and all its parts, each once, operands before users."""
    seen: set[Term] = set()
    stack: list[tuple[Term, Iterator[Term]]] = [(term, iter(term.parts))]
    while stack:
        current, parts = stack[-1]
        part = next(parts, None)
        if part is None:
            stack.pop()
            if current not in seen:
                seen.add(current)
                yield current
        elif part not in seen:
            stack.append((part, iter(part.parts)))
