"""The loops of a kernel that is written in Python: parallel, in order, reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.dims import Dim
from ...loop.attrs import Combine, LoopKind
from .. import scalars
from ..combiners import COMBINERS
from .buffers import Buffer, Index, KernelBody, Row, Scalar
from .written_nest import WrittenNest

Scalars = tuple[Scalar, ...]


class KernelLoops(KernelBody):
    """Opens and closes the loops of a kernel; see `KernelBuilder`."""

    def __init__(self) -> None:
        self._body = Block()
        self.nest = WrittenNest(self._body)

    @contextmanager
    def loops(self, *extents: int | Index) -> Iterator[Any]:
        """Parallel loops from 0 to the extents; return one index, or a tuple of several."""
        with self._loops(extents, LoopKind.PARALLEL) as index:
            yield index

    @contextmanager
    def serial(self, *extents: int | Index) -> Iterator[Any]:
        """The same, but iterations keep their order: each may read what earlier ones wrote."""
        with self._loops(extents, LoopKind.SERIAL) as index:
            yield index

    @contextmanager
    def _loops(self, extents: Sequence[int | Index], kind: LoopKind) -> Iterator[Any]:
        bounds = [self._bound(extent) for extent in extents]
        with self.nest.attempt(), self.nest.loops(bounds, kind) as variables:
            index = tuple(Index(self, variable) for variable in variables)
            yield index[0] if len(index) == 1 else index

    def reduce(
        self,
        over: int | Index | Row | tuple[int | Index, ...],
        combine: str,
        init: Any,
        step: Callable[..., Any],
    ) -> Scalar:
        """A reduction over an extent, several of them, or the entries of a row.

        Args:
            over: what to iterate over.
            combine: how partial results join: add, mul, max or min, or custom.
            init: what it starts at, a `Scalar`.
            step: the new result from the index (or indices; of a row the column and the
                stored value), and then the result so far, on which no store may depend unless
                they join by custom.
        """
        return self.reduce_several(over, [combine], [init], lambda *given: (step(*given),))[0]

    def reduce_several(
        self,
        over: int | Index | Row | tuple[int | Index, ...],
        combines: Sequence[str],
        inits: Sequence[Any],
        step: Callable[..., Any],
    ) -> Scalars:
        """A reduction of several values at once, such as a maximum and a sum.

        Args:
            over: what to iterate over; see `reduce`.
            combines: how partial results of each value join; "custom" for one that depends on
                another one.
            inits: what each starts at, a `Scalar`.
            step: the new results, as many, from the index and then all results so far.
        """
        first = self._started(inits)
        if len(combines) != len(inits):
            raise self.error("wrong number of combiners", len(inits), len(combines))
        known = [str(combine) for combine in Combine]
        for combine in combines:
            if combine not in known:
                raise self.error("wrong combiner", ", ".join(known), combine)
        if isinstance(over, Row):
            return self._reduce_row(over, combines, first, step)
        bounds = [self._bound(e) for e in (over if isinstance(over, tuple) else (over,))]

        def own(index: Sequence[AffineExpr], totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self._stepped(step, [Index(self, place) for place in index], totals)

        with self.nest.attempt():
            return self._scalars(self.nest.reduce_several(bounds, combines, first, own))

    def _reduce_row(
        self, row: Row, combines: Sequence[str], inits: Sequence[SSAValue], step: Callable[..., Any]
    ) -> Scalars:
        pointers, indices, values = row.matrix.parts[:3]

        def own(
            position: AffineExpr, column: AffineExpr, totals: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            stored = Buffer(self, values, row.matrix.kind, (Dim.of(0),))[Index(self, position)]
            return self._stepped(step, (Index(self, column), stored), totals)

        with self.nest.attempt():
            place = row.index.expr
            return self._scalars(
                self.nest.reduce_entries(pointers, indices, place, combines, inits, own)
            )

    def carry(self, extent: int | Index, inits: Sequence[Any], step: Callable[..., Any]) -> Scalars:
        """Values that each iteration of a loop passes to the next one, in order.

        Args:
            extent: the number of iterations.
            inits: the values of the first iteration, each a `Scalar`.
            step: the next values, as many, from the index and the values so far; it may write
                to buffers.

        Returns:
            The values after the last iteration.
        """

        def own(place: AffineExpr, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self._stepped(step, [Index(self, place)], totals)

        first = self._started(inits)
        with self.nest.attempt():
            return self._scalars(self.nest.serial(self._bound(extent), first, own))

    def _bound(self, extent: Any) -> AffineExpr:
        """A number of iterations."""
        bound = self.index(extent).expr
        if isinstance(bound, AffineConstantExpr) and bound.value < 0:
            raise self.error("wrong number of iterations", "0 or more", bound.value)
        return bound

    def _started(self, inits: Any) -> list[SSAValue]:
        """The initial values that a loop carries."""
        several = isinstance(inits, (list, tuple))
        for init in inits if several else [inits]:
            if not several or not isinstance(init, Scalar):
                expected = "a scalar" if several else "a list of scalars"
                hint = 'k.cast(0, "f32") makes one of a number'
                raise self.error("wrong start of a loop", expected, type(init).__name__, hint)
        if not inits:
            raise self.error("a loop carries nothing", "one value or more")
        return [init.ssa for init in inits]

    def _scalars(self, values: Sequence[SSAValue]) -> Scalars:
        return tuple(Scalar(self, value) for value in values)

    def _stepped(
        self, step: Callable[..., Any], index: Sequence[Any], totals: Sequence[SSAValue]
    ) -> list[SSAValue]:
        results = step(*index, *self._scalars(totals))
        if not isinstance(results, tuple) or len(results) != len(totals):
            got = f"{type(results).__name__}"
            got += f" of {len(results)}" if isinstance(results, tuple) else ""
            raise self.error("wrong results of a step", f"a tuple of {len(totals)}", got)
        after = [self.scalar(new, old.type) for new, old in zip(results, totals, strict=True)]
        for new, old in zip(after, totals, strict=True):
            if new.type != old.type:
                raise self.error("a loop changes the type that it carries", old.type, new.type)
        return after

    # Sums and maxima, whose type follows from their terms.

    def sum(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The sum of `term(index)`, iterating as `reduce` does."""
        self._check_range("sum", "a + b", over, term)
        zero = partial(scalars.zero, self)
        return self._folded(over, "add", term, zero, self._added)

    def max(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The largest `term(index)`; -inf or the smallest integer if there is none."""
        self._check_range("max", "k.maximum(a, b)", over, term)
        largest = COMBINERS["max"]
        first, join = partial(largest.init, self), partial(largest.step, self)
        return self._folded(over, largest.name, term, first, join)

    def _check_range(self, name: str, of_two: str, over: Any, term: object) -> None:
        """Refuse a reduction that is not over a range."""
        hint = f"of two values it is {of_two}"
        for extent in over if isinstance(over, tuple) else (over,):
            if not isinstance(extent, (Row, Index, int)) or isinstance(extent, bool):
                expected = "a number of iterations, or a.row(i)"
                raise self.error(f"k.{name} is over a range", expected, type(extent).__name__, hint)
        if not callable(term):
            fact, expected = f"k.{name} of no function", f"k.{name}(n, lambda i: ..)"
            raise self.error(fact, expected, type(term).__name__, hint)

    def _folded(
        self,
        over: Any,
        combine: str,
        term: Callable[..., Scalar],
        first: Callable[[Attribute], SSAValue],
        join: Callable[[SSAValue, SSAValue], SSAValue],
    ) -> Scalar:
        """A reduction of terms.

        Args:
            over: what to iterate over; see `reduce`.
            combine: how partial results join.
            term: the term at an index.
            first: what the reduction of terms of a type starts at.
            join: the next result from the one so far and a term.
        """
        kind = self._type_of(over, term)

        def step(*index: Any) -> Scalar:
            value = self.scalar(term(*index[:-1]), kind)
            return Scalar(self, join(index[-1].ssa, value))

        return self.reduce(over, combine, Scalar(self, first(kind)), step)

    def _type_of(self, over: Any, term: Callable[..., Any]) -> Attribute:
        """The type of a term, found out by writing it down in a place that is thrown away."""
        with self.nest.scrap() as variable:
            if isinstance(over, Row):
                buffer = Buffer(self, over.matrix.parts[2], over.matrix.kind, (Dim.of(0),))
                given: tuple[Any, ...] = (self.variable(variable), buffer[0])
            else:
                count = len(over) if isinstance(over, tuple) else 1
                given = tuple(self.variable(variable) for _ in range(count))
            result = term(*given)
            if not isinstance(result, Scalar):
                raise self.error(
                    "a reduction of a value that is not a scalar", "a scalar", type(result).__name__
                )
            return result.ssa.type

    def _added(self, total: SSAValue, term: SSAValue) -> SSAValue:
        """The sum of two scalars; a product that nothing else needs becomes part of it."""
        # a * b + c, rounded once
        product = term.owner
        if isinstance(product, arith.MulfOp) and term.first_use is None:
            left, right = product.lhs, product.rhs
            product.detach()
            product.erase()
            return self.insert(math.FmaOp(left, right, total))
        return scalars.add(self, total, term)
