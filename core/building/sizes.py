"""Sizes as affine expressions: a quotient of a size is one of its expression."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir.affine import AffineExpr

from ..algebra.affine import affine
from ..algebra.dims import Dim, SizeQuotient


def affine_size(
    dim: Dim,
    symbol: Callable[[str], AffineExpr],
    product: Callable[[AffineExpr, AffineExpr], AffineExpr],
) -> AffineExpr:
    """A dimension as an affine expression.

    Args:
        dim: the dimension.
        symbol: the expression of a symbol.
        product: makes a variable of the product of two expressions, which is not affine.
    """

    def atom(name: str) -> AffineExpr:
        if isinstance(name, SizeQuotient):
            return affine_size(name.dividend, symbol, product) // name.divisor
        return symbol(name)

    return affine(dim, atom, product)
