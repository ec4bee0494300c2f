"""What an operator means on NumPy arrays: the source of its reference."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from ...dialects.graph.interfaces import GraphOp

_ROUNDING = frozenset({"stored"})
"""Methods that say how results are stored, which is the same for all operators."""


def numpy_source(operator: type[GraphOp]) -> str:
    """The function that computes an operator on arrays.

    Where a base class calls it, as for the operators that work element by element, that is the
    method of the operator which the base class calls, or the function of arrays in its row.
    """
    row = inspect.getattr_static(operator, "array", None)
    if isinstance(row, staticmethod):
        operands = ", ".join(name for name, _ in operator.get_irdl_definition().operands)
        function = row.__func__
        own = inspect.isfunction(function)
        return source_of(function) if own else f"np.{function.__name__}({operands})"
    reference = operator.reference
    if reference.__qualname__.startswith(f"{operator.__name__}."):
        return source_of(reference)
    # Methods of another class than the reference that calls them.
    own = [
        method
        for method in _called(operator, reference)
        if method.__qualname__.partition(".")[0] != reference.__qualname__.partition(".")[0]
    ]
    return "\n\n".join(map(source_of, own or [reference]))


def _called(operator: type[GraphOp], function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The methods of an operator that a function calls on `self`."""
    tree = ast.parse(source_of(function))
    names = {
        node.func.attr: None
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    }
    for name in names:
        method = inspect.getattr_static(operator, name)
        if name not in _ROUNDING and inspect.isfunction(method):
            yield method


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function without its docstring."""
    text = textwrap.dedent(inspect.getsource(function))
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    if ast.get_docstring(node) is None:
        return text.rstrip()
    lines, stated = text.splitlines(), node.body[0]
    assert stated.end_lineno is not None
    return "\n".join([*lines[: stated.lineno - 1], *lines[stated.end_lineno :]])
