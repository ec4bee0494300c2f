"""Whether an operator writes every element of its results, proved from what was recorded.

An index that is a sum of loop variables, as `32 * i + j` is, runs over an interval, so that a write
in loops covers a box: one interval for each dimension. Boxes side by side cover one that is larger.

A result whose size the operator computes may also be written one element after the other, at a
counter: it starts at 0, and grows by 1 only where the element at it is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineDimExpr, AffineExpr

from ....core.building.affine import CEIL, FLOOR, MOD, Atom, Quotient, polynomial, variables
from ....core.dims import Dim, Shape
from ....core.errors import UnsupportedError, explain
from ....core.provenance import origin
from ..interfaces import GraphOp
from ..scalars import integer_constant
from ..shape_facts import text
from .accesses import RecordedLoop, RecordedLoopKind, Write
from .operator_sizes import OperatorSizes

Box = tuple[tuple[Dim, Dim], ...]
"""The elements from a first index up to, but not including, an end, for each dimension."""

_LOOPS = (RecordedLoopKind.PARALLEL, RecordedLoopKind.SERIAL)


class _Variable(str):
    """The symbol of the variable of a loop, or of a part of it; symbols of sizes are plain."""

    __slots__ = ()


@dataclass(frozen=True)
class Carry:
    """A value that a serial loop carries: the result of the loop is the last one."""

    loop: int
    init: SSAValue
    before: SSAValue
    """The value at the beginning of an iteration."""
    after: SSAValue


@dataclass(frozen=True)
class Effects:
    """What `GraphOp.write` does, with the scalars that it computes."""

    loops: Sequence[RecordedLoop]
    writes: Sequence[Write]
    sizes: Mapping[tuple[SSAValue, int], AffineExpr]
    """The atoms of sizes that are not known."""
    exprs: Mapping[SSAValue, AffineExpr]
    """Scalars that are indices."""
    carries: Mapping[SSAValue, Carry]
    """The results of serial loops."""


@dataclass(frozen=True)
class KnownSizes:
    """The sizes that a proof is about."""

    results: Sequence[Shape]
    atoms: Mapping[int, Dim]
    """What atoms of effects stand for."""
    held: Mapping[str, tuple[int | None, Dim]]
    """Of a symbol whose size a scalar holds: the number of the result that is this scalar, None
    for an operand, and the upper bound of the size. Sizes without one are left out."""

    def bounded(self, size: Dim) -> Dim:
        """The size of the buffer of a dimension of a result."""
        return size.substitute({name: bound for name, (_, bound) in self.held.items()})


def check_covered(op: GraphOp, effects: Effects) -> None:
    """Require that each element of each result of an operator is written.

    Raises:
        UnsupportedError: if there is no proof of it.
    """
    coverage = Coverage(_sizes_of(op, effects), effects)
    for number in range(len(op.results)):
        if not coverage.is_covered(number):
            fact = f"not all elements of its result {number} are proved to be written"
            shape, got = coverage.explained(number)
            expected = f"writes that cover {shape}"
            hint = "give all a first value by fill, then change elements by update"
            where = origin(op)
            raise UnsupportedError(
                explain(op.name, fact, expected=expected, got=got, origin=where, hint=hint)
            )


def _sizes_of(op: GraphOp, effects: Effects) -> KnownSizes:
    sizes, results = OperatorSizes(op), list[SSAValue](op.results)
    atoms = {
        expr.position: sizes.shapes[value][dim]
        for (value, dim), expr in effects.sizes.items()
        if isinstance(expr, AffineDimExpr)
    }
    held = {
        name: (results.index(scalar) if scalar in results else None, sizes.known(bound))
        for name, (scalar, bound) in sizes.held.items()
        if bound is not None
    }
    return KnownSizes([sizes.shapes[result] for result in results], atoms, held)


def _places(box: Box) -> str:
    """A box as messages print it: ``[0:4, 1:?]``."""
    ends = (text(interval)[1:-1].replace(", ", ":") for interval in box)
    return f"[{', '.join(ends)}]"


class Coverage:
    """Proofs for the results of one operator; for kernels see `dialects/loop/coverage.py`."""

    def __init__(self, sizes: KnownSizes, effects: Effects) -> None:
        self.sizes, self.effects = sizes, effects
        self.loop_of = {atom: n for n, loop in enumerate(effects.loops) for atom in loop.atoms}
        self.scalar_of = {expr: value for value, expr in effects.exprs.items()}

    def explained(self, result: int) -> tuple[str, str]:
        """The elements of a result, and those that are known to be written, for a message."""
        got = " and ".join(map(_places, self.boxes(result))) or "none with a known place"
        return text(self.sizes.results[result]), got

    def is_covered(self, result: int) -> bool:
        """Whether each element of a result is written."""
        shape = self.sizes.results[result]
        return self._fill(self.boxes(result), shape) or self._is_counted(result, shape)

    def boxes(self, result: int) -> list[Box]:
        """The boxes that writes of a result cover."""
        boxes = (self._box(write.index, write.around) for write in self._writes(result))
        return [box for box in boxes if box is not None]

    def _writes(self, result: int) -> list[Write]:
        """The writes of a result that do not need what is there before."""
        return [w for w in self.effects.writes if w.result == result and w.combine is None]

    # Boxes.

    def _fill(self, boxes: Iterable[Box], shape: Shape) -> bool:
        """Whether boxes cover all indices of a shape."""
        left = list(dict.fromkeys(boxes))
        for dim in (None, *reversed(range(len(shape)))):
            left = left if dim is None else _joined(left, dim)
            if any(self._is_all(box, shape) for box in left):
                return True
        return any(size == 0 for size in shape)

    def _is_all(self, box: Box, shape: Shape) -> bool:
        """Whether a box is a whole tensor, or the whole buffer of one."""
        return all(
            start == 0 and end in (size, self.sizes.bounded(size))
            for (start, end), size in zip(box, shape, strict=True)
        )

    def _box(self, index: Sequence[AffineExpr], around: Iterable[int]) -> Box | None:
        """The elements that a write in loops covers, if that is known."""
        unused, box = self._variables(index, around), list[tuple[Dim, Dim]]()
        for expr in index:
            interval = self._interval(expr, unused)
            if interval is None:
                return None
            box.append(interval)
        return tuple(box) if all(map(_runs, unused.values())) else None

    def _variables(
        self, index: Sequence[AffineExpr], around: Iterable[int]
    ) -> dict[_Variable, Dim | None]:
        """The variables of loops, and the number of iterations of each, where it is known.

        Where an index has i floordiv 4 or i mod 4, and i runs to 4 * n, these are two variables in
        place of i, which run to n and to 4.
        """
        unused: dict[_Variable, Dim | None] = {}
        for loop in around:
            for atom in self.effects.loops[loop].atoms:
                unused[_variable(atom)] = self._extent(loop)
        for expr in index:
            for atom in polynomial(expr).atoms:
                variable = self._divided_variable(atom)
                extent = None if variable is None else unused.get(_variable(variable))
                if variable is None or extent is None or not isinstance(atom, Quotient):
                    continue
                if (count := extent.exact_div(atom.divisor)) is not None:
                    del unused[_variable(variable)]
                    unused[_part(variable, FLOOR, atom.divisor)] = count
                    unused[_part(variable, MOD, atom.divisor)] = Dim.of(atom.divisor)
        return unused

    def _divided_variable(self, atom: Atom) -> int | None:
        """The variable of a loop of which an atom is a quotient, rounded down, or a remainder."""
        if not isinstance(atom, Quotient) or atom.function is CEIL:
            return None
        dividend = atom.dividend.single_atom
        if dividend is None or isinstance(dividend, Quotient):
            return None
        return dividend.position if dividend.position in self.loop_of else None

    def _extent(self, loop: int) -> Dim | None:
        """The number of iterations of a loop that computes nothing else than sizes."""
        recorded = self.effects.loops[loop]
        if recorded.kind not in _LOOPS or recorded.extent is None:
            return None
        extent = self._dim(recorded.extent)
        return None if extent is None or _loops_in(extent) else extent

    def _interval(
        self, expr: AffineExpr, unused: dict[_Variable, Dim | None]
    ) -> tuple[Dim, Dim] | None:
        """The numbers that an expression runs over in loops that are not used yet, if known."""
        value = self._dim(expr)
        if value is None:
            return None
        loops = _loops_in(value)
        if not unused.keys() >= set(loops):
            return None
        factors = {name: value.coefficient(name) for name in loops}
        start = sum((Dim.symbol(name) * -n for name, n in factors.items()), value)
        if _loops_in(start):
            return None
        size = Dim.of(1)
        for name in sorted(loops, key=lambda name: abs(factors[name])):
            extent, factor = unused.pop(name), factors[name]
            if extent is None or size != abs(factor):
                return None
            size = extent * abs(factor)
            start = start + (extent - 1) * min(factor, 0)
        return start, start + size

    def _dim(self, expr: AffineExpr) -> Dim | None:
        """An expression of sizes and variables of loops as a polynomial; None for others."""
        value = polynomial(expr)
        known = self.loop_of.keys() | self.sizes.atoms.keys()
        if not known >= {atom.position for atom in variables(value)}:
            return None
        for atom in value.atoms:
            if isinstance(atom, Quotient) and self._divided_variable(atom) is None:
                inside = {part.position for part in variables(atom.dividend)}
                if not self.loop_of.keys().isdisjoint(inside):
                    return None
        return Dim.of(value.substituted(self._atom))

    def _atom(self, atom: Atom) -> Dim:
        if not isinstance(atom, Quotient):
            size = self.sizes.atoms.get(atom.position)
            return Dim.symbol(_variable(atom.position)) if size is None else size
        if (variable := self._divided_variable(atom)) is not None:
            return Dim.symbol(_part(variable, atom.function, atom.divisor))
        dividend, divisor = Dim.of(atom.dividend.substituted(self._atom)), atom.divisor
        if atom.function is CEIL:
            return -_floor(-dividend, divisor)
        floor = _floor(dividend, divisor)
        return dividend - floor * divisor if atom.function is MOD else floor

    # Counters.

    def _is_counted(self, result: int, shape: Shape) -> bool:
        """Whether the elements up to a size that the operator computes are written in order."""
        name = shape[0].name if shape else None
        scalar, _ = self.sizes.held.get(name or "", (None, None))
        if scalar is None:
            return False
        match [write for write in self.effects.writes if write.result == scalar]:
            case [Write(around=(), value=count, combine=None)]:
                carry = self.effects.carries.get(count)
                first = None if carry is None else carry.init
                if first is None or integer_constant(first) != 0:
                    return False
                return self._counts(result, first, count, ())
            case _:
                return False

    def _counts(self, result: int, start: SSAValue, end: SSAValue, around: tuple[int, ...]) -> bool:
        """Whether `end` is `start`, and 1 more for each element that is written from there on."""
        if end is start:
            return True
        carry = self.effects.carries.get(end)
        if carry is not None:
            if self.effects.loops[carry.loop].around != around:
                return False
            inside = (*around, carry.loop)
            first = self._counts(result, start, carry.init, around)
            return first and self._counts(result, carry.before, carry.after, inside)
        op = end.owner
        if isinstance(op, arith.SelectOp):
            ways = ((op.lhs, op.cond), (op.rhs, None))
            return all(
                value is start
                or (_is_next(value, start) and self._is_written(result, start, around, condition))
                for value, condition in ways
            )
        return _is_next(end, start) and self._is_written(result, start, around, None)

    def _is_written(
        self, result: int, place: SSAValue, around: tuple[int, ...], condition: SSAValue | None
    ) -> bool:
        """Whether the elements at a computed first index are written, if a condition holds."""
        boxes, depth = list[Box](), len(around)
        for write in self._writes(result):
            inner = [n for n in write.around[depth:] if not self._is_guard(n, condition)]
            if write.around[:depth] != around or write.index[0] != self.effects.exprs.get(place):
                continue
            box = self._box(write.index[1:], inner)
            boxes += [] if box is None else [box]
        return self._fill(boxes, self.sizes.results[result][1:])

    def _is_guard(self, loop: int, condition: SSAValue | None) -> bool:
        """Whether a loop runs once where a condition holds."""
        recorded = self.effects.loops[loop]
        if recorded.kind != RecordedLoopKind.GUARD or recorded.extent is None:
            return False
        op = self.scalar_of[recorded.extent].owner
        return isinstance(op, arith.SelectOp) and op.cond is condition


def _joined(boxes: list[Box], dim: int) -> list[Box]:
    """Boxes of which those that touch along a dimension, and agree in the others, are one."""
    for one, other in itertools.permutations(boxes, 2):
        if one[dim][1] == other[dim][0] and _beside(one, dim) == _beside(other, dim):
            both = (*one[:dim], (one[dim][0], other[dim][1]), *one[dim + 1 :])
            return _joined([b for b in boxes if b not in (one, other)] + [both], dim)
    return boxes


def _beside(box: Box, dim: int) -> Box:
    return (*box[:dim], *box[dim + 1 :])


def _is_next(value: SSAValue, start: SSAValue) -> bool:
    """Whether a scalar is another one plus 1."""
    op = value.owner
    return isinstance(op, arith.AddiOp) and op.lhs is start and integer_constant(op.rhs) == 1


def _floor(dividend: Dim, divisor: int) -> Dim:
    """A quotient, rounded down: a symbol of its own where it is not a number."""
    if dividend.is_static:
        return Dim.of(dividend.value // divisor)
    return Dim.symbol(f"_({dividend}) floordiv {divisor}")


def _variable(atom: int) -> _Variable:
    """The symbol for the variable of a loop."""
    return _Variable(f"_{atom} loop")


def _part(atom: int, function: AffineBinaryOpKind, divisor: int) -> _Variable:
    """The symbol for the quotient or the remainder of the variable of a loop."""
    return _Variable(f"{_variable(atom)} {function.name} {divisor}")


def _loops_in(value: Dim) -> list[_Variable]:
    """The variables of loops in a polynomial."""
    return [name for name in value.symbols if isinstance(name, _Variable)]


def _runs(extent: Dim | None) -> bool:
    """Whether a loop is known to have an iteration."""
    return extent is not None and extent.is_static and extent.value > 0
