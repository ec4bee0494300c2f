"""Symbolic dimensions: polynomials with integer coefficients over named symbols.

A dimension of a tensor is a number (784), a symbol ("batch") or an expression of them ("batch*28",
"N+E"). Sums and products of dimensions are dimensions; a quotient is one only if it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from .building.polynomials import Polynomial


class Dim(Polynomial[str]):
    """A dimension: a polynomial whose atoms are the names of symbols."""

    __slots__ = ()

    @staticmethod
    def symbol(name: str) -> Dim:
        """The dimension called `name`."""
        return Dim.atom(name)

    @staticmethod
    def parse(text: str) -> Dim:
        """Parse the text of a dimension, as `str` prints it.

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
        return tuple(self.atoms)

    def substitute(self, dims: Mapping[str, Dim]) -> Dim:
        """The dimension with others substituted for symbols; symbols not in `dims` stay."""

        def dim(name: str) -> Dim:
            return dims[name] if name in dims else Dim.symbol(name)

        return Dim.of(self.substituted(dim))

    def at_most(self, bounds: Mapping[str, Dim]) -> Dim:
        """An upper bound without the symbols in `bounds`, which maps each to one of its own."""
        total = Dim.of(0)
        for monomial, factor in self.terms:
            if bounds.keys().isdisjoint(monomial):
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
        return (name, rest // factor) if rest % factor == 0 and rest // factor >= 0 else None


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
