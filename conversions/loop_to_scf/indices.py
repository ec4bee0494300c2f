"""Index arithmetic: polynomials over the loop variables and sizes in scope.

Constants are folded here, so that no operation multiplies, adds or divides constants; a sum
is emitted term by term, each term in the scope of its innermost variable, the constant last,
where the address of a load takes it for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from ...dialects import upstream
from .scopes import INDEX, Emitter

Monomial = tuple[int, ...]
"""Numbers of the atoms that are multiplied, in order; the empty product is 1."""


class NotLinearError(Exception):
    """An axis was found under a division: lanes have to be looked at one by one."""


class Form:
    """A polynomial with integer coefficients over atoms, which are numbers of index values."""

    __slots__ = ("_key", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._key: frozenset[tuple[Monomial, int]] | None = None

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """What equal forms have in common."""
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    @property
    def constant(self) -> int:
        """The constant term."""
        return self.terms.get((), 0)

    @property
    def value(self) -> int | None:
        """The number that this is, None if it has a variable."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    @property
    def atom(self) -> int | None:
        """The atom that this is, None if it is anything else."""
        if len(self.terms) != 1:
            return None
        ((monomial, coefficient),) = self.terms.items()
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    def atoms(self) -> list[int]:
        """The atoms of all terms."""
        return sorted({atom for monomial in self.terms for atom in monomial})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            if not other:
                return self
            other = Form({(): other})
        if not other.terms:
            return self
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Form(terms)

    def __mul__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            if other == 1:
                return self
            return Form({m: c * other for m, c in self.terms.items()} if other else {})
        result = ZERO
        for monomial, coefficient in other.terms.items():
            part = {tuple(sorted(m + monomial)): c * coefficient for m, c in self.terms.items()}
            result = result + Form(part)
        return result

    def __sub__(self, other: Form | int) -> Form:
        return self + other * -1 if isinstance(other, Form) else self + -other


ZERO = Form({})


def fixed(value: int) -> Form:
    """The form of a number."""
    return Form({(): value}) if value else ZERO


@dataclass(frozen=True)
class Atom:
    """An index value that forms are made of."""

    value: SSAValue | None
    """None for an axis, which has a lane number in place of a value."""
    depth: int
    nonnegative: bool
    high: int | None = None
    """The largest value it can have, where that is known."""
    least_of: tuple[Form, ...] = ()
    quotient: tuple[Form, int] | None = None


class Indices:
    """The index arithmetic of one function."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.table: list[Atom] = []
        self.positive: list[Form] = []
        """Forms that are at least 1 wherever the loops that are open run at all."""
        self._numbers: dict[SSAValue, int] = {}
        self._axes: dict[int, Form] = {}

    # Atoms.

    def atom(
        self,
        value: SSAValue,
        nonnegative: bool = False,
        high: int | None = None,
        least_of: tuple[Form, ...] = (),
        quotient: tuple[Form, int] | None = None,
    ) -> Form:
        """An index value as a form."""
        if value not in self._numbers:
            self._numbers[value] = len(self.table)
            depth = self.emitter.depths[value]
            self.table.append(Atom(value, depth, nonnegative, high, least_of, quotient))
        return Form({(self._numbers[value],): 1})

    def axis(self, lanes: int, number: int) -> Form:
        """Axis `number` of a block: stands for the numbers of its lanes."""
        key = lanes * 64 + number
        if key not in self._axes:
            self.table.append(Atom(None, 0, True, lanes - 1))
            self._axes[key] = Form({(len(self.table) - 1,): 1})
        return self._axes[key]

    def range(self, form: Form) -> tuple[int | None, int | None]:
        """The smallest and the largest value, None where unknown."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in form.terms.items():
            least, most = 1, 1
            for number in monomial:
                atom = self.table[number]
                least = 0 if atom.nonnegative and least is not None else None
                most = most * atom.high if most is not None and atom.high is not None else None
            if coefficient < 0:
                least, most = most, least
            low = None if low is None or least is None else low + coefficient * least
            high = None if high is None or most is None else high + coefficient * most
        return low, high

    def nonnegative(self, form: Form) -> bool:
        """Whether `form` is known not to be negative."""
        low, _ = self.range(form)
        return low is not None and low >= 0

    def is_positive(self, form: Form) -> bool:
        """Whether `form` is at least 1 wherever the loops that are open run."""
        if self.nonnegative(form - 1):
            return True
        if any(self.nonnegative(form - fact) for fact in self.positive):
            return True
        number = form.atom
        parts = self.table[number].least_of if number is not None else ()
        return bool(parts) and all(self.is_positive(part) for part in parts)

    def assume_below(self, variable: Form, bounds: Sequence[Form]) -> None:
        """Note what holds in a loop: `variable` is below each of `bounds`."""
        for bound in bounds:
            self.positive.append(bound - variable)
            if (number := bound.atom) is not None:
                self.assume_below(variable, self.table[number].least_of)
            for monomial, coefficient in bound.terms.items():
                quotient = self.table[monomial[0]].quotient if len(monomial) == 1 else None
                if quotient is None or coefficient != 1:
                    continue
                # i < a floordiv f + w  ==>  a - f * (i - w) - f >= 0
                total, factor = quotient
                offset = variable - (bound - Form({monomial: 1}))
                self.positive.append(total - offset * factor - (factor - 1))

    # Arithmetic that is not polynomial.

    def divide(self, form: Form, divisor: int) -> Form:
        """form floordiv divisor, for a positive divisor."""
        whole, rest = self._split(form, divisor)
        if not rest.terms:
            return whole
        low, high = self.range(rest)
        if low is not None and high is not None and low // divisor == high // divisor:
            return whole + low // divisor
        return whole + self._quotient(rest, divisor)

    def remainder(self, form: Form, divisor: int) -> Form:
        """form mod divisor, for a positive divisor: never negative."""
        return form - self.divide(form, divisor) * divisor if divisor != 1 else ZERO

    def _split(self, form: Form, divisor: int) -> tuple[Form, Form]:
        # form == divisor * whole + rest, and rest has no term that divisor divides.
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in form.terms.items():
            if coefficient % divisor == 0:
                whole[monomial] = coefficient // divisor
            elif not monomial:
                rest[()] = coefficient % divisor
                if coefficient // divisor:
                    whole[()] = coefficient // divisor
            else:
                rest[monomial] = coefficient
        return Form(whole), Form(rest)

    def _quotient(self, form: Form, divisor: int) -> Form:
        self._refuse_axes(form)
        emit, total, by = self.emitter, self.value(form), self.emitter.index(divisor)
        low, high = self.range(form)
        top = high // divisor if high is not None else None
        if low is not None and low >= 0:
            value = emit.pure(arith.DivUIOp, [total, by], INDEX)
            return self.atom(value, True, top, quotient=(form, divisor))
        # For a negative a: a floordiv b == -1 - (-1 - a) div b
        minus_one = emit.index(-1)
        negative = emit.compare("slt", total, emit.index(0))
        flipped = emit.pure(arith.SubiOp, [minus_one, total], INDEX)
        size = emit.pure(upstream.SelectOp, [negative, flipped, total], INDEX)
        quotient = emit.pure(arith.DivSIOp, [size, by], INDEX)
        flipped = emit.pure(arith.SubiOp, [minus_one, quotient], INDEX)
        value = emit.pure(upstream.SelectOp, [negative, flipped, quotient], INDEX)
        return self.atom(value, quotient=(form, divisor))

    def _refuse_axes(self, form: Form) -> None:
        if any(self.table[number].value is None for number in form.atoms()):
            raise NotLinearError

    def least(self, forms: Sequence[Form]) -> Form:
        """The smallest of some forms."""
        return self._extreme(forms, arith.MinSIOp)

    def greatest(self, forms: Sequence[Form]) -> Form:
        """The largest of some forms."""
        return self._extreme(forms, arith.MaxSIOp)

    def _extreme(self, forms: Sequence[Form], kind: type[Operation]) -> Form:
        numbers = [f.value for f in forms if f.value is not None]
        rest = list(dict.fromkeys(f for f in forms if f.value is None))
        if numbers:
            rest.append(fixed(min(numbers) if kind is arith.MinSIOp else max(numbers)))
        if len(rest) == 1:
            return rest[0]
        value = self.value(rest[0])
        for form in rest[1:]:
            value = self.emitter.pure(kind, [value, self.value(form)], INDEX)
        if kind is arith.MaxSIOp:
            return self.atom(value, any(self.nonnegative(f) for f in rest))
        highs = [high for high in (self.range(f)[1] for f in rest) if high is not None]
        return self.atom(
            value,
            all(self.nonnegative(f) for f in rest),
            min(highs) if highs else None,
            least_of=tuple(rest),
        )

    def evaluate(
        self, expr: AffineExpr, dims: Sequence[Form], symbols: Sequence[Form] = ()
    ) -> Form:
        """An affine expression as a form.

        Raises:
            ValueError: for a product or a quotient of two variables.
        """
        if isinstance(expr, AffineDimExpr):
            return dims[expr.position]
        if isinstance(expr, AffineConstantExpr):
            return fixed(expr.value)
        if isinstance(expr, AffineSymExpr):
            return symbols[expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        left = self.evaluate(expr.lhs, dims, symbols)
        right = self.evaluate(expr.rhs, dims, symbols)
        if expr.kind == AffineBinaryOpKind.Add:
            return left + right
        if expr.kind == AffineBinaryOpKind.Mul:
            return left * right
        divisor = right.value
        if divisor is None or divisor < 1:
            raise ValueError(f"cannot divide by what is not a positive constant in {expr}")
        if expr.kind == AffineBinaryOpKind.FloorDiv:
            return self.divide(left, divisor)
        if expr.kind == AffineBinaryOpKind.CeilDiv:
            return self.divide(left + (divisor - 1), divisor)
        return self.remainder(left, divisor)

    # Emission.

    def depth(self, form: Form) -> int:
        """The depth of the innermost scope that `form` depends on."""
        return max((self.table[number].depth for number in form.atoms()), default=0)

    def value(self, form: Form) -> SSAValue:
        """The SSA value of a form, made where its innermost variable is."""
        number = form.value
        if number is not None:
            return self.emitter.index(number)
        atom = form.atom
        if atom is not None:
            found = self.table[atom].value
            assert found is not None
            return found
        memo = self.emitter.scopes[self.depth(form)].memo
        if form.key not in memo:
            memo[form.key] = self._sum(form)
        return memo[form.key]

    def _sum(self, form: Form) -> SSAValue:
        pure, table = self.emitter.pure, self.table
        ordered = sorted(
            (max(table[n].depth for n in factors), factors) for factors in form.terms if factors
        )
        total: SSAValue | None = None
        for group in _groups(ordered):
            partial: SSAValue | None = None
            for monomial in sorted(group, key=lambda factors: form.terms[factors] < 0):
                partial = self._plus(partial, monomial, form.terms[monomial])
            assert partial is not None
            total = partial if total is None else pure(arith.AddiOp, [total, partial], INDEX)
        assert total is not None
        if form.constant:
            total = pure(arith.AddiOp, [total, self.emitter.index(form.constant)], INDEX)
        return total

    def _plus(self, total: SSAValue | None, monomial: Monomial, coefficient: int) -> SSAValue:
        if total is None:
            return self._term(monomial, coefficient)
        kind = arith.AddiOp if coefficient > 0 else arith.SubiOp
        return self.emitter.pure(kind, [total, self._term(monomial, abs(coefficient))], INDEX)

    def _term(self, monomial: Monomial, coefficient: int) -> SSAValue:
        # The coefficient goes to the outermost factor.
        factors = sorted(monomial, key=lambda number: self.table[number].depth)
        value: SSAValue | None = self.emitter.index(coefficient) if coefficient != 1 else None
        for number in factors:
            factor = self.table[number].value
            assert factor is not None
            if value is None:
                value = factor
            else:
                value = self.emitter.pure(arith.MuliOp, [factor, value], INDEX)
        assert value is not None
        return value


def _groups(ordered: Sequence[tuple[int, Monomial]]) -> list[list[Monomial]]:
    """The monomials of each depth."""
    return [[monomial for _, monomial in group] for _, group in groupby(ordered, itemgetter(0))]
