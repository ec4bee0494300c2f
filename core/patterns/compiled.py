"""Patterns with one root as code: nested checks, tried for each order of commutative operands.

`matching` binds the same terms by backtracking and explains why they do not match. This form only
finds matches, and is what a compilation runs: a mismatch at the root costs one comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xdsl.ir import Operation
from xdsl.irdl import OperandDef
from xdsl.traits import Commutative

from ..errors import CompileError, explain
from .matching import is_attribute, plain
from .terms import Captured, Operator, Rest, Term, Wildcard, is_constant, is_number

Find = Callable[[Operation, Callable[..., bool], Any], bool]
"""``find(op, accept, context)`` calls ``accept(context, op, values, ops)`` with each match, until
one is accepted: the values by the names of the pattern, and the operations below the root,
producers first."""


class _Node(NamedTuple):
    """A term, with the operands of an operator in one of their orders."""

    term: Term
    operands: tuple[_Node, ...] = ()


def compiled(root: Operator, names: dict[str, Term | Captured]) -> Find:
    """The code that finds a pattern.

    Args:
        root: the term of its result.
        names: the terms and attributes whose values `accept` gets, by their names.
    """
    code = _Code(names)
    for node in _orders(root, set()):
        code.add(node)
    return code.function()


def _orders(term: Term, seen: set[Term]) -> Iterator[_Node]:
    """A term with its operands in each of their orders; the written one comes first.

    The operands of an operator are found where the operator is first written.
    """
    if not isinstance(term, Operator) or term in seen:
        yield _Node(term)
        return
    seen.add(term)
    given = _flat(term)
    choices = [list(_orders(operand, seen)) for operand in given]
    for nodes in itertools.product(*choices):
        yield _Node(term, nodes)
    if len(given) == 2 and given[0] is not given[1] and _is_orderless(term):
        for nodes in itertools.product(*choices):
            yield _Node(term, nodes[::-1])


def _flat(term: Operator) -> list[Term]:
    """The operands of an operator, those of a list among them."""
    flat: list[Term] = []
    for operand in term.operands:
        parts = operand if isinstance(operand, tuple) else (operand,)
        for part in parts:
            if not isinstance(part, Term):
                raise CompileError(explain("pattern", f"{term.text} has {part} for an operand"))
            flat.append(part)
    return flat


def _is_orderless(term: Operator) -> bool:
    return not term.in_order and all(
        isinstance(kind, type) and kind.has_trait(Commutative) for kind in term.kinds
    )


def _takes(term: Operator, count: int) -> bool:
    """Whether the operator always has so many operands."""
    definition = getattr(term.kinds[0], "get_irdl_definition", lambda: None)()
    if len(term.kinds) > 1 or definition is None:
        return False
    fixed = [kind for _, kind in definition.operands if type(kind) is OperandDef]
    return len(fixed) == len(definition.operands) == count


class _Code:
    """The lines of the function."""

    def __init__(self, names: dict[str, Term | Captured]) -> None:
        self.named = list(names.values())
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
        self._operator(root, "op")
        values = ", ".join(self.names[term] for term in self.named)
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

    def _block(self, head: str) -> None:
        self._line(f"{head}:")
        self.depth += 1

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _value(self, node: _Node, text: str) -> None:
        """Check, and name, what an expression yields: a value, or the values of a list."""
        term = node.term
        if term in self.bound:
            same = "==" if isinstance(term, Rest) else "is"
            self._block(f"if {text} {same} {self.names[term]}")
            return
        self.bound.add(term)
        value = self.names.get(term) or self._new("v")
        self._line(f"{value} = {text}")
        if isinstance(term, Operator):
            self._made(node, value)
        elif isinstance(term, Wildcard):
            if term.constraint.number is not None:
                self._block(f"if is_number({value}, {self._constant(term.constraint.number)})")
            elif term.constraint.constant:
                self._block(f"if is_constant({value})")

    def _made(self, node: _Node, value: str) -> None:
        """Check the operator that a value is the first result of."""
        term = node.term
        assert isinstance(term, Operator)
        if len(node.operands) < len(_flat(term)):
            raise CompileError(explain("pattern", f"{term.text} is read before it is found"))
        owner = self._new("o")
        self._line(f"{owner} = {value}.owner")
        first, *others = term.kinds
        kinds = term.kinds if others else first
        trait = f" and {owner}.has_trait({self._constant(term.trait)})" if term.trait else ""
        self._block(f"if isinstance({owner}, {self._constant(kinds)}){trait}")
        definition = getattr(first, "get_irdl_definition", lambda: None)()
        if definition is None or len(definition.results) > 1:
            self._block(f"if {value}.index == 0")
        self._operator(node, owner)

    def _operator(self, node: _Node, owner: str) -> None:
        """Check the attributes and the operands of an operator."""
        term = node.term
        assert isinstance(term, Operator)
        for name, wanted in term.attributes.items():
            attribute = f"{owner}.properties.get({name!r})"
            if not isinstance(wanted, Captured):
                self._block(f"if is_attribute({attribute}, {self._constant(wanted)})")
            elif wanted in self.bound:
                self._block(f"if {self.names[wanted]} == plain({attribute})")
            else:
                self._line(f"{self.names[wanted]} = plain({attribute})")
                self.bound.add(wanted)
        for operand, text in self._operands(node, f"{owner}._operands"):
            self._value(operand, text)
        self.ops.append(owner)

    def _operands(self, node: _Node, operands: str) -> Iterator[tuple[_Node, str]]:
        """Check the number of operands; yields each, or each list, and what it is."""
        nodes, term = node.operands, node.term
        assert isinstance(term, Operator)
        rests = [n for n, each in enumerate(nodes) if isinstance(each.term, Rest)]
        if not _takes(term, len(nodes)):
            at_least = ">=" if rests else "=="
            self._block(f"if len({operands}) {at_least} {len(nodes) - len(rests)}")
        if not rests:
            yield from ((each, f"{operands}[{n}]") for n, each in enumerate(nodes))
            return
        if len(rests) > 2:
            raise CompileError(explain("pattern", f"{term.text} has more than two lists"))
        first, last = rests[0], rests[-1]
        yield from ((each, f"{operands}[{n}]") for n, each in enumerate(nodes[:first]))
        end, between = f"len({operands}) - {len(nodes) - 1 - last}", nodes[first + 1 : last]
        if first < last:
            place = self._new("i")
            self._block(f"for {place} in range({first}, {end} - {len(between) - 1})")
            yield nodes[first], f"{operands}[{first}:{place}]"
            yield from ((each, f"{operands}[{place} + {n}]") for n, each in enumerate(between))
            yield nodes[last], f"{operands}[{place} + {len(between)} : {end}]"
        else:
            yield nodes[first], f"{operands}[{first} : {end}]"
        after = nodes[last + 1 :]
        yield from ((each, f"{operands}[{n - len(after)}]") for n, each in enumerate(after))
