"""What each stage of a program on a part computes, keeps for later ones, and needs of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ....core.algebra.dims import Dim, product
from ....core.dtypes import byte_size
from ....core.ir.typed import returned
from ....dialects.graph.interfaces import GraphOp, element_type
from ....dialects.sparse_tensor import is_sparse
from .alignment import Alignment, RowSpace, SliceAccess
from .cuts import CutCosts, cheapest


@dataclass(frozen=True)
class Prices:
    """What bytes cost, in operations on numbers, and what unknown sizes are taken to be.

    Attributes:
        sent: the operations in the time in which a byte travels to another part.
        moved: those in which one is read from memory, or written.
        entries: the number of entries of a row.
        size: an unknown size other than a number of nodes or entries.
    """

    sent: int
    moved: int
    entries: int
    size: int


@dataclass
class Stage:
    """The operators between one exchange and the next.

    Attributes:
        level: how many exchanges come before it.
        rows: the operators that it computes for its own nodes.
        columns: those that it computes for its own nodes and for the halo.
        kept: the values that it reads for its own nodes, and which were there before.
        received: those that it reads for the halo too.
        combined: the results over all nodes that it reads.
        results: those that later stages, or the caller, need.
    """

    level: int
    rows: set[Operation] = field(default_factory=set)
    columns: set[Operation] = field(default_factory=set)
    kept: list[SSAValue] = field(default_factory=list)
    received: list[SSAValue] = field(default_factory=list)
    combined: list[SSAValue] = field(default_factory=list)
    results: list[SSAValue] = field(default_factory=list)


class Stages:
    """The stages of a function, which are planned from the last to the first.

    Where values of nodes are needed along the edges, or in a later stage, the cheapest ones to
    send, or to keep, are chosen (`cuts.py`): what narrows is computed before, what widens after.

    Args:
        known: the spaces of its values.
        prices: what bytes cost.
    """

    def __init__(self, known: Alignment, prices: Prices) -> None:
        self.known, self.prices = known, prices
        self._level = self._levels()
        self._needed: dict[int, dict[SSAValue, None]] = {}
        for value in returned(known.function):
            self._need(value)
        levels = range(max(self._level.values(), default=0), -1, -1)
        found = [self._planned(level) for level in levels if level in self._needed]
        self.stages = found[::-1]
        """The stages, in order; none where nothing is computed."""

    def _levels(self) -> dict[SSAValue, int]:
        """For each value the number of exchanges and combinations before it is known."""
        level: dict[SSAValue, int] = dict.fromkeys(self.known.function.args, 0)
        for op in self.known.function.body.block.ops:
            if isinstance(op, func.ReturnOp):
                break
            pairs = zip(op.operands, self.known.accesses[op], strict=True)
            own = max((level[v] + (a == SliceAccess.COLUMNS) for v, a in pairs), default=0)
            # What is combined is known after all parts have their partial results.
            level.update((v, own + (v in self.known.combined)) for v in op.results)
        return level

    def _need(self, value: SSAValue) -> None:
        """Note a value that the stage that computes it has to return."""
        if isinstance(value.owner, Operation):
            level = self._level[value] - (value in self.known.combined)
            self._needed.setdefault(level, {})[value] = None

    def _planned(self, level: int) -> Stage:
        stage = Stage(level, results=list(self._needed[level]))
        by_rows, by_columns = self._body(stage)
        sent = self.prices.sent
        stage.received, ops = self._cheapest(
            by_columns, self._operands_on_halo, lambda value: self.bytes(value) * sent
        )
        stage.columns = set(ops)

        def cost_kept(value: SSAValue) -> int:
            if value in stage.received:
                return 0
            # One that is computed before is written, and then read.
            times = 2 if isinstance(value.owner, Operation) else 1
            return self.bytes(value) * self.prices.moved * times

        kept, ops = self._cheapest(by_rows, self._operands_again, cost_kept)
        stage.rows |= set(ops)
        stage.kept, stage.combined = kept, self._combined(stage)
        for value in (*kept, *stage.received, *stage.combined):
            self._need(value)
        return stage

    def _body(self, stage: Stage) -> tuple[list[SSAValue], list[SSAValue]]:
        """Add the operators of the level; returns what they need by rows, and by columns."""
        by_rows: dict[SSAValue, None] = {}
        by_columns: dict[SSAValue, None] = {}
        pending = [op for value in stage.results if isinstance(op := value.owner, Operation)]
        while pending:
            op = pending.pop()
            if op in stage.rows:
                continue
            stage.rows.add(op)
            for value, access in self._read(op):
                if access == SliceAccess.COLUMNS:
                    by_columns[value] = None
                elif isinstance(value.owner, Operation) and self._level[value] == stage.level:
                    pending.append(value.owner)
                else:
                    by_rows[value] = None
        return self._in_order(by_rows), self._in_order(by_columns)

    def _combined(self, stage: Stage) -> list[SSAValue]:
        """The results over all nodes that a stage reads, also to compute what parts share."""
        found: dict[SSAValue, None] = {}
        seen = {*stage.rows, *stage.columns}
        pending = list(seen)
        while pending:
            for value in pending.pop().operands:
                op = value.owner
                if value in self.known.combined:
                    found[value] = None
                elif isinstance(op, Operation) and not (op in seen or self.known.is_of_part(value)):
                    seen.add(op)
                    pending.append(op)
        return self._in_order(found)

    def _read(self, op: Operation) -> Iterator[tuple[SSAValue, SliceAccess]]:
        """The operands that differ between parts, the graph aside."""
        for value, access in zip(op.operands, self.known.accesses[op], strict=True):
            if self.known.spaces[value] not in (RowSpace.WHOLE, RowSpace.GRAPH):
                yield value, access

    def _in_order(self, values: Iterable[SSAValue]) -> list[SSAValue]:
        """Values in the order in which the function has them."""
        given = set(values)
        block = self.known.function.body.block
        everything = (*block.args, *(result for op in block.ops for result in op.results))
        return [value for value in everything if value in given]

    def _cheapest(
        self,
        required: Sequence[SSAValue],
        operands: Callable[[SSAValue], Sequence[SSAValue] | None],
        storing: Callable[[SSAValue], int],
    ) -> tuple[list[SSAValue], list[Operation]]:
        """What is stored, in order, and the operators that compute the others."""
        stored, computed = cheapest(required, CutCosts(operands, self._work, storing))
        return self._in_order(stored), [v.owner for v in computed if isinstance(v.owner, Operation)]

    def _operands_on_halo(self, value: SSAValue) -> list[SSAValue] | None:
        """What a slice is computed of, where those of the same node suffice."""
        found = self._operands_again(value)
        op = value.owner
        if found is None or not isinstance(op, Operation) or op in self.known.numbered:
            return None
        spaces = {self.known.spaces[v] for v in (*op.operands, *op.results)}
        sparse = any(is_sparse(operand.type) for operand in op.operands)
        return found if spaces <= {RowSpace.WHOLE, RowSpace.ROWS} and not sparse else None

    def _operands_again(self, value: SSAValue) -> list[SSAValue] | None:
        """What a value is computed of, where that takes no walk over the edges."""
        op = value.owner
        if not isinstance(op, GraphOp) or SliceAccess.COLUMNS in self.known.accesses[op]:
            return None
        walks = any(loop.matrix is not None for r in self.known.recordings(op) for loop in r.loops)
        if walks or len(op.results) != 1:
            return None
        return list(dict.fromkeys(value for value, _ in self._read(op)))

    def bytes(self, value: SSAValue) -> int:
        """The bytes of a value for one node."""
        sizes = self.known.shapes.shape(value)
        count = self.prices.entries if self.known.spaces[value] == RowSpace.ENTRIES else 1
        return self._number(product(sizes[1:])) * count * byte_size(element_type(value))

    def _work(self, value: SSAValue) -> int:
        """The operations that compute a value for one node."""
        op = value.owner
        flops = op.flops(self.known.shapes) if isinstance(op, GraphOp) else None
        if flops is None:
            flops = product(self.known.shapes.shape(value))
        return self._number(flops)

    def _number(self, count: Dim) -> int:
        """A count for one node."""
        known = dict.fromkeys(self.known.nodes, 1)
        known |= dict.fromkeys(self.known.edges, self.prices.entries)
        return count.evaluate({name: known.get(name, self.prices.size) for name in count.symbols})
