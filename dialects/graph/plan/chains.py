"""Chains of products, dense and sparse ones, and what it costs to compute them in an order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from ....core.algebra.dims import Dim, Shape, product, scaled
from ....core.dtypes import dtype_of
from .. import ops as graph
from ..attrs import AggregateKind
from ..interfaces import GraphOp, element_type, rank
from ..sizes.shapes import SymbolicShapes

Order = int | tuple["Order", "Order"]
"""A factor by its number, or a product of two orders."""

_LONGEST = 24
"""A longer chain is ordered in parts."""


@dataclass(frozen=True)
class Factor:
    """A matrix of a chain, or a stack of matrices.

    `transposed` says that it is held the other way round, as the weights of `dense` are. `by` is
    the sparse product that multiplies by a sparse matrix, from the left.
    """

    value: SSAValue
    transposed: bool = False
    by: graph.SpmmOp | graph.AggregateOp | None = None


@dataclass
class Chain:
    """The factors of a product of two or more, and the operators that compute it.

    `parts` has the orders that the operators make, the last of them that of the whole chain.
    """

    factors: list[Factor]
    parts: dict[Order, GraphOp]

    @property
    def order(self) -> Order:
        """The order of the model."""
        return next(reversed(self.parts))

    @property
    def root(self) -> GraphOp:
        """The operator that gives the product of all factors."""
        return self.parts[self.order]


def operands_of(op: object) -> tuple[Factor | None, SSAValue, Factor | None] | None:
    """The sparse factor on the left, the dense operand, and the factor on its right."""
    if isinstance(op, graph.SpmmOp):
        return Factor(op.a, by=op), op.x, None
    if isinstance(op, graph.AggregateOp) and _is_linear(op):
        return Factor(op.a, by=op), op.x, None
    if not isinstance(op, graph.DenseOp | graph.MatmulOp):
        return None
    x, w, *_ = op.operands
    # A sum of integers of few bits is one of i32, which they cannot be multiplied with.
    if element_type(x) != element_type(op.result) or rank(x) < 2:
        return None
    return None, x, Factor(w, transposed=isinstance(op, graph.DenseOp))


def _is_linear(op: graph.AggregateOp) -> bool:
    """Whether an aggregation is the product with a matrix: it sums up rows, with weights or not."""
    weighted = op.weights is not None and rank(op.weights) != 1
    linear = op.kind.data in (AggregateKind.SUM, AggregateKind.MEAN, AggregateKind.SOFTMAX)
    return linear and rank(op.x) == 2 and not weighted


def chain_of(root: GraphOp) -> Chain:
    """The chain that ends in `root`; factors are values with other users, and non-products."""
    chain = Chain([], {})

    def leaf(factor: Factor) -> Order:
        chain.factors.append(factor)
        return len(chain.factors) - 1

    def grow(value: SSAValue, depth: int) -> Order:
        op = value.owner
        whole = value is root.results[0]
        inside = isinstance(op, GraphOp) and op.parent is root.parent and value.has_one_use()
        short = max(depth, len(chain.factors)) < _LONGEST
        operands = operands_of(op) if whole or (inside and short and bias_of(op) is None) else None
        if operands is None:
            return leaf(Factor(value))
        sparse, x, right = operands
        first = grow(x, depth + 1) if sparse is None else leaf(sparse)
        if right is None:
            order = first, grow(x, depth + 1)
        else:
            order = first, leaf(right) if right.transposed else grow(right.value, depth + 1)
        chain.parts[order] = cast(GraphOp, op)
        return order

    grow(root.results[0], 0)
    return chain


def bias_of(op: object) -> SSAValue | None:
    return op.bias if isinstance(op, graph.DenseOp) else None


@dataclass(frozen=True)
class Cost:
    """What it takes to compute something."""

    flops: Dim
    bytes: Dim

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def __str__(self) -> str:
        return f"{scaled(self.flops, 'FLOP')}, {scaled(self.bytes, 'B')}"


class ChainCosts:
    """What the products of a chain cost.

    Args:
        chain: the chain.
        shapes: the sizes of the function that it is in.
        size: the assumption for an unknown size.
        entries: the assumption for the entries of a row, if their number is unknown.
    """

    def __init__(self, chain: Chain, shapes: SymbolicShapes, size: int, entries: int) -> None:
        self.chain = chain
        self.shapes = shapes
        self.shape_of = [self._shape(factor) for factor in chain.factors]
        self.entries = {
            n: entry_count(f.value, shapes) for n, f in enumerate(chain.factors) if f.by is not None
        }
        self.width = dtype_of(element_type(chain.root.results[0])).itemsize
        self.assumption = f"sizes are {size} and rows have {entries} entries"
        self._size = size
        self._counts: dict[str, int] = {}
        sizes = {name for shape in self.shape_of for dim in shape for name in dim.symbols}
        for number, count in self.entries.items():
            rows = self.estimate(self.shape_of[number][0])
            for name in set(count.symbols) - sizes:
                self._counts.setdefault(name, rows * entries)

    def estimate(self, dim: Dim) -> int:
        """A number of operations, under the assumptions about unknown sizes."""
        return dim.evaluate({name: self._counts.get(name, self._size) for name in dim.symbols})

    def _shape(self, factor: Factor) -> Shape:
        shape = self.shapes.shape(factor.value)
        return (*shape[:-2], shape[-1], shape[-2]) if factor.transposed else shape

    def shape(self, first: int, last: int) -> Shape:
        """The shape of the product of the factors from `first` to `last`."""
        batch: Shape = ()
        for shape in self.shape_of[first : last + 1]:
            batch = _broadcast(batch, shape[:-2])
        return (*batch, self.shape_of[first][-2], self.shape_of[last][-1])

    def of_product(self, first: int, middle: int, last: int) -> Cost | None:
        """The cost of (first .. middle) times (middle + 1 .. last); None if it has none."""
        left, right = self.shape(first, middle), self.shape(middle + 1, last)
        result = product(self.shape(first, last))
        dense = [product(right), result]
        if middle + 1 == last and last in self.entries:
            return None
        if first != middle or first not in self.entries:
            moved = sum([*dense, product(left)], Dim.of(0))
            return Cost(result * left[-1] * 2, moved * self.width)
        if len(right) != 2:
            return None
        by, entries = self.chain.factors[first].by, self.entries[first]
        weighted = isinstance(by, graph.SpmmOp) or (by is not None and by.weights is not None)
        # Columns are 32-bit numbers; rows begin at others.
        moved = sum(dense, Dim.of(0)) * self.width + left[0] * 4
        moved = moved + entries * (4 + (self.width if weighted else 0))
        return Cost(entries * right[-1] * (2 if weighted else 1), moved)

    def of(self, order: Order) -> Cost:
        """The cost of a whole order."""
        if isinstance(order, int):
            return Cost(Dim.of(0), Dim.of(0))
        left, right = order
        own = self.of_product(ends(left)[0], ends(left)[1], ends(right)[1])
        return cast(Cost, own) + self.of(left) + self.of(right)

    def best(self) -> Order:
        """The order with the least estimated work: the model's own, if no other one is less.

        By dynamic programming: the best order of the factors from `first` to `last` splits them
        somewhere, and each side has its own best order (Cormen et al., Introduction to
        Algorithms, 15.2).
        """
        count = len(self.chain.factors)
        table: dict[tuple[int, int], tuple[int, Order]] = {(n, n): (0, n) for n in range(count)}
        for length in range(1, count):
            for first in range(count - length):
                last = first + length
                for middle in range(first, last):
                    left, right = table.get((first, middle)), table.get((middle + 1, last))
                    own = self.of_product(first, middle, last)
                    if own is None or left is None or right is None:
                        continue
                    work = left[0] + right[0] + self.estimate(own.flops)
                    if (first, last) not in table or work < table[first, last][0]:
                        table[first, last] = work, (left[1], right[1])
        work, best = table[0, count - 1]
        own = self.chain.order
        return best if work < self.estimate(self.of(own).flops) else own

    def is_possible(self, order: Order) -> bool:
        """Whether there are operators that compute an order."""
        if isinstance(order, int):
            return True
        left, right = order
        own = self.of_product(ends(left)[0], ends(left)[1], ends(right)[1])
        return own is not None and self.is_possible(left) and self.is_possible(right)

    def orders(self, first: int, last: int) -> Iterator[Order]:
        """All orders of the factors from `first` to `last` that can be computed."""
        if first == last:
            yield first
        for middle in range(first, last):
            if self.of_product(first, middle, last) is not None:
                for left in self.orders(first, middle):
                    for right in self.orders(middle + 1, last):
                        yield left, right


def entry_count(matrix: SSAValue, shapes: SymbolicShapes) -> Dim:
    """The number of stored entries of a sparse matrix, at most."""
    made = matrix.owner
    if isinstance(made, graph.NormalizeOp) and made.self_loops.value.data:
        # No more than one self loop for each row is added.
        return entry_count(made.a, shapes) + shapes.shape(matrix)[0]
    return shapes.nnz(matrix) or Dim.of(0)


def _broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of two stacks that are known to fit."""
    count, one = max(len(a), len(b)), Dim.of(1)
    left, right = ((one,) * (count - len(s)) + s for s in (a, b))
    return tuple(y if x == one else x for x, y in zip(left, right, strict=True))


def ends(order: Order) -> tuple[int, int]:
    """The first and the last factor of an order."""
    first = last = order
    while not isinstance(first, int):
        first = first[0]
    while not isinstance(last, int):
        last = last[1]
    return first, last
