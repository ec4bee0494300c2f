"""The edges of a graph in which each node has one self loop, as compressed rows.

    %p, %j, %count = graph.sort_edges_with_loops %rows, %columns of %x

Many graph networks take the self loops out of an edge list, and add one to each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape
from .....core.boundary.arrays import row_pointers
from ...attrs import ANY_TENSOR, I32_TENSOR, I64_TENSOR, INDEX_TENSOR
from ...constructors import operator
from ...demands import Demand, DemandInterface, IndexBound, SizeBound, SizeResult
from ...interfaces import FusionKind, GraphOp, ShapeFacts, element_type
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ...traits import Discontinuous, NeverNegative
from ..moves.gather import checked_places
from .csr import begin_rows

if TYPE_CHECKING:
    from ...interfaces import Array

MOST = 1 << 30
"""The most edges, and the most nodes: positions of entries are i32."""


@operator()
class SortEdgesWithLoopsOp(GraphOp, DemandInterface):
    """The edges of a list but its self loops, and a self loop of each node, as compressed rows.

    Edge e is in row `rows[e]` and column `columns[e]`, and left out where these numbers are equal.
    A negative index counts from the back, one out of range is an error. There are as many nodes as
    the first dimension of `nodes` has elements. The results are the row pointers, the column of
    each entry, and how many entries there are. The self loop of a row comes first, its other
    entries in the order of the list. There are at most 2 ** 30 edges and as many nodes.

    %p, %j, %count = graph.sort_edges_with_loops %rows, %columns of %x
        : (tensor<?xi64>, tensor<?xi64>, tensor<3x2xf32>)
        -> (tensor<4xi32>, tensor<?xi32>, tensor<i64>)
    """

    name = "graph.sort_edges_with_loops"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(NeverNegative(), Discontinuous(operands=()))

    rows = operand_def(INDEX_TENSOR)
    columns = operand_def(INDEX_TENSOR)
    nodes = operand_def(ANY_TENSOR)
    indptr = result_def(I32_TENSOR)
    indices = result_def(I32_TENSOR)
    count = result_def(I64_TENSOR)

    assembly_format = (
        "$rows `,` $columns `of` $nodes attr-dict `:` functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[Demand, ...]:
        return (
            IndexBound(self.rows, self.nodes, 0),
            IndexBound(self.columns, self.nodes, 0),
            SizeBound(self.rows, 0, most=MOST),
            SizeBound(self.nodes, 0, most=MOST),
            SizeResult(self.count),
        )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        rows, columns, nodes = shapes
        for what, given in (("rows", rows), ("columns", columns)):
            if len(given) != 1:
                facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(given)}")
        if not nodes:
            facts.fail("nodes has no first dimension", "rank 1 or more", "rank 0")
        kinds = element_type(self.rows), element_type(self.columns)
        if kinds[0] != kinds[1]:
            facts.fail("rows and columns differ in type", *kinds)
        edges = facts.equal(rows[0], columns[0], "rows and columns differ in length")
        for what, size in (("edges", edges), ("nodes", nodes[0])):
            if size.is_static and size.value > MOST:
                facts.fail(f"too many {what}", f"at most {MOST}", size)
        return [(nodes[0] + Dim.of(1),), (facts.size(self.count, edges + nodes[0]),), ()]

    def infer_element_types(self) -> list[Attribute]:
        return [i32, i32, i64]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        rows, columns, nodes = cast(tuple[np.ndarray, ...], arrays)
        kept, own = rows != columns, np.arange(nodes.shape[0])
        rows = checked_places(self, rows, len(own))
        columns = checked_places(self, columns, len(own))
        rows, columns = np.append(own, rows[kept]), np.append(own, columns[kept])
        order = np.argsort(rows, kind="stable")
        return self.stored(row_pointers(rows, len(own)), columns[order], np.array(len(rows)))

    def write(
        self,
        k: KernelBody,
        rows: Buffer,
        columns: Buffer,
        nodes: Buffer,
        indptr: Buffer,
        indices: Buffer,
        count: Buffer,
    ) -> None:
        size, edges = nodes.shape[0], rows.shape[0]
        begins, ranks = self._count(k, rows, columns, size)
        with k.loops(size + 1) as place:
            indptr[place] = begins[place]
        with k.loops(edges + size) as own:
            indices.update(own, 0)
        with k.serial(edges) as edge:
            # One that is left out goes to the place after all entries, where there is room for it.
            row, _ = self._row(k, rows, columns, size, edge)
            place = k.index(begins[row] + ranks[edge])
            indices.update(place, k.cast(k.place(columns[edge], size), i32))
        with k.serial(size) as own:
            indices.update(begins[own], k.cast(own, i32))
        count[()] = k.cast(k.index(begins[size]), i64)

    def _count(
        self, k: KernelBody, rows: Buffer, columns: Buffer, size: int | Index
    ) -> tuple[Buffer, Buffer]:
        """Where each row begins, and how many entries of its row come before each edge.

        What is left out is counted in a row after all others, and 0 comes before it.
        """
        edges = rows.shape[0]
        begins, ranks = k.local(size + 1, i32), k.local(edges, i32)
        begins.fill(1)
        with k.serial(edges) as edge:
            row, is_loop = self._row(k, rows, columns, size, edge)
            before = begins[row]
            ranks[edge] = k.where(is_loop, 0, before)
            begins[row] = before + 1
        begin_rows(k, size, begins)
        return begins, ranks

    def _row(
        self, k: KernelBody, rows: Buffer, columns: Buffer, size: int | Index, edge: Index
    ) -> tuple[Index, Scalar]:
        """The row of an edge, of a self loop the one after all others, and whether it is one."""
        row = k.value(k.place(rows[edge], size))
        is_loop = k.equal(rows[edge], columns[edge])
        return k.index(k.where(is_loop, k.value(size), row)), is_loop
