"""What an index may be: the smallest and the largest value of an affine expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
)

from .attrs import LoopKind
from .linear import linear, value_of
from .ops import KernelOp, ReduceOp
from .rebuild import Rebuild

Range = tuple[int, int]
"""The smallest and the largest value."""


def range_of(expr: AffineExpr, known: Mapping[AffineExpr, Range]) -> Range | None:
    """The range of an expression over dimensions of these ranges; None where one is not known.

    >>> i = AffineExpr.dimension(0)
    >>> range_of(i * -2 + 7, {i: (0, 3)})
    (1, 7)
    """
    terms, constant = linear(expr)
    least = most = constant
    for term, factor in terms.items():
        found = known.get(term) or _quotient(term, known)
        if found is None:
            return None
        ends = sorted((factor * found[0], factor * found[1]))
        least, most = least + ends[0], most + ends[1]
    return least, most


def _quotient(term: AffineExpr, known: Mapping[AffineExpr, Range]) -> Range | None:
    """The range of a quotient or remainder by a constant."""
    if not isinstance(term, AffineBinaryOpExpr) or not isinstance(term.rhs, AffineConstantExpr):
        return None
    inner, divisor = range_of(term.lhs, known), term.rhs.value
    if term.kind == AffineBinaryOpKind.Mod:
        return inner if inner and 0 <= inner[0] and inner[1] < divisor else (0, divisor - 1)
    if inner is None:
        return None
    if term.kind == AffineBinaryOpKind.CeilDiv:
        return -(-inner[0] // divisor), -(-inner[1] // divisor)
    return inner[0] // divisor, inner[1] // divisor


class RangedRebuild(Rebuild):
    """A `Rebuild` that knows what the variables of new loops may be."""

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel, changing)
        self.ranges: dict[AffineExpr, Range] = {}

    @contextmanager
    def loop(
        self, name: str, bound: Sequence[AffineExpr], kind: LoopKind, source: Operation
    ) -> Iterator[AffineExpr]:
        """Open a loop for as long as the context lasts; gives its variable."""
        with super().loop(name, bound, kind, source) as variable:
            self._know(variable, bound)
            yield variable

    def reduction(
        self,
        source: ReduceOp,
        name: str,
        bound: Sequence[AffineExpr],
        init: SSAValue,
        body: Callable[[AffineExpr, SSAValue], SSAValue],
    ) -> SSAValue:
        """Emit a reduction like `source`; `body` maps variable and accumulator to the result."""

        def knowing(variable: AffineExpr, accumulator: SSAValue) -> SSAValue:
            self._know(variable, bound)
            return body(variable, accumulator)

        return super().reduction(source, name, bound, init, knowing)

    def _know(self, variable: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        sizes = [n for expr in bound if (n := value_of(expr)) is not None]
        if sizes:
            self.ranges[variable] = (0, max(0, min(sizes) - 1))
