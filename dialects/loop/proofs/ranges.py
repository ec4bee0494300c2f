"""Rebuilding loops with what is known of the indices in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import polynomial
from ....core.algebra.affine import variable as atom
from ....core.algebra.expressions import Affine, Atom, substituted
from ....core.algebra.follows import Knowledge, Proof, follows
from ....core.algebra.polynomials import Polynomial
from ....core.algebra.ranges import Ranges
from ..ops import KernelOp
from ..rebuild import Rebuild


class RangedRebuild(Rebuild, Knowledge):
    """A `Rebuild` that knows what the variables of new loops are below."""

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel, changing)
        self.ranges = Ranges()
        self._bounds: dict[Atom, list[Affine]] = {}
        self._meanings: dict[Atom, Affine] = {}

    def index(self, value: SSAValue) -> Affine:
        """The expression of an old index."""
        return substituted(polynomial(self.expr(value)), self._meanings)

    def means(self, value: SSAValue, meaning: Affine) -> None:
        """Record what an old index that stays an operation equals."""
        self._meanings[atom(self.expr(value))] = meaning

    def is_below_0(self, value: Affine) -> bool:
        """Whether a value is below 0 in every iteration of the loops around it."""
        return isinstance(follows(value, self), Proof)

    def facts_of(self, atom: Atom) -> Iterator[Affine]:
        return (bound - 1 - Polynomial.atom(atom) for bound in self._bounds.get(atom, ()))

    def opened(self, variable: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        own, bounds = atom(variable), [substituted(polynomial(e), self._meanings) for e in bound]
        sizes = [n for one in bounds if (n := one.number) is not None]
        self.ranges.know(own, 0, max(0, min(sizes) - 1) if sizes else None)
        self._bounds[own] = bounds
