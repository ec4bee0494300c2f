"""Operators on sparse matrices: the product, and what graph neural networks need of a graph.

A row of the matrix is a target node, its stored entries are the edges that come in. A matrix
is canonical CSR: within a row columns rise, and no entry is stored twice.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ...core.dims import Dim, Shape
from ..sparse_tensor import format_of
from . import scalars
from .attrs import (
    FLOAT_TENSOR,
    SPARSE_TENSOR,
    NormalizeKind,
    NormalizeKindAttr,
    bool_attr,
)
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    tensor_type,
    widened,
)
from .ops_contraction import same_element_types

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .interfaces import Array


def require_csr(matrix: SSAValue, facts: ShapeFacts) -> None:
    """Demand that a sparse operand is a matrix in compressed rows."""
    if format_of(matrix.type) != "csr" or len(tensor_type(matrix).get_shape()) != 2:
        facts.fail("a is not a matrix of compressed sparse rows", "a CSR encoding", matrix.type)


@irdl_op_definition
class SpmmOp(GraphOp):
    """The product of a sparse and a dense matrix.

    %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x16xf32>) -> tensor<?x16xf32>
    """

    name = "graph.spmm"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a `,` $x attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[a, x], result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        same_element_types(self, facts)
        a, x = shapes
        if len(x) != 2:
            facts.fail("x is not a matrix", "rank 2", f"rank {len(x)}")
        facts.equal(a[1], x[0], "inner dimensions differ")
        return [(a[0], x[1])]

    def flops(self, sizes: Sizes) -> Dim:
        return (sizes.nnz(self.a) or Dim.of(0)) * sizes.shape(self.x)[1] * 2

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, x = arrays
        with np.errstate(all="ignore"):
            product = widened_csr(cast("csr_array", a)) @ widened(cast(np.ndarray, x))
        return self.stored(np.asarray(product))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        row, column = index

        def step(entry: AffineExpr, value: SSAValue, total: SSAValue) -> SSAValue:
            return scalars.fma(nest, value, nest.at(self.x, (entry, column)), total)

        init = scalars.zero(nest, nest.compute_type(element_type(self.x)))
        return nest.entries(self.a, row, "add", init, step)


def widened_csr(matrix: csr_array) -> csr_array:
    """A CSR matrix in the type in which it is computed: f32 for f16, itself otherwise."""
    from scipy.sparse import csr_array as csr

    if matrix.dtype != np.float16:
        return matrix
    data = matrix.data.astype(np.float32)
    return csr((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def stored_diagonal(matrix: csr_array) -> np.ndarray:
    """For each row of a CSR matrix, whether its diagonal entry is stored (even as 0)."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    present = np.zeros(matrix.shape[0], dtype=np.bool_)
    present[rows[rows == matrix.indices]] = True
    return present


def with_remaining_self_loops(matrix: csr_array) -> csr_array:
    """A square CSR matrix with an entry 1 on the diagonal of each row that stores none there."""
    from scipy.sparse import csr_array as csr

    missing = np.flatnonzero(~stored_diagonal(matrix))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    every_row = np.concatenate([rows, missing])
    every_column = np.concatenate([matrix.indices, missing])
    every_value = np.concatenate([matrix.data, np.ones(len(missing), dtype=matrix.dtype)])
    order = np.lexsort((every_column, every_row))
    indptr = np.zeros(matrix.shape[0] + 1, dtype=matrix.indptr.dtype)
    np.cumsum(np.bincount(every_row, minlength=matrix.shape[0]), out=indptr[1:])
    indices = every_column[order].astype(matrix.indices.dtype)
    return csr((every_value[order], indices, indptr), shape=matrix.shape)


def row_sums(matrix: csr_array) -> np.ndarray:
    """The sum of the stored entries of each row, in the type of the matrix."""
    ones = np.ones(matrix.shape[1], dtype=matrix.dtype)
    return np.asarray(matrix @ ones)


def degrees(matrix: csr_array, self_loops: bool, power: float) -> np.ndarray:
    """The degree of each row to a power; 0 where the degree is 0. See `DegreeOp`."""
    degree = row_sums(matrix)
    if self_loops:
        degree = degree + (~stored_diagonal(matrix)).astype(degree.dtype)
    with np.errstate(all="ignore"):
        return np.where(degree == 0, degree, np.power(degree, degree.dtype.type(power)))


class RowOp(GraphOp, ABC):
    """An operator that gives one number for each row of a square sparse matrix."""

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    a = operand_def(SPARSE_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        rows, columns = shapes[0]
        return [(facts.equal(rows, columns, "a is not square"),)]

    def missing(self, nest: Nest, row: AffineExpr) -> SSAValue:
        """1.0 if the row stores no diagonal entry, else 0.0."""
        type = nest.compute_type(element_type(self.a))
        zero, one = scalars.zero(nest, type), nest.constant(1.0, type)
        place = nest.value(row)

        def step(entry: AffineExpr, value: SSAValue, missing: SSAValue) -> SSAValue:
            diagonal = scalars.equal(nest, nest.value(entry), place)
            return scalars.minimum(nest, missing, scalars.select(nest, diagonal, zero, one))

        return nest.entries(self.a, row, "min", one, step)


@irdl_op_definition
class DegreeOp(RowOp):
    """The sum of the entries of each row, to a power; 0 where the sum is 0.

    With `self_loops` a row without a stored diagonal entry counts 1 more.

    %d = graph.degree %a self_loops = true power = -5.0e-01
        : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
    """

    name = "graph.degree"

    self_loops = prop_def(IntegerAttr.constr(i1))
    power = prop_def(FloatAttr.constr(f64))

    assembly_format = (
        "$a `self_loops` `=` $self_loops `power` `=` $power attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        self_loops: bool = False,
        power: float = 1.0,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "self_loops": bool_attr(self_loops),
            "power": FloatAttr(power, f64),
        }
        super().__init__(operands=[a], properties=properties, result_type=result_type)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        matrix = widened_csr(cast("csr_array", arrays[0]))
        loops = bool(self.self_loops.value.data)
        return self.stored(degrees(matrix, loops, self.power.value.data))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        (row,) = index
        zero = scalars.zero(nest, nest.compute_type(element_type(self.a)))

        def step(entry: AffineExpr, value: SSAValue, total: SSAValue) -> SSAValue:
            return scalars.add(nest, total, value)

        degree = nest.entries(self.a, row, "add", zero, step)
        if self.self_loops.value.data:
            degree = scalars.add(nest, degree, self.missing(nest, row))
        power = self._to_power(nest, degree)
        return scalars.select(nest, scalars.equal(nest, degree, zero), degree, power)

    def _to_power(self, nest: Nest, degree: SSAValue) -> SSAValue:
        power = self.power.value.data
        one = nest.constant(1.0, degree.type)
        if power == 1.0:
            return degree
        if power == -1.0:
            return scalars.divide(nest, one, degree)
        if power == -0.5:
            return scalars.divide(nest, one, nest.insert(math.SqrtOp(degree)))
        return nest.insert(math.PowFOp(degree, nest.constant(power, degree.type)))


@irdl_op_definition
class MissingSelfLoopsOp(RowOp):
    """1 for each row that stores no diagonal entry, else 0.

    %m = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
    """

    name = "graph.missing_self_loops"

    assembly_format = "$a attr-dict `:` functional-type(operands, results)"

    def __init__(self, a: SSAValue | Operation, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[a], result_type=result_type)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return self.stored(~stored_diagonal(cast("csr_array", arrays[0])))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        return self.missing(nest, index[0])


@irdl_op_definition
class NormalizeOp(GraphOp):
    """D^-1/2 (A + I) D^-1/2 (symmetric) or D^-1 (A + I) (row), D the row sums of A + I.

    I only where `self_loops` is set, and only in rows without a stored diagonal entry, as
    torch-geometric's `gcn_norm` with `add_remaining_self_loops` (Kipf and Welling, 2017).
    Opaque: a constant one is folded, any other is decomposed around the product that uses it.

    %b = graph.normalize symmetric %a self_loops = true
        : (tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr>
    """

    name = "graph.normalize"
    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE

    kind = prop_def(NormalizeKindAttr)
    self_loops = prop_def(IntegerAttr.constr(i1))
    a = operand_def(SPARSE_TENSOR)
    result = result_def(SPARSE_TENSOR)

    assembly_format = (
        "$kind $a `self_loops` `=` $self_loops attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        kind: str = "symmetric",
        self_loops: bool = True,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "kind": NormalizeKindAttr(NormalizeKind(kind)),
            "self_loops": bool_attr(self_loops),
        }
        super().__init__(operands=[a], properties=properties, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        rows, columns = shapes[0]
        size = facts.equal(rows, columns, "a is not square")
        return [(size, size)]

    def infer_encodings(self) -> list[Attribute]:
        return [tensor_type(self.a).encoding]

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        return [facts.fresh() if self.self_loops.value.data else nnz[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        from scipy.sparse import csr_array

        given = cast("csr_array", arrays[0])
        matrix, loops = widened_csr(given), bool(self.self_loops.value.data)
        symmetric = self.kind.data == NormalizeKind.SYMMETRIC
        scale = degrees(matrix, loops, -0.5 if symmetric else -1.0)
        if loops:
            matrix = with_remaining_self_loops(matrix)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        data = matrix.data * scale[rows]
        if symmetric:
            data = data * scale[matrix.indices]
        parts = (data.astype(given.dtype), matrix.indices, matrix.indptr)
        return (csr_array(parts, shape=matrix.shape),)
