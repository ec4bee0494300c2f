"""Index arithmetic: polynomials over the loop variables and sizes in scope.

Constants are folded. A sum is emitted term by term, each in the scope of its innermost variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    Affine,
    Least,
    Quotient,
    Variable,
)
from ...core.algebra.facts import Facts
from ...core.algebra.polynomials import Polynomial
from ...core.bounded_cache import bounded_cache
from ...core.building.arithmetic import INDEX, summed
from ...dialects.upstream import ops as upstream
from .scopes import Emitter


class NotLinearError(Exception):
    """An axis is divided: the places of lanes have to be computed one by one."""


class Form(Polynomial[int]):
    """A polynomial over index values, by their numbers in a table."""

    __slots__ = ()


ZERO = Form()
fixed = bounded_cache(Form.of)
"""The form of a number."""
_polynomial = bounded_cache(polynomial)


@dataclass(frozen=True)
class Atom:
    """An index value that forms are made of."""

    value: SSAValue | None
    """None for an axis, which a lane number replaces."""
    depth: int


class Indices:
    """The index arithmetic of one function."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.table: list[Atom] = []
        self.facts: Facts[int] = Facts()
        self._numbers: dict[SSAValue, int] = {}
        self._axes: dict[int, Form] = {}

    # Atoms.

    def atom(self, value: SSAValue, nonnegative: bool = False, high: int | None = None) -> Form:
        """An index value as a form; `high` is its maximum, if known."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.table)
            self.table.append(Atom(value, self.emitter.depths[value]))
            self.facts.know(number, 0 if nonnegative else None, high)
        return Form.atom(number)

    def axis(self, lanes: int, number: int) -> Form:
        """Axis `number` of a block, whose values are the numbers of its lanes."""
        key = lanes * 64 + number
        if key not in self._axes:
            self.facts.know(len(self.table), 0, lanes - 1)
            self._axes[key] = Form.atom(len(self.table))
            self.table.append(Atom(None, 0))
        return self._axes[key]

    # Arithmetic that is not polynomial.

    def divide(self, form: Form, divisor: int) -> Form:
        """form floordiv divisor, for a positive divisor."""
        whole, rest = form.split(divisor)
        if not rest.terms:
            return whole
        low, high = self.facts.of(rest)
        if low is not None and high is not None and low // divisor == high // divisor:
            return whole + low // divisor
        return whole + self._quotient(rest, divisor)

    def divide_up(self, form: Form, divisor: int) -> Form:
        """form ceildiv divisor, for a positive divisor."""
        return self.divide(form + (divisor - 1), divisor)

    def remainder(self, form: Form, divisor: int) -> Form:
        """form mod divisor, for a positive divisor, which is nonnegative."""
        return form - self.divide(form, divisor) * divisor if divisor != 1 else ZERO

    def _quotient(self, form: Form, divisor: int) -> Form:
        if any(self.table[number].value is None for number in form.atoms):
            raise NotLinearError
        emit, total, by = self.emitter, self.value(form), self.emitter.index(divisor)
        low, high = self.facts.of(form)
        top = high // divisor if high is not None else None
        if low is not None and low >= 0:
            found = self.atom(emit.pure(arith.DivUIOp, [total, by], INDEX), True, top)
            return self._known_quotient(found, form, divisor)
        # For a negative a: a floordiv b == -1 - (-1 - a) div b
        minus_one = emit.index(-1)
        negative = emit.compare("slt", total, emit.index(0))
        flipped = emit.pure(arith.SubiOp, [minus_one, total], INDEX)
        size = emit.pure(upstream.SelectOp, [negative, flipped, total], INDEX)
        quotient = emit.pure(arith.DivSIOp, [size, by], INDEX)
        flipped = emit.pure(arith.SubiOp, [minus_one, quotient], INDEX)
        value = emit.pure(upstream.SelectOp, [negative, flipped, quotient], INDEX)
        return self._known_quotient(self.atom(value), form, divisor)

    def _known_quotient(self, found: Form, form: Form, divisor: int) -> Form:
        (number,) = found.atoms
        self.facts.know_quotient(number, form, divisor)
        return found

    def least(self, forms: Sequence[Form]) -> Form:
        """The smallest of some forms."""
        return self._extreme(forms, arith.MinSIOp)

    def greatest(self, forms: Sequence[Form]) -> Form:
        """The largest of some forms."""
        return self._extreme(forms, arith.MaxSIOp)

    def _extreme(self, forms: Sequence[Form], kind: type[Operation]) -> Form:
        numbers = [f.number for f in forms if f.number is not None]
        rest = list(dict.fromkeys(f for f in forms if f.number is None))
        if numbers:
            rest.append(fixed(min(numbers) if kind is arith.MinSIOp else max(numbers)))
        if len(rest) == 1:
            return rest[0]
        value = self.value(rest[0])
        for form in rest[1:]:
            value = self.emitter.pure(kind, [value, self.value(form)], INDEX)
        is_nonnegative = self.facts.is_nonnegative
        if kind is arith.MaxSIOp:
            return self.atom(value, any(is_nonnegative(f) for f in rest))
        highs = [high for high in (self.facts.of(f)[1] for f in rest) if high is not None]
        high = min(highs) if highs else None
        found = self.atom(value, all(is_nonnegative(f) for f in rest), high)
        self.facts.know_least(found.atoms[0], rest)
        return found

    def evaluate(
        self, expr: AffineExpr, dims: Sequence[Form], symbols: Sequence[Form] = ()
    ) -> Form:
        """An affine expression as a form.

        Raises:
            DivisorError: if a divisor is not a positive number.
        """
        if type(expr) is AffineDimExpr:  # as most are
            return dims[expr.position]
        return self._substituted(_polynomial(expr), dims, symbols)

    def _substituted(self, value: Affine, dims: Sequence[Form], symbols: Sequence[Form]) -> Form:
        def form_of(atom: Variable | Quotient | Least) -> Form:
            if isinstance(atom, Variable):
                return (dims if atom.kind == DIMENSION else symbols)[atom.position]
            if isinstance(atom, Least):
                return self.least([self._substituted(part, dims, symbols) for part in atom.parts])
            dividend = self._substituted(atom.dividend, dims, symbols)
            return _DIVISIONS[atom.function](self, dividend, atom.divisor)

        return Form.of(value.substituted(form_of))

    # Emission.

    def depth(self, form: Form) -> int:
        """The depth of the innermost scope that `form` depends on."""
        return max([self.table[number].depth for number in form.atoms], default=0)

    def value(self, form: Form) -> SSAValue:
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
                form, self.emitter, self._value_of, lambda atom: self.table[atom].depth
            )
        return memo[form]

    def _value_of(self, atom: int) -> SSAValue:
        value = self.table[atom].value
        assert value is not None
        return value


_DIVISIONS: Mapping[AffineBinaryOpKind, Callable[[Indices, Form, int], Form]] = {
    FLOOR: Indices.divide,
    CEIL: Indices.divide_up,
    MOD: Indices.remainder,
}
