"""Edge lists among the arguments of a program, as patterns of the matrices that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..core.algebra.dims import Dim
from ..core.ir.public_function import specs_of
from ..dialects.graph import ops as graph
from ..dialects.graph.attrs import ints
from ..dialects.graph.interfaces import rank
from ..dialects.graph.sizes.shapes import SymbolicShapes


@dataclass(frozen=True)
class End:
    """One end of all edges: the argument that it is in, by its number, and the row of it.

    `row` is None if the argument is a vector. `nodes` is the number of nodes.
    """

    argument: int
    row: int | None
    nodes: Dim


@dataclass(frozen=True)
class EdgeList:
    """A list of edges: `rows` and `columns` are those of the matrix that it stands for."""

    name: str
    rows: End
    columns: End

    def matrix(
        self, inputs: Sequence[object], sizes: Mapping[str, int]
    ) -> tuple[tuple[int, int], np.ndarray, np.ndarray] | None:
        """The shape of the matrix, and the rows and columns of its entries.

        None if an argument is missing. Where sizes do not say how many nodes there are, the largest
        index does.
        """
        found = [_indices(end, inputs, sizes) for end in (self.rows, self.columns)]
        ends = [one for one in found if one is not None]
        if len(ends) != 2:
            return None
        (rows, first), (columns, second) = ends
        return (first, second), rows, columns


def edge_lists_of(main: func.FuncOp) -> tuple[EdgeList, ...]:
    """The edge lists that a function of the graph dialect takes.

    They are what it sorts into a matrix, or by which it gathers rows at one end of edges and
    scatters them to the other. Edges that it adds, such as self loops, are not in them.
    """
    shapes = SymbolicShapes(main)
    names = [spec.name for spec in specs_of(main)[0]]
    found: dict[tuple[int, int | None, int, int | None], EdgeList] = {}
    for rows, columns in _pairs(main, shapes):
        key = (rows.argument, rows.row, columns.argument, columns.row)
        arguments = dict.fromkeys((columns.argument, rows.argument))
        name = ", ".join(names[argument] for argument in arguments)
        found.setdefault(key, EdgeList(name, rows, columns))
    return tuple(found.values())


def _pairs(main: func.FuncOp, shapes: SymbolicShapes) -> Iterator[tuple[End, End]]:
    """The two ends of edge lists."""
    gathered: list[End] = []
    scattered: list[End] = []
    for op in main.body.block.ops:
        match op:
            case graph.SortEdgesOp() | graph.SortEdgesWithLoopsOp():
                counted = (op.operands[2], op.operands[-1])
                ends = [
                    _end(value, shapes.shape(nodes)[0])
                    for value, nodes in zip((op.rows, op.columns), counted, strict=True)
                ]
                if ends[0] is not None and ends[1] is not None:
                    yield ends[0], ends[1]
            case graph.GatherOp() if op.axis_from_front == 0:
                gathered += _found(_end(op.indices, shapes.shape(op.x)[0]))
            case graph.ScatterNdOp() if len(op.indices) == 1:
                scattered += _found(_end(op.indices[0], shapes.shape(op.x)[0]))
            case graph.ScatterElementsOp() if op.axis_from_front == 0:
                scattered += _found(_end(op.indices, shapes.shape(op.x)[0]))
            case _:
                pass
    for rows in scattered:
        for columns in gathered:
            if rows.argument == columns.argument and {rows.row, columns.row} == {0, 1}:
                yield rows, columns


def _found(end: End | None) -> list[End]:
    return [] if end is None else [end]


def _end(value: SSAValue, nodes: Dim) -> End | None:
    """The end of edges that a vector of indices is made of; None if it is something else."""
    row: int | None = None
    while not isinstance(value, BlockArgument):
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, graph.SliceOp) and rank(op.x) == 2:
            if ints(op.ends)[0] != ints(op.starts)[0] + 1 or row is not None:
                return None
            row = ints(op.starts)[0]
        moved = _moved(op)
        if moved is None:
            return None
        value = moved
    if rank(value) != (1 if row is None else 2) or (row is not None and row < 0):
        return None
    return End(value.index, row, nodes)


def _moved(op: Operation) -> SSAValue | None:
    """What an operation takes indices from, of which it leaves some out, or adds others."""
    match op:
        case graph.ConcatOp():
            return op.inputs[0]
        case graph.GatherOp() if op.axis_from_front == rank(op.x) - 1:
            return op.x
        case (
            graph.CheckIndicesOp()
            | graph.ReshapeOp()
            | graph.CastOp()
            | graph.SliceOp()
            | graph.BroadcastToOp()
        ):
            return op.operands[0]
        case _:
            return None


def _indices(
    end: End, inputs: Sequence[object], sizes: Mapping[str, int]
) -> tuple[np.ndarray, int] | None:
    """The index of each edge at an end, and the number of nodes."""
    given = inputs[end.argument] if end.argument < len(inputs) else None
    if not isinstance(given, np.ndarray):
        return None
    indices = (given if end.row is None else given[end.row]).astype(np.int64)
    if set(end.nodes.symbols) <= sizes.keys():
        nodes = end.nodes.evaluate(sizes)
        # A negative index counts from the back.
        return np.where(indices < 0, indices + nodes, indices), nodes
    return indices, int(indices.max(initial=-1)) + 1
