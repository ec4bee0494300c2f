"""The loops of `graph.attention`.

A tile keeps for each query the largest score so far, the sum of the exponentials, and that of the
values that they weigh. For each block of keys it computes the scores, and rescales what it keeps
where the largest score has grown. Where one block has all keys, nothing is kept. Keys and values of
a block are copied, the keys transposed: a tile reads them for each of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from . import scalars
from .attention import ROWS, ZERO, Attention, Visible, known, tiles_of
from .guards import only_if
from .interfaces import element_type, rank
from .nests.nest import Index, LocalBuffer, WritingNest
from .ops_elementwise import broadcast_index

FEW_ROWS = 4
"""Up to so many rows read keys and values where they are: copies take longer than they save."""
LEAST = -87.0
"""Exponentials of less count as 0: they are below 2^-125."""
ROWS_AT_ONCE, KEYS_AT_ONCE = 4, 32
"""Rows and keys are multiplied in groups of so many where their number is not known."""


def write_attention(nest: WritingNest, op: Attention) -> None:
    """Write the result of an attention."""
    shared, heads = _shared(nest, op), rank(op.q) - 3
    # Where two sizes are to be equal, loops have that of q, which is that of the result.
    batch = [nest.extent(op.q, dim) for dim in range(heads)]
    batch.append(nest.extent(op.k if shared > 1 else op.q, heads))
    for tiles in tiles_of(nest.extent(op.q, rank(op.q) - 2), shared):
        with nest.loops([*batch, tiles.count]) as (*outer, number):
            first = tiles.start + number * tiles.step
            keys = Visible(nest, op, tuple(outer[:-1]), first, tiles.size)
            kind = _OnlyBlock if keys.is_one_block else _Blocks
            kind(nest, op, tuple(outer), first, keys, shared).write()


def _shared(nest: WritingNest, op: Attention) -> int:
    """The number of heads of q for each one of k; 1 where both numbers are the same symbol."""
    heads = [known(nest.extent(value, rank(value) - 3)) for value in (op.q, op.k)]
    return 1 if heads[0] is None or not heads[1] else heads[0] // heads[1]


class _Tile:
    """A tile of queries, in loops over the batch and the heads of k.

    Args:
        nest: receives the loops.
        op: the operator.
        outer: the indices of the batch, and of a head of k.
        first: the first query.
        keys: the keys that the queries are given.
        shared: the heads of q for each head of k.
    """

    def __init__(
        self,
        nest: WritingNest,
        op: Attention,
        outer: Index,
        first: AffineExpr,
        keys: Visible,
        shared: int,
    ) -> None:
        self.nest, self.op, self.outer, self.first, self.keys = nest, op, outer, first, keys
        self.queries, self.shared = keys.queries, shared
        self.kind = nest.compute_type(element_type(op.q))
        self.width, self.values = (nest.extent(x, rank(x) - 1) for x in (op.k, op.v))
        self.block = AffineExpr.constant(keys.block)
        queries = known(self.queries)
        most = max(1, ROWS // shared) * shared
        rows = -(-most // ROWS_AT_ONCE) * ROWS_AT_ONCE if queries is None else queries * shared
        self.rows, self.start = AffineExpr.constant(rows), ZERO
        self.zero, self.lowest = nest.constant(0.0, self.kind), nest.constant(-np.inf, self.kind)
        self.is_direct = queries is not None and rows <= FEW_ROWS
        self.q = self.local(self.rows, self.width)
        # Groups of rows and keys are whole: what is computed of more than there are is not read.
        groups = -(-keys.block // KEYS_AT_ONCE) * KEYS_AT_ONCE
        columns = self.block if known(keys.keys) is not None else AffineExpr.constant(groups)
        if not self.is_direct:
            self.k = self.local(self.width, columns)
            self.v = self.local(self.block, self.values)
        self.scores = self.local(self.rows, columns)
        self.base, self.factor = self.local(self.rows), self.local(self.rows)
        if max(op.window) >= 0:
            self.numbers = self.local(self.block)
            """The numbers of the keys in a block."""

    def local(self, *shape: AffineExpr) -> LocalBuffer:
        """A buffer of the tile."""
        return self.nest.local(shape, self.kind)

    # Loops.

    @contextmanager
    def each_row(self) -> Iterator[AffineExpr]:
        """Open loops over the rows, or over those in whole groups."""
        if known(self.queries) is not None:
            with self.nest.loops([self.rows]) as (row,):
                yield row
            return
        groups = (self.queries * self.shared + (ROWS_AT_ONCE - 1)) // ROWS_AT_ONCE
        with self.nest.loops([groups, AffineExpr.constant(ROWS_AT_ONCE)]) as (group, own):
            yield group * ROWS_AT_ONCE + own

    @contextmanager
    def _each_key(self, count: AffineExpr) -> Iterator[AffineExpr]:
        """Open loops over keys of a block, or if they are copied, over those in whole groups."""
        if known(count) is not None or self.is_direct:
            with self.nest.loops([count]) as (key,):
                yield key
            return
        groups = (count + (KEYS_AT_ONCE - 1)) // KEYS_AT_ONCE
        with self.nest.loops([groups, AffineExpr.constant(KEYS_AT_ONCE)]) as (group, own):
            yield group * KEYS_AT_ONCE + own

    @contextmanager
    def each_query(self, *inner: AffineExpr) -> Iterator[Index]:
        """Open loops over the queries, the heads that share keys, and others in these."""
        if self.shared == 1:
            with self.nest.loops([self.queries, *inner]) as (query, *others):
                yield (query, ZERO, *others)
            return
        shared = AffineExpr.constant(self.shared)
        with self.nest.loops([self.queries, shared, *inner]) as index:
            yield index

    def head(self, head: AffineExpr) -> Index:
        """The batch and the head of q."""
        *batch, own = self.outer
        return (*batch, own * self.shared + head)

    def row(self, query: AffineExpr, head: AffineExpr) -> AffineExpr:
        """The row of a query of one of the heads."""
        return query * self.shared + head

    # The scores of a block.

    def read_queries(self) -> None:
        """Copy the queries, scaled."""
        nest, op = self.nest, self.op
        if max(op.window) >= 0:
            with nest.loops([self.block]) as (key,):
                self.numbers.put((key,), self._number(key))
        scale = nest.constant(op.scale, self.kind)
        with self.each_query(self.width) as (query, head, column):
            value = nest.at(op.q, (*self.head(head), self.first + query, column))
            self.q.put((self.row(query, head), column), scalars.mul(nest, value, scale))

    def score(self, start: AffineExpr, count: AffineExpr) -> None:
        """Read a block of keys and values, and compute its scores."""
        nest = self.nest
        self.start = start
        if not self.is_direct:
            self._copy(start, count)
        with self.each_row() as row, self._each_key(count) as key:
            self.scores.put((row, key), self._product(row, key))
        if self.op.mask is not None or self.op.softcap > 0:
            self._change(start, count, self._changed)
        if max(self.op.window) >= 0:
            is_cut = self.keys.is_cut(start, count)
            only_if(nest, is_cut, lambda: self._change(start, count, self._windowed))

    def _copy(self, start: AffineExpr, count: AffineExpr) -> None:
        """Copy the keys and values of a block."""
        nest = self.nest
        with nest.loops([count, self.width]) as (key, column):
            self.k.put((column, key), nest.at(self.op.k, (*self.outer, start + key, column)))
        with nest.loops([count, self.values]) as (key, column):
            self.v.put((key, column), nest.at(self.op.v, (*self.outer, start + key, column)))

    def _product(self, row: AffineExpr, key: AffineExpr) -> SSAValue:
        """The score of a query and a key."""

        def step(column: Index, total: SSAValue) -> SSAValue:
            q, k = self.q.at((row, *column)), self._key(key, column[0])
            return scalars.fma(self.nest, q, k, total)

        return self.nest.reduce([self.width], "add", self.zero, step)

    def _key(self, key: AffineExpr, column: AffineExpr) -> SSAValue:
        """A number of a key of the block."""
        if self.is_direct:
            return self.nest.at(self.op.k, (*self.outer, self.start + key, column))
        return self.k.at((column, key))

    def _value(self, key: AffineExpr, column: AffineExpr) -> SSAValue:
        """A number of the value of a key of the block."""
        if self.is_direct:
            return self.nest.at(self.op.v, (*self.outer, self.start + key, column))
        return self.v.at((key, column))

    def _change(
        self,
        start: AffineExpr,
        count: AffineExpr,
        changed: Callable[[SSAValue, Index, AffineExpr], SSAValue],
    ) -> None:
        """Replace each score by what `changed` makes of it, its query and head, and its key."""
        with self.each_query(count) as (query, head, key):
            place = (self.row(query, head), key)
            score = changed(self.scores.at(place), (query, head, key), start)
            self.scores.put(place, score)

    def _changed(self, score: SSAValue, place: Index, start: AffineExpr) -> SSAValue:
        """A score that is capped, and to which the mask is added."""
        nest, op, (query, head, key) = self.nest, self.op, place
        if op.softcap > 0:
            cap = nest.constant(op.softcap, self.kind)
            ratio = scalars.divide(nest, score, cap)
            score = scalars.mul(nest, nest.insert(math.TanhOp(ratio)), cap)
        if op.mask is None:
            return score
        index = (*self.head(head), self.first + query, start + key)
        mask = nest.at(op.mask, broadcast_index(op.mask, index))
        if element_type(op.mask) == i1:
            return scalars.select(nest, mask, score, self.lowest)
        return scalars.add(nest, score, mask)

    def _windowed(self, score: SSAValue, place: Index, start: AffineExpr) -> SSAValue:
        """A score, or -inf where the query is not given the key."""
        nest, (query, _, key), (left, right) = self.nest, place, self.op.window
        own, number = self.keys.place + query - start, self.numbers.at((key,))
        if right >= 0:
            inside = scalars.less_equal(nest, number, self._number(own + right))
            score = scalars.select(nest, inside, score, self.lowest)
        if left >= 0:
            inside = scalars.less_equal(nest, self._number(own - left), number)
            score = scalars.select(nest, inside, score, self.lowest)
        return score

    def _number(self, expr: AffineExpr) -> SSAValue:
        """An index in the type of the scores, to which those in a block are compared exactly."""
        return scalars.from_index(self.nest, self.nest.value(expr), self.kind)

    # Exponentials.

    def largest(self, row: AffineExpr, count: AffineExpr) -> SSAValue:
        """The largest score of a row."""

        def step(key: Index, best: SSAValue) -> SSAValue:
            return scalars.maxnum(self.nest, self.scores.at((row, *key)), best)

        return self.nest.reduce([count], "maxnum", self.lowest, step)

    def shift(self, top: SSAValue) -> SSAValue:
        """What is subtracted from scores: the largest one, or 0 if all are -inf."""
        nest = self.nest
        return scalars.select(nest, scalars.equal(nest, top, self.lowest), self.zero, top)

    def exponentials(self, row: AffineExpr, count: AffineExpr) -> SSAValue:
        """Make exponentials of the scores of a row, and return their sum."""
        nest, base = self.nest, self.base.at((row,))
        with nest.loops([count]) as (key,):
            shifted = scalars.sub(nest, self.scores.at((row, key)), base)
            self.scores.put((row, key), self.exponential(shifted))

        def step(key: Index, total: SSAValue) -> SSAValue:
            return scalars.add(nest, total, self.scores.at((row, *key)))

        return nest.reduce([count], "add", self.zero, step)

    # Denormal numbers take the processor a hundred times as long as others, and there are many: the
    # exponential of each -inf is rounded to 0 from one.
    def exponential(self, shifted: SSAValue) -> SSAValue:
        """exp of a number that is not above 0, or 0 where that is denormal."""
        nest, least = self.nest, self.nest.constant(LEAST, self.kind)
        # A NaN is not less, so that it stays.
        exponential = scalars.exp_of_difference(nest, scalars.maxnum(nest, least, shifted))
        return scalars.select(nest, scalars.less(nest, shifted, least), self.zero, exponential)

    def weighed(
        self, row: AffineExpr, column: AffineExpr, count: AffineExpr, init: SSAValue
    ) -> SSAValue:
        """`init`, and the sum of the values of a block, weighed by the exponentials."""

        def step(key: Index, total: SSAValue) -> SSAValue:
            weight, value = self.scores.at((row, *key)), self._value(key[0], column)
            return scalars.fma(self.nest, weight, value, total)

        return self.nest.reduce([count], "add", init, step)

    # The result.

    def inverse(self, total: SSAValue) -> SSAValue:
        """1 / the sum of the exponentials of a row, or 1 where the result is 0 without it."""
        nest, one = self.nest, self.nest.constant(1.0, self.kind)
        if self.op.safe:
            none = scalars.equal(nest, total, self.zero)
        else:
            keys = nest.extent(self.op.k, rank(self.op.k) - 2)
            if known(keys):
                return scalars.divide(nest, one, total)
            none = scalars.equal(nest, nest.value(keys), nest.value(ZERO))
        return scalars.divide(nest, one, scalars.select(nest, none, one, total))

    def put_result(self, place: Index, value: SSAValue) -> None:
        """Write an element of the result: that of a query, a head and a column."""
        query, head, column = place
        self.nest.write(0, (*self.head(head), self.first + query, column), value)


class _OnlyBlock(_Tile):
    """A tile of queries that are given keys of one block."""

    def write(self) -> None:
        """Write the results."""
        nest, count = self.nest, self.block
        self.read_queries()
        self.score(ZERO, count)
        with self.each_row() as row:
            self.base.put((row,), self.shift(self.largest(row, count)))
        with self.each_row() as row:
            self.factor.put((row,), self.exponentials(row, count))
        with self.each_row() as row:
            self.factor.put((row,), self.inverse(self.factor.at((row,))))
        with self.each_query(self.values) as (query, head, column):
            row = self.row(query, head)
            value = self.weighed(row, column, count, self.zero)
            value = scalars.mul(nest, value, self.factor.at((row,)))
            self.put_result((query, head, column), value)


class _Blocks(_Tile):
    """A tile of queries that are given keys of several blocks."""

    def write(self) -> None:
        """Write the results."""
        nest = self.nest
        self.top, self.sum = self.local(self.rows), self.local(self.rows)
        self.total = self.local(self.rows, self.values)
        self.read_queries()
        self._begin()
        self.keys.visit(self._take)
        with self.each_row() as row:
            self.factor.put((row,), self.inverse(self.sum.at((row,))))
        with self.each_query(self.values) as (query, head, column):
            row = self.row(query, head)
            value = scalars.mul(nest, self.total.at((row, column)), self.factor.at((row,)))
            self.put_result((query, head, column), value)

    def _begin(self) -> None:
        """Start with no keys."""
        with self.each_row() as row:
            self.top.put((row,), self.lowest)
            self.sum.put((row,), self.zero)
        with self.each_row() as row, self.nest.loops([self.values]) as (column,):
            self.total.put((row, column), self.zero)

    def _take(self, start: AffineExpr, count: AffineExpr) -> None:
        """Take a block of keys into account."""
        nest = self.nest
        self.score(start, count)
        with self.each_row() as row:
            self.base.put((row,), self.largest(row, count))
        # What one number of a row follows from is computed for all rows: they are lanes.
        with self.each_row() as row:
            self._raise_top(row)
        with self.each_row() as row:
            total, before = self.exponentials(row, count), self.sum.at((row,))
            self.sum.put((row,), scalars.fma(nest, before, self.factor.at((row,)), total))
        with self.each_row() as row, nest.loops([self.values]) as (column,):
            before = scalars.mul(nest, self.total.at((row, column)), self.factor.at((row,)))
            self.total.put((row, column), self.weighed(row, column, count, before))

    def _raise_top(self, row: AffineExpr) -> None:
        """Find the largest score of a row so far, and the factor of what it keeps."""
        nest, before = self.nest, self.top.at((row,))
        top = scalars.maxnum(nest, self.base.at((row,)), before)
        base = self.shift(top)
        self.top.put((row,), top)
        self.base.put((row,), base)
        self.factor.put((row,), self.exponential(scalars.sub(nest, before, base)))
