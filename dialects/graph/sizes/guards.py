"""Conditions on the sizes of arguments that a program was made for, such as those of an export.

    func.func @main(...) attributes {graph.guards = ["n <= 100", "n % 2 == 0"]}

A text compares expressions of names of sizes and integers, with `+`, `-`, `*`, `//` and `%`; `or`
joins comparisons. A division by 0 is one by 1.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from ....core.boundary.arguments import Argument
from ....core.errors import InputError, explain
from ....core.ir.public_function import Program
from ....core.ir.refusal import InvalidProgram

GUARDS = "graph.guards"

T = TypeVar("T")

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // (b or 1),
    "%": lambda a, b: a % (b or 1),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "or": operator.or_,
}


@dataclass(frozen=True)
class Guard:
    """A condition on sizes.

    Raises:
        ValueError: if the text is none.
    """

    text: str

    def __post_init__(self) -> None:
        self.evaluated(lambda _: 1, lambda _: 1, lambda *_: 1)

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"not a condition on sizes: {self.text!r}") from error

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sizes in it, in order."""
        found = (node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        return tuple(dict.fromkeys(found))

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it holds for these sizes."""
        number = self.evaluated(int, sizes.__getitem__, lambda sign, a, b: _NUMBERS[sign](a, b))
        return bool(number)

    def evaluated(
        self,
        number: Callable[[int], T],
        size: Callable[[str], T],
        combined: Callable[[str, T, T], T],
    ) -> T:
        """Its value, from those of numbers and sizes, and operators of two values by their sign."""

        def visit(node: ast.expr) -> T:
            match node:
                case ast.Constant(value=int(value)) if not isinstance(value, bool):
                    return number(value)
                case ast.Name(id=name):
                    return size(name)
                case ast.UnaryOp(ast.USub(), operand):
                    return combined("-", number(0), visit(operand))
                case ast.BinOp(left, op, right) if type(op) in _SIGNS:
                    return combined(_SIGNS[type(op)], visit(left), visit(right))
            raise ValueError(f"not a condition on sizes: {self.text!r}")

        def compare(node: ast.expr) -> T:
            match node:
                case ast.Compare(left, [op], [right]) if type(op) in _SIGNS:
                    return combined(_SIGNS[type(op)], visit(left), visit(right))
                case ast.BoolOp(ast.Or(), [first, *rest]):
                    found = compare(first)
                    for part in rest:
                        found = combined("or", found, compare(part))
                    return found
            raise ValueError(f"not a condition on sizes: {self.text!r}")

        return compare(self._tree)

    def with_sizes(self, sizes: Mapping[str, int]) -> Guard:
        """The condition with numbers in the place of some sizes."""
        return Guard(re.sub(r"[^\W\d]\w*", lambda m: str(sizes.get(m[0], m[0])), self.text))

    def error(self, subject: str, dimension: int | str, values: Sequence[object]) -> str:
        """What is wrong with the sizes of a call.

        Args:
            subject: the argument that has the first size.
            dimension: the dimension of it.
            values: those of the sizes.
        """
        pairs = zip(self.names, values, strict=False)
        got = ", ".join(f"{name} = {value}" for name, value in pairs)
        return explain(subject, f"wrong size of dimension {dimension}", expected=self.text, got=got)


def guards_of(function: Program) -> list[Guard]:
    """The conditions that a function states.

    Raises:
        VerifyException: if the attribute holds something else.
    """
    attr = function.attributes.get(GUARDS, ArrayAttr[Attribute]([]))
    texts = attr.data if isinstance(attr, ArrayAttr) else (attr,)
    try:
        return [Guard(text.data if isinstance(text, StringAttr) else "") for text in texts]
    except ValueError as error:
        subject = f"{function.name} @{function.sym_name.data}"
        expected = 'comparisons of sizes, such as "n <= 100"'
        text = explain(subject, f"wrong {GUARDS}", expected=expected, got=attr)
        raise InvalidProgram(text) from error


def guards_attribute(guards: Iterable[Guard]) -> ArrayAttr[StringAttr]:
    """What `guards_of` reads."""
    return ArrayAttr([StringAttr(guard.text) for guard in guards])


def check_guards(
    guards: Iterable[Guard], arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> None:
    """Check the sizes of a call.

    Raises:
        InputError: with the first condition that does not hold.
    """
    for guard in guards:
        if guard.holds(sizes):
            continue
        name, dimension = next(
            (argument.spec.name, axis)
            for argument in arguments
            for axis, dim in enumerate(argument.shape)
            if str(dim) == guard.names[0]
        )
        values = [sizes[name] for name in guard.names]
        raise InputError(guard.error(f'input "{name}"', dimension, values))
