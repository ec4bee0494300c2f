"""Index arithmetic: polynomials over the loop variables and sizes in scope.

Constants are folded. A sum is emitted term by term, each in the scope of its innermost variable. An
emitted quotient, minimum or maximum is an atom, and what is asked of it is asked of its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineDimExpr, AffineExpr

from ...core.algebra.affine import polynomial
from ...core.algebra.expressions import (
    CEIL,
    DIMENSION,
    FLOOR,
    MOD,
    ZERO,
    Affine,
    Atom,
    Least,
    Variable,
    divided,
    greatest,
    least,
    parts_of,
    substituted,
)
from ...core.algebra.follows import Knowledge, Proof, follows
from ...core.algebra.polynomials import Polynomial
from ...core.algebra.ranges import Ranges
from ...core.bounded_cache import bounded_cache
from ...core.building.arithmetic import INDEX, summed
from ...dialects.upstream import ops as upstream
from .scopes import ScopedEmitter


class NotLinearError(Exception):
    """An axis is divided: the places of lanes have to be computed one by one."""


fixed: Callable[[int], Affine] = bounded_cache(Polynomial[Atom].of)
"""The form of a number."""
_polynomial = bounded_cache(polynomial)


@dataclass(frozen=True)
class _Emitted:
    """An index value that forms are made of."""

    value: SSAValue | None
    """None for an axis, which a lane number replaces."""
    depth: int


class Indices:
    """The index arithmetic of one function."""

    def __init__(self, emitter: ScopedEmitter) -> None:
        self.emitter = emitter
        self.ranges = Ranges()
        self.facts: list[Affine] = []
        """Meanings that are not negative in any iteration of the open loops."""
        self._emitted: dict[Atom, _Emitted] = {}
        self._meanings: dict[Atom, Affine] = {}
        """For quotients, minima and maxima their expressions over other values."""
        self._forms: dict[SSAValue, Affine] = {}
        self._axes: dict[tuple[int, int], Affine] = {}

    # Atoms.

    def atom(self, value: SSAValue, nonnegative: bool = False, high: int | None = None) -> Affine:
        """An index value as a form; `high` is its maximum, if known."""
        if value not in self._forms:
            emitted = _Emitted(value, self.emitter.depths[value])
            self._forms[value] = self._atom(emitted, 0 if nonnegative else None, high)
        return self._forms[value]

    def axis(self, lanes: int, number: int) -> Affine:
        """Axis `number` of a block, whose values are the numbers of its lanes."""
        key = lanes, number
        if key not in self._axes:
            self._axes[key] = self._atom(_Emitted(None, 0), 0, lanes - 1)
        return self._axes[key]

    def _atom(self, emitted: _Emitted, low: int | None, high: int | None) -> Affine:
        atom = Variable(DIMENSION, len(self._emitted))
        self._emitted[atom] = emitted
        self.ranges.know(atom, low, high)
        return Polynomial.atom(atom)

    def _computed(self, value: SSAValue, meaning: Affine) -> Affine:
        """The form of a value that is no polynomial of the others."""
        if value not in self._forms:
            self._forms[value] = self._atom(
                _Emitted(value, self.emitter.depths[value]), *self.ranges.of(meaning)
            )
            (atom,) = self._forms[value].atoms
            self._meanings[atom] = self._meaning(meaning)
        return self._forms[value]

    # Proofs.

    def is_positive(self, value: Affine) -> bool:
        """Whether a form is at least 1 in every iteration of the open loops."""
        known = Knowledge(self.ranges)
        return isinstance(follows(-self._meaning(value), known, self.facts), Proof)

    def assume_below(self, variable: Affine, bounds: Iterable[Affine]) -> None:
        """Record that a variable is below each of some bounds in a loop."""
        self.facts += (self._meaning(bound - 1 - variable) for bound in bounds)

    def _meaning(self, form: Affine) -> Affine:
        return substituted(form, self._meanings) if self._meanings else form

    # Arithmetic that is not polynomial.

    def divide(self, form: Affine, divisor: int) -> Affine:
        """form floordiv divisor, for a positive divisor."""
        whole, rest = form.split(divisor)
        if not rest.terms:
            return whole
        number = self.ranges.quotient(rest, divisor)
        return whole + (self._quotient(rest, divisor) if number is None else number)

    def divide_up(self, form: Affine, divisor: int) -> Affine:
        """form ceildiv divisor, for a positive divisor."""
        return self.divide(form + (divisor - 1), divisor)

    def remainder(self, form: Affine, divisor: int) -> Affine:
        """form mod divisor, for a positive divisor, which is nonnegative."""
        return form - self.divide(form, divisor) * divisor if divisor != 1 else ZERO

    def _quotient(self, form: Affine, divisor: int) -> Affine:
        if any(self._emitted[atom].value is None for atom in form.atoms):
            raise NotLinearError
        emit, total, by = self.emitter, self.value(form), self.emitter.index(divisor)
        meaning = divided(FLOOR, form, divisor)
        if self.ranges.is_nonnegative(form):
            return self._computed(emit.pure(arith.DivUIOp, [total, by], INDEX), meaning)
        # For a negative a: a floordiv b == -1 - (-1 - a) div b
        minus_one = emit.index(-1)
        negative = emit.compare("slt", total, emit.index(0))
        flipped = emit.pure(arith.SubiOp, [minus_one, total], INDEX)
        size = emit.pure(upstream.SelectOp, [negative, flipped, total], INDEX)
        quotient = emit.pure(arith.DivSIOp, [size, by], INDEX)
        flipped = emit.pure(arith.SubiOp, [minus_one, quotient], INDEX)
        value = emit.pure(upstream.SelectOp, [negative, flipped, quotient], INDEX)
        return self._computed(value, meaning)

    def least(self, forms: Sequence[Affine]) -> Affine:
        """The smallest of some forms."""
        if len(forms) == 1:  # as most loops have one bound
            return forms[0]
        meaning = least(forms)
        return self._extreme(meaning, parts_of(meaning), arith.MinSIOp)

    def greatest(self, forms: Sequence[Affine]) -> Affine:
        """The largest of some forms."""
        meaning = greatest(forms)
        return self._extreme(meaning, [-part for part in parts_of(-meaning)], arith.MaxSIOp)

    def not_negative(self, form: Affine) -> Affine:
        """A form, or 0 where it is negative."""
        return form if self.ranges.is_nonnegative(form) else self.greatest([form, ZERO])

    def _extreme(self, meaning: Affine, parts: Sequence[Affine], kind: type[Operation]) -> Affine:
        """A minimum or a maximum of parts, a number among them last."""
        first, *others = sorted(parts, key=lambda part: part.number is not None)
        if not others:
            return first
        value = self.value(first)
        for part in others:
            value = self.emitter.pure(kind, [value, self.value(part)], INDEX)
        return self._computed(value, meaning)

    def evaluate(
        self, expr: AffineExpr, dims: Sequence[Affine], symbols: Sequence[Affine] = ()
    ) -> Affine:
        """An affine expression as a form.

        Raises:
            DivisorError: if a divisor is not a positive number.
        """
        if type(expr) is AffineDimExpr:  # as most are
            return dims[expr.position]
        return self._substituted(_polynomial(expr), dims, symbols)

    def _substituted(
        self, value: Affine, dims: Sequence[Affine], symbols: Sequence[Affine]
    ) -> Affine:
        def form_of(atom: Atom) -> Affine:
            if isinstance(atom, Variable):
                return (dims if atom.kind == DIMENSION else symbols)[atom.position]
            if isinstance(atom, Least):
                return self.least([self._substituted(part, dims, symbols) for part in atom.parts])
            dividend = self._substituted(atom.dividend, dims, symbols)
            return _DIVISIONS[atom.function](self, dividend, atom.divisor)

        return ZERO + value.substituted(form_of)

    # Emission.

    def depth(self, form: Affine) -> int:
        """The depth of the innermost scope that `form` depends on."""
        return max([self._emitted[atom].depth for atom in form.atoms], default=0)

    def value(self, form: Affine) -> SSAValue:
        """The SSA value of a form, in the scope of its innermost variable."""
        number = form.number
        if number is not None:
            return self.emitter.index(number)
        atom = form.single_atom
        if atom is not None:
            return self._value_of(atom)
        memo = self.emitter.scopes[self.depth(form)].memo
        if form not in memo:
            memo[form] = summed(
                form, self.emitter, self._value_of, lambda atom: self._emitted[atom].depth
            )
        return memo[form]

    def _value_of(self, atom: Atom) -> SSAValue:
        value = self._emitted[atom].value
        assert value is not None
        return value


_DIVISIONS: Mapping[AffineBinaryOpKind, Callable[[Indices, Affine, int], Affine]] = {
    FLOOR: Indices.divide,
    CEIL: Indices.divide_up,
    MOD: Indices.remainder,
}
