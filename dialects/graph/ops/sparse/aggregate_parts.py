"""Products of aggregated messages, with weights for each kind of message: `aggregate_dense`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def

from .....core.algebra.dims import Dim, Shape
from .....core.errors import InputError, explain
from .....core.ir.typed import dense_array, sparse_array
from ...attrs import FLOAT_TENSOR, SPARSE_TENSOR, AggregateKind
from ...constructors import operator
from ...demands import DemandInterface, SizeBound
from ...interfaces import FusionKind, ShapeFacts, Sizes, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar, ceil_div
from ...nests.nest import Nest
from ...nests.operators import SparseOperand
from ..products.contraction import same_element_types
from .aggregate import AggregationOp
from .products import require_csr

if TYPE_CHECKING:
    from ...interfaces import Array

KINDS = (
    AggregateKind.SUM,
    AggregateKind.MEAN,
    AggregateKind.MAX,
    AggregateKind.MIN,
    AggregateKind.VAR,
    AggregateKind.STD,
)
"""Those by which a row without entries is 0."""
_ROWS = "a does not have one row for each part of each node"
_TILE = 256
"""Nodes whose rows of one part are multiplied at a time."""


@operator(kind="sum")
class AggregateDenseOp(AggregationOp, DemandInterface):
    """The messages of each node and part, combined, times the weights of the part, summed.

    `w` is [P, K, F]: P parts, such as the relations of a graph, each with weights of its own. The
    matrix has the rows of N nodes for each part, one part after the other, and x is [M, K].
    Node i has

        y[i] = sum of aggregate(a, x)[N * p + i] w[p]  over the parts p

    A row of `a` without entries contributes nothing, whatever the weights are, and is not
    multiplied. `sum`, `mean`, `max`, `min`, `var` or `std`; stored values of the matrix are
    ignored. Sums of f16 are computed in f32.

    %y = graph.aggregate_dense mean %a, %x, %w
        : (tensor<4x?xf32, #csr>, tensor<?x3xf32>, tensor<2x3x2xf32>) -> tensor<2x2xf32>
    """

    name = "graph.aggregate_dense"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    a = operand_def(SPARSE_TENSOR)
    x = operand_def(FLOAT_TENSOR)
    w = operand_def(FLOAT_TENSOR)

    assembly_format = "$kind $a `,` $x `,` $w attr-dict `:` functional-type(operands, results)"

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        return (SizeBound(self.w, 0, 1),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        same_element_types(self, facts, self.operands[1:])
        if self.kind.data not in KINDS:
            facts.fail("wrong kind", ", ".join(kind.value for kind in KINDS), self.kind.data.value)
        a, x, w = shapes
        for what, shape, rank in (("x", x, 2), ("w", w, 3)):
            if len(shape) != rank:
                facts.fail(f"{what} has the wrong rank", rank, len(shape))
        if w[0] == 0:
            facts.fail("w has no parts", "1 or more", 0)
        facts.equal(a[1], x[0], "x does not have one row for each column of a")
        facts.equal(x[1], w[1], "rows of x do not fit the weights")
        return [(_nodes(a[0], w[0], facts), w[2])]

    def flops(self, sizes: Sizes) -> Dim:
        """The work where each entry is alone in its row."""
        _, inner, outer = sizes.shape(self.w)
        return (sizes.nnz(self.a) or Dim.of(0)) * inner * (outer * 2 + 1)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, (x, w) = sparse_array(arrays[0]), (widened(dense_array(array)) for array in arrays[1:])
        parts, _, columns = w.shape
        nodes, rest = divmod(a.shape[0], parts)
        if rest:
            # With a number of parts that is not known, nothing else compares the two.
            expected = f"a multiple of {parts}"
            raise InputError(explain(self.name, _ROWS, expected=expected, got=a.shape[0]))
        found = np.zeros((nodes, columns), w.dtype)
        with np.errstate(all="ignore"):
            rows = self.combined(a, x[a.indices])
            for part in range(parts):
                own = slice(part * nodes, (part + 1) * nodes)
                filled = np.diff(a.indptr)[own] > 0
                found[filled] += rows[own][filled] @ w[part]
            return self.stored(found)

    def write(self, k: KernelBody, a: SparseOperand, x: Buffer, w: Buffer, result: Buffer) -> None:
        # The rows of one part that have entries are next to each other in a buffer, so that the
        # product is one of whole register tiles.
        (nodes, columns), (parts, inner, _) = result.shape, w.shape
        zero = k.scalar(0.0, result.type)
        result.fill(zero)
        with k.loops(ceil_div(nodes, _TILE)) as tile:
            first = tile * _TILE
            count = k.minimum(k.value(nodes) - k.value(first), k.value(_TILE))
            # The nodes that have entries of a part, what their messages are combined to, and what
            # all parts of each node add up to.
            places, rows = k.local(_TILE, i32), k.local((_TILE, inner), result.type)
            products, totals = (k.local((_TILE, columns), result.type) for _ in range(2))
            with k.loops(_TILE, columns) as own:
                totals[own] = zero
            limit = k.index(count)
            with k.serial(parts) as part:
                start = k.index(k.value(part) * k.value(nodes)) + first
                found = _listed(k, a, places, start, limit)
                with k.loops(found) as place:
                    row = start + k.index(places[place])
                    with k.loops(inner) as own:
                        rows[place, own] = self._message(k, row, x, own)
                with k.loops(found, columns) as (place, column):
                    products[place, column] = k.reduce(
                        inner,
                        "add",
                        zero,
                        lambda own, total: k.fma(rows[place, own], w[part, own, column], total),
                    )
                with k.serial(found) as place:
                    node = k.index(places[place])
                    with k.loops(columns) as column:
                        totals.accumulate((node, column), products[place, column])
            with k.loops(_TILE) as node, k.only_if(node < count), k.loops(columns) as column:
                result.update((first + node, column), totals[node, column])

    def _message(self, k: KernelBody, row: Index, x: Buffer, own: Index) -> Scalar:
        """An element of the combined messages of a row, as `graph.aggregate` computes it."""

        def message(_: AffineExpr, column: AffineExpr) -> SSAValue:
            return x[Index(k, column), own].ssa

        return Scalar(k, self.reduced(cast(Nest, k.nest), row.expr, message))


def _listed(k: KernelBody, a: SparseOperand, places: Buffer, start: Index, count: Index) -> Index:
    """List those of `count` rows from `start` on that have entries; returns their number."""

    def step(node: Index, number: Scalar) -> tuple[Scalar]:
        # Without a branch: the next node overwrites one that has no entries.
        places[number] = k.cast(node, i32)
        is_empty = k.equal(k.value(a.count(start + node)), 0)
        return (k.where(is_empty, number, number + 1),)

    (number,) = k.carry(count, [k.value(0)], step)
    return k.index(number)


def _nodes(rows: Dim, parts: Dim, facts: ShapeFacts) -> Dim:
    """The number of nodes, each of which has a row for each part."""
    nodes = rows.exact_div(parts)
    if nodes is not None:
        return nodes
    if rows.is_static and parts.is_static:
        facts.fail(_ROWS, f"a multiple of {parts}", rows)
    nodes = rows.floordiv(parts.value) if parts.is_static else facts.fresh()
    facts.equal(rows, nodes * parts, _ROWS)
    return nodes
