"""Ensembles of decision trees: `tree_ensemble`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from .....core.algebra.dims import Dim, Shape
from .....core.errors import explain
from .....core.ir.typed import dense_array
from ...attrs import FLOAT_TENSOR, INDEX_TENSOR, ReduceKind, ReduceKindAttr
from ...combiners import COMBINER_OF
from ...constructors import operator
from ...demands import DemandInterface, IndexBound
from ...interfaces import FusionKind, GraphOp, ShapeFacts, element_type, widened
from ...nests import scalars
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar, ceil_div
from ...traits import Discontinuous
from ..moves.gather import checked_places

if TYPE_CHECKING:
    from ...interfaces import Array

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

    def write(
        self,
        k: KernelBody,
        x: Buffer,
        threshold: Buffer,
        feature: Buffer,
        following: Buffer,
        leaf: Buffer,
        values: Buffer,
        root: Buffer,
        depth: Buffer,
        result: Buffer,
    ) -> None:
        # Rows of a tile go through one tree after the other, which stays in the cache; a few rows
        # go through several trees at a time. Each step is one of all: they do not wait for each
        # other.
        combiner, rows, columns = COMBINER_OF[self.kind.data], x.shape[0], values.shape[1]
        init = k.apply(combiner.init, values.type)
        result.fill(init)
        with k.loops(ceil_div(rows, _TILE)) as tile:
            first = tile * _TILE
            count = k.minimum(k.value(rows) - k.value(first), k.value(_TILE))
            totals = k.local((_TILE, columns), values.type)
            with k.serial(_TILE, columns) as own:
                totals[own] = init
            nodes = _Nodes(x, threshold, feature, following)
            walk = _Walk(k, nodes, first, count, root, depth)
            with k.serial(walk.groups) as group:
                trees = walk.trees(group)
                walk.run(trees)
                with walk.each(trees) as (_, row, place), k.serial(columns) as column:
                    node = k.place(leaf[walk.node(place)], values.shape[0])
                    value = values[node, column]
                    totals[row, column] = k.apply(combiner.step, totals[row, column], value)
            with k.serial(_TILE, columns) as (row, column), k.only_if(row < count):
                result.update((first + row, column), totals[row, column])


class _Nodes(NamedTuple):
    """The rows, and what the nodes of all trees say of their next ones."""

    x: Buffer
    threshold: Buffer
    feature: Buffer
    following: Buffer


class _Walk:
    """The way of `count` rows from the first one on through an ensemble, by groups of trees.

    A buffer holds where each row is in each tree of a group, which has as many trees as fit.
    """

    def __init__(
        self,
        k: KernelBody,
        nodes: _Nodes,
        first: Index,
        count: Scalar,
        root: Buffer,
        depth: Buffer,
    ) -> None:
        self.k, self.nodes, self.first, self.count = k, nodes, first, count
        self.root, self.depth, self.places = root, depth, k.local(_TILE, i64)
        self.group = k.apply(arith.DivUIOp, k.value(_TILE), count)
        self.all = k.value(root.shape[0])
        self.groups = k.index(k.apply(arith.CeilDivUIOp, self.all, self.group))

    def trees(self, group: Index) -> tuple[Index, Scalar]:
        """The first tree of a group, and the number of its trees."""
        first = self.k.value(group) * self.group
        left = self.all - first
        return self.k.index(first), self.k.minimum(left, self.group)

    def node(self, place: Index) -> Index:
        """The node at a place of the buffer."""
        return self.k.index(self.places[place])

    @contextmanager
    def each(
        self,
        trees: tuple[Index, Scalar],
        rows_of: Callable[[Index], Scalar] | None = None,
    ) -> Iterator[tuple[Index, Index, Index]]:
        """Open loops over the trees of a group and the rows, with their place in the buffer.

        `rows_of` returns the number of rows that go on in a tree; without it, all do.
        """
        k, (first, number) = self.k, trees
        with k.serial(number) as own:
            tree, begin = first + own, k.index(k.value(own) * self.count)
            rows = self.count if rows_of is None else rows_of(tree)
            with k.serial(rows) as row:
                yield tree, row, begin + row

    def run(self, trees: tuple[Index, Scalar]) -> None:
        """Let all rows go through the trees of a group, each to its depth."""
        k, (first, number) = self.k, trees

        with self.each(trees) as (tree, _, place):
            root = k.place(self.root[tree], self.nodes.threshold.shape[0])
            self.places[place] = k.cast(root, i64)
        none = k.value(0)
        (deepest,) = k.carry(
            number, [none], lambda tree, most: (k.maximum(most, self._depth(first + tree)),)
        )
        with k.serial(deepest) as done:
            rows = partial(self._rows_left, done)
            with self.each(trees, rows) as (_, row, place):
                self._step(row, place)

    def _depth(self, tree: Index) -> Scalar:
        return self.k.apply(scalars.to_index, self.depth[tree])

    def _rows_left(self, done: Index, tree: Index) -> Scalar:
        """How many rows go on in a tree after some steps."""
        return self.k.where(done < self._depth(tree), self.count, self.k.value(0))

    def _step(self, row: Index, place: Index) -> None:
        """Let a row go to the next node."""
        k, (x, threshold, feature, following), node = self.k, self.nodes, self.node(place)
        column = k.place(feature[node], x.shape[1])
        goes_left = x[self.first + row, column] <= threshold[node]
        side = k.where(goes_left, k.value(0), k.value(1))
        after = k.place(following[node, side], threshold.shape[0])
        self.places[place] = k.cast(after, i64)
