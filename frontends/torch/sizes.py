"""Sizes of an exported program: torch's symbolic integers as dimensions of the IR."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.algebra.dims import Dim, Shape
from ..importing.values import Value

ENDLESS = 1 << 48
"""Bounds and ends of at least this are none."""


@dataclass(frozen=True)
class SizeRelation:
    """A comparison of sizes: `sign` is one of ``<``, ``<=``, ``>``, ``>=``, ``==`` and ``!=``."""

    sign: str
    left: Dim
    right: Dim


class TorchSizes:
    """The dimensions that the symbols of an exported program stand for.

    A symbol of an input is named when the input is read; that of a size which the program computes
    is learned from the first result that has it.
    """

    def __init__(self, ranges: Mapping[Any, Any]) -> None:
        self._dims: dict[str, Dim] = {}
        self.places: dict[Value, list[Value]] = {}
        """The indices where masks hold, which define a size."""
        self.vectors: dict[Value, Value] = {}
        """Vectors of the elements of tensors with one dimension longer than 1."""
        self.checked: dict[tuple[Value, Dim], Value] = {}
        """Indices that are checked to be in [0, size)."""
        self.derived: dict[Dim, Dim] = {}
        """Sizes of inputs that others determine, and what they are equal to."""
        self._ranges = {str(symbol): found for symbol, found in ranges.items()}

    def copy(self) -> TorchSizes:
        """The same dimensions; what is added to one is not known to the other."""
        other = copy.copy(self)
        other._dims, other.places = dict(self._dims), dict(self.places)
        other.vectors, other.checked = dict(self.vectors), dict(self.checked)
        return other

    def name(self, symbol: str, dim: Dim) -> None:
        """A symbol of torch, or an expression of symbols, stands for a dimension."""
        self._dims.setdefault(symbol, dim)

    def knows(self, symbol: str) -> bool:
        """Whether a symbol or an expression has a dimension of its own."""
        return symbol in self._dims

    def dim(self, size: Any, *, floors: bool = False) -> Dim | None:
        """The dimension for an int, a SymInt or an expression of sympy.

        None if it has an unknown symbol or is no sum of products of symbols; with `floors`, of
        symbols and quotients by numbers, rounded down.
        """
        expression = getattr(getattr(size, "node", None), "expr", size)
        if isinstance(expression, int):
            return Dim.of(expression)
        return self._translated(expression, floors)

    def relation(self, condition: Any) -> SizeRelation | None:
        """The comparison that a SymBool stands for; None for another condition."""
        expression = condition.node.expr
        sides = [self.dim(side) for side in expression.args] if expression.is_Relational else []
        known = [side for side in sides if side is not None]
        return SizeRelation(expression.rel_op, *known) if len(known) == 2 else None

    def shape(self, sizes: Sequence[Any]) -> list[Dim | None]:
        """The dimensions for sizes; None for each one that is unknown."""
        return [self.dim(size) for size in sizes]

    def most(self, size: Any) -> int | None:
        """The largest value that the program allows for a symbol; None for no bound."""
        found = self._ranges.get(str(size))
        most = None if found is None else _finite(found.upper)
        return most if most is not None and most < ENDLESS else None

    def least(self, size: Any) -> int:
        """The smallest value that the program allows for a symbol if that is negative, else 0."""
        found = self._ranges.get(str(size))
        least = None if found is None else _finite(found.lower)
        return min(least, 0) if least is not None and least > -ENDLESS else 0

    def learn(self, shape: Shape, sizes: Sequence[Any]) -> None:
        """Name the sizes of a result that are not known yet, from its shape in the IR."""
        for dim, size in zip(shape, sizes, strict=True):
            if self.dim(size, floors=True) is None:
                self.name(str(size.node.expr), dim)

    def _translated(self, expression: Any, floors: bool) -> Dim | None:
        if expression.is_Integer or (expression.is_Float and float(expression).is_integer()):
            return Dim.of(int(expression))
        known = self._dims.get(str(expression))
        if known is not None or expression.is_Symbol:
            return known
        parts = [self._translated(part, floors) for part in expression.args]
        dims = [part for part in parts if part is not None]
        if len(dims) < len(parts):
            return None
        if floors and type(expression).__name__ == "FloorDiv" and dims[1].is_static:
            return dims[0].floordiv(dims[1].value) if dims[1].value > 0 else None
        return _combined(expression, dims)


def _finite(bound: Any) -> int | None:
    """A bound of torch; None for an infinite one."""
    return int(bound) if getattr(bound, "is_Integer", False) else None


def _combined(expression: Any, parts: Sequence[Dim]) -> Dim | None:
    """The sum, product, power or exact quotient of dimensions."""
    if expression.is_Add:
        return sum(parts, start=Dim.of(0))
    if expression.is_Mul:
        result = Dim.of(1)
        for part in parts:
            result = result * part
        return result
    if expression.is_Pow and parts[1].is_static and 0 < parts[1].value < 16:
        result = Dim.of(1)
        for _ in range(parts[1].value):
            result = result * parts[0]
        return result
    name = type(expression).__name__
    if name in ("FloorDiv", "CleanDiv") and len(parts) == 2:
        return _floor_quotient(*parts)
    if name in ("ToFloat", "TruncToInt", "FloorToInt", "CeilToInt") and len(parts) == 1:
        return parts[0]  # all parts are integers
    return None


def _floor_quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b rounded down, where a symbol divides all terms but a constant from -1 to 0."""
    exact = a.exact_div(b)
    if exact is not None or b.is_static or b != Dim.symbol(b.symbols[0]):
        return exact
    # (q b - 1) / b == q - 1, rounded down, for b >= 1
    found = (a + 1).exact_div(b)
    return None if found is None else found - 1
