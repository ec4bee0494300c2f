"""Expressions: polynomials over unknowns, and over quotients, remainders and minima of others.

What is not a polynomial is an atom whose parts are expressions: a minimum of indices can be taken
apart, substituted into and bounded without the operation that computes it. A maximum is a minimum:
max(a, b) == -min(-a, -b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir.affine import AffineBinaryOpKind

from ..bounded_cache import bounded_cache
from .polynomials import Polynomial

DIMENSION, SYMBOL, QUOTIENT, LEAST = range(4)

FLOOR, CEIL, MOD = (
    AffineBinaryOpKind.FloorDiv,
    AffineBinaryOpKind.CeilDiv,
    AffineBinaryOpKind.Mod,
)


class Variable(NamedTuple):
    """A dimension or a symbol."""

    kind: int
    position: int

    def __str__(self) -> str:
        return f"{'d' if self.kind == DIMENSION else 's'}{self.position}"


class Quotient(NamedTuple):
    """A quotient or a remainder; its first field orders it after variables."""

    kind: int
    operation: int
    divisor: int
    dividend: Affine

    @property
    def function(self) -> AffineBinaryOpKind:
        """The operation: a quotient rounded down or up, or the remainder."""
        return AffineBinaryOpKind(self.operation)

    def __str__(self) -> str:
        return f"(({self.dividend}) {self.function.get_token()} {self.divisor})"


class Least(NamedTuple):
    """The minimum of polynomials; see `least`."""

    kind: int
    parts: tuple[Affine, ...]

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.parts))})"


Atom: TypeAlias = Variable | Quotient | Least
Affine: TypeAlias = Polynomial[Atom]

ZERO: Affine = Polynomial()


@bounded_cache
def atom_of(kind: int, position: int) -> tuple[Variable]:
    """The monomial of a dimension or a symbol, cached."""
    return (Variable(kind, position),)


def divided(function: AffineBinaryOpKind, dividend: Affine, divisor: int) -> Affine:
    """A quotient or remainder by a positive number.

    (c * a + b) op c == a + (b op c) for the quotients, and b op c for the remainder.
    """
    whole, rest = dividend.split(divisor)
    number = rest.number
    if number is None:
        part: Affine = Polynomial.atom(Quotient(QUOTIENT, function.value, divisor, rest))
    elif function is MOD:
        part = Polynomial.of(number % divisor)
    else:
        part = Polynomial.of(number // divisor if function is FLOOR else -(-number // divisor))
    return part if function is MOD else whole + part


def least(parts: Iterable[Affine]) -> Affine:
    """The minimum of one or more polynomials."""
    flat = [one for part in parts for one in parts_of(part)]
    lowest = min((n for one in flat if (n := one.number) is not None), default=None)
    left = tuple(dict.fromkeys(one for one in flat if one.number in (None, lowest)))
    return left[0] if len(left) == 1 else Polynomial.atom(Least(LEAST, left))


def greatest(parts: Iterable[Affine]) -> Affine:
    """The maximum of one or more polynomials."""
    return -least(-part for part in parts)


def parts_of(value: Affine) -> Sequence[Affine]:
    """The polynomials whose minimum a value is; of any other the value itself."""
    atom = value.single_atom
    return atom.parts if isinstance(atom, Least) else (value,)


def rebuilt(atom: Atom, new: Callable[[Affine], Affine]) -> Affine:
    """An atom with other polynomials in place of those that it is made of."""
    if isinstance(atom, Quotient):
        return divided(atom.function, new(atom.dividend), atom.divisor)
    if isinstance(atom, Least):
        return least(map(new, atom.parts))
    return Polynomial.atom(atom)


def inner(atom: Atom) -> Sequence[Affine]:
    """The polynomials that an atom is made of."""
    if isinstance(atom, Quotient):
        return (atom.dividend,)
    return atom.parts if isinstance(atom, Least) else ()


def variables(value: Affine) -> set[Variable]:
    """The variables of a polynomial, including those inside its atoms."""
    found: set[Variable] = set()
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Variable):
                found.add(atom)
            else:
                found.update(*map(variables, inner(atom)))
    return found


def substituted(value: Affine, values: Mapping[Atom, Affine]) -> Affine:
    """A polynomial with others in place of some variables, also inside its atoms."""

    def of_atom(atom: Atom) -> Affine:
        if isinstance(atom, Variable):
            return values[atom] if atom in values else Polynomial.atom(atom)
        return rebuilt(atom, lambda part: substituted(part, values))

    return ZERO + value.substituted(of_atom)


def split(value: Affine, atom: Atom) -> tuple[Affine | None, Affine]:
    """A factor and a rest without an atom: value == factor * atom + rest; None for powers."""
    factor, rest = list[tuple[tuple[Atom, ...], int]](), list[tuple[tuple[Atom, ...], int]]()
    for monomial, number in value.terms:
        if atom not in monomial:
            rest.append((monomial, number))
            continue
        left = list(monomial)
        left.remove(atom)
        if atom in left:
            return None, value
        factor.append((tuple(left), number))
    return Polynomial(factor), Polynomial(rest)


def joined(index: Affine) -> Affine:
    """The same, in which c * (a floordiv c) + a mod c is a."""
    result = index
    for cut in index.atoms:
        if isinstance(cut, Quotient) and cut.function is MOD:
            quotient, factor = cut._replace(operation=FLOOR.value), index.coefficient(cut)
            if index.coefficient(quotient) == cut.divisor * factor:
                parts = Polynomial.atom(quotient) * cut.divisor + Polynomial.atom(cut)
                result += (cut.dividend - parts) * factor
    # The dividend may be a remainder as well.
    return index if result is index else joined(result)


def without_remainders(value: Affine) -> Affine:
    """A polynomial whose remainders are written with quotients: a mod n == a - (a floordiv n) * n.

    Quotients of one dividend then cancel.
    """

    def replaced(atom: Atom) -> Affine:
        if not isinstance(atom, Quotient) or atom.function is not MOD:
            return rebuilt(atom, without_remainders)
        dividend = without_remainders(atom.dividend)
        return dividend - divided(FLOOR, dividend, atom.divisor) * atom.divisor

    return Polynomial.of(value.substituted(replaced))
