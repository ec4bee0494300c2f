"""Matching: bind the terms of a pattern to values by backtracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i1,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import Commutative

from ..errors import explain
from ..ir.dominance import dependents_between
from ..ir.provenance import origin
from .terms import (
    Captured,
    Constrained,
    Constraint,
    Operator,
    Optional,
    Result,
    Term,
    Wildcard,
    may_be,
    subterms,
)

State = Mapping[Term, SSAValue | Operation]
"""The bindings of terms: of an `Operator` to an operation, of others to values."""


@dataclass(frozen=True)
class MatchFailure:
    """Why an attempt failed, and how many terms were bound by then."""

    progress: int
    reason: str


@dataclass(frozen=True)
class Slot:
    """The values of an operation for one declared operand: none, one, or several."""

    label: str
    values: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Place:
    """Where a value occurred: as an operand of an operation, or as a result of a root."""

    op: Operation
    label: str | None = None

    def explain(self, fact: str, expected: object = None) -> str:
        """Describe what is wrong with the value."""
        fact = fact if self.label is None else f"operand {self.label} {fact}"
        return explain(described(self.op), fact, expected=expected)


def described(op: Operation) -> str:
    """An operation as messages name it: ``graph.dense (node "fc1")``."""
    where = origin(op)
    return f"{op.name} ({where})" if where else op.name


class Matcher:
    """Finds all bindings of terms to values of one block.

    Args:
        roots: the terms of the results, matched in order.
        block: the block that must contain all operators.
        failures: if given, receives the reasons why attempts failed.
    """

    def __init__(
        self, roots: Sequence[Term], block: Block | None, failures: list[MatchFailure] | None = None
    ) -> None:
        self.roots = roots
        self.block = block
        self.failures = failures

    def states(self, root: OpResult) -> Iterator[tuple[State, tuple[OpResult, ...]]]:
        """All bindings with this value as the first root, and the values of all roots."""
        for state in self._value(self.roots[0], root, Place(root.op), {}):
            yield from self._other_roots(state, (root,))

    def _other_roots(
        self, state: State, found: tuple[OpResult, ...]
    ) -> Iterator[tuple[State, tuple[OpResult, ...]]]:
        if len(found) == len(self.roots):
            if self._is_closed(state, found):
                yield state, found
            return
        term = self.roots[len(found)]
        candidates = [v for v in _candidates(term, state) if v not in found and may_be(term, v.op)]
        if not candidates:
            fact = f"no operator near it is result {len(found)} of the pattern"
            self._fail(state, found[0].op, fact)
        for value in candidates:
            for extended in self._value(term, value, Place(value.op), state):
                yield from self._other_roots(extended, (*found, value))

    def _is_closed(self, state: State, found: Sequence[SSAValue]) -> bool:
        """Whether the operators can be replaced as one: no other users of inner values."""
        ops = operations(state, found)
        for op in ops:
            for use in (use for r in op.results if r not in found for use in r.uses):
                if use.operation not in ops:
                    fact = f"is also used by {described(use.operation)}"
                    return self._fail(state, op, f"{fact}, but is not a result of the pattern")
        if len(found) > 1 and dependents_between(ops) is None:
            fact = "a root depends on another root through an operator outside the match"
            return self._fail(state, ops[-1], fact)
        return True

    def _value(self, term: Term, value: SSAValue, place: Place, state: State) -> Iterator[State]:
        """All bindings that extend `state` and bind a term to a value."""
        if isinstance(term, Result):
            yield from self._operator(term.operator, term.number, value, place, state)
        elif isinstance(term, Operator):
            yield from self._operator(term, 0, value, place, state)
        elif term in state:
            if state[term] is value:
                yield state
            else:
                self._fail(state, place, f"{_maker(value)}, not the value matched elsewhere")
        elif isinstance(term, Wildcard):
            if self._satisfies(term.constraint, value, place, state):
                yield {**state, term: value}
        else:
            for part in term.parts:
                for found in self._value(part, value, place, state):
                    if not isinstance(term, Constrained) or self._satisfies(
                        term.constraint, value, place, found
                    ):
                        yield {**found, term: value}

    def _satisfies(
        self, constraint: Constraint, value: SSAValue, place: Place, state: State
    ) -> bool:
        broken = constraint.broken_by(value)
        return broken is None or self._fail(state, place, *broken)

    def _operator(
        self, term: Operator, number: int, value: SSAValue, place: Place, state: State
    ) -> Iterator[State]:
        op = value.owner
        if not isinstance(op, Operation) or not term.is_kind_of(op):
            fact = "cannot be a result of the pattern" if place.label is None else _maker(value)
            self._fail(state, place, fact, term.text)
        elif value.index != number:  # type: ignore[attr-defined]
            self._fail(state, place, f"{_maker(value)}, but another result", number)
        elif op.parent is not self.block:
            self._fail(state, place, f"{_maker(value)} of another block")
        elif term in state:
            if state[term] is op:
                yield state
            else:
                self._fail(state, place, f"{_maker(value)}, not the operator matched elsewhere")
        elif self._has_attributes(op, term, state):
            extended = {**state, term: op}
            for slots in _orders(op, term.in_order):
                pairs = self._paired(op, term, slots, extended)
                if pairs is not None:
                    yield from self._operands(pairs, extended)

    def _has_attributes(self, op: Operation, term: Operator, state: State) -> bool:
        count = sum(1 for result in op.results for _ in result.uses)
        if term.uses is not None and count != term.uses:
            return self._fail(state, op, f"is used {count} times", term.uses)
        for name, wanted in term.attributes.items():
            attribute = op.properties.get(name, op.attributes.get(name))
            if not is_attribute(attribute, wanted):
                expected = "what the predicate accepts" if callable(wanted) else wanted
                got = "absent" if attribute is None else plain(attribute)
                return self._fail(state, op, f"{name} is {got}", expected)
        return True

    def _paired(
        self, op: Operation, term: Operator, slots: Sequence[Slot], state: State
    ) -> list[tuple[Place, Term, SSAValue]] | None:
        """The terms of an operator with the values to bind them to."""
        given = list(term.operands)
        rest = given.pop() if given[-1:] == [...] else None
        if len(given) > len(slots):
            self._fail(state, op, f"has {len(slots)} operands", len(given))
            return None
        pairs: list[tuple[Place, Term, SSAValue]] = []
        for wanted, slot in zip_longest(given, slots, fillvalue=rest):
            assert isinstance(slot, Slot)
            if wanted is ... or (isinstance(wanted, Optional) and not slot.values):
                continue
            place = Place(op, slot.label)
            terms = wanted if isinstance(wanted, tuple) else () if wanted is None else (wanted,)
            if len(terms) != len(slot.values):
                self._fail(state, place, f"has {len(slot.values)} values", len(terms))
                return None
            pairs += [(place, t, v) for t, v in zip(terms, slot.values, strict=True)]
        return pairs

    def _operands(
        self, pairs: Sequence[tuple[Place, Term, SSAValue]], state: State
    ) -> Iterator[State]:
        if not pairs:
            yield state
            return
        place, term, value = pairs[0]
        for found in self._value(term, value, place, state):
            yield from self._operands(pairs[1:], found)

    def _fail(
        self, state: State, where: Place | Operation, fact: str, expected: object = None
    ) -> bool:
        if self.failures is not None:
            place = where if isinstance(where, Place) else Place(where)
            self.failures.append(MatchFailure(len(state), place.explain(fact, expected)))
        return False


def operations(state: State, roots: Sequence[SSAValue]) -> list[Operation]:
    """The matched operations, producers first; for several roots in the order of their block."""
    found = {op for op in state.values() if isinstance(op, Operation)}
    if len(roots) > 1:
        block = next(iter(found)).parent
        return [op for op in block.ops if op in found] if block is not None else []
    order: dict[Operation, None] = {}

    def visit(op: Operation | Block) -> None:
        if isinstance(op, Operation) and op in found and op not in order:
            for operand in op.operands:
                visit(operand.owner)
            order[op] = None

    visit(roots[0].owner)
    return list(order)


def _maker(value: SSAValue) -> str:
    if isinstance(value.owner, Block):
        return f"is an argument of type {value.type}"
    return f"is {described(value.owner)}"


def _orders(op: Operation, in_order: bool) -> Iterator[Sequence[Slot]]:
    """The operands of an operation, in each equivalent order."""
    if isinstance(op, IRDLOperation):
        names = [name for name, _ in op.get_irdl_definition().operands]
        have = [(name, getattr(op, name)) for name in names]
    else:
        have = [("", value) for value in op.operands]
    slots = [
        Slot(
            f"{number} ({name})" if name else str(number),
            () if v is None else (v,) if isinstance(v, SSAValue) else tuple(v),
        )
        for number, (name, v) in enumerate(have)
    ]
    yield slots
    if in_order or not op.has_trait(Commutative):
        return
    if len(slots) == 2 and slots[0].values != slots[1].values:
        yield slots[::-1]


def _candidates(term: Term, state: State) -> Iterator[OpResult]:
    """The values that the root may be: users of its bound parts, up to its depth."""
    parts = list(subterms(term))
    known = [state[part] for part in parts if part in state]
    values = [v for k in known for v in (k.results if isinstance(k, Operation) else (k,))]
    level = dict.fromkeys(values)
    seen = dict(level)
    for _ in range(sum(isinstance(part, Operator) for part in parts) + 1):
        level = dict.fromkeys(
            result for value in level for use in value.uses for result in use.operation.results
        )
        seen |= level
    return (value for value in seen if isinstance(value, OpResult))


def is_attribute(attribute: Attribute | None, wanted: Any) -> bool:
    """Whether an attribute is what a pattern wants: a value, or one that a predicate accepts."""
    if isinstance(wanted, Captured):
        return True
    if attribute is None:
        return wanted is None
    if isinstance(wanted, Attribute):
        return attribute == wanted
    value = plain(attribute)
    if callable(wanted):
        return bool(wanted(value))
    wanted = tuple(wanted) if isinstance(wanted, list) else wanted
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def plain(attribute: Attribute | None) -> Any:
    """The Python value of an attribute; an attribute of an unknown kind itself."""
    if isinstance(attribute, EnumAttribute):
        return attribute.data.value
    if isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        return bool(number) if attribute.type == i1 else number
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, DenseArrayBase):
        return tuple(attribute.get_values())
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, SymbolRefAttr):
        return attribute.string_value()
    return attribute
