"""Polynomials with integer coefficients: the algebra of sizes and indices.

An atom is anything hashable that can be ordered among the atoms of the same polynomial: the
name of a size, the number of an index value, a dimension of an affine expression. Polynomials
are immutable and canonical: equal ones compare and hash equal, however they were computed. A
non-polynomial value (a quotient, a minimum) is an atom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar


class Ordered(Protocol):
    """Something with an order among its kind."""

    def __lt__(self, other: Any, /) -> bool: ...


AtomT = TypeVar("AtomT", bound=Ordered)

Monomial = tuple[AtomT, ...]
"""A product of atoms in order, repeated for powers; the empty product is 1."""


class Polynomial(Generic[AtomT]):
    """A sum of products of atoms; a polynomial without atoms also compares equal to its number.

    Args:
        terms: monomials with their coefficients, each monomial once and in order.
    """

    __slots__ = ("_hash", "terms")

    terms: tuple[tuple[Monomial[AtomT], int], ...]
    """Monomials with their coefficients, which are not 0; a constant term comes first."""

    def __init__(self, terms: Iterable[tuple[Monomial[AtomT], int]] = ()) -> None:
        self.terms = tuple(sorted([term for term in terms if term[1]]))
        self._hash: int | None = None

    @classmethod
    def of(cls, value: int | Self) -> Self:
        """The constant polynomial `value`; a polynomial is returned as it is."""
        if not isinstance(value, int):
            return value
        return cls._canonical((((), value),) if value else ())

    @classmethod
    def atom(cls, atom: AtomT) -> Self:
        """The polynomial that is one atom."""
        return cls._canonical((((atom,), 1),))

    @classmethod
    def _canonical(cls, terms: tuple[tuple[Monomial[AtomT], int], ...]) -> Self:
        """The polynomial of sorted terms without a coefficient of 0."""
        new = cls.__new__(cls)
        new.terms = terms
        new._hash = None
        return new

    # Properties.

    @property
    def number(self) -> int | None:
        """The value of a constant polynomial; None if it has an atom."""
        terms = self.terms
        if not terms:
            return 0
        return terms[0][1] if len(terms) == 1 and not terms[0][0] else None

    @property
    def constant(self) -> int:
        """The constant term."""
        terms = self.terms
        return terms[0][1] if terms and not terms[0][0] else 0

    @property
    def single_atom(self) -> AtomT | None:
        """The atom if the polynomial is a single one, else None."""
        if len(self.terms) != 1:
            return None
        ((monomial, coefficient),) = self.terms
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    @property
    def atoms(self) -> list[AtomT]:
        """The atoms of all terms, in order, each once."""
        return sorted({atom for monomial, _ in self.terms for atom in monomial})

    def coefficient(self, *atoms: AtomT) -> int:
        """The coefficient of a product of sorted atoms."""
        return next((c for monomial, c in self.terms if monomial == atoms), 0)

    # Arithmetic.

    def __add__(self, other: int | Self) -> Self:
        if isinstance(other, int):
            constant = self.constant
            rest = self.terms[1:] if constant else self.terms
            constant += other
            return self._canonical((((), constant), *rest) if constant else rest) if other else self
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return type(self)(terms.items())

    __radd__ = __add__

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: int | Self) -> Self:
        return self + (-other if isinstance(other, int) else other * -1)

    def __rsub__(self, other: int) -> Self:
        return -self + other

    def __mul__(self, other: int | Self) -> Self:
        number = other if isinstance(other, int) else other.number
        if number == 1:
            return self
        if number is not None:
            terms = self.terms if number else ()
            return self._canonical(tuple([(m, c * number) for m, c in terms]))
        assert not isinstance(other, int)
        products: dict[Monomial[AtomT], int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right)) if left and right else left or right
                products[monomial] = products.get(monomial, 0) + a * b
        return type(self)(products.items())

    __rmul__ = __mul__

    def split(self, divisor: int) -> tuple[Self, Self]:
        """Two polynomials with self == divisor * whole + rest, for a positive divisor.

        The rest has no term that the divisor divides, and its constant is in [0, divisor).
        """
        whole = [(monomial, c // divisor) for monomial, c in self.terms if c % divisor == 0]
        rest = [(monomial, c) for monomial, c in self.terms if c % divisor]
        if rest and not rest[0][0]:
            above, rest[0] = rest[0][1] // divisor, ((), rest[0][1] % divisor)
            if above:
                whole.insert(0, ((), above))
        return self._canonical(tuple(whole)), self._canonical(tuple(rest))

    def exact_div(self, other: int | Self) -> Self | None:
        """The quotient by a single term or by the polynomial itself; None if not a polynomial."""
        divisor = self.of(other)
        if len(divisor.terms) != 1:
            return self.of(1) if divisor == self else None
        (atoms, factor), terms = divisor.terms[0], list[tuple[Monomial[AtomT], int]]()
        for monomial, coefficient in self.terms:
            left = list(monomial)
            for atom in atoms:
                if atom not in left:
                    return None
                left.remove(atom)
            if coefficient % factor:
                return None
            terms.append((tuple(left), coefficient // factor))
        return type(self)(terms)

    def evaluate(self, values: Mapping[AtomT, int]) -> int:
        """The value of the polynomial for these values of its atoms."""
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= values[atom]
            total += coefficient
        return total

    def substituted(self, polynomial_of: Callable[[AtomT], PolynomialT]) -> PolynomialT | int:
        """The polynomial with each atom replaced by the polynomial that a function returns."""
        total: PolynomialT | int = 0
        for monomial, coefficient in self.terms:
            term: PolynomialT | int = coefficient
            for atom in monomial:
                term = polynomial_of(atom) * term
            total = term + total
        return total

    # Comparison.

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.number == other
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __lt__(self, other: Self) -> bool:
        """An arbitrary but deterministic order."""
        return self.terms < other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            number = self.number
            self._hash = hash(self.terms if number is None else number)
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of names differ between processes.
        return type(self)._canonical, (self.terms,)

    def __str__(self) -> str:
        """A sum of products, in descending order of degree."""
        parts: list[str] = []
        for monomial, coefficient in sorted(self.terms, key=lambda t: (-len(t[0]), t[0])):
            sign = "-" if coefficient < 0 else "+" if parts else ""
            parts.append(sign + self._product_text(monomial, coefficient))
        return "".join(parts) or "0"

    def _product_text(self, monomial: Monomial[AtomT], coefficient: int) -> str:
        """A product without its sign."""
        factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
        return "*".join([*factors, *map(str, monomial)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


PolynomialT = TypeVar("PolynomialT", bound=Polynomial[Any])
