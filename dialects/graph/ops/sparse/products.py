"""Operators on sparse matrices: the product, and degrees and normalisation of graphs.

A row of the matrix is a target node, its stored entries are its incoming edges. An entry may be
stored several times: in a matrix they are summed, in a graph they are several edges.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f64, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array, sparse_array
from ....sparse_tensor import format_of
from ...attrs import DENSE_TENSOR, FLOAT_TENSOR, SPARSE_TENSOR, NormalizeKind, NormalizeKindAttr
from ...composite import CompositeOp
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    SparseResultInterface,
    element_type,
    tensor_type,
    widened,
)
from ...nests import scalars
from ...op_builder import OpBuilder, V
from ...partitions import PartitionInterface
from ...traits import TakesEntries
from ..products.contraction import same_element_types
from .matrices import (
    degrees,
    remaining_self_loops,
    rows_of,
    widened_csr,
    with_remaining_self_loops,
    with_values,
)

if TYPE_CHECKING:
    from ...interfaces import Array


def require_csr(matrix: SSAValue, facts: ShapeFacts) -> None:
    """Require that a sparse operand is a matrix in compressed rows."""
    if format_of(matrix.type) != "csr" or len(tensor_type(matrix).get_shape()) != 2:
        facts.fail("a is not a matrix of compressed sparse rows", "a CSR encoding", matrix.type)


class MatrixOp(GraphOp, ABC):
    """An operator on a sparse matrix and a dense tensor."""

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(DENSE_TENSOR)
    result = result_def(DENSE_TENSOR)

    assembly_format = "$a `,` $x attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[a, x], result_type=result_type)


@irdl_op_definition
class SpmmOp(MatrixOp, CompositeOp):
    """The product of a sparse and a dense matrix.

    %y = graph.spmm %a, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.spmm"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    def opens(self, late: bool) -> bool:
        # Passes match it, and its body is one kernel as well.
        return False

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
        # That of the body has an array of all entries by columns.
        a, x = arrays
        with np.errstate(all="ignore"):
            product = widened_csr(sparse_array(a)) @ widened(dense_array(x))
        return self.stored(np.asarray(product))

    def body(self, b: OpBuilder[V], a: V, x: V) -> V:
        return b.aggregate(a, x, b.entries(a))


def require_entries(facts: ShapeFacts, matrix: SSAValue, values: Shape, what: str) -> None:
    """Require that dimension 0 runs over the stored entries of a matrix."""
    if not values:
        facts.fail(f"{what} has no dimension for the entries of a", "rank 1 or more", "rank 0")
    fact = f"{what} does not have one value for each entry of a"
    facts.equal(facts.entries(matrix), values[0], fact)


class RowOp(GraphOp, PartitionInterface, ABC):
    """An operator with one number for each row of a sparse matrix.

    `values`, if given, take the place of the stored values. With `halo` the matrix is one of a part
    of a graph: after the columns of its rows it may have others (see `ExchangeOp`).
    """

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    traits = traits_def(TakesEntries())

    halo = opt_prop_def(UnitAttr)
    a = operand_def(SPARSE_TENSOR)
    values = opt_operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    @property
    def needs_square(self) -> bool:
        """Whether rows and columns have to be the same nodes."""
        return self.halo is None

    @property
    def on_part(self) -> dict[str, Attribute] | None:
        return {"halo": UnitAttr()}

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        rows, columns = shapes[0]
        if self.values is not None:
            require_entries(facts, self.a, shapes[1], "values")
            if len(shapes[1]) != 1:
                facts.fail("values is not a vector", "rank 1", f"rank {len(shapes[1])}")
        return [(facts.equal(rows, columns, "a is not square") if self.needs_square else rows,)]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.operands[-1])]


@operator(self_loops=False, power=1.0, values=None)
class DegreeOp(RowOp, CompositeOp):
    """The sum of the entries of each row, raised to a power; 0 where the sum is 0.

    For the power -1/2 that is 1 / sqrt(sum), NaN for any sum below 0, -infinity included.

    With `self_loops` each row of a square matrix has one self loop: see `MissingSelfLoopsOp`.

    %d = graph.degree %a self_loops = true power = -5.0e-01
        : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
    """

    name = "graph.degree"

    self_loops = prop_def(IntegerAttr.constr(i1))
    power = prop_def(FloatAttr.constr(f64))

    assembly_format = (
        "$a (`halo` $halo^)? (`values` $values^)? `self_loops` `=` $self_loops `power` `=` $power "
        "attr-dict `:` functional-type(operands, results)"
    )

    @property
    def needs_square(self) -> bool:
        return bool(self.self_loops.value.data) and super().needs_square

    def opens(self, late: bool) -> bool:
        # Passes match it, and with self loops its body would be two kernels.
        return False

    def flops(self, sizes: Sizes) -> Dim | None:
        return GraphOp.flops(self, sizes)  # one addition for each entry

    def body(self, b: OpBuilder[V], a: V, values: V | None) -> V:
        degree = b.reduce_entries(a, b.entries(a) if values is None else values)
        if self.self_loops.value.data:
            missing = b.missing_self_loops(a, values, halo=self.halo is not None)
            degree = b.add(degree, missing)
        match self.power.value.data:
            case 1.0:
                return degree
            case -1.0:
                power = b.div(1.0, degree)
            case -0.5:
                power = b.div(1.0, b.sqrt(degree))
            case other:
                power = b.pow(degree, other)
        return b.where(b.equal(degree, 0.0), degree, power)


@operator(halo=False)
class MissingSelfLoopsOp(RowOp):
    """The number to add to the diagonal of each row so that it has one self loop.

    1 where a row stores no diagonal entry. Of several the last one counts, and the others are
    subtracted, as in torch-geometric's `add_remaining_self_loops`.

    %m = graph.missing_self_loops %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
    """

    name = "graph.missing_self_loops"

    assembly_format = (
        "$a (`halo` $halo^)? (`values` $values^)? attr-dict `:` functional-type(operands, results)"
    )

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a = sparse_array(arrays[0])
        given = with_values(a, dense_array(arrays[1])) if len(arrays) > 1 else a
        return self.stored(remaining_self_loops(widened_csr(given)))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        (row,) = index
        type = nest.compute_type(element_type(self.operands[-1]))
        zero, none = scalars.zero(nest, type), nest.constant(-1, i64)
        place = nest.value(row)

        def at(expr: AffineExpr) -> SSAValue:
            return nest.insert(arith.IndexCastOp(nest.value(expr), i64))

        def later(position: AffineExpr, column: AffineExpr, last: SSAValue) -> SSAValue:
            diagonal = scalars.equal(nest, nest.value(column), place)
            found = scalars.select(nest, diagonal, at(position), none)
            return scalars.maximum(nest, last, found)

        last = nest.pattern(self.a, row, "max", none, later)

        def others(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            diagonal = scalars.equal(nest, nest.value(column), place)
            if self.values is None:
                own = nest.stored_entry(self.a, position)
            else:
                own = nest.at(self.values, (position,))
            value = scalars.select(nest, diagonal, own, zero)
            is_last = scalars.equal(nest, at(position), last)
            return scalars.sub(nest, total, scalars.select(nest, is_last, zero, value))

        rest = nest.pattern(self.a, row, "add", zero, others)
        one = nest.constant(1.0, type)
        return scalars.select(nest, scalars.equal(nest, last, none), one, rest)


@operator(kind="symmetric", self_loops=True)
class NormalizeOp(GraphOp, SparseResultInterface):
    """D^-1/2 (A + I) D^-1/2 (symmetric) or D^-1 (A + I) (row), D the row sums of A + I.

    I is added only with `self_loops`, in rows without a stored diagonal entry; of several stored
    ones the last one counts, as in torch-geometric's `gcn_norm` with
    `add_remaining_self_loops` (Kipf and Welling, 2017). D^-1 A may be of any shape.
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

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        rows, columns = shapes[0]
        if self.kind.data == NormalizeKind.ROW and not self.self_loops.value.data:
            return [(rows, columns)]
        size = facts.equal(rows, columns, "a is not square")
        return [(size, size)]

    def infer_encodings(self) -> list[Attribute]:
        return [tensor_type(self.a).encoding]

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        return [facts.fresh() if self.self_loops.value.data else nnz[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        given = sparse_array(arrays[0])
        matrix, loops = widened_csr(given), bool(self.self_loops.value.data)
        symmetric = self.kind.data == NormalizeKind.SYMMETRIC
        scale = degrees(matrix, loops, -0.5 if symmetric else -1.0)
        if loops:
            matrix = with_remaining_self_loops(matrix)
        with np.errstate(all="ignore"):
            data = matrix.data * scale[rows_of(matrix)]
            if symmetric:
                data = data * scale[matrix.indices]
            data = data.astype(given.dtype)
        return (with_values(matrix, data),)
