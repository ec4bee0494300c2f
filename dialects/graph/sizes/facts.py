"""What a shape rule reports while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ....core.algebra.dims import Dim, Shape
from ....core.algebra.multiples import Multiples
from ....core.errors import explain
from ....core.ir.provenance import origin


class ShapeFacts:
    """What a shape rule reports while it runs: sizes that must agree, and unknown sizes.

    Args:
        op: the operation whose rule runs; errors name it.
        fresh: makes an unknown dimension.
        record: called with two dimensions that are equal only if certain symbols have certain
            values, which therefore has to be checked at run time.
        entries: returns the number of stored entries of a sparse operand, if known.
        known: returns whether two dimensions are known to be equal otherwise.
        held: returns the size that a scalar holds, from the scalar and an upper bound.
        shapes: returns the shape of an operand, if known.
        measured: returns the size of a tensor along an axis, from both and an upper bound.
        multiples: what is known of sizes that have quotients, from what was recorded.
    """

    def __init__(
        self,
        op: Operation,
        fresh: Callable[[], Dim],
        record: Callable[[Dim, Dim], None] | None = None,
        entries: Callable[[SSAValue], Dim | None] | None = None,
        known: Callable[[Dim, Dim], bool] | None = None,
        held: Callable[[SSAValue, Dim | None], Dim] | None = None,
        shapes: Callable[[SSAValue], Shape] | None = None,
        measured: Callable[[SSAValue, int, Dim], Dim] | None = None,
        multiples: Multiples | None = None,
    ) -> None:
        self.op = op
        self.fresh = fresh
        self._record = record
        self._entries = entries
        self._known = known
        self._held = held
        self._shapes = shapes
        self._measured = measured
        self._multiples = Multiples() if multiples is None else multiples
        self._numbers: dict[Dim, Dim] = {}
        """The numbers that symbolic dimensions of the operation have to be."""

    def entries(self, matrix: SSAValue) -> Dim:
        """The number of stored entries of a sparse operand; a new symbol if it is unknown."""
        known = None if self._entries is None else self._entries(matrix)
        return self.fresh() if known is None else known

    def length(self, operand: SSAValue) -> Dim:
        """The first size of a dense operand; a new symbol if it is unknown."""
        return self.fresh() if self._shapes is None else self._shapes(operand)[0]

    def size(self, scalar: SSAValue, bound: Dim | None) -> Dim:
        """The size that a scalar of i64 holds at run time, at most `bound`.

        The scalar is an operand, or a result that the operation writes along with the tensors
        whose first dimension has that size (`SizeResult`). That of an operand may have
        no bound.
        """
        kind = scalar.type
        # The type of a result is a placeholder until it is inferred.
        if isinstance(kind, TensorType) and kind != TensorType(i64, []):
            self.fail("a size is not a scalar", "tensor<i64>", kind)
        return self.fresh() if self._held is None else self._held(scalar, bound)

    def measured(self, tensor: SSAValue, axis: int, bound: Dim) -> Dim:
        """The size along an axis of a tensor of control flow, which is known once the tensor is.

        The tensor is an argument of a region, or a result; the size is at most `bound`.
        """
        return self.fresh() if self._measured is None else self._measured(tensor, axis, bound)

    def fail(self, fact: str, expected: object = None, got: object = None) -> NoReturn:
        """Raise a `VerifyException` that names the operation and where it came from."""
        where = origin(self.op)
        raise VerifyException(explain(self.op.name, fact, expected=expected, got=got, origin=where))

    def same(self, expected: Dim, got: Dim, fact: str) -> Dim:
        """Demand that two dimensions are known to be equal; returns the first one."""
        if expected != got and not (self._known is not None and self._known(expected, got)):
            self.fail(fact, expected, got)
        return expected

    def equal(self, expected: Dim, got: Dim, fact: str) -> Dim:
        """Demand that two dimensions agree; returns the one that is known better."""
        if expected == got or self._multiples.same(expected, got):
            return expected
        difference = expected - got
        if difference.is_static:
            self.fail(fact, expected, got)
        symbolic, better = (expected, got) if got.is_static else (got, expected)
        if better.is_static and (number := self._numbers.setdefault(symbolic, better)) != better:
            self.fail(fact, number, better)
        if self._record is not None:
            self._record(expected, got)
        return better

    def quotient(self, size: Dim, divisor: int, fact: str) -> Dim:
        """Demand that a number divides a dimension; returns the quotient."""
        size = self._multiples.settled(size)
        quotient = size.floordiv(divisor)
        if not self._multiples.same(size, quotient * divisor):
            demanded = self._multiples.demand(size, divisor)
            if demanded is None:
                self.fail(fact, f"a multiple of {divisor}", size)
            self.equal(*demanded, fact)
        return quotient

    def broadcast(self, a: Shape, b: Shape) -> Shape:
        """The shape to which NumPy broadcasts two shapes."""
        rank = max(len(a), len(b))
        one = Dim.of(1)
        left = (one,) * (rank - len(a)) + tuple(a)
        right = (one,) * (rank - len(b)) + tuple(b)
        return tuple(self._broadcast_dim(x, y, a, b) for x, y in zip(left, right, strict=True))

    def _broadcast_dim(self, x: Dim, y: Dim, a: Shape, b: Shape) -> Dim:
        if x == 1 or x == y:
            return y
        if y == 1:
            return x
        fact = f"shapes {text(a)} and {text(b)} do not broadcast"
        return self.equal(x, y, fact)

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """An axis counted from the front, where negative ones count from the back."""
        if not -rank <= axis < rank:
            expected = f"-{rank} <= {what} < {rank}" if rank else "none, of a scalar"
            self.fail(f"{what} out of range", expected, axis)
        return axis % rank


def text(shape: Sequence[Dim]) -> str:
    """A shape as messages print it: ``[4, batch]``."""
    unnamed = [any(name.startswith("_") for name in dim.symbols) for dim in shape]
    names = ("?" if one else str(dim) for dim, one in zip(shape, unnamed, strict=True))
    return f"[{', '.join(names)}]"
