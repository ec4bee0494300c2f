"""The loops of a kernel that is written in Python, and their indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.building.arithmetic import INDEX
from ...loop.attrs import Combine, LoopKind
from . import scalars
from .buffers import CAST, Body, Index, Row, Scalar
from .nest import Indices, Loops

Extent = int | Index | Scalar
"""A number of iterations: known, affine, or computed."""
Totals = tuple[Scalar, ...]


class KernelLoops(Body):
    """Opens and closes the loops of a kernel; see `KernelBody`."""

    nest: Loops
    """Receives what is written."""

    # The interface that `scalars` needs.

    def insert(self, op: Operation) -> SSAValue:
        """Append an operation on scalars; return its first result."""
        return self.nest.insert(op)

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A scalar constant, at the top of the kernel and there only once."""
        return self.nest.constant(value, type)

    # Indices.

    def index(self, given: Any) -> Index:
        """A number, an index, or a computed integer as an index.

        Raises:
            CompileError: if it is something else.
        """
        if isinstance(given, Index):
            return given
        if isinstance(given, Scalar) and isinstance(given.ssa.type, IntegerType | IndexType):
            return Index(self, self.nest.index(given.ssa))
        return Index(self, AffineExpr.constant(self.number(given)))

    def value(self, index: Index | int) -> Scalar:
        """An index as a scalar of type `index`."""
        return Scalar(self, self.nest.value(self.index(index).expr))

    def number(self, given: Any) -> int:
        """An integer.

        Raises:
            CompileError: if it is something else, or does not fit into 64 bits.
        """
        try:
            number = operator.index(given)
        except TypeError:
            got, hint = type(given).__name__, CAST if isinstance(given, Scalar) else None
            raise self.error("wrong index", "an index or an integer", got, hint) from None
        if not -(2**63) <= number < 2**63:
            raise self.error("wrong index", "an integer of 64 bits", number)
        return number

    # Loops.

    def attempt(self) -> AbstractContextManager[None]:
        """What is done within the context is undone where an exception leaves it."""
        return nullcontext()

    def loops(self, *extents: Any) -> AbstractContextManager[Any]:
        """Parallel loops from 0 to the extents; return one index, or a tuple of several.

        Of a sequence of extents, such as `y.shape`, it is a tuple however many there are.
        """
        return self._loops(extents, LoopKind.PARALLEL)

    def serial(self, *extents: Any) -> AbstractContextManager[Any]:
        """The same, but iterations keep their order: each may read what earlier ones wrote."""
        return self._loops(extents, LoopKind.SERIAL)

    @contextmanager
    def _loops(self, extents: Sequence[Any], kind: LoopKind) -> Iterator[Any]:
        bounds = [self._bound(extent) for extent in _several(extents)]
        with self.attempt(), self.nest.loops(bounds, kind) as variables:
            index = tuple(Index(self, variable) for variable in variables)
            yield index[0] if len(index) == 1 and not _is_sequence(extents[0]) else index

    @contextmanager
    def only_if(self, condition: Scalar) -> Iterator[None]:
        """Do what is within the context, which may store, where a condition holds."""
        none, once = self.constant(0, INDEX), self.constant(1, INDEX)
        times = self.nest.index(scalars.select(self, condition.ssa, once, none))
        with self.attempt(), self.nest.loops([times], LoopKind.SERIAL):
            yield

    def reduce(
        self,
        over: Extent | Row | Sequence[Extent],
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
        over: Extent | Row | Sequence[Extent],
        combines: Sequence[str],
        inits: Sequence[Any],
        step: Callable[..., Any],
    ) -> Totals:
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
        bounds = [self._bound(extent) for extent in _several((over,))]

        def own(index: Indices, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self._stepped(step, [Index(self, place) for place in index], totals)

        with self.attempt():
            return self._scalars(self.nest.reduce_several(bounds, combines, first, own))

    def _reduce_row(
        self, row: Row, combines: Sequence[str], inits: Sequence[SSAValue], step: Callable[..., Any]
    ) -> Totals:
        def own(
            position: AffineExpr, column: AffineExpr, totals: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            stored = row.matrix.stored(position)
            return self._stepped(step, (Index(self, column), stored), totals)

        with self.attempt():
            return self._scalars(row.matrix.fold(row.index.expr, combines, inits, own))

    def carry(
        self, extent: Extent | Sequence[Extent], inits: Sequence[Any], step: Callable[..., Any]
    ) -> Totals:
        """Values that each iteration of a loop passes to the next one, in order.

        Args:
            extent: the number of iterations, or several ones of nested loops.
            inits: the values of the first iteration, each a `Scalar`.
            step: the next values, as many, from the index (or indices) and the values so far; it
                may write to buffers.

        Returns:
            The values after the last iteration.
        """
        first = self._started(inits)
        bounds = [self._bound(bound) for bound in _several((extent,))]

        def level(index: Indices, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if len(index) == len(bounds):
                return self._stepped(step, [Index(self, place) for place in index], totals)
            return self.nest.serial(
                bounds[len(index)], totals, lambda place, after: level((*index, place), after)
            )

        with self.attempt():
            return self._scalars(level((), first))

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

    def _scalars(self, values: Sequence[SSAValue]) -> Totals:
        return tuple(Scalar(self, value) for value in values)

    def _stepped(
        self, step: Callable[..., Any], index: Sequence[Any], totals: Sequence[SSAValue]
    ) -> list[SSAValue]:
        results = step(*index, *self._scalars(totals))
        if not isinstance(results, tuple) or len(results) != len(totals):
            got = f"{type(results).__name__}"
            got += f" of {len(results)}" if isinstance(results, tuple) else ""
            raise self.error("wrong results of a step", f"a tuple of {len(totals)}", got)
        after = [self.scalar(new, old.type).ssa for new, old in zip(results, totals, strict=True)]
        for new, old in zip(after, totals, strict=True):
            if new.type != old.type:
                raise self.error("a loop changes the type that it carries", old.type, new.type)
        return after


def _is_sequence(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _several(given: Sequence[Any]) -> Sequence[Any]:
    """Extents, or those of a sequence that is given as the only one."""
    return given[0] if len(given) == 1 and _is_sequence(given[0]) else given
