"""Products of aggregated messages, with weights for each kind of message: `aggregate_dense`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def

from ...core.dims import Dim, Shape
from ...core.errors import InputError, explain
from ...core.typed import dense_array, sparse_array
from . import scalars
from .attrs import FLOAT_TENSOR, SPARSE_TENSOR, AggregateKind
from .constructors import operator
from .demands import DemandInterface, SizeBound
from .guards import only_if
from .interfaces import (
    FusionKind,
    Index,
    ShapeFacts,
    Sizes,
    WritingNest,
    element_type,
    widened,
)
from .nests.nest import LocalBuffer
from .ops_aggregate import AggregationOp
from .ops_contraction import same_element_types
from .ops_sparse import require_csr

if TYPE_CHECKING:
    from .interfaces import Array

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

    def write(self, k: Any, *_: Any) -> None:
        nest: WritingNest = k.nest
        # The rows of one part that have entries are next to each other in a buffer, so that the
        # product is one of whole register tiles.
        zero = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        nodes, columns = (nest.extent(self.result, dim) for dim in range(2))
        nest.fill(0, lambda _: zero)
        with nest.loops([nodes.ceil_div(_TILE)]) as (tile,):
            first = tile * _TILE
            left = nest.insert(arith.SubiOp(nest.value(nodes), nest.value(first)))
            count = nest.insert(arith.MinSIOp(left, nest.value(AffineExpr.constant(_TILE))))
            buffers = _Buffers(self, nest)
            with nest.loops([AffineExpr.constant(_TILE), columns]) as own:
                buffers.totals.put(own, zero)
            self._add_parts(nest, buffers, (first, nest.index(count)))
            with nest.loops([AffineExpr.constant(_TILE)]) as (node,):
                inside = nest.insert(arith.CmpiOp(nest.value(node), count, "slt"))

                def finish(node: AffineExpr = node) -> None:
                    with nest.loops([columns]) as (column,):
                        total = buffers.totals.at((node, column))
                        nest.update(0, (first + node, column), total)

                only_if(nest, inside, finish)

    def _add_parts(
        self, nest: WritingNest, buffers: _Buffers, tile: tuple[AffineExpr, AffineExpr]
    ) -> None:
        """Add the products of all parts of some nodes: the first one, and how many they are."""
        parts, inner, columns = (nest.extent(self.w, dim) for dim in range(3))
        zero = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        nodes = nest.value(nest.extent(self.result, 0))

        def add(own: Index) -> None:
            (part,), (first, count) = own, tile
            before = nest.insert(arith.MuliOp(nest.value(part), nodes))
            start = nest.index(before) + first
            found = self._listed(nest, buffers.places, start, count)
            with nest.loops([found]) as (place,):
                row = start + nest.index(buffers.places.at((place,)))
                with nest.loops([inner]) as (k,):
                    message = self.reduced(
                        nest, row, lambda _, column: nest.at(self.x, (column, k))
                    )
                    buffers.rows.put((place, k), message)
            with nest.loops([found, columns]) as (place, column):

                def step(k: Index, total: SSAValue) -> SSAValue:
                    weight = nest.at(self.w, (part, *k, column))
                    return scalars.fma(nest, buffers.rows.at((place, *k)), weight, total)

                product = nest.reduce([inner], "add", zero, step)
                buffers.products.put((place, column), product)

            def join(own: Index) -> None:
                node = nest.index(buffers.places.at(own))
                with nest.loops([columns]) as (column,):
                    product = buffers.products.at((*own, column))
                    buffers.totals.put((node, column), product, "add")

            nest.in_order([found], join)

        nest.in_order([parts], add)

    def _listed(
        self, nest: WritingNest, places: LocalBuffer, start: AffineExpr, count: AffineExpr
    ) -> AffineExpr:
        """List those of `count` rows from `start` on that have entries; returns their number."""
        none, one = (nest.value(AffineExpr.constant(n)) for n in range(2))

        def step(node: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            # Without a branch: the next node overwrites one that has no entries.
            places.put((nest.index(carried[0]),), scalars.from_index(nest, nest.value(node), i32))
            entries = nest.value(nest.count(self.a, start + node))
            is_empty = nest.insert(arith.CmpiOp(entries, none, "eq"))
            more = nest.insert(arith.AddiOp(carried[0], one))
            return [scalars.select(nest, is_empty, carried[0], more)]

        return nest.index(nest.serial(count, [none], step)[0])


class _Buffers:
    """The buffers of a tile of nodes."""

    def __init__(self, op: AggregateDenseOp, nest: WritingNest) -> None:
        kind, tile = nest.compute_type(element_type(op.result)), AffineExpr.constant(_TILE)
        # No local buffer is empty.
        inner, columns = (
            AffineExpr.constant(1) if extent == AffineConstantExpr(0) else extent
            for extent in (nest.extent(op.w, dim) for dim in (1, 2))
        )
        self.places = nest.local((tile,), i32)
        """The nodes that have entries of a part."""
        self.rows = nest.local((tile, inner), kind)
        """What their messages are combined to."""
        self.products = nest.local((tile, columns), kind)
        self.totals = nest.local((tile, columns), kind)
        """What all parts of each node add up to."""


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
