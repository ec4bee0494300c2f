"""Values of the edges of a list, and how they are built in the order of the entries of its matrix.

A value [E, ...] follows from others edge by edge where its slice at an edge is made of their slices
at that edge, which the reads of its operator say. Such operators are built again on values in entry
order; what the nodes at the ends of an edge have comes from `graph.at_entries`.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import FusionKind, GraphOp, rank
from ....dialects.graph.nests.accesses import atoms_in
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.plan.uses import has_one_value
from ....dialects.sparse_tensor import is_sparse
from .edge_lists import EdgeListFacts, Gather, gather_of, is_float_tensor, number_of
from .insertion import EdgeMatrix, flat


class EdgeValues:
    """How values of edges are made of others, edge by edge.

    Args:
        facts: what is known of values.
    """

    def __init__(self, facts: EdgeListFacts) -> None:
        self.facts, self._recorder = facts, Recorder()
        self._sources: dict[SSAValue, list[SSAValue]] = {}
        self._gathers: dict[SSAValue, list[Gather]] = {}

    def forget(self) -> None:
        """Drop what is known: an operator has been replaced."""
        self._sources.clear()
        self._gathers.clear()

    def sources(self, value: SSAValue) -> list[SSAValue]:
        """The values of edges of which a value is made, edge by edge; none if it is not."""
        if value not in self._sources:
            known = (
                number_of(value, self.facts.weights) is not None or self.gather(value) is not None
            )
            self._sources[value] = [] if known else self._aligned(value.owner)
        return self._sources[value]

    def gather(self, value: SSAValue) -> Gather | None:
        """The gather that makes a value of edges."""
        return gather_of(value, self.facts)

    def gathers(self, value: SSAValue) -> list[Gather]:
        """The gathers that a value of edges is made of."""
        if value not in self._gathers:
            gather = self.gather(value)
            found = [] if gather is None else [gather]
            for source in self.sources(value):
                found += self.gathers(source)
            self._gathers[value] = list(dict.fromkeys(found))
        return self._gathers[value]

    def operators(self, value: SSAValue) -> set[Operation]:
        """The operators that make a value of edges, up to its gathers."""
        found, waiting = set[Operation](), [value]
        while waiting:
            current = waiting.pop()
            if isinstance(current.owner, Operation) and current.owner not in found:
                found.add(current.owner)
                waiting += self.sources(current)
        return found

    def _aligned(self, op: object) -> list[SSAValue]:
        """The operands of which slice i is read for slice i of the result."""
        if not isinstance(op, GraphOp) or not has_one_value(op):
            return []
        if not op.operands:  # a constant
            return []
        if not rank(op.results[0]) or any(is_sparse(value.type) for value in op.operands):
            return []
        recording, found = self._recorder.recording(op), dict[SSAValue, bool]()
        extents = [loop.extent for loop in recording.loops if loop.extent is not None]
        own = {*recording.sources.atoms, *atoms_in(extents)}
        if 0 in recording.dims_of(own):
            return []
        for read in recording.reads:
            # At the own first index, or independent of it.
            at_own = bool(read.index) and read.index[0] == AffineExpr.dimension(0)
            rest = recording.dims_of(atoms_in(read.index[1:] if at_own else read.index))
            if 0 in rest or found.setdefault(op.operands[read.operand], at_own) != at_own:
                return []
        return [value for value, aligned in found.items() if aligned]


class EntryOrder:
    """Builds values of edges in the order of the entries of a matrix.

    Args:
        edges: the matrix.
        values: how values are made.
        alone: operators that nothing else needs once their results are built in entry order.
        b: inserts operators.
    """

    def __init__(
        self,
        edges: EdgeMatrix,
        values: EdgeValues,
        alone: Collection[Operation],
        b: InsertingBuilder,
    ) -> None:
        self.edges, self.values, self.alone, self.b = edges, values, alone, b
        self._known: dict[SSAValue, SSAValue] = {}

    def of(self, value: SSAValue) -> SSAValue:
        """A value of the edges in the order of entries."""
        if value not in self._known:
            self._known[value] = self._made(value)
        return self._known[value]

    def _made(self, value: SSAValue) -> SSAValue:
        values, op = self.values, value.owner
        if number_of(value, values.facts.weights) is not None:
            return value
        if (gather := values.gather(value)) is not None:
            return self._gathered(value, gather)
        if not isinstance(op, GraphOp) or not values.gathers(value):
            return self._moved(value)
        if op.fusion == FusionKind.CONTRACTION and op not in self.alone:
            # It would be computed twice, and that costs more than to move it.
            return self._moved(value)
        if (same := self._factor(op)) is not None:
            return self.of(same)
        sources = values.sources(value)
        operands = [self.of(v) if v in sources else v for v in op.operands]
        new = type(op).create(
            operands=operands, result_types=op.result_types, properties=op.properties
        )
        return self.b.insert(new, [op])

    def _moved(self, value: SSAValue) -> SSAValue:
        """A value of the edges, read in the order of entries."""
        edges = self.edges
        if edges.ends[1] is None and is_float_tensor(value):
            return self.b.insert(graph.AtEntriesOp(edges.matrix, value, 1, result_type=value.type))
        return self.b.insert(graph.GatherOp(value, edges.order, 0, result_type=value.type))

    # x * 1 == x
    def _factor(self, op: GraphOp) -> SSAValue | None:
        """The factor that a product is equal to."""
        if not isinstance(op, graph.MulOp):
            return None
        pairs = ((op.lhs, op.rhs), (op.rhs, op.lhs))
        found = (
            one
            for one, other in pairs
            if one.type == op.result.type and number_of(other, self.values.facts.weights) == 1
        )
        return next(found, None)

    def _gathered(self, value: SSAValue, gather: Gather) -> SSAValue:
        if (axis := self._axis(gather)) is not None:
            made = graph.AtEntriesOp(self.edges.matrix, gather.x, axis, result_type=value.type)
            return self.b.insert(made)
        indices = self.b.gather(flat(self.b, gather.indices), self.edges.order, 0)
        return self.b.insert(graph.GatherOp(gather.x, indices, 0, result_type=value.type))

    def _axis(self, gather: Gather) -> int | None:
        """The axis of the matrix that a gather is by: 0 for rows, 1 for columns."""
        if not is_float_tensor(gather.x):
            return None
        size = self.values.facts.shape(gather.x)[0]
        for axis, end in enumerate(self.edges.ends):
            if gather.indices is end and size == self.edges.shape[axis]:
                return axis
        return None
