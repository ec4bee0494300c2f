"""The loops of a kernel that is written in Python: parallel, in order, reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block
from xdsl.ir.affine import AffineConstantExpr

from ....core.dims import Dim
from ...loop.attrs import Combine, LoopKind
from ...loop.loops import reduction
from ...loop.ops import ForOp, YieldOp
from ...loop.syntax import compress
from .. import scalars
from ..combiners import COMBINERS
from .buffers import Buffer, Index, KernelBody, Row, Scalar
from .folds import added, folded

INDEX = IndexType()
Scalars = tuple[Scalar, ...]
_LOOPS = "ijlmnpqrstuv"


class KernelLoops(KernelBody):
    """Opens and closes the loops of a kernel; see `KernelBuilder`."""

    def __init__(self) -> None:
        self._body = Block()
        self._blocks = [self._body]
        self._counts: dict[str, int] = {}

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
        opened: list[ForOp] = []
        with self._inside() as blocks:
            for extent in extents:
                opened.append(self._loop(extent, kind))
                blocks.append(opened[-1].body.block)
            index = tuple(self.variable(op.variable) for op in opened)
            yield index[0] if len(index) == 1 else index
        for inner, outer in zip(opened[:0:-1], opened[-2::-1], strict=True):
            outer.body.block.add_op(inner)
        if opened:
            self.append(opened[0])

    @contextmanager
    def _inside(self) -> Iterator[list[Block]]:
        """Fill other blocks within the context: the last of a list, to which they are added.

        A loop that is left by an exception is not in the kernel.
        """
        outer, self._blocks = self._blocks, [*self._blocks]
        inner = self._blocks
        try:
            yield inner
        except BaseException:
            for block in inner[len(outer) :]:
                _empty(block)
            raise
        finally:
            self._blocks = outer

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
        self._check_scalars(inits)
        if len(combines) != len(inits):
            raise self.error("wrong number of combiners", len(inits), len(combines))
        known = [str(combine) for combine in Combine]
        for combine in combines:
            if combine not in known:
                raise self.error("wrong combiner", ", ".join(known), combine)
        if isinstance(over, Row):
            return self._reduce_row(over, combines, inits, step)
        extents = over if isinstance(over, tuple) else (over,)

        def level(index: tuple[Index, ...], totals: Scalars) -> Scalars:
            if len(index) == len(extents):
                return self._stepped(step, index, totals)
            op = self._loop(extents[len(index)], LoopKind.REDUCTION, totals, *combines)
            inside = tuple(Scalar(self, value) for value in op.carried)
            return self._carrying(op, lambda: level((*index, self.variable(op.variable)), inside))

        return level((), tuple(inits))

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
        self._check_scalars(inits)
        op = self._loop(extent, LoopKind.SERIAL, tuple(inits))
        index, inside = self.variable(op.variable), tuple(Scalar(self, v) for v in op.carried)
        return self._carrying(op, lambda: self._stepped(step, [index], inside))

    def _loop(self, extent: Any, kind: LoopKind, inits: Scalars = (), *combines: str) -> ForOp:
        """An empty loop: reductions are called k, others after their depth."""
        base = "k" if combines else _LOOPS[min(len(self._blocks), len(_LOOPS)) - 1]
        bound = self.index(extent).expr
        if isinstance(bound, AffineConstantExpr) and bound.value < 0:
            raise self.error("wrong number of iterations", "0 or more", bound.value)
        map, operands = compress([bound], self.variables)
        first, joins = [init.ssa for init in inits], [Combine(combine) for combine in combines]
        op = ForOp(self._loop_name(base), map, operands, kind, inits=first, combines=joins)
        op.variable.name_hint = op.loop_name.data
        return op

    def _check_scalars(self, inits: object) -> None:
        several = isinstance(inits, (list, tuple))
        for init in inits if several else [inits]:
            if not several or not isinstance(init, Scalar):
                expected = "a scalar" if several else "a list of scalars"
                hint = 'k.cast(0, "f32") makes one of a number'
                raise self.error("wrong start of a loop", expected, type(init).__name__, hint)
        if not inits:
            raise self.error("a loop carries nothing", "one value or more")

    def _stepped(self, step: Callable[..., Any], index: Sequence[Any], totals: Scalars) -> Scalars:
        results = step(*index, *totals)
        if not isinstance(results, tuple) or len(results) != len(totals):
            got = f"{type(results).__name__}"
            got += f" of {len(results)}" if isinstance(results, tuple) else ""
            raise self.error("wrong results of a step", f"a tuple of {len(totals)}", got)
        pairs = zip(results, totals, strict=True)
        return tuple(Scalar(self, self.scalar(new, old.ssa.type)) for new, old in pairs)

    def _reduce_row(
        self, row: Row, combines: Sequence[str], inits: Sequence[Scalar], step: Callable[..., Any]
    ) -> Scalars:
        matrix = row.matrix
        map, operands = compress([row.index.expr], self.variables)
        pointers, indices, values = matrix.parts[:3]
        name, places = self._loop_name("e"), [pointers, indices]
        op = reduction(name, map, operands, combines, [init.ssa for init in inits], places)
        op.variable.name_hint, op.column.name_hint = "p", "c"

        def body() -> Scalars:
            position, column = self.variable(op.variable), self.variable(op.column)
            stored = Buffer(self, values, matrix.kind, (Dim.of(0),))[position]
            totals = tuple(Scalar(self, value) for value in op.carried)
            return self._stepped(step, (column, stored), totals)

        return self._carrying(op, body)

    def _carrying(self, op: ForOp, body: Callable[[], Scalars]) -> Scalars:
        """Put a loop that carries values in its place; `body` writes it, and returns the next."""
        with self._inside() as blocks:
            blocks.append(op.body.block)
            results = body()
            self.append(YieldOp(*(result.ssa for result in results)))
        for init, result in zip(op.inits, results, strict=True):
            if result.ssa.type != init.type:
                raise self.error(
                    "a loop changes the type that it carries", init.type, result.ssa.type
                )
        self.append(op)
        return tuple(Scalar(self, last) for last in op.results)

    def sum(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The sum of `term(index)`, iterating as `reduce` does."""
        zero = partial(scalars.zero, self)
        return folded(self, over, "add", term, zero, partial(added, self))

    def max(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The largest `term(index)`; -inf or the smallest integer if there is none."""
        largest = COMBINERS["max"]
        first, join = partial(largest.init, self), partial(largest.step, self)
        return folded(self, over, largest.name, term, first, join)

    @contextmanager
    def scrap(self) -> Iterator[Block]:
        """A place for operations that are erased at the end of the context."""
        blocks, counts = self._blocks, dict(self._counts)
        block = Block(arg_types=[INDEX, INDEX])
        self._blocks = [*blocks, block]
        try:
            yield block
        finally:
            self._blocks, self._counts = blocks, counts
            _empty(block)

    def _loop_name(self, base: str) -> str:
        count = self._counts.get(base, 0)
        self._counts[base] = count + 1
        return f"{base}{count}" if count else base


def _empty(block: Block) -> None:
    """Erase the operations in a block."""
    for op in reversed(list(block.ops)):
        op.detach()
        op.erase(safe_erase=False)
