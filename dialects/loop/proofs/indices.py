"""Index values as expressions of `core/algebra`, and what a kernel says about them.

This is the one place that reads how operations compute indices. `IndexValues` are those of one
iteration of a loop, of another, and of both; `KnownIndices` those of a kernel of whose arguments
the sizes and contents are known. A fact is a polynomial that is not negative: from the bounds of
loops, from guards, from what indices may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.traits import is_side_effect_free

from ....core.algebra.affine import DivisorError, polynomial
from ....core.algebra.dims import Dim, SizeQuotient
from ....core.algebra.expressions import (
    CEIL,
    DIMENSION,
    FLOOR,
    ZERO,
    Affine,
    Atom,
    Least,
    Variable,
    divided,
    greatest,
    joined,
    least,
    parts_of,
    variables,
)
from ....core.algebra.follows import Case, Knowledge, Proof, follows
from ....core.algebra.polynomials import Polynomial
from ....core.algebra.ranges import Ranges
from ....core.ir.typed import memref_type
from ...upstream import ops as upstream
from ..loops import loop_of, most_iterations
from ..ops_access import LoadOp, StoreOp
from ..ops_loops import ForOp
from ..ops_partition import PartitionPointOp
from ..ops_values import LocalOp, block_shape
from ..syntax import INDEX
from .bounds import constant_index
from .counters import CASTS, start_of_counter
from .magnitudes import Magnitudes


class IndexValues:
    """Index values as expressions: of one iteration of a loop, of the other, and of both.

    Without a loop the iterations are any two of all loops.
    """

    def __init__(self, loop: ForOp | None = None) -> None:
        self.loop = loop
        self.size = None if loop is None else most_iterations(loop)
        self.ranges: Ranges = Ranges()
        self.values: dict[Atom, SSAValue] = {}
        """The index values that unknowns stand for."""
        self._sides: dict[Atom, int] = {}
        self._limits: dict[Atom, SSAValue] = {}
        self._atoms: dict[tuple[object, ...], Variable] = {}
        self._found: dict[tuple[SSAValue, int], Affine] = {}
        self.distance = self.atom("distance")

    def atom(self, *key: object) -> Variable:
        """The unknown that stands for something."""
        return self._atoms.setdefault(key, Variable(DIMENSION, len(self._atoms)))

    def below(self, size: int | None, *key: object) -> Variable:
        """The unknown of a counter from 0, up to `size` where that is known."""
        found = self.atom(*key)
        self.ranges.know(found, 0, None if size is None else max(0, size - 1))
        return found

    def of(self, value: SSAValue, side: int = 0) -> Affine:
        """An index value in one of the two iterations, 0 or 1.

        Raises:
            DivisorError: if a map divides by what is not a positive number.
        """
        found = self._found.get((value, side))
        if found is None:
            found = self._found[value, side] = self._expression(value, side)
        return found

    def _expression(self, value: SSAValue, side: int) -> Affine:
        constant = constant_index(value)
        if constant is not None:
            return Polynomial.of(constant)
        owner = value.owner
        if self.loop is not None and value is self.loop.variable:
            index: Affine = Polynomial.atom(self.below(self.size, value))
            return index if side == 0 else index - Polynomial.atom(self.distance)
        if isinstance(owner, Operation):
            computed = self._computed(owner, side)
            if computed is not None:
                return computed
        key, loop = (value, side) if self._varies(value) else (value,), loop_of(value)
        for bound in () if loop is None or loop.over_entries else loop.bounds:
            # What bounds an unknown comes before it: unknowns are eliminated from the last one on.
            self.of(bound, side)
        if loop is not None or isinstance(owner, memref.DimOp):
            found = self.below(None if loop is None else most_iterations(loop), *key)
        else:
            found = self.atom(*key)
        self.values[found], self._sides[found] = value, side
        return Polynomial.atom(found)

    def _computed(self, op: Operation, side: int) -> Affine | None:
        """What operations on indices compute, except for products and quotients of two unknowns."""
        match op:
            case affine.ApplyOp() if not op.map.data.num_symbols:
                return self.applied(op.map.data, op.operands, side)[0]
            case affine.MinOp() if not op.map.data.num_symbols:
                return self._least(self.applied(op.map.data, op.operands, side))
            case arith.MinSIOp():
                return self._least([self.of(op.lhs, side), self.of(op.rhs, side)])
            case arith.MaxSIOp():
                return greatest([self.of(op.lhs, side), self.of(op.rhs, side)])
            case arith.AddiOp():
                return self.of(op.lhs, side) + self.of(op.rhs, side)
            case arith.SubiOp():
                return self.of(op.lhs, side) - self.of(op.rhs, side)
            case arith.MuliOp():
                for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                    factor = constant_index(other)
                    if factor is not None:
                        return self.of(one, side) * factor
            case arith.FloorDivSIOp() | arith.CeilDivSIOp():
                # A quotient by 0 has no value, but is no error where its loop does not run: it
                # may be any index, so that no access at it is proved.
                divisor = constant_index(op.rhs)
                if divisor is not None and divisor > 0:
                    function = FLOOR if isinstance(op, arith.FloorDivSIOp) else CEIL
                    return divided(function, self.of(op.lhs, side), divisor)
        return None

    def _least(self, parts: Sequence[Affine]) -> Affine:
        """A minimum; that it is above 0, or not below, may follow from bounds of loops."""
        found = least(parts)
        atom, (low, high) = found.single_atom, self.ranges.of(found)
        if isinstance(atom, Least) and low is None:
            ends = (n for n in (1, 0) if all(self.is_negative(n - 1 - part) for part in atom.parts))
            self.ranges.know(atom, next(ends, None), high)
        return found

    def _varies(self, value: SSAValue) -> bool:
        """Whether a value may differ between the two iterations."""
        owner = value.owner
        if not isinstance(owner.parent_op(), ForOp):
            return False
        if self.loop is not None and not self.loop.is_ancestor(owner):
            return False
        if isinstance(owner, Block) or owner.regions or not is_side_effect_free(owner):
            return True
        return any(map(self._varies, owner.operands))

    def place(self, access: LoadOp | StoreOp, side: int = 0) -> list[Affine]:
        """The index of the access in one of the two iterations.

        Raises:
            DivisorError: as in `of`.
        """
        kind = access.result.type if isinstance(access, LoadOp) else access.value.type
        # As in `_expression`, what lanes are below comes before them.
        indices = [self.of(index, side) for index in access.indices]
        for limit in access.limits:
            self.of(limit, side)
        lanes = enumerate(block_shape(kind))
        symbols = [self.below(count, access, axis, side) for axis, count in lanes]
        for axis, limit in zip(access.limited.get_values(), access.limits, strict=True):
            self._limits[symbols[axis]], self._sides[symbols[axis]] = limit, side
        lane = list(map(Polynomial[Atom].atom, symbols))
        return [joined(polynomial(expr, indices, lane)) for expr in access.map.data.results]

    def applied(self, map: AffineMap, operands: Sequence[SSAValue], side: int = 0) -> list[Affine]:
        """The results of a map without symbols."""
        dims = [self.of(operand, side) for operand in operands]
        return [polynomial(expr, dims) for expr in map.results]

    def bounds_of(self, loop: ForOp, side: int = 0) -> list[Affine]:
        """The bounds of a loop; of one over entries the row that it visits."""
        return self.applied(loop.bound.data, loop.bounds, side)

    def is_negative(self, value: Affine) -> bool:
        """Whether a polynomial is below 0, whatever loop variables and lanes are in it."""
        return isinstance(follows(value, _Bounds(self)), Proof)

    def bounds(self, atom: Atom) -> Sequence[Affine]:
        """What an unknown is below: of a loop variable the bounds, of a lane the valid ones."""
        side, limit, value = self._sides.get(atom, 0), self._limits.get(atom), self.values.get(atom)
        if limit is not None:
            return parts_of(self.of(limit, side))
        loop = None if value is None else loop_of(value)
        return [] if loop is None or loop.over_entries else self.bounds_of(loop, side)

    def count_of(self, atom: Atom) -> int | None:
        """How many iterations the loop of an unknown has, if that depends on no other unknown."""
        loop = loop_of(self.values[atom]) if atom in self.values else None
        if loop is None or loop.over_entries or loop.bounds:
            return None
        return most_iterations(loop)


class _Bounds(Knowledge):
    """What is known of loop variables and lanes: that they are below their bounds."""

    def __init__(self, values: IndexValues) -> None:
        super().__init__(values.ranges)
        self._values = values

    def facts_of(self, atom: Atom) -> Iterator[Affine]:
        return (bound - 1 - Polynomial.atom(atom) for bound in self._values.bounds(atom))


def may_be_negative(loop: ForOp) -> bool:
    """Whether a bound of a loop may be below 0, which means no iterations."""
    values = IndexValues()
    return not all(values.is_negative(-bound - 1) for bound in values.bounds_of(loop))


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


class KnownIndices(IndexValues, Knowledge):
    """Index values of a kernel, and the facts about them."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known
        self.magnitudes = Magnitudes(known.sizes, {*known.contents, *known.held})
        self.sizes: dict[Atom, str] = {}
        """The names of sizes, by their unknowns."""

    # Values.

    def extent(self, buffer: SSAValue, dimension: int) -> Affine:
        """The size of a dimension of a buffer."""
        size = memref_type(buffer).get_shape()[dimension]
        if size != DYNAMIC_INDEX:
            return Polynomial.of(size)
        known = self.known.shapes[buffer][dimension] if buffer in self.known.shapes else None
        if known is not None:
            return self.named(known)
        if isinstance(buffer.owner, LocalOp):
            before = memref_type(buffer).get_shape()[:dimension].count(DYNAMIC_INDEX)
            return self.of(buffer.owner.sizes[before])
        return Polynomial.atom(self.below(None, "size", buffer, dimension))

    def named(self, dim: Dim) -> Affine:
        """A polynomial of sizes, from their names."""

        def size(name: str) -> Affine:
            if isinstance(name, SizeQuotient):
                return divided(FLOOR, self.named(name.dividend), name.divisor)
            found = self.below(None, "size", name)
            self.sizes[found] = name
            return Polynomial.atom(found)

        return ZERO + dim.substituted(size)

    def _expression(self, value: SSAValue, side: int) -> Affine:
        """An index, or an integer that becomes one."""
        op = value.owner
        if value in self.known.sizes:
            return self.named(self.known.sizes[value])
        if isinstance(op, LoadOp) and op.buffer in self.known.held:
            return self.named(self.known.held[op.buffer])
        # An axis that there is not is refused where the operation is lowered.
        if (
            isinstance(op, memref.DimOp)
            and (axis := constant_index(op.index)) is not None
            and 0 <= axis < memref_type(op.source).get_num_dims()
        ):
            return self.extent(op.source, axis)
        if isinstance(op, CASTS) and self._keeps_value(op, side):
            return self.of(op.operands[0], side)
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return Polynomial.of(op.value.value.data)
        return super()._expression(value, side)

    def _keeps_value(self, cast: Operation, side: int) -> bool:
        """Whether a cast of an integer or an index gives the same number."""
        given, made = cast.operands[0].type, cast.results[0].type
        if given == i1:
            # 1 is extended to -1.
            return False
        if not isinstance(made, IntegerType) or not isinstance(given, IndexType):
            return True
        least, most = self.ranges.of(self.of(cast.operands[0], side))
        end = 1 << (made.width.data - 1)
        fits = least is not None and most is not None and -end <= least and most < end
        return made == i64 or fits

    def _computed(self, op: Operation, side: int) -> Affine | None:
        if not isinstance(op, arith.MinSIOp | arith.MaxSIOp) and (
            op.results[0].type not in (INDEX, i64) or self.magnitudes.of(op.results[0]) is None
        ):
            # It may wrap around.
            return None
        found = super()._computed(op, side)
        if found is None and isinstance(op, arith.MuliOp):
            found = self.of(op.lhs, side) * self.of(op.rhs, side)
        return found

    def size_of(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Dim | None:
        """An expression over index values in sizes; None where it does not follow from them."""
        try:
            return self.in_sizes(polynomial(expr, [self.of(value) for value in operands]))
        except DivisorError:
            return None

    def in_sizes(self, value: Affine) -> Dim | None:
        """A polynomial in sizes; None where it has other atoms."""
        return self._in_sizes(value) if self.sizes.keys() >= set(value.atoms) else None

    def _in_sizes(self, value: Affine) -> Dim:
        return Dim.of(value.substituted(lambda atom: Dim.symbol(self.sizes[atom])))

    # Facts.

    def is_below_0(self, value: Affine, facts: Sequence[Affine] = ()) -> bool:
        """Whether a value is below 0 in all calls, wherever no fact is negative."""
        return isinstance(follows(value, self, facts), Proof)

    def facts_in(self, loops: Iterable[ForOp]) -> Iterator[Affine]:
        """What holds in an iteration of each of these loops."""
        for loop in loops:
            if loop.over_entries or not self.magnitudes.fits_bounds(loop):
                continue
            index = self.of(loop.variable)
            for bound in self.bounds_of(loop):
                yield bound - 1 - index
                yield bound - 1
                yield from self._if_positive(bound)

    def facts_of_lanes(self, place: Iterable[Affine]) -> Iterator[Affine]:
        """What holds of the lanes of an access with a limit."""
        for atom in sorted({atom for index in place for atom in variables(index)}):
            if atom in self._limits:
                yield from (bound - 1 - Polynomial.atom(atom) for bound in self.bounds(atom))

    def _if_positive(self, bound: Affine) -> Iterator[Affine]:
        """What holds if a bound is above 0: the condition by which a guard is 1 or 0."""
        atom = bound.single_atom
        cases = [] if atom is None else self.cases_of(atom)
        left = [case for case in cases if (n := case.value.number) is None or n > 0]
        if len(left) == 1:
            yield from left[0].facts

    def cases_of(self, atom: Atom) -> Sequence[Case]:
        """What a choice is, where its condition holds and where it does not."""
        op = self.values[atom].owner if atom in self.values else None
        if not isinstance(op, arith.SelectOp):
            return ()
        choices = ((op.lhs, True), (op.rhs, False))
        return [Case(self.of(one), tuple(self._if(op.cond, holds))) for one, holds in choices]

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
        left, right = self.of(op.lhs), self.of(op.rhs)
        unsigned = predicate.startswith("u")
        if unsigned and not (holds and predicate == "ult" and self.ranges.is_nonnegative(right)):
            return
        strict, swapped = _FACTS[predicate]
        if swapped:
            left, right = right, left
        yield right - left - strict if holds else left - right - (1 - strict)
        if unsigned:
            yield left

    def facts_of(self, atom: Atom) -> Iterator[Affine]:
        """What always holds of an unknown, beside its range."""
        value, own = self.values.get(atom), Polynomial.atom(atom)
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
            yield own - self.named(low)
            yield self.named(high) - own - last
        if isinstance(value.owner, PartitionPointOp):
            yield own
            yield self.of(value.owner.rows) - own
        start = start_of_counter(value)
        if isinstance(loop, ForOp) and start is not None:
            # It has grown by at most 1 in each iteration before this one.
            yield own - self.of(start)
            yield self.of(start) + self.of(loop.variable) - own
        if isinstance(value.owner, ForOp):
            yield from self._facts_of_last(value.owner, value)

    def _facts_of_last(self, loop: ForOp, value: SSAValue) -> Iterator[Affine]:
        """Facts about the value of a counter after its loop."""
        start = start_of_counter(loop.carried[loop.results.index(value)])
        if start is None or loop.over_entries:
            return
        grown = self.of(value) - self.of(start)
        yield grown
        for bound in self.bounds_of(loop):
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
