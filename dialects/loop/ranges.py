"""What an index may be: the smallest and the largest value of an affine expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.building.affine import Atom, polynomial, variable
from ...core.building.facts import Ranges
from .attrs import LoopKind
from .linear import value_of
from .ops import KernelOp, ReduceOp
from .rebuild import Rebuild


class RangedRebuild(Rebuild):
    """A `Rebuild` that knows what the variables of new loops may be."""

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel, changing)
        self.ranges: Ranges[Atom] = Ranges()

    def range_of(self, expr: AffineExpr) -> tuple[int, int] | None:
        """The smallest and the largest value of an index; None where one is not known."""
        low, high = self.ranges.of(polynomial(expr))
        return None if low is None or high is None else (low, high)

    @contextmanager
    def loop(
        self, name: str, bound: Sequence[AffineExpr], kind: LoopKind, source: Operation
    ) -> Iterator[AffineExpr]:
        """Open a loop for as long as the context lasts; gives its variable."""
        with super().loop(name, bound, kind, source) as index:
            self._know(index, bound)
            yield index

    def reduction(
        self,
        source: ReduceOp,
        name: str,
        bound: Sequence[AffineExpr],
        init: SSAValue,
        body: Callable[[AffineExpr, SSAValue], SSAValue],
    ) -> SSAValue:
        """Emit a reduction like `source`; `body` maps variable and accumulator to the result."""

        def knowing(index: AffineExpr, accumulator: SSAValue) -> SSAValue:
            self._know(index, bound)
            return body(index, accumulator)

        return super().reduction(source, name, bound, init, knowing)

    def _know(self, index: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        sizes = [n for expr in bound if (n := value_of(expr)) is not None]
        if sizes:
            self.ranges.know(variable(index), 0, max(0, min(sizes) - 1))
