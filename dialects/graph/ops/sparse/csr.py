"""Sparse matrices that are made at run time: edge lists as compressed rows, and their assembly.

    %p, %j, %order = graph.sort_edges %rows, %columns of %y, %x
    %a = graph.assemble %p, %j, %values of %x

An edge list gives the row and the column of each edge. Sorted by rows it is the structure of a CSR
matrix, whose entries are the edges in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape
from .....core.boundary.arrays import row_pointers
from .....core.boundary.indices import explained, fault_of
from .....core.errors import InputError
from .....core.ir.provenance import origin
from .....core.ir.typed import bits
from ....sparse_tensor import csr
from ...attrs import ANY_TENSOR, FLOAT_TENSOR, I32_TENSOR, INDEX_TENSOR, SPARSE_TENSOR
from ...constructors import operator
from ...demands import DemandInterface, IndexBound, SizeBound
from ...interfaces import FusionKind, GraphOp, ShapeFacts, SparseResultInterface, element_type
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ...traits import Discontinuous, NeverNegative
from ..control.check import AliasOp
from ..moves.gather import checked_places

if TYPE_CHECKING:
    from ...interfaces import Array

MOST_EDGES, MOST_COLUMNS = (1 << 31) - 1, 1 << 31
"""Positions of edges, and columns, are i32."""


@operator()
class SortEdgesOp(GraphOp, DemandInterface):
    """The edges of an edge list in the order of their rows, as compressed rows.

    Edge e is in row `rows[e]` and column `columns[e]`; a negative index counts from the back, one
    out of range is an error. There are as many rows and columns as the first dimensions of
    `targets` and `sources` have elements; what these hold does not matter. The results are the row
    pointers, the column of each sorted edge, and its number in the list: edges of one row keep
    their order. There are less than 2 ** 31 edges and at most 2 ** 31 columns.

    %p, %j, %order = graph.sort_edges %rows, %columns of %y, %x
        : (tensor<?xi64>, tensor<?xi64>, tensor<3x2xf32>, tensor<?x2xf32>)
        -> (tensor<4xi32>, tensor<?xi32>, tensor<?xi32>)
    """

    name = "graph.sort_edges"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(NeverNegative(), Discontinuous(operands=()))

    rows = operand_def(INDEX_TENSOR)
    columns = operand_def(INDEX_TENSOR)
    targets = operand_def(ANY_TENSOR)
    sources = operand_def(ANY_TENSOR)
    indptr = result_def(I32_TENSOR)
    indices = result_def(I32_TENSOR)
    order = result_def(I32_TENSOR)

    assembly_format = (
        "$rows `,` $columns `of` $targets `,` $sources attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[IndexBound | SizeBound, ...]:
        return (
            IndexBound(self.rows, self.targets, 0),
            IndexBound(self.columns, self.sources, 0),
            SizeBound(self.rows, 0, most=MOST_EDGES),
            SizeBound(self.sources, 0, most=MOST_COLUMNS),
        )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        rows, columns, targets, sources = shapes
        for what, given in (("rows", rows), ("columns", columns)):
            if len(given) != 1:
                facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(given)}")
        for what, given in (("targets", targets), ("sources", sources)):
            if not given:
                facts.fail(f"{what} has no first dimension", "rank 1 or more", "rank 0")
        edges = facts.equal(rows[0], columns[0], "rows and columns differ in length")
        if edges.is_static and edges.value > MOST_EDGES:
            facts.fail("too many edges", f"at most {MOST_EDGES}", edges)
        if sources[0].is_static and sources[0].value > MOST_COLUMNS:
            facts.fail("too many columns", f"at most {MOST_COLUMNS}", sources[0])
        return [(targets[0] + Dim.of(1),), (edges,), (edges,)]

    def infer_element_types(self) -> list[Attribute]:
        return [i32] * 3

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        rows, columns, targets, sources = cast(tuple[np.ndarray, ...], arrays)
        rows = checked_places(self, rows, targets.shape[0])
        columns = checked_places(self, columns, sources.shape[0])
        order = np.argsort(rows, kind="stable")
        return self.stored(row_pointers(rows, targets.shape[0]), columns[order], order)

    def write(
        self,
        k: KernelBody,
        rows: Buffer,
        columns: Buffer,
        targets: Buffer,
        sources: Buffer,
        indptr: Buffer,
        indices: Buffer,
        order: Buffer,
    ) -> None:
        size, edges = targets.shape[0], indices.shape[0]

        def row_of(edge: Index) -> Index:
            return k.place(rows[edge], size)

        begins, ranks = _counted(k, size, edges, row_of)
        with k.loops(size + 1) as place:
            indptr[place] = begins[place]
        # A column, and the edge in the upper half where it is needed: a store to a random place
        # takes as long for both.
        has_order = self.order.first_use is not None
        words = k.local(edges, i64 if has_order else i32)
        with k.serial(edges) as edge:
            place = k.index(begins[row_of(edge)] + ranks[edge])
            column = k.place(columns[edge], sources.shape[0])
            if has_order:
                words[place] = k.cast(column, i64) | (k.cast(edge, i64) << 32)
            else:
                words[place] = k.cast(column, i32)
        with k.loops(edges) as edge:
            indices[edge] = k.cast(words[edge], i32)
        if not has_order:
            order.fill(0)
            return
        with k.loops(edges) as edge:
            high = k.apply(arith.ShRUIOp, words[edge], k.scalar(32, i64))
            order[edge] = k.cast(high, i32)


def _counted(
    k: KernelBody,
    size: int | Index,
    edges: int | Index,
    row_of: Callable[[Index], Index],
) -> tuple[Buffer, Buffer]:
    """Where each of `size` rows begins, and how many edges of its row come before each edge."""
    begins, ranks = k.local(size + 1, i32), k.local(edges, i32)
    begins.fill(0)
    with k.serial(edges) as edge:
        row = row_of(edge)
        before = begins[row]
        ranks[edge] = before
        begins[row] = before + 1
    begin_rows(k, size, begins)
    return begins, ranks


def begin_rows(k: KernelBody, size: int | Index, begins: Buffer) -> None:
    """Put where each of `size` rows begins in place of how many entries it has."""

    def begin(row: Index, before: Scalar) -> tuple[Scalar]:
        found = begins[row]
        begins[row] = before
        return (before + found,)

    # The last place is behind all rows, and begins where these end.
    k.carry(size + 1, [k.scalar(0, i32)], begin)


@operator()
class AssembleOp(AliasOp, DemandInterface, SparseResultInterface):
    """The CSR matrix of row pointers, column indices and values, which are not copied.

    It has as many columns as the first dimension of `sources` has elements. In each call the row
    pointers are checked to begin with 0, to never decrease and to end with the number of entries,
    and the column indices to be in [0, columns).

    %a = graph.assemble %p, %j, %values of %x
        : (tensor<4xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?x2xf32>) -> tensor<3x?xf32, #csr>
    """

    name = "graph.assemble"

    indptr = operand_def(INDEX_TENSOR)
    indices = operand_def(INDEX_TENSOR)
    values = operand_def(FLOAT_TENSOR)
    sources = operand_def(ANY_TENSOR)
    result = result_def(SPARSE_TENSOR)

    assembly_format = (
        "$indptr `,` $indices `,` $values `of` $sources attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        return (SizeBound(self.indptr, 0, 1),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        indptr, indices, values, sources = shapes
        for what, given in (("indptr", indptr), ("indices", indices), ("values", values)):
            if len(given) != 1:
                facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(given)}")
        if not sources:
            facts.fail("sources has no first dimension", "rank 1 or more", "rank 0")
        kinds = element_type(self.indptr), element_type(self.indices)
        if kinds[0] != kinds[1]:
            facts.fail("indptr and indices differ in type", *kinds)
        if indptr[0] == 0:
            facts.fail("too few row pointers", "1 or more", 0)
        facts.equal(indices[0], values[0], "indices and values differ in length")
        return [(indptr[0] - Dim.of(1), sources[0])]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.values)]

    def infer_encodings(self) -> list[Attribute]:
        width = bits(element_type(self.indptr))
        return [csr(width, width)]

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        return [facts.length(self.indices)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        from scipy.sparse import csr_array

        indptr, indices, values, sources = cast(tuple[np.ndarray, ...], arrays)
        fault = fault_of(indptr, indices, sources.shape[0])
        if fault is not None:
            raise InputError(f"{origin(self) or self.name}: {explained(*fault)}")
        shape = len(indptr) - 1, sources.shape[0]
        return (csr_array((values, indices, indptr), shape=shape),)
