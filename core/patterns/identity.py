"""Identities as text: ``x - -y == x + y``, a term and its replacement.

Both sides are expressions of Python. ``+ - * / ** @``, unary ``-`` and ``~``, and calls by mnemonic
are operators; other names are values, attributes in the place of an attribute, or operators in the
place of a function. Starred names are any number of operands. Two spaces separate a condition in
prose from the expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import CompileError, explain

CONSTANTS = ("c", "d")
"""Names of values that are known at compile time."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Invert: "bitwise_not"}


class Identity:
    """The two sides of an identity, in which operators are calls by mnemonic.

    Args:
        text: the identity, and after two spaces the condition under which it holds.

    Raises:
        CompileError: if it is no equation, or its left side is no operator.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        equation = text.partition("  ")[0]
        left, equals, self._right = equation.partition(" == ")
        if not equals:
            raise self.error("it is no equation", expected="left == right")
        self.left = self._parsed(left)
        match self.left:
            case ast.Call(ast.Name(name)):
                self.root = name
                """The mnemonic of the operator that is replaced."""
            case _:
                raise self.error("its left side is no operator")

    @property
    def right(self) -> ast.expr:
        """The replacement.

        Raises:
            CompileError: if it is prose, not an expression.
        """
        return self._parsed(self._right)

    def _parsed(self, text: str) -> ast.expr:
        try:
            return _Calls().visit(ast.parse(text, mode="eval").body)
        except SyntaxError as error:
            raise self.error(f'"{text}" is no expression: {error.msg}') from error

    def error(self, fact: str, expected: object = None) -> CompileError:
        """An error that names the identity."""
        return CompileError(explain(f'rule "{self.text}"', fact, expected=expected))


def side(
    expression: ast.expr, operators: Mapping[str, Any], numbers: Mapping[str, float] | None = None
) -> Callable[..., Any]:
    """A side of an identity as a function of a builder and of its names.

    Args:
        expression: the side.
        operators: the operators that are called; other mnemonics are names of the function.
        numbers: the numbers for which names stand.
    """

    class Applied(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.Call:
            self.generic_visit(node)
            assert isinstance(node.func, ast.Name)
            apply = ast.Attribute(ast.Name("b", ast.Load()), "apply", ast.Load())
            return ast.Call(apply, [node.func, *node.args], node.keywords)

    known = numbers or {}
    inside = {n.target.id for n in ast.walk(expression) if isinstance(n, ast.NamedExpr)}
    calls = [n.func for n in ast.walk(expression) if isinstance(n, ast.Call)]
    called = dict.fromkeys(f.id for f in calls if isinstance(f, ast.Name))
    names = [n for n in names_in(expression) if n not in known and n not in inside]
    names += [name for name in called if name not in operators]
    body = ast.unparse(Applied().visit(ast.parse(ast.unparse(expression), mode="eval")))
    return eval(f"lambda b, {', '.join((*names, '**_'))}: {body}", {**operators, **known})


def names_in(expression: ast.expr) -> list[str]:
    """The names of an expression, each once, without the mnemonics of calls."""
    return list(dict.fromkeys(_names(expression)))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Call) and child is node.func):
            yield from _names(child)


class _Calls(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.Call(ast.Name(_BINARY[type(node.op)], ast.Load()), [node.left, node.right], [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.operand, ast.Constant) and isinstance(node.op, ast.USub):
            return ast.Constant(-node.operand.value)  # type: ignore[operator]
        return ast.Call(ast.Name(_UNARY[type(node.op)], ast.Load()), [node.operand], [])
