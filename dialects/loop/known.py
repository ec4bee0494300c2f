"""What is known of index values from the sizes and the contents of a kernel's arguments.

Index values are polynomials over sizes, variables of loops and values that are computed. A fact is
a polynomial that is not negative: from the bounds of loops, from guards, from what indices may be.
They are found in the operations of a kernel that is there; the ranges of atoms are a table of
`core/building/facts.py`, which also serves conversions that build one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineExpr

from ...core.building.affine import MUL, Affine, Atom, DivisorError, polynomial, variable, variables
from ...core.building.polynomials import Polynomial
from ...core.building.sizes import affine_size
from ...core.dims import Dim
from ...core.typed import memref_type
from ..upstream import ops as upstream
from .bounds import constant_index
from .counters import CASTS, start_of_counter
from .magnitudes import Magnitudes
from .ops_access import LoadOp
from .ops_loops import ForOp
from .ops_partition import PartitionPointOp
from .ops_values import LocalOp
from .syntax import INDEX
from .unknowns import Unknowns, loop_of


@dataclass
class Known:
    """What is known of the arguments of a kernel."""

    shapes: dict[SSAValue, Sequence[Dim | None]] = field(default_factory=dict)
    """The sizes of buffers; None for one that does not follow from those of arguments."""
    sizes: dict[SSAValue, Dim] = field(default_factory=dict)
    """The sizes that are arguments."""
    held: dict[SSAValue, Dim] = field(default_factory=dict)
    """The sizes that buffers of one integer hold."""
    contents: dict[SSAValue, list[tuple[Dim, Dim]]] = field(default_factory=dict)
    """For buffers of integers the least one, and what is above all."""
    entries: dict[SSAValue, Dim] = field(default_factory=dict)
    """For row pointers of matrices the number of their entries."""

    def with_sizes(self, sizes: Mapping[str, Dim]) -> Known:
        """The same in other sizes, given for the names of those here."""
        return Known(
            {
                buffer: [None if dim is None else dim.substitute(sizes) for dim in shape]
                for buffer, shape in self.shapes.items()
            },
            {value: dim.substitute(sizes) for value, dim in self.sizes.items()},
            {buffer: dim.substitute(sizes) for buffer, dim in self.held.items()},
            {
                buffer: [(low.substitute(sizes), high.substitute(sizes)) for low, high in pairs]
                for buffer, pairs in self.contents.items()
            },
            {buffer: dim.substitute(sizes) for buffer, dim in self.entries.items()},
        )


class KnownIndices(Unknowns):
    """Index values of a kernel, and the facts about them."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known
        self.magnitudes = Magnitudes(known.sizes, {*known.contents, *known.held})
        self.names: dict[Atom, str] = {}
        """The sizes, by their unknowns."""

    # Values.

    def extent(self, buffer: SSAValue, dimension: int) -> Affine:
        """The size of a dimension of a buffer."""
        return polynomial(self._size(buffer, dimension))

    def _size(self, buffer: SSAValue, dimension: int) -> AffineExpr:
        size = memref_type(buffer).get_shape()[dimension]
        if size != DYNAMIC_INDEX:
            return AffineExpr.constant(size)
        known = self.known.shapes[buffer][dimension] if buffer in self.known.shapes else None
        if known is not None:
            return self._named(known)
        if isinstance(buffer.owner, LocalOp):
            before = memref_type(buffer).get_shape()[:dimension].count(DYNAMIC_INDEX)
            return self.expr(buffer.owner.sizes[before], 0)
        return self.below(None, "size", buffer, dimension)

    def _named(self, dim: Dim) -> AffineExpr:
        def symbol(name: str) -> AffineExpr:
            found = self.below(None, "size", name)
            self.names[variable(found)] = name
            return found

        return affine_size(dim, symbol, lambda a, b: AffineBinaryOpExpr(MUL, a, b))

    def expr(self, value: SSAValue, side: int) -> AffineExpr:
        """An index, or an integer that becomes one."""
        op = value.owner
        if value in self.known.sizes:
            return self._named(self.known.sizes[value])
        if isinstance(op, LoadOp) and op.buffer in self.known.held:
            return self._named(self.known.held[op.buffer])
        # An axis that there is not is refused where the operation is lowered.
        if (
            isinstance(op, memref.DimOp)
            and (axis := constant_index(op.index)) is not None
            and 0 <= axis < memref_type(op.source).get_num_dims()
        ):
            return self._size(op.source, axis)
        if isinstance(op, CASTS) and self._keeps_value(op, side):
            return self.expr(op.operands[0], side)
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return AffineExpr.constant(op.value.value.data)
        for part in _bounds_of(value):
            # What bounds an unknown comes before it: unknowns are eliminated from the last one on.
            self.expr(part, side)
        return super().expr(value, side)

    def _keeps_value(self, cast: Operation, side: int) -> bool:
        """Whether a cast of an integer or an index gives the same number."""
        given, made = cast.operands[0].type, cast.results[0].type
        if given == i1:
            # 1 is extended to -1.
            return False
        if not isinstance(made, IntegerType) or not isinstance(given, IndexType):
            return True
        least, most = self.ranges.of(polynomial(self.expr(cast.operands[0], side)))
        end = 1 << (made.width.data - 1)
        fits = least is not None and most is not None and -end <= least and most < end
        return made == i64 or fits

    def _computed(self, op: Operation, side: int) -> AffineExpr | None:
        if op.results[0].type not in (INDEX, i64) or self.magnitudes.of(op.results[0]) is None:
            # It may wrap around.
            return None
        found = super()._computed(op, side)
        if found is None and isinstance(op, arith.MuliOp):
            found = AffineBinaryOpExpr(MUL, self.expr(op.lhs, side), self.expr(op.rhs, side))
        return found

    def _of(self, value: SSAValue) -> Affine:
        return polynomial(self.expr(value, 0))

    def size_of(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Dim | None:
        """An expression over index values in sizes; None where it does not follow from them."""
        try:
            return self.in_sizes(polynomial(expr, [self.expr(value, 0) for value in operands]))
        except DivisorError:
            return None

    def in_sizes(self, value: Affine) -> Dim | None:
        """A polynomial in sizes; None where it has other atoms."""
        return self._in_sizes(value) if self.names.keys() >= set(value.atoms) else None

    def _in_sizes(self, value: Affine) -> Dim:
        return Dim.of(value.substituted(lambda atom: Dim.symbol(self.names[atom])))

    # Facts: polynomials that are not negative.

    def _facts_in(self, loops: Iterable[ForOp]) -> Iterator[Affine]:
        """What holds in an iteration of each of these loops."""
        for loop in loops:
            if loop.over_entries or not self.magnitudes.fits_bounds(loop):
                continue
            index = self._of(loop.variable)
            for bound in self._applied(loop.bound.data, loop.bounds, 0):
                yield bound - 1 - index
                yield bound - 1
                yield from self._if_positive(bound)

    def _facts_of_lanes(self, place: Iterable[Affine]) -> Iterator[Affine]:
        """What holds of the lanes of an access with a limit."""
        for atom in sorted({atom for index in place for atom in variables(index)}):
            if atom in self._limits:
                yield from (bound - 1 - Polynomial.atom(atom) for bound in self._bounds(atom))

    def _if_positive(self, bound: Affine) -> Iterator[Affine]:
        """What holds if a bound is above 0: the condition by which a guard is 1 or 0."""
        atom = bound.single_atom
        value = None if atom is None else self.value(atom)
        op = None if value is None else value.owner
        if isinstance(op, arith.SelectOp):
            for chosen, holds in ((op.lhs, False), (op.rhs, True)):
                number = self._of(chosen).number
                if number is not None and number <= 0:
                    yield from self._if(op.cond, holds)

    def _if(self, condition: SSAValue, holds: bool) -> Iterator[Affine]:
        """What follows from a condition, or from its opposite."""
        op = condition.owner
        if isinstance(op, arith.AndIOp if holds else arith.OrIOp):
            yield from self._if(op.lhs, holds)
            yield from self._if(op.rhs, holds)
        if not isinstance(op, arith.CmpiOp | upstream.CmpiOp):
            return
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        if predicate not in _FACTS:
            return
        left, right = self._of(op.lhs), self._of(op.rhs)
        unsigned = predicate.startswith("u")
        if unsigned and not (holds and predicate == "ult" and self.ranges.is_nonnegative(right)):
            return
        strict, swapped = _FACTS[predicate]
        if swapped:
            left, right = right, left
        yield right - left - strict if holds else left - right - (1 - strict)
        if unsigned:
            yield left

    def _facts_of(self, atom: Atom) -> Iterator[Affine]:
        """What always holds of an unknown."""
        value, own = self.value(atom), Polynomial.atom(atom)
        if value is None:
            return
        loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
        source = value.owner.buffer if isinstance(value.owner, LoadOp) else None
        last = 1
        if isinstance(loop, ForOp) and loop.over_entries and value not in loop.carried:
            # A position is before the end of its row, a column is one of the column indices.
            is_position = value is loop.variable
            source, last = loop.matrix[0 if is_position else 1], 2 if is_position else 1
        for low, high in self.known.contents.get(source, ()) if source is not None else ():
            yield own - polynomial(self._named(low))
            yield polynomial(self._named(high)) - own - last
        if isinstance(value.owner, PartitionPointOp):
            yield own
            yield self._of(value.owner.rows) - own
        if loop_of(value) is not None:
            yield own
        start = start_of_counter(value)
        if isinstance(loop, ForOp) and start is not None:
            # It has grown by at most 1 in each iteration before this one.
            yield own - self._of(start)
            yield self._of(start) + self._of(loop.variable) - own
        if isinstance(value.owner, ForOp):
            yield from self._facts_of_last(value.owner, value)

    def _facts_of_last(self, loop: ForOp, value: SSAValue) -> Iterator[Affine]:
        """Facts about the value of a counter after its loop."""
        start = start_of_counter(loop.carried[loop.results.index(value)])
        if start is None or loop.over_entries:
            return
        grown = Polynomial.atom(variable(self.expr(value, 0))) - self._of(start)
        yield grown
        for bound in self._applied(loop.bound.data, loop.bounds, 0):
            if self.ranges.is_nonnegative(bound):
                yield bound - grown


_FACTS = {
    "slt": (1, False),
    "sle": (0, False),
    "sgt": (1, True),
    "sge": (0, True),
    "ult": (1, False),
}
"""For comparisons whether they are strict, and whether the right side is the smaller one."""


def _bounds_of(value: SSAValue) -> Sequence[SSAValue]:
    """The index values by which a loop variable, a minimum or a maximum is bounded."""
    loop = loop_of(value)
    if loop is not None:
        return () if loop.over_entries else loop.bounds
    op = value.owner
    return op.operands if isinstance(op, affine.MinOp | arith.MinSIOp | arith.MaxSIOp) else ()
