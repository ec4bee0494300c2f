"""Sums and maxima of a kernel that is written in Python, whose type follows from their terms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Block, SSAValue

from ....core.dims import Dim
from .. import scalars
from .buffers import Buffer, Index, KernelBody, Row, Scalar


class FoldingBody(KernelBody, Protocol):
    """The interface of the kernel that folds are written into."""

    def scrap(self) -> AbstractContextManager[Block]:
        """A place for operations that are erased at the end of the context."""
        ...

    def reduce(self, over: Any, combine: str, init: Any, step: Callable[..., Any]) -> Scalar:
        """A reduction over an extent, several of them, or the entries of a row."""
        ...


def folded(
    k: FoldingBody,
    over: Any,
    combine: str,
    term: Callable[..., Scalar],
    first: Callable[[Attribute], SSAValue],
    join: Callable[[SSAValue, SSAValue], SSAValue],
) -> Scalar:
    """A reduction of terms.

    Args:
        k: the kernel.
        over: what to iterate over; see `KernelBuilder.reduce`.
        combine: how partial results join.
        term: the term at an index.
        first: what the reduction of terms of a type starts at.
        join: the next result from the one so far and a term.
    """
    _check(k, over, combine, term)
    kind = _type_of(k, over, term)

    def step(*index: Any) -> Scalar:
        value = k.scalar(term(*index[:-1]), kind)
        return Scalar(k, join(index[-1].ssa, value))

    return k.reduce(over, combine, Scalar(k, first(kind)), step)


_NAMES = {"add": ("sum", "a + b"), "max": ("max", "k.maximum(a, b)")}
"""How kernels call a reduction by a combiner, and the same of two values."""


def _check(k: FoldingBody, over: Any, combine: str, term: object) -> None:
    """Refuse a reduction that is not over a range."""
    name, of_two = _NAMES[combine]
    hint = f"of two values it is {of_two}"
    extents = over if isinstance(over, tuple) else (over,)
    for extent in extents:
        if not isinstance(extent, (Row, Index, int)) or isinstance(extent, bool):
            expected = "a number of iterations, or a.row(i)"
            raise k.error(f"k.{name} is over a range", expected, type(extent).__name__, hint)
    if not callable(term):
        fact, expected = f"k.{name} of no function", f"k.{name}(n, lambda i: ..)"
        raise k.error(fact, expected, type(term).__name__, hint)


def _type_of(k: FoldingBody, over: Any, term: Callable[..., Any]) -> Attribute:
    """The type of a term, found out by writing it down in a place that is thrown away."""
    with k.scrap() as scrap:
        if isinstance(over, Row):
            buffer = Buffer(k, over.matrix.parts[2], over.matrix.kind, (Dim.of(0),))
            given: tuple[Any, ...] = (k.variable(scrap.args[0]), buffer[0])
        else:
            count = len(over) if isinstance(over, tuple) else 1
            given = tuple(k.variable(scrap.args[0]) for _ in range(count))
        result = term(*given)
        if not isinstance(result, Scalar):
            raise k.error(
                "a reduction of a value that is not a scalar", "a scalar", type(result).__name__
            )
        return result.ssa.type


def added(k: KernelBody, total: SSAValue, term: SSAValue) -> SSAValue:
    """The sum of two scalars; a product that nothing else needs becomes part of it."""
    # a * b + c, rounded once
    product = term.owner
    if isinstance(product, arith.MulfOp) and term.first_use is None:
        left, right = product.lhs, product.rhs
        product.detach()
        product.erase()
        return k.insert(math.FmaOp(left, right, total))
    return scalars.add(k, total, term)
