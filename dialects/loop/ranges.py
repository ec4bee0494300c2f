"""The range of an index: the smallest and the largest value of an affine expression."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.ir.affine import AffineExpr

from ...core.algebra.affine import polynomial, value_of
from ...core.algebra.affine import variable as atom
from ...core.algebra.expressions import Affine, Atom, split, substituted, variables
from ...core.algebra.polynomials import Polynomial
from ...core.algebra.ranges import Range, Ranges
from .ops import KernelOp
from .rebuild import Rebuild


class RangedRebuild(Rebuild):
    """A `Rebuild` that knows the ranges of the variables of new loops."""

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel, changing)
        self.ranges: Ranges = Ranges()
        self._last: dict[Atom, Affine] = {}

    def range_of(self, expr: AffineExpr) -> tuple[int, int] | None:
        """The smallest and the largest value of an index; None where one is not known."""
        low, high = self.ranges.of(polynomial(expr))
        return None if low is None or high is None else (low, high)

    def ends_of(self, expr: AffineExpr) -> Range:
        """The smallest and the largest value of an index, where variables of symbolic loops are
        bounded by their sizes; None where one is not known."""
        value = polynomial(expr)
        low, high = value, value
        for variable, last in self._last.items():
            factor, _ = split(value, variable)
            number = None if factor is None else factor.number
            if not number or variable in variables(value - Polynomial.atom(variable) * number):
                continue
            low = substituted(low, {variable: Polynomial.of(0) if number > 0 else last})
            high = substituted(high, {variable: last if number > 0 else Polynomial.of(0)})
        return self.ranges.of(low)[0], self.ranges.of(high)[1]

    def opened(self, variable: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        sizes = [n for expr in bound if (n := value_of(expr)) is not None]
        self.ranges.know(atom(variable), 0, max(0, min(sizes) - 1) if sizes else None)
        if not sizes:
            self._last[atom(variable)] = polynomial(bound[0]) - 1
