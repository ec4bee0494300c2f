"""Ensembles of decision trees: `tree_ensemble`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ...core.dims import Dim, Shape
from ...core.errors import explain
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, INDEX_TENSOR, ReduceKind, ReduceKindAttr
from .combiners import COMBINER_OF
from .constructors import operator
from .demands import DemandInterface, IndexBound
from .guards import only_if
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    ShapeFacts,
    WritingNest,
    element_type,
    widened,
)
from .nests.nest import LocalBuffer
from .ops_gather import checked_places, place_of
from .sorting import known_size
from .traits import Discontinuous

if TYPE_CHECKING:
    from .interfaces import Array

_TILE = 64
"""Ways of a row through a tree at a time."""


@operator(kind="sum")
class TreeEnsembleOp(GraphOp, DemandInterface):
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
    traits = traits_def(Discontinuous())

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

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return (
            IndexBound(self.feature, self.x, 1),
            IndexBound(self.next, self.threshold, 0),
            IndexBound(self.leaf, self.values, 0),
            IndexBound(self.root, self.threshold, 0),
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
        # Rows of a tile go through one tree after the other, which stays in the cache; a few rows
        # go through several trees at a time. Each step is one of all: they do not wait for each
        # other.
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
            walk = _Walk(self, nest, first, count, nest.local((tile_size,), i64))

            def combine(own: Index, node: AffineExpr) -> None:
                leaf = place_of(nest, self.leaf, (node,), self.values, 0)
                value = nest.at(self.values, (leaf, own[1]))
                totals.put(own, combiner.step(nest, totals.at(own), value))

            def add(index: Index) -> None:
                trees = walk.trees(*index)
                walk.run(trees)
                walk.for_each(
                    trees,
                    lambda tree, row, place: nest.in_order(
                        [columns], lambda own: combine((row, *own), walk.node(place))
                    ),
                )

            def finish(own: Index) -> None:
                row, column = own
                is_row = nest.insert(arith.CmpiOp(nest.value(row), count, "slt"))
                target = (first + row, column)
                only_if(nest, is_row, lambda: nest.update(0, target, totals.at(own)))

            nest.in_order([walk.groups], add)
            nest.in_order([tile_size, columns], finish)


class _Walk:
    """The way of `count` rows from the first one on through an ensemble, by groups of trees.

    `nodes` holds where each row is in each tree of a group, which has as many trees as fit.
    """

    def __init__(
        self,
        op: TreeEnsembleOp,
        nest: WritingNest,
        first: AffineExpr,
        count: SSAValue,
        nodes: LocalBuffer,
    ) -> None:
        self._op, self._nest, self._first, self._count, self._nodes = op, nest, first, count, nodes
        tile = nest.value(AffineExpr.constant(_TILE))
        self._group = nest.insert(arith.DivUIOp(tile, count))
        self._all = nest.value(nest.extent(op.root, 0))
        self.groups = nest.index(nest.insert(arith.CeilDivUIOp(self._all, self._group)))

    def trees(self, group: AffineExpr) -> tuple[AffineExpr, SSAValue]:
        """The first tree of a group, and the number of its trees."""
        nest = self._nest
        first = nest.insert(arith.MuliOp(nest.value(group), self._group))
        left = nest.insert(arith.SubiOp(self._all, first))
        return nest.index(first), nest.insert(arith.MinSIOp(left, self._group))

    def node(self, place: AffineExpr) -> AffineExpr:
        """The node at a place of the buffer."""
        return self._nest.index(self._nodes.at((place,)))

    def for_each(
        self,
        trees: tuple[AffineExpr, SSAValue],
        body: Callable[[AffineExpr, AffineExpr, AffineExpr], None],
        rows_of: Callable[[AffineExpr], SSAValue] | None = None,
    ) -> None:
        """Run `body` for each tree of a group and each row, with their place in the buffer.

        `rows_of` returns the number of rows that go on in a tree; without it, all do.
        """
        nest, (first, number) = self._nest, trees

        def of_tree(index: Index) -> None:
            (tree,) = index
            start = nest.insert(arith.MuliOp(nest.value(tree), self._count))
            begin, rows = nest.index(start), self._count
            if rows_of is not None:
                rows = rows_of(first + tree)
            nest.in_order(
                [nest.index(rows)], lambda own: body(first + tree, own[0], begin + own[0])
            )

        nest.in_order([nest.index(number)], of_tree)

    def run(self, trees: tuple[AffineExpr, SSAValue]) -> None:
        """Let all rows go through the trees of a group, each to its depth."""
        nest, op, (first, number) = self._nest, self._op, trees

        def begin(tree: AffineExpr, row: AffineExpr, place: AffineExpr) -> None:
            root = place_of(nest, op.root, (tree,), op.threshold, 0)
            self._nodes.put((place,), scalars.from_index(nest, nest.value(root), i64))

        def depth(tree: AffineExpr) -> SSAValue:
            return scalars.to_index(nest, nest.at(op.depth, (tree,)))

        def deeper(tree: AffineExpr, most: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [scalars.maximum(nest, most[0], depth(first + tree))]

        def step(index: Index) -> None:
            (done,) = map(nest.value, index)

            def rows_of(tree: AffineExpr) -> SSAValue:
                goes_on = nest.insert(arith.CmpiOp(done, depth(tree), "slt"))
                return scalars.select(nest, goes_on, self._count, zero)

            self.for_each(trees, self._step, rows_of)

        self.for_each(trees, begin)
        zero = nest.value(AffineExpr.constant(0))
        (deepest,) = nest.serial(nest.index(number), [zero], deeper)
        nest.in_order([nest.index(deepest)], step)

    def _step(self, tree: AffineExpr, row: AffineExpr, place: AffineExpr) -> None:
        """Let a row go to the next node."""
        nest, op, node = self._nest, self._op, self.node(place)
        left, right = (nest.value(AffineExpr.constant(side)) for side in range(2))
        feature = place_of(nest, op.feature, (node,), op.x, 1)
        x, threshold = nest.at(op.x, (self._first + row, feature)), nest.at(op.threshold, (node,))
        side = scalars.select(nest, scalars.less_equal(nest, x, threshold), left, right)
        following = place_of(nest, op.next, (node, nest.index(side)), op.threshold, 0)
        self._nodes.put((place,), scalars.from_index(nest, nest.value(following), i64))
