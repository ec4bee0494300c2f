"""Patterns with one root as code: nested checks, tried for each order of commutative operands.

`matching` binds the same terms by backtracking and explains why they do not match. This form only
finds matches, and is what a compilation runs: a mismatch at the root costs one comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xdsl.ir import Operation
from xdsl.irdl import OperandDef, OptOperandDef
from xdsl.traits import Commutative

from ..errors import CompileError, explain
from .matching import is_attribute, plain
from .terms import Captured, Operator, Term, Wildcard, is_constant, is_number

Find = Callable[[Operation, Callable[..., bool], Any], bool]
"""``find(op, accept, context)`` calls ``accept(context, op, values, ops)`` with each match, until
one is accepted: the values by the names of the pattern, and the operations below the root,
producers first."""


class _Node(NamedTuple):
    """A term, with the operands of an operator in one of their orders."""

    term: Term
    operands: tuple[tuple[int, _Node], ...] = ()


def compiled(root: Operator, names: dict[str, Term | Captured]) -> Find:
    """The code that finds a pattern.

    Args:
        root: the term of its result; each of its operators has one class.
        names: the terms and attributes whose values `accept` gets, by their names.
    """
    code = _Code(names)
    for node in _orders(root):
        code.add(node)
    return code.function()


def _orders(term: Term) -> Iterator[_Node]:
    """A term with its operands in each of their orders; the written one comes first."""
    if not isinstance(term, Operator):
        yield _Node(term)
        return
    given = [operand for operand in term.operands if isinstance(operand, Term)]
    if len(given) < sum(operand is not None for operand in term.operands):
        raise CompileError(explain("pattern", f"{term.text} has lists of operands"))
    places = list(range(len(given)))
    swaps = len(given) == 2 and given[0] is not given[1] and not term.in_order
    swaps = swaps and _kind(term).has_trait(Commutative)
    for order in (places, places[::-1]) if swaps else (places,):
        for nodes in itertools.product(*(list(_orders(operand)) for operand in given)):
            # The operator's first operand is found first.
            yield _Node(term, tuple(sorted(zip(order, nodes, strict=True), key=lambda p: p[0])))


def _kind(term: Operator) -> type[Operation]:
    kind = term.kinds[0]
    if len(term.kinds) != 1 or not isinstance(kind, type):
        fact = "an operator of several kinds"
        raise CompileError(explain("pattern", fact, expected="one class", got=term.text))
    return kind


class _Code:
    """The lines of the function."""

    def __init__(self, names: dict[str, Term | Captured]) -> None:
        self.names = {term: f"_{name}" for name, term in names.items()}
        self.constants: dict[str, Any] = {
            "plain": plain,
            "is_attribute": is_attribute,
            "is_constant": is_constant,
            "is_number": is_number,
        }
        self.lines: list[str] = []

    def add(self, root: _Node) -> None:
        """Add the checks of a pattern in one order."""
        self.depth, self.bound, self.ops = 1, set[Term | Captured](), list[str]()
        self.count = 0
        self._operator(root, "op", is_root=True)
        values = ", ".join(f"{name}" for name in self.names.values())
        ops = ", ".join(self.ops[:-1])
        values, ops = (f"({text},)" if text else "()" for text in (values, ops))
        self._line(f"if accept(context, op, {values}, {ops}):")
        self.lines.append("    " * (self.depth + 1) + "return True")

    def function(self) -> Find:
        """The function of all orders."""
        text = "\n".join(["def find(op, accept, context):", *self.lines, "    return False"])
        exec(text, self.constants)
        return self.constants["find"]

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _if(self, condition: str) -> None:
        self._line(f"if {condition}:")
        self.depth += 1

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _value(self, node: _Node, text: str) -> None:
        """Check, and name, a value that an expression yields."""
        term = node.term
        if isinstance(term, Operator):
            owner = self._new("o")
            value = self.names.get(term) or self._new("v")
            self._line(f"{value} = {text}")
            self._line(f"{owner} = {value}.owner")
            if term in self.bound:
                raise CompileError(explain("pattern", "an operator occurs twice"))
            self.bound.add(term)
            self._operator(node, owner, value=value)
            return
        assert isinstance(term, Wildcard)
        if term in self.bound:
            self._if(f"{text} is {self.names[term]}")
            return
        self.bound.add(term)
        value = self.names.get(term) or self._new("v")
        self._line(f"{value} = {text}")
        if term.constraint.number is not None:
            self._if(f"is_number({value}, {self._constant(term.constraint.number)})")
        elif term.constraint.constant:
            self._if(f"is_constant({value})")

    def _operator(
        self, node: _Node, owner: str, value: str | None = None, is_root: bool = False
    ) -> None:
        term = node.term
        assert isinstance(term, Operator)
        kind = _kind(term)
        definition = kind.get_irdl_definition()  # type: ignore[attr-defined]
        if not is_root:
            self._if(f"isinstance({owner}, {self._constant(kind)})")
            if len(definition.results) > 1:
                self._if(f"{value}.index == 0")
        kinds = [operand for _, operand in definition.operands]
        fixed = sum(type(operand) is OperandDef for operand in kinds)
        optional = sum(type(operand) is OptOperandDef for operand in kinds)
        if optional > 1 or fixed + optional < len(kinds):
            fact = f"{term.text} has several optional operands, or lists of operands"
            raise CompileError(explain("pattern", fact))
        if fixed < len(kinds):
            self._if(f"len({owner}._operands) == {len(node.operands)}")
        for name, wanted in term.attributes.items():
            attribute = f"{owner}.properties.get({name!r})"
            if isinstance(wanted, Captured):
                if wanted in self.bound:
                    self._if(f"{self.names[wanted]} == plain({attribute})")
                else:
                    self._line(f"{self.names[wanted]} = plain({attribute})")
                    self.bound.add(wanted)
            else:
                self._if(f"is_attribute({attribute}, {self._constant(wanted)})")
        for place, operand in node.operands:
            self._value(operand, f"{owner}._operands[{place}]")
        self.ops.append(owner)
