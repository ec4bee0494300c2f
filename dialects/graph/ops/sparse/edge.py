"""Operators on the edges of a graph: one value for each stored entry of a sparse matrix.

Only the pattern of the matrix counts here. The values of its E stored entries, in the order in
which they are stored, are a dense tensor of shape [E, ...], so that elementwise operators apply
to them as they are and a program can take and give them. `graph.entries` gives those that the
matrix itself stores.

A row of the matrix is a target node, its stored entries are the edges that come in; the column
of an entry is the node that the edge comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array, sparse_array
from ...attrs import FLOAT_TENSOR, SPARSE_TENSOR, SddmmKind, SddmmKindAttr
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    text,
    widened,
)
from ...nests import scalars
from ...traits import ReadsPattern
from ..products.contraction import same_element_types
from .matrices import rows_of
from .products import require_csr

if TYPE_CHECKING:
    from ...interfaces import Array


def require_equal(facts: ShapeFacts, expected: Shape, got: Shape, fact: str) -> None:
    """Require that two shapes are equal; where they are not, `fact` says so."""
    if len(expected) != len(got):
        facts.fail(fact, text(expected), text(got))
    for a, b in zip(expected, got, strict=True):
        facts.equal(a, b, fact)


@operator()
class EntriesOp(GraphOp):
    """The values that a matrix stores, in the order in which they are stored.

    %e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>
    """

    name = "graph.entries"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE

    a = operand_def(SPARSE_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$a attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        return [(facts.entries(self.a),)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return self.stored(sparse_array(arrays[0]).data)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.stored_entry(self.a, index[0])


@operator(kind="dot")
class SddmmOp(GraphOp):
    """A function of the two ends of each stored entry: of row i of x and row j of y.

    `dot` sums up the products along the last dimension (a product of two dense matrices that
    is sampled at the pattern of a third one); `add`, `sub` and `mul` go element by element.

    %e = graph.sddmm dot %a, %x, %y
        : (tensor<?x?xf32, #csr>, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?xf32>
    """

    name = "graph.sddmm"
    traits = traits_def(ReadsPattern())

    kind = prop_def(SddmmKindAttr)
    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    y = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$kind $a `,` $x `,` $y attr-dict `:` functional-type(operands, results)"

    @property
    def fusion(self) -> FusionKind:
        """A sum of products, or numbers that are taken from elsewhere."""
        dot = self.kind.data == SddmmKind.DOT
        return FusionKind.CONTRACTION if dot else FusionKind.INJECTIVE

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        same_element_types(self, facts, self.operands[1:])
        a, x, y = shapes
        least = 2 if self.kind.data == SddmmKind.DOT else 1
        if len(x) < least:
            facts.fail("x has too few dimensions", f"rank {least} or more", f"rank {len(x)}")
        facts.equal(a[0], x[0], "x does not have one row for each row of a")
        if not y:
            facts.fail("y has no rows", f"rank {len(x)}", "rank 0")
        facts.equal(a[1], y[0], "y does not have one row for each column of a")
        require_equal(facts, x[1:], y[1:], "rows of x and y differ")
        kept = x[1:-1] if self.kind.data == SddmmKind.DOT else x[1:]
        return [(facts.entries(self.a), *kept)]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def flops(self, sizes: Sizes) -> Dim:
        each = 2 if self.kind.data == SddmmKind.DOT else 1
        entries = sizes.nnz(self.a) or Dim.of(0)
        return entries * product(sizes.shape(self.x)[1:]) * each

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a = sparse_array(arrays[0])
        x, y = (widened(dense_array(array)) for array in arrays[1:])
        left, right = x[rows_of(a)], y[a.indices]
        with np.errstate(all="ignore"):
            match self.kind.data:
                case SddmmKind.DOT:
                    return self.stored((left * right).sum(-1))
                case SddmmKind.ADD:
                    return self.stored(left + right)
                case SddmmKind.SUB:
                    return self.stored(left - right)
                case SddmmKind.MUL:
                    return self.stored(left * right)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        row, column = nest.entry(self.a, index[0])
        if self.kind.data != SddmmKind.DOT:
            left, right = (
                nest.at(value, (node, *index[1:]))
                for value, node in ((self.x, row), (self.y, column))
            )
            return _PAIRWISE[self.kind.data](nest, left, right)

        def step(k: Indices, total: SSAValue) -> SSAValue:
            left = nest.at(self.x, (row, *index[1:], *k))
            right = nest.at(self.y, (column, *index[1:], *k))
            return scalars.fma(nest, left, right, total)

        zero = scalars.zero(nest, nest.compute_type(element_type(self.x)))
        return nest.reduce([nest.extent(self.x, rank(self.x) - 1)], "add", zero, step)


_PAIRWISE: dict[SddmmKind, Callable[[Nest, SSAValue, SSAValue], SSAValue]] = {
    SddmmKind.ADD: scalars.add,
    SddmmKind.SUB: scalars.sub,
    SddmmKind.MUL: scalars.mul,
}
