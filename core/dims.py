"""Symbolic dimensions: polynomials with integer coefficients over named symbols.

A dimension of a tensor is a number (784), a symbol ("batch") or what operators make of
them ("batch*28", "N+E"). Sums and products of dimensions are dimensions; a quotient is one
only where it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]
"""Sorted symbol names, a name repeated for each power; the empty tuple is the constant."""


def _canonical(terms: Mapping[Monomial, int]) -> tuple[tuple[Monomial, int], ...]:
    return tuple(sorted((m, c) for m, c in terms.items() if c != 0))


@dataclass(frozen=True)
class Dim:
    """An immutable polynomial; equal polynomials compare and hash equal.

    A dimension also compares equal to an int of the same value.
    """

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(value: int | Dim) -> Dim:
        """The constant dimension `value`; a `Dim` is returned as it is."""
        if isinstance(value, Dim):
            return value
        return Dim(_canonical({(): value}))

    @staticmethod
    def symbol(name: str) -> Dim:
        """The dimension called `name`."""
        return Dim((((name,), 1),))

    @staticmethod
    def parse(text: str) -> Dim:
        """Read what `str` of a dimension prints.

        Raises:
            ValueError: if the text is not a sum of products of names and numbers.
        """
        result = Dim.of(0)
        for sign, term in re.findall(r"([+-]?)\s*([^+-]+)", text.strip()):
            product = Dim.of(-1 if sign == "-" else 1)
            for factor in term.split("*"):
                name = factor.strip()
                if re.fullmatch(r"\d+", name):
                    product = product * int(name)
                elif re.fullmatch(r"[A-Za-z_][\w.]*", name):
                    product = product * Dim.symbol(name)
                else:
                    raise ValueError(f"not a dimension: {text!r}")
            result = result + product
        return result

    @property
    def is_static(self) -> bool:
        """Whether the dimension is a plain number."""
        return all(not monomial for monomial, _ in self.terms)

    @property
    def value(self) -> int:
        """The number.

        Raises:
            ValueError: if the dimension has symbols.
        """
        if not self.is_static:
            raise ValueError(f"dimension {self} is symbolic")
        return self.terms[0][1] if self.terms else 0

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names in the dimension, sorted, each once."""
        return tuple(sorted({name for monomial, _ in self.terms for name in monomial}))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number that the dimension has where its symbols have these sizes."""
        total = 0
        for monomial, coefficient in self.terms:
            for name in monomial:
                coefficient *= sizes[name]
            total += coefficient
        return total

    def substitute(self, dims: Mapping[str, Dim]) -> Dim:
        """The dimension with others put in for its symbols; one that is not in `dims` stays."""
        total = Dim.of(0)
        for monomial, coefficient in self.terms:
            term = Dim.of(coefficient)
            for name in monomial:
                term = term * dims.get(name, Dim.symbol(name))
            total = total + term
        return total

    def __add__(self, other: int | Dim) -> Dim:
        terms = dict(self.terms)
        for monomial, coefficient in Dim.of(other).terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Dim(_canonical(terms))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Dim(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: int | Dim) -> Dim:
        return self + -Dim.of(other)

    def __mul__(self, other: int | Dim) -> Dim:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in Dim.of(other).terms:
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Dim(_canonical(terms))

    __rmul__ = __mul__

    def exact_div(self, other: int | Dim) -> Dim | None:
        """The quotient by a single term, or None where it is not a polynomial."""
        divisor = Dim.of(other)
        if len(divisor.terms) != 1:
            return Dim.of(1) if divisor == self else None
        (names, factor), terms = divisor.terms[0], {}
        for monomial, coefficient in self.terms:
            left = list(monomial)
            for name in names:
                if name not in left:
                    return None
                left.remove(name)
            if coefficient % factor:
                return None
            terms[tuple(left)] = coefficient // factor
        return Dim(_canonical(terms))

    def root(self) -> tuple[str, int] | None:
        """The symbol and the count for which the dimension is 0; None where that is not certain.

        It is where there is one symbol, in one term of degree 1, and the solution is a count.
        """
        linear = [(monomial, c) for monomial, c in self.terms if monomial]
        if len(linear) != 1 or len(linear[0][0]) != 1:
            return None
        (name,), factor = linear[0]
        rest = -(self - Dim.symbol(name) * factor).value
        return (name, rest // factor) if rest % factor == 0 and rest // factor >= 0 else None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.is_static and self.value == other
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.value) if self.is_static else hash(self.terms)

    def __str__(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in sorted(self.terms, key=lambda t: (-len(t[0]), t[0])):
            factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
            text = "*".join([*factors, *monomial])
            sign = "-" if coefficient < 0 else "+" if parts else ""
            parts.append(sign + text)
        return "".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Dim({self})"


Shape = tuple[Dim, ...]


def product(dims: Shape) -> Dim:
    """The number of elements of a shape."""
    result = Dim.of(1)
    for dim in dims:
        result = result * dim
    return result
