"""Ensembles of decision trees: `tree_ensemble`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from ...core.dims import Dim, Shape
from ...core.errors import explain
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, INDEX_TENSOR, ReduceKind, ReduceKindAttr
from .combiners import COMBINER_OF
from .guards import only_if
from .interfaces import (
    Bound,
    FusionKind,
    GraphOp,
    Index,
    ShapeFacts,
    WritingNest,
    element_type,
    widened,
)
from .nest import LocalBuffer
from .ops_gather import checked_places, place_of
from .sorting import known_size

if TYPE_CHECKING:
    from .interfaces import Array

_TILE = 64
"""Rows that go through a tree before those go through the next one."""


@irdl_op_definition
class TreeEnsembleOp(GraphOp):
    """The values of the leaves that rows of x reach in each tree, combined over all trees.

    A row goes from node n to `next[n, 0]` if its element `feature[n]` is at most `threshold[n]`,
    and else, or if that is NaN, to `next[n, 1]`. It begins at the root of a tree and takes as many
    steps as the tree is deep: a leaf is followed by itself. The node n that it reaches has the
    values `values[leaf[n], :]`, which are combined as `kind` says: sum, prod, max or min. Indices
    are those of `graph.gather`.

    x is (rows, features), `threshold`, `feature` and `leaf` (nodes), `next` (nodes, 2),
    `root` and `depth` (trees), and the result (rows, columns of values), of the type of `values`.

    %y = graph.tree_ensemble sum %x, %threshold, %feature, %next, %leaf, %values, %root, %depth
        : (tensor<?x4xf32>, tensor<7xf32>, tensor<7xi32>, tensor<7x2xi32>, tensor<7xi32>,
           tensor<4x3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    """

    name = "graph.tree_ensemble"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    DISCONTINUOUS: ClassVar[bool] = True

    x = operand_def(FLOAT_TENSOR)
    threshold = operand_def(FLOAT_TENSOR)
    feature = operand_def(INDEX_TENSOR)
    next = operand_def(INDEX_TENSOR)
    leaf = operand_def(INDEX_TENSOR)
    values = operand_def(FLOAT_TENSOR)
    root = operand_def(INDEX_TENSOR)
    depth = operand_def(INDEX_TENSOR)
    kind = prop_def(ReduceKindAttr)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$kind $x `,` $threshold `,` $feature `,` $next `,` $leaf `,` $values `,` $root `,` "
        "$depth attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        threshold: SSAValue | Operation,
        feature: SSAValue | Operation,
        next: SSAValue | Operation,
        leaf: SSAValue | Operation,
        values: SSAValue | Operation,
        root: SSAValue | Operation,
        depth: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(
            operands=[x, threshold, feature, next, leaf, values, root, depth],
            properties={"kind": ReduceKindAttr(ReduceKind(kind))},
            result_type=result_type,
        )

    @property
    def index_bounds(self) -> tuple[Bound, ...]:
        return (
            (self.feature, self.x, 1),
            (self.next, self.threshold, 0),
            (self.leaf, self.values, 0),
            (self.root, self.threshold, 0),
        )

    def verify_(self) -> None:
        if self.kind.data == ReduceKind.MEAN:
            raise VerifyException(
                explain(self.name, "wrong kind", expected="sum, prod, max, min", got="mean")
            )
        super().verify_()

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.values)]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        kinds = element_type(self.x), element_type(self.threshold)
        if kinds[0] != kinds[1]:
            facts.fail("thresholds have another element type than x", *kinds)
        names = "x", "thresholds", "features", "next nodes", "leaves", "values", "roots", "depths"
        for name, shape, rank in zip(names, shapes, (2, 1, 1, 2, 1, 2, 1, 1), strict=True):
            if len(shape) != rank:
                facts.fail(f"{name} have the wrong rank", rank, len(shape))
        x, threshold, feature, following, leaf, values, root, depth = shapes
        nodes = facts.equal(threshold[0], feature[0], "numbers of nodes differ")
        nodes = facts.equal(nodes, following[0], "numbers of nodes differ")
        facts.equal(nodes, leaf[0], "numbers of nodes differ")
        facts.equal(Dim.of(2), following[1], "a node has not two next ones")
        facts.equal(root[0], depth[0], "numbers of trees differ")
        return [(x[0], values[1])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, threshold, feature, following, leaf, values, root, depth = map(dense_array, arrays)
        x, threshold, values = widened(x), widened(threshold), widened(values)
        places = checked_places
        feature, following = places(self, feature, x.shape[1]), places(self, following, len(leaf))
        leaf, root = places(self, leaf, len(values)), places(self, root, len(leaf))
        combiner, rows = COMBINER_OF[self.kind.data], np.arange(len(x))
        found = np.full((len(x), values.shape[1]), combiner.first(values.dtype), values.dtype)
        for start, steps in zip(root, depth, strict=True):
            node = np.full(len(x), start)
            for _ in range(int(steps)):
                goes_on = x[rows, feature[node]] <= threshold[node]
                node = following[node, np.where(goes_on, 0, 1)]
            found = combiner.ufunc(found, values[leaf[node]])
        return self.stored(found)

    def write(self, nest: WritingNest) -> None:
        # Rows of a tile go through one tree after the other, which stays in the cache.
        combiner, kind = COMBINER_OF[self.kind.data], nest.compute_type(element_type(self.values))
        rows, columns = nest.extent(self.x, 0), nest.extent(self.values, 1)
        tile_size, init = AffineExpr.constant(_TILE), combiner.init(nest, kind)
        nest.fill(0, lambda _: init)
        with nest.loops([rows.ceil_div(_TILE)]) as (tile,):
            first = tile * _TILE
            left = nest.insert(arith.SubiOp(nest.value(rows), nest.value(first)))
            count = nest.insert(arith.MinSIOp(left, nest.value(tile_size)))
            # No local buffer is empty.
            size = AffineExpr.constant(1) if known_size(columns) == 0 else columns
            totals = nest.local((tile_size, size), kind)
            nest.in_order([tile_size, columns], lambda own: totals.put(own, init))

            nodes = nest.local((tile_size,), i64)

            def add(index: Index) -> None:
                (tree,) = index
                self._walk(nest, nodes, first, nest.index(count), tree)

                def combine(own: Index) -> None:
                    node = nest.index(nodes.at(own[:1]))
                    leaf = place_of(nest, self.leaf, (node,), self.values, 0)
                    value = nest.at(self.values, (leaf, own[1]))
                    totals.put(own, combiner.step(nest, totals.at(own), value))

                nest.in_order([nest.index(count), columns], combine)

            def finish(own: Index) -> None:
                row, column = own
                is_row = nest.insert(arith.CmpiOp(nest.value(row), count, "slt"))
                target = (first + row, column)
                only_if(nest, is_row, lambda: nest.update(0, target, totals.at(own)))

            nest.in_order([nest.extent(self.root, 0)], add)
            nest.in_order([tile_size, columns], finish)

    def _walk(
        self,
        nest: WritingNest,
        nodes: LocalBuffer,
        first: AffineExpr,
        count: AffineExpr,
        tree: AffineExpr,
    ) -> None:
        """Store the nodes that rows from the first one on reach in a tree.

        Each step is one of all rows: they do not wait for each other.
        """
        left, right = (nest.value(AffineExpr.constant(side)) for side in range(2))
        root = place_of(nest, self.root, (tree,), self.threshold, 0)
        start = scalars.from_index(nest, nest.value(root), i64)
        nest.in_order([count], lambda own: nodes.put(own, start))

        def step(index: Index) -> None:
            _, row = index
            node = nest.index(nodes.at((row,)))
            feature = place_of(nest, self.feature, (node,), self.x, 1)
            x, threshold = nest.at(self.x, (first + row, feature)), nest.at(self.threshold, (node,))
            side = scalars.select(nest, scalars.less_equal(nest, x, threshold), left, right)
            found = place_of(nest, self.next, (node, nest.index(side)), self.threshold, 0)
            nodes.put((row,), scalars.from_index(nest, nest.value(found), i64))

        depth = scalars.to_index(nest, nest.at(self.depth, (tree,)))
        nest.in_order([nest.index(scalars.maximum(nest, depth, left)), count], step)
