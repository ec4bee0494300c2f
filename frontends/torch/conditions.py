"""What an export demands of the sizes of inputs: its guards, and the ranges of its symbols.

torch assumes that symbolic sizes are 2 or more, which is no demand: 0 and 1 are sizes like others.
Guards are texts of Python over the arguments of the model:

    L['x'].size()[0] % 2 == 0
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.algebra.multiples import as_multiple
from ...dialects.graph.sizes.guards import Guard
from .sizes import ENDLESS, TorchSizes

_LEAST = 2
"""The least value of a symbol that torch assumes."""


def conditions(program: Any, sizes: TorchSizes, least: Mapping[str, int]) -> list[Guard]:
    """The conditions on sizes of inputs that a program was exported under.

    Args:
        program: the exported program.
        sizes: the dimensions of its symbols.
        least: the least values that the user gives for symbols.
    """
    inputs = _inputs(program)
    guards = [_guard(text, inputs, sizes) for text in getattr(program, "_guards_code", None) or ()]
    found = [guard for guard in guards if guard is not None]
    pairs = [(a, b) for a, b in sizes.derived.items() if a != b and as_multiple(a, b) is None]
    found += [Guard(f"{dim} == {equal}") for dim, equal in pairs]
    guarded = {name for guard in found for name in guard.names}
    names = _names(inputs, sizes)
    for symbol, bounds in program.range_constraints.items():
        dim = sizes.dim(symbol)
        if str(dim) not in names:
            continue
        low, high = _number(bounds.lower), _number(bounds.upper)
        # The range of a symbol in a guard follows from that and the least value of others.
        low = least.get(str(symbol), 0 if str(dim) in guarded else low)
        if low > _LEAST:
            found.append(Guard(f"{dim} >= {low}"))
        if high < ENDLESS:
            found.append(Guard(f"{dim} <= {high}"))
    return list(dict.fromkeys(found))


def _number(bound: Any) -> int:
    return int(bound) if getattr(bound, "is_Integer", False) else ENDLESS


def _inputs(program: Any) -> dict[str, Any]:
    """What torch knows of the inputs, by the names of their nodes."""
    nodes = {node.name: node.meta.get("val") for node in program.graph.nodes}
    specs = program.graph_signature.input_specs
    names = [s.arg.name for s in specs if s.kind.name == "USER_INPUT" and hasattr(s.arg, "name")]
    return {name: nodes[name] for name in names if hasattr(nodes.get(name), "shape")}


def _names(inputs: Mapping[str, Any], sizes: TorchSizes) -> set[str]:
    """The names of the symbolic sizes of inputs."""
    dims = [sizes.dim(size) for value in inputs.values() for size in value.shape]
    return {str(dim) for dim in dims if dim is not None and not dim.is_static}


def _guard(text: str, inputs: Mapping[str, Any], sizes: TorchSizes) -> Guard | None:
    """A guard over names of sizes; None for one that is about more than sizes of inputs."""
    try:
        tree = _Named(inputs, sizes).visit(ast.parse(text, mode="eval"))
        written = ast.unparse(tree)
        guard = Guard(written)
    except (ValueError, SyntaxError):
        return None
    if not guard.names:
        return None
    # That sizes differ decides how torch broadcasts, where it takes none of them to be 1. Such a
    # size is no error by itself: operators check the sizes of their operands.
    if isinstance(tree.body, ast.Compare) and isinstance(tree.body.ops[0], ast.NotEq):
        if any(ast.unparse(side) == "1" for side in (tree.body.left, *tree.body.comparators)):
            return None
        small = " or ".join(f"{name} < {_LEAST}" for name in guard.names)
        return Guard(f"{small} or {written}")
    # torch takes no size to be 0, as those of an empty batch are, and simplifies quotients by it.
    zeros = [f"{divisor} == 0" for divisor in dict.fromkeys(_divisors(tree))]
    return Guard(" or ".join([*zeros, written])) if zeros else guard


def _divisors(tree: ast.AST) -> Iterator[str]:
    """The texts of what sizes are divided by in a guard, numbers aside."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            continue
        if any(isinstance(part, ast.Name) for part in ast.walk(node.right)):
            yield ast.unparse(node.right)


class _Named(ast.NodeTransformer):
    """Puts the names of sizes in the place of what a guard reads from arguments."""

    def __init__(self, inputs: Mapping[str, Any], sizes: TorchSizes) -> None:
        self.inputs, self.sizes = inputs, sizes

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=argument, attr="size")),
                slice=ast.Constant(value=int(axis)),
            ):
                value = self.inputs.get("_".join(_path(argument)))
                dim = None if value is None else self.sizes.dim(value.shape[axis])
                if dim is not None:
                    return ast.parse(str(dim), mode="eval").body
        raise ValueError("not the size of an input")


def _path(node: ast.expr) -> Iterator[str]:
    """The names and numbers that lead to an argument."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield from _path(node.value)
        yield re.sub(r"\W", "_", str(node.slice.value)).lower()
    elif isinstance(node, ast.Attribute):
        yield from _path(node.value)
        yield node.attr
