"""Symbolic dimensions: polynomials with integer coefficients over named symbols.

A dimension of a tensor is a number (784), a symbol ("batch") or an expression of them ("batch*28",
"N+E", "(h+1)//2"). Sums, products, and quotients by a number, rounded down, are dimensions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from ..errors import shortened
from .polynomials import Monomial, Polynomial


class SizeQuotient(str):
    """The text of a dimension divided by a number, rounded down, as an atom of another dimension.

    `Dim.floordiv` makes it. The coefficients of its dividend are at least 0 and less than the
    divisor, so that it is never negative, as no size is.
    """

    __slots__ = ("dividend", "divisor")

    dividend: Dim
    divisor: int

    def __new__(cls, dividend: Dim, divisor: int) -> SizeQuotient:
        text = str(dividend)
        if not re.fullmatch(r"[\w.]+", text):
            text = f"({text})"
        quotient = super().__new__(cls, f"{text}//{divisor}")
        quotient.dividend, quotient.divisor = dividend, divisor
        return quotient

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.dividend, self.divisor)


class Dim(Polynomial[str]):
    """A dimension: a polynomial whose atoms are the names of symbols, and quotients of sizes."""

    __slots__ = ()

    @staticmethod
    def symbol(name: str) -> Dim:
        """The dimension called `name`."""
        return Dim.atom(name)

    @staticmethod
    def parse(text: str) -> Dim:
        """Parse the text of a dimension, as `str` prints it.

        Raises:
            ValueError: if the text is not made of names, numbers of 64 bits, sums, products,
                brackets, and quotients (`//`) by numbers.
        """
        return _Parser(text).dimension()

    @property
    def is_static(self) -> bool:
        """Whether the dimension is a plain number."""
        return self.number is not None

    @property
    def value(self) -> int:
        """The number.

        Raises:
            ValueError: if the dimension has symbols.
        """
        number = self.number
        if number is None:
            raise ValueError(f"dimension {self} is symbolic")
        return number

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names in the dimension, sorted, each once."""
        return tuple(sorted(_names(self.atoms)))

    @property
    def name(self) -> str | None:
        """The symbol that the dimension is; None for another one."""
        atom = self.single_atom
        return None if isinstance(atom, SizeQuotient) else atom

    def is_at_least(self, other: Dim) -> bool:
        """Whether no coefficient is less than that of another dimension.

        Then it is at least the other one for all values of the symbols, which are no less than 0.
        """
        return all(coefficient >= 0 for _, coefficient in (self - other).terms)

    def floordiv(self, divisor: int) -> Dim:
        """The quotient by a positive number, rounded down.

        Equal quotients are the same dimension where their dividends differ by multiples of the
        divisor, and ((h+1)//2)//2 is (h+1)//4.
        """
        # (d * a + b) // d == a + b // d
        whole = Dim([(monomial, c // divisor) for monomial, c in self.terms])
        rest = Dim([(monomial, c % divisor) for monomial, c in self.terms])
        if rest.is_static:
            return whole
        # (c * a + b) // (c * d) == (a + b // c) // d
        common = math.gcd(divisor, *(c for monomial, c in rest.terms if monomial))
        rest = Dim([(monomial, c // common) for monomial, c in rest.terms])
        if common > 1:
            return whole + rest.floordiv(divisor // common)
        # (a // c + b) // d == (a + c * b) // (c * d)
        for (*others, atom), coefficient in (term for term in rest.terms if term[0]):
            if isinstance(atom, SizeQuotient) and not others and coefficient == 1:
                inner = atom.dividend + (rest - Dim.atom(atom)) * atom.divisor
                return whole + inner.floordiv(divisor * atom.divisor)
        return whole + Dim.atom(SizeQuotient(rest, divisor))

    def ceildiv(self, divisor: int) -> Dim:
        """The quotient by a positive number, rounded up."""
        return (self + (divisor - 1)).floordiv(divisor)

    def substitute(self, dims: Mapping[str, Dim]) -> Dim:
        """The dimension with others substituted for symbols; symbols not in `dims` stay."""

        def dim(atom: str) -> Dim:
            if isinstance(atom, SizeQuotient):
                return atom.dividend.substitute(dims).floordiv(atom.divisor)
            return dims[atom] if atom in dims else Dim.symbol(atom)

        return Dim.of(self.substituted(dim))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value of the dimension for these values of its symbols."""
        divided = {
            atom: atom.dividend.evaluate(values) // atom.divisor
            for atom in self.atoms
            if isinstance(atom, SizeQuotient)
        }
        return super().evaluate({**values, **divided} if divided else values)

    def at_most(self, bounds: Mapping[str, Dim]) -> Dim:
        """An upper bound without the symbols in `bounds`, which maps each to one of its own."""
        total = Dim.of(0)
        for monomial, factor in self.terms:
            if bounds.keys().isdisjoint(_names(monomial)):
                total = total + Dim([(monomial, factor)])
            elif factor > 0:
                total = total + Dim([(monomial, factor)]).substitute(bounds).at_most(bounds)
        return total

    # a, b <= sum of max(a_m, b_m, 0) m  for monomials m >= 0
    def at_most_either(self, other: Dim) -> Dim:
        """An upper bound of this dimension and another one."""
        factors = [dict(self.terms), dict(other.terms)]
        monomials = dict.fromkeys((*factors[0], *factors[1]))
        most = ((m, max(0, *(own.get(m, 0) for own in factors))) for m in monomials)
        return sum((Dim([(m, factor)]) for m, factor in most if factor), start=Dim.of(0))

    def root(self) -> tuple[str, int] | None:
        """The symbol and its value for which the dimension is 0; None if unknown.

        It is known for a single symbolic term, of degree 1, and a root that is a natural number.
        """
        linear = [(monomial, c) for monomial, c in self.terms if monomial]
        if len(linear) != 1 or len(linear[0][0]) != 1:
            return None
        (name,), factor = linear[0]
        rest = -self.constant
        if isinstance(name, SizeQuotient) or rest % factor or rest // factor < 0:
            return None
        return name, rest // factor

    def _product_text(self, monomial: Monomial[str], coefficient: int) -> str:
        if monomial[1:] or coefficient != 1:
            # 2 * (h // 2) is not 2 * h // 2.
            monomial = tuple(f"({a})" if isinstance(a, SizeQuotient) else a for a in monomial)
        return super()._product_text(monomial, coefficient)


def _names(atoms: Iterable[str]) -> set[str]:
    """The names in atoms, those in quotients among them."""
    found: set[str] = set()
    for atom in atoms:
        found.update(atom.dividend.symbols if isinstance(atom, SizeQuotient) else (atom,))
    return found


_BEYOND = 1 << 63
"""The first number that no size can be."""

_DEEPEST = 64
"""The maximum nesting of brackets in the text of a dimension: each takes some of Python's stack."""

_TOKEN = re.compile(r"\s*(\d+(?![\w.])|[A-Za-z_][\w.]*|//|[-+*()])")


class _Parser:
    """Reads the text of a dimension, with the precedence of Python's operators."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, list[str]()
        position, end, depth = 0, len(text.rstrip()), 0
        while position < end:
            found = _TOKEN.match(text, position)
            depth += 0 if found is None else (found[1] == "(") - (found[1] == ")")
            if found is None or depth > _DEEPEST:
                raise self.error()
            self.tokens.append(found[1])
            position = found.end()

    def error(self) -> ValueError:
        return ValueError(f"not a dimension: {shortened(self.text)!r}")

    def next_of(self, *expected: str) -> str | None:
        """The next token, taken if it is one of those expected; else None."""
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in expected else None

    def dimension(self) -> Dim:
        """The whole text."""
        found = self.sum()
        if self.tokens or any(abs(factor) >= _BEYOND for _, factor in found.terms):
            raise self.error()
        return found

    def sum(self) -> Dim:
        sign = self.next_of("+", "-")
        total = self.product() * (-1 if sign == "-" else 1)
        while (sign := self.next_of("+", "-")) is not None:
            total = total + self.product() * (-1 if sign == "-" else 1)
        return total

    def product(self) -> Dim:
        result = self.factor()
        while (operation := self.next_of("*", "//")) is not None:
            factor = self.factor()
            if operation == "*":
                result = result * factor
            elif (divisor := factor.number) is not None and 0 < divisor < _BEYOND:
                result = result.floordiv(divisor)
            else:
                raise self.error()
        return result

    def factor(self) -> Dim:
        if self.next_of("("):
            inner = self.sum()
            if self.next_of(")") is None:
                raise self.error()
            return inner
        token = self.tokens.pop(0) if self.tokens else ""
        if token.isdigit():
            return Dim.of(int(token))
        if not re.match(r"[A-Za-z_]", token):
            raise self.error()
        return Dim.symbol(token)


def size_of_argument(number: int, dimension: int | str) -> str:
    """The name of a size of an argument of a kernel: ``x0.1``, ``x0.nnz`` for its entries, and
    ``x0.value`` for what it holds."""
    return f"x{number}.{dimension}"


def size_of_result(number: int, dimension: int) -> str:
    """The name of a size of a result of a kernel: ``y0.1``."""
    return f"y{number}.{dimension}"


Shape = tuple[Dim, ...]

LARGEST_SIZE = 1 << 47
"""No dimension is larger: an address space has no more bytes."""


def product(dims: Shape) -> Dim:
    """The number of elements of a shape."""
    return prod(dims, start=Dim.of(1))


def scaled(count: Dim | int, unit: str) -> str:
    """A count with a prefix of the SI where it is a number, a polynomial where it is not."""
    count = Dim.of(count) if isinstance(count, int) else count
    if not count.is_static:
        return f"{count} {unit}"
    for size, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count.value >= size:
            return f"{count.value / size:.3g} {prefix}{unit}"
    return f"{count.value} {unit}"
