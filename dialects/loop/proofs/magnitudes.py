"""Whether index values fit into 64 bits on the way: what wraps around is not a polynomial.

An array has less than 2^47 elements, the bytes that a process has addresses for. A product of
sizes and indices counts as elements of one array.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from ....core.algebra.affine import ADD, MUL
from ....core.algebra.dims import LARGEST_SIZE
from ....core.algebra.expressions import MOD
from ..loops import loop_of
from ..ops_access import LoadOp
from ..ops_loops import ForOp
from ..ops_partition import PartitionPointOp
from .bounds import constant_index
from .counters import CASTS, start_of_counter

_LIMIT = 2**63
_MOST_FACTORS = 8
"""The most dimensions that an array is taken to have."""


@dataclass(frozen=True)
class Magnitude:
    """An upper bound of a value without its sign, and of how many sizes it is a product."""

    bound: int
    sizes: int = 0

    @property
    def fits(self) -> bool:
        """Whether the value is known to be one of 64 bits."""
        return self.bound < _LIMIT and self.sizes <= _MOST_FACTORS

    def __add__(self, other: Magnitude) -> Magnitude:
        return Magnitude(self.bound + other.bound, max(self.sizes, other.sizes))

    def __mul__(self, other: Magnitude) -> Magnitude:
        bound = self.bound * other.bound
        if self.sizes and other.sizes:
            bound = -(-bound // LARGEST_SIZE)
        return Magnitude(bound, self.sizes + other.sizes)

    def __floordiv__(self, divisor: int) -> Magnitude:
        return Magnitude(self.bound // divisor + 1, self.sizes)


_SIZE = Magnitude(LARGEST_SIZE, 1)
_ANY = Magnitude(_LIMIT)
"""Of any value of 64 bits."""
_COUNTED = Magnitude(_LIMIT - 1)
"""Of what counts up to any value."""


class Magnitudes:
    """Upper bounds of the index values of a kernel.

    Args:
        sizes: the arguments that are sizes.
        contents: the buffers of integers with known limits.
    """

    def __init__(self, sizes: Container[SSAValue], contents: Container[SSAValue]) -> None:
        self._sizes, self._contents = sizes, contents
        self._found: dict[SSAValue, Magnitude | None] = {}

    def of(self, value: SSAValue) -> Magnitude | None:
        """An upper bound; None if there is none, or if a step to the value may wrap around."""
        if value not in self._found:
            self._found[value] = None
            found = self._of(value)
            self._found[value] = found if found is not None and found.fits else None
        return self._found[value]

    def fits(self, map: AffineMap, operands: Sequence[SSAValue], lanes: Sequence[int] = ()) -> bool:
        """Whether no step of a map may wrap around.

        Args:
            map: the map.
            operands: its dimensions.
            lanes: the numbers of lanes, which are its symbols.
        """
        if any(loop_of(value) is not None and self.of(value) is None for value in operands):
            return False
        symbols = [Magnitude(count) for count in lanes]
        dims = [self._index(value) for value in operands]
        # A dividend may be outside where the index, a quotient or a remainder, is inside.
        exact = [self._exact(value) for value in operands]
        nodes = (node for expr in map.results for node in expr.dfs())
        return all(_of_expression(expr, dims, symbols) is not None for expr in map.results) and all(
            _of_expression(node, exact, symbols) is not None
            for node in nodes
            if isinstance(node, AffineBinaryOpExpr) and node.kind not in (ADD, MUL)
        )

    def fits_bounds(self, loop: ForOp) -> bool:
        """Whether no step to a bound of a loop, or to the row that it visits, may wrap around."""
        if loop.over_entries:
            return self.fits(loop.bound.data, loop.bounds)
        return self._of_bound(loop) is not None

    def _index(self, value: SSAValue) -> Magnitude:
        """The magnitude of an index; one of which nothing is known is a size where it is inside."""
        found = self.of(value)
        return _SIZE if found is None or found == _COUNTED else found

    def _exact(self, value: SSAValue) -> Magnitude:
        """The magnitude of a value that need not be inside of anything."""
        return self.of(value) or _ANY

    def _of(self, value: SSAValue) -> Magnitude | None:
        op = value.owner
        if isinstance(op, Block):
            return self._of_argument(value, op)
        match op:
            case memref.DimOp():
                return _SIZE
            case LoadOp():
                return _SIZE if op.buffer in self._contents else None
            case PartitionPointOp():
                return self.of(op.rows)
            case arith.MinSIOp() | arith.MaxSIOp():
                return self._of_choice(op)
            case arith.SelectOp():
                return self._sum([op.lhs, op.rhs])
            case _:
                return self._of_step(op)

    def _of_argument(self, value: SSAValue, block: Block) -> Magnitude | None:
        loop = block.parent_op()
        if value in self._sizes or (
            isinstance(loop, ForOp) and loop.over_entries and value not in loop.carried
        ):
            return _SIZE
        start = start_of_counter(value)
        if isinstance(loop, ForOp) and (start is not None or loop_of(value) is loop):
            ends = [] if start is None else [self.of(start)]
            return _sum([*ends, self._of_bound(loop)])
        return None

    def _of_bound(self, loop: ForOp) -> Magnitude | None:
        """The magnitude of the least bound of a loop that is known to fit."""
        if loop.over_entries:
            return _SIZE
        dims = [self._exact(value) for value in loop.bounds]
        found = [_of_expression(expr, dims, []) for expr in loop.bound.data.results]
        if None in found:
            return None
        return min([*filter(None, found), _COUNTED], key=lambda one: one.bound)

    def _of_choice(self, op: arith.MinSIOp | arith.MaxSIOp) -> Magnitude | None:
        """A minimum or a maximum, also one that clamps what is not known."""
        other = arith.MaxSIOp if isinstance(op, arith.MinSIOp) else arith.MinSIOp
        known = [found for value in op.operands if (found := self.of(value)) is not None]
        for value in op.operands:
            if self.of(value) is not None:
                continue
            ends = value.owner.operands if isinstance(value.owner, other) else ()
            found = [one for end in ends if (one := self.of(end)) is not None]
            if not known or not found:
                return None
            known += found
        return _sum(known)

    def _of_step(self, op: Operation) -> Magnitude | None:
        match op:
            case arith.ConstantOp(value=IntegerAttr() as number):
                return Magnitude(abs(number.value.data))
            case Operation() if isinstance(op, CASTS):
                return self.of(op.operands[0])
            case arith.AddiOp() | arith.SubiOp():
                return self._sum([op.lhs, op.rhs])
            case arith.MuliOp():
                left, right = self.of(op.lhs), self.of(op.rhs)
                return None if left is None or right is None else left * right
            case arith.FloorDivSIOp() | arith.CeilDivSIOp() if constant_index(op.rhs):
                return self.of(op.lhs)
            case affine.ApplyOp() | affine.MinOp():
                dims = [self.of(value) for value in op.operands]
                if op.map.data.num_symbols or None in dims:
                    return None
                known = [dim for dim in dims if dim is not None]
                return _sum(_of_expression(expr, known, []) for expr in op.map.data.results)
            case _:
                return None

    def _sum(self, values: Iterable[SSAValue]) -> Magnitude | None:
        return _sum(map(self.of, values))


def _sum(found: Iterable[Magnitude | None]) -> Magnitude | None:
    total = Magnitude(0)
    for one in found:
        if one is None:
            return None
        total += one
    return total


def _of_expression(
    expr: AffineExpr, dims: Sequence[Magnitude], symbols: Sequence[Magnitude]
) -> Magnitude | None:
    """The magnitude of an expression, None if a step to it may wrap around."""
    match expr:
        case AffineConstantExpr():
            found = Magnitude(abs(expr.value))
        case AffineDimExpr():
            return dims[expr.position]
        case AffineBinaryOpExpr():
            left = _of_expression(expr.lhs, dims, symbols)
            right = _of_expression(expr.rhs, dims, symbols)
            if left is None or right is None:
                return None
            if expr.kind is ADD:
                found = left + right
            elif expr.kind is MUL:
                found = left * right
            elif expr.kind is MOD:
                found = right
            else:
                divisor = expr.rhs.value if isinstance(expr.rhs, AffineConstantExpr) else 0
                found = left // max(1, divisor)
        case AffineSymExpr():
            found = symbols[expr.position]
        case _:
            return None
    return found if found.fits else None
