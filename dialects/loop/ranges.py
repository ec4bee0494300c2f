"""The range of an index: the smallest and the largest value of an affine expression."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.ir.affine import AffineExpr

from ...core.building.affine import Atom, polynomial
from ...core.building.affine import variable as atom
from ...core.building.facts import Ranges
from .linear import value_of
from .ops import KernelOp
from .rebuild import Rebuild


class RangedRebuild(Rebuild):
    """A `Rebuild` that knows the ranges of the variables of new loops."""

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel, changing)
        self.ranges: Ranges[Atom] = Ranges()

    def range_of(self, expr: AffineExpr) -> tuple[int, int] | None:
        """The smallest and the largest value of an index; None where one is not known."""
        low, high = self.ranges.of(polynomial(expr))
        return None if low is None or high is None else (low, high)

    def opened(self, variable: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        sizes = [n for expr in bound if (n := value_of(expr)) is not None]
        if sizes:
            self.ranges.know(atom(variable), 0, max(0, min(sizes) - 1))
