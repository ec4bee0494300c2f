"""Choose the operators that work on transposed operands, so that fewest elements are transposed.

Each operator that can is computed on values as they are, or on transposed ones. Where two that pass
a value to each other differ, the value is transposed: the least sum of the sizes of such values is
a minimum cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ints
from ....dialects.graph.interfaces import GraphOp, rank
from ....dialects.graph.known import is_constant, reshape_target, sizes_of
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.plan.uses import Uses
from ....dialects.graph.remapped_axes import TransposableInterface
from ....dialects.sparse_tensor import is_sparse
from .blocks import elements

Order = tuple[int, ...]

_PLAIN, _TRANSPOSED = "plain", "transposed"
"""The two sides of the cut."""


def inverse(order: Order) -> Order:
    """The permutation that undoes another one."""
    return tuple(order.index(place) for place in range(len(order)))


def orders_of(ops: Sequence[Operation]) -> list[Order]:
    """The permutations that operators might move past: those of transpositions, and inverses."""
    found = dict[Order, None]()
    for op in ops:
        if isinstance(op, graph.TransposeOp):
            order = ints(op.permutation)
            found |= {inverse(order): None, order: None}
    return list(found)


@dataclass
class Transposed:
    """Which operators of a block work on operands transposed by `order`.

    Attributes:
        ops: all operators of the block.
        order: the permutation.
        uses: knows which operators are elementwise.
        chosen: the operators, in the order of the block.
        saved: the elements that need not be transposed any more.
    """

    ops: Sequence[Operation]
    order: Order
    uses: Uses = field(default_factory=lambda: Uses(Recorder()))
    chosen: list[GraphOp] = field(init=False)
    saved: int = field(init=False)

    def __post_init__(self) -> None:
        # Loaded where something is transposed, as most models have nothing of the kind.
        import networkx

        self._able = {op for op in self.ops if self._fits(op)}
        values = self._values()
        self._unit = 1 + len(values)
        self._network = networkx.DiGraph()
        self._network.add_nodes_from((_PLAIN, _TRANSPOSED))
        before = sum(map(self._add, values))
        after, (inside, _) = networkx.minimum_cut(self._network, _TRANSPOSED, _PLAIN)
        self.chosen = [op for op in self.ops if op in inside and isinstance(op, GraphOp)]
        self.saved = (before - after) // self._unit

    def properties(self, op: GraphOp) -> dict[str, Attribute] | None:
        """The properties of an operator on transposed operands; None if it cannot work on them."""
        if self.uses.is_pointwise(op):
            return {}
        return op.on_transposed(self.order) if isinstance(op, TransposableInterface) else None

    def is_transposed(self, result: SSAValue) -> bool:
        """Whether the result of an operator that is chosen has another order, too."""
        return rank(result) == len(self.order)

    def source(self, value: SSAValue) -> SSAValue | None:
        """What a value is the transposition of, if that is the value in the other order."""
        op = value.owner
        if not isinstance(op, graph.TransposeOp) or inverse(ints(op.permutation)) != self.order:
            return None
        # A transposition that is its own inverse, of what may be computed transposed, is taken as
        # one to the other order, else as one from it: never as both.
        if ints(op.permutation) == self.order and op.x.owner in self._able:
            return None
        return op.x

    def is_target(self, op: Operation) -> bool:
        """Whether an operator transposes a value to the other order."""
        return isinstance(op, graph.TransposeOp) and ints(op.permutation) == self.order

    # Operators

    def _fits(self, op: Operation) -> bool:
        """Whether an operator can work on transposed operands."""
        if not isinstance(op, GraphOp) or len(op.results) != 1 or op.regions:
            return False
        values = (*op.operands, *op.results)
        if not all(isinstance(v.type, TensorType) and not is_sparse(v.type) for v in values):
            return False
        ranks = [rank(v) for v in op.operands]
        if max(ranks, default=0) != len(self.order):
            return False
        lower = [v for v in op.operands if rank(v) < len(self.order)]
        if any(reshape_target(sizes_of(v)) is None for v in lower):
            return False
        return self.properties(op) is not None

    # Values

    def _values(self) -> list[SSAValue]:
        """The computed values that operators which can be transposed pass on or read."""
        found = dict[SSAValue, None]()
        for op in self.ops:
            if op in self._able:
                found |= dict.fromkeys((*op.operands, *op.results))
        return [v for v in found if rank(v) <= len(self.order) and not is_constant(v)]

    def _cost(self, value: SSAValue) -> int:
        """The elements of a value that move where it is transposed, and a little for the operator.

        A transposition that only moves axes of size 1 moves no elements.
        """
        sizes = (1,) * (len(self.order) - rank(value)) + tuple(sizes_of(value))
        moved = [axis for axis in self.order if sizes[axis] != 1]
        return 1 + (0 if moved == sorted(moved) else elements(value) * self._unit)

    def _add(self, value: SSAValue) -> int:
        """Add a value to the network; returns what it costs where no operator is transposed."""
        made, cost = self._maker(value), self._cost(value)
        readers = {reader for use in value.uses if (reader := self._reader(use.operation, value))}
        # Readers on the side of the maker cost nothing, several on the other side as much as one.
        inner, outer = (value, _PLAIN), (value, _TRANSPOSED)
        self._network.add_edge(inner, made, capacity=cost)
        self._network.add_edge(made, outer, capacity=cost)
        for reader in readers:
            self._network.add_edge(reader, inner)
            self._network.add_edge(outer, reader)
        sides = {_TRANSPOSED if side == _TRANSPOSED else _PLAIN for side in (made, *readers)}
        return cost if len(sides) > 1 else 0

    def _maker(self, value: SSAValue) -> Operation | str:
        """The side of what computes a value, or the operator whose side is to be chosen."""
        op = value.owner
        if isinstance(op, Operation) and op in self._able and self.is_transposed(value):
            return op
        return _TRANSPOSED if self.source(value) is not None else _PLAIN

    def _reader(self, op: Operation, value: SSAValue) -> Operation | str | None:
        """The same of a user; None for a transposition to a third order, which costs the same."""
        if op in self._able:
            return op
        if isinstance(op, graph.TransposeOp):
            if self.is_target(op) and self.source(op.result) is None:
                return _TRANSPOSED
            return None if value.owner in self._able else _PLAIN
        return _PLAIN
