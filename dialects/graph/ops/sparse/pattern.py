"""Sparse matrices derived from others, and their conversion to dense ones.

A sparse matrix is its pattern and the values of its stored entries (see `edge.py`). Elements that
are not stored are 0 and stay 0: an elementwise function of a matrix is the same pattern with other
values, so that features stay sparse when they are scaled, sliced by rows or normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import dense_array, sparse_array
from ...attrs import FLOAT_TENSOR, SPARSE_TENSOR
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    SparseResultInterface,
    element_type,
    tensor_type,
)
from ...nests import scalars
from ...traits import ReadsPattern, TakesEntries
from .matrices import rows_of, with_values
from .products import require_csr, require_entries

if TYPE_CHECKING:
    from ...interfaces import Array


@operator()
class WithEntriesOp(GraphOp, SparseResultInterface):
    """The matrix with the pattern of another one, and these values of its stored entries.

    Opaque: `graph-decompose-sparse` lets its users read the pattern and the values.

    %b = graph.with_entries %a, %e : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?x?xf32, #csr>
    """

    name = "graph.with_entries"
    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE
    traits = traits_def(ReadsPattern())

    a = operand_def(SPARSE_TENSOR)
    values = operand_def(FLOAT_TENSOR)
    result = result_def(SPARSE_TENSOR)

    assembly_format = "$a `,` $values attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        require_entries(facts, self.a, shapes[1], "values")
        if len(shapes[1]) != 1:
            facts.fail("values is not a vector", "rank 1", f"rank {len(shapes[1])}")
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.values)]

    def infer_encodings(self) -> list[Attribute]:
        return [tensor_type(self.a).encoding]

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        return [nnz[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (with_values(sparse_array(arrays[0]), dense_array(arrays[1])),)


@operator()
class AtEntriesOp(GraphOp):
    """The slice of x for the row (axis 0) or the column (axis 1) of each stored entry.

    %e = graph.at_entries %a, %x axis = 0
        : (tensor<?x?xf32, #csr>, tensor<?xf32>) -> tensor<?xf32>
    """

    name = "graph.at_entries"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(ReadsPattern())

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a `,` $x `axis` `=` $axis attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        (a, x), axis = shapes, self.axis.value.data
        if axis not in (0, 1):
            facts.fail("axis out of range", "0 or 1", axis)
        if not x:
            facts.fail("x has no rows", "rank 1 or more", "rank 0")
        what = ("row", "column")[axis]
        facts.equal(a[axis], x[0], f"x does not have one row for each {what} of a")
        return [(facts.entries(self.a), *x[1:])]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, x = sparse_array(arrays[0]), dense_array(arrays[1])
        return (x[a.indices if self.axis.value.data else rows_of(a)],)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        place = nest.entry(self.a, index[0])[self.axis.value.data]
        return nest.at(self.x, (place, *index[1:]))


@operator()
class SliceRowsOp(GraphOp, SparseResultInterface):
    """The rows from `start` up to but excluding `end` of a matrix, which stay sparse.

    Opaque: `graph-decompose-sparse` lets its users compute these rows only.

    %b = graph.slice_rows %a start = 2 end = 5
        : (tensor<9x?xf32, #csr>) -> tensor<3x?xf32, #csr>
    """

    name = "graph.slice_rows"
    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE

    start = prop_def(IntegerAttr.constr(i64))
    end = prop_def(IntegerAttr.constr(i64))
    a = operand_def(SPARSE_TENSOR)
    result = result_def(SPARSE_TENSOR)

    assembly_format = (
        "$a `start` `=` $start `end` `=` $end attr-dict `:` functional-type(operands, results)"
    )

    @property
    def bounds(self) -> tuple[int, int]:
        """The first row, and the one after the last."""
        return self.start.value.data, self.end.value.data

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        (rows, columns), (start, end) = shapes[0], self.bounds
        if not 0 <= start <= end:
            facts.fail("the rows are not a range", "0 <= start <= end", f"[{start}, {end})")
        if not rows.is_static:
            facts.fail("a has a symbolic number of rows", "a number", rows)
        if end > rows.value:
            facts.fail("the rows are not all in a", f"end <= {rows}", end)
        return [(Dim.of(end - start), columns)]

    def infer_encodings(self) -> list[Attribute]:
        return [tensor_type(self.a).encoding]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        from scipy.sparse import csr_array

        a, (start, end) = sparse_array(arrays[0]), self.bounds
        first, last = a.indptr[start], a.indptr[end]
        parts = (a.data[first:last], a.indices[first:last], a.indptr[start : end + 1] - first)
        return (csr_array(parts, shape=(end - start, a.shape[1])),)


@operator()
class ToDenseOp(GraphOp):
    """A sparse matrix as a dense one, with 0 for elements that are not stored.

    `values`, if given, take the place of the stored values. Duplicate entries are summed.

    %y = graph.to_dense %a : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32>
    """

    name = "graph.to_dense"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    traits = traits_def(TakesEntries())

    a = operand_def(SPARSE_TENSOR)
    values = opt_operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a (`values` $values^)? attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        if self.values is not None:
            require_entries(facts, self.a, shapes[1], "values")
            if len(shapes[1]) != 1:
                facts.fail("values is not a vector", "rank 1", f"rank {len(shapes[1])}")
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.operands[-1])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a = sparse_array(arrays[0])
        values = dense_array(arrays[1]) if len(arrays) > 1 else a.data
        wide = np.float32 if values.dtype == np.float16 else values.dtype
        result = np.zeros(a.shape, wide)
        np.add.at(result, (rows_of(a), a.indices), values)
        return self.stored(result)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, column = index
        zero = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        place = nest.value(column)

        def step(position: AffineExpr, entry: AffineExpr, total: SSAValue) -> SSAValue:
            if self.values is None:
                value = nest.stored_entry(self.a, position)
            else:
                value = nest.at(self.values, (position,))
            here = scalars.equal(nest, nest.value(entry), place)
            return scalars.add(nest, total, scalars.select(nest, here, value, zero))

        return nest.pattern(self.a, row, "add", zero, step)
