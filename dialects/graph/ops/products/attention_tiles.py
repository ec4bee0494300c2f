"""The loops of `graph.attention`.

A tile keeps for each query the largest score so far, the sum of the exponentials, and that of the
values that they weigh. For each block of keys it computes the scores, and rescales what it keeps
where the largest score has grown. Where one block has all keys, nothing is kept. Keys and values of
a block are copied, the keys transposed: a tile reads them for each of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1

from ...nests import scalars
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from .attention_cuts import ROWS, Attention, Visible, tiles_of

FEW_ROWS = 4
"""Up to so many rows read keys and values where they are: copies take longer than they save."""
LEAST = -87.0
"""Exponentials of less count as 0: they are below 2^-125."""
ROWS_AT_ONCE, KEYS_AT_ONCE = 4, 32
"""Rows and keys are multiplied in groups of so many where their number is not known."""


def write_attention(k: KernelBody, op: Attention) -> None:
    """Write the result of an attention."""
    shared = _shared(op)
    # Where two sizes are to be equal, loops have that of q, which is that of the result.
    batch = [*op.q.shape[:-3], (op.k if shared > 1 else op.q).shape[-3]]
    for tiles in tiles_of(op.q.shape[-2], shared):
        with k.loops(*batch, tiles.count) as (*outer, number):
            first = number * tiles.step + tiles.start
            keys = Visible(k, op, tuple(outer[:-1]), first, tiles.size)
            kind = _OnlyBlock if keys.is_one_block else _KeyBlocks
            kind(k, op, tuple(outer), first, keys, shared).write()


def _shared(op: Attention) -> int:
    """The number of heads of q for each one of k; 1 where both numbers are the same symbol."""
    own, of_keys = op.q.shape[-3], op.k.shape[-3]
    if isinstance(own, Index) or isinstance(of_keys, Index) or not of_keys:
        return 1
    return own // of_keys


class _Tile:
    """A tile of queries, in loops over the batch and the heads of k.

    Args:
        k: receives the loops.
        op: the operator.
        outer: the indices of the batch, and of a head of k.
        first: the first query.
        keys: the keys that the queries are given.
        shared: the heads of q for each head of k.
    """

    def __init__(
        self,
        k: KernelBody,
        op: Attention,
        outer: tuple[Index, ...],
        first: Index,
        keys: Visible,
        shared: int,
    ) -> None:
        self.body, self.op, self.outer, self.first, self.keys = k, op, outer, first, keys
        self.queries, self.shared, self.kind = keys.queries, shared, op.q.type
        self.width, self.values, self.block = op.k.shape[-1], op.v.shape[-1], keys.block
        most = max(1, ROWS // shared) * shared
        self.rows = -(-most // ROWS_AT_ONCE) * ROWS_AT_ONCE
        if isinstance(self.queries, int):
            self.rows = self.queries * shared
        self.start: int | Index = 0
        self.zero, self.lowest = k.scalar(0.0, self.kind), k.scalar(-np.inf, self.kind)
        self.is_direct = isinstance(self.queries, int) and self.rows <= FEW_ROWS
        self.q = self.local(self.rows, self.width)
        # Groups of rows and keys are whole: what is computed of more than there are is not read.
        groups = -(-keys.block // KEYS_AT_ONCE) * KEYS_AT_ONCE
        columns = self.block if isinstance(keys.keys, int) else groups
        if not self.is_direct:
            self.k = self.local(self.width, columns)
            self.v = self.local(self.block, self.values)
        self.scores = self.local(self.rows, columns)
        self.base, self.factor = self.local(self.rows), self.local(self.rows)
        if max(op.window) >= 0:
            self.numbers = self.local(self.block)
            """The numbers of the keys in a block."""

    def local(self, *shape: int | Index) -> Buffer:
        """A buffer of the tile."""
        return self.body.local(shape, self.kind)

    # Loops.

    @contextmanager
    def each_row(self) -> Iterator[Index]:
        """Open loops over the rows, or over those in whole groups."""
        if isinstance(self.queries, int):
            with self.body.loops(self.rows) as row:
                yield row
            return
        groups = (self.queries * self.shared + (ROWS_AT_ONCE - 1)) // ROWS_AT_ONCE
        with self.body.loops(groups, ROWS_AT_ONCE) as (group, own):
            yield group * ROWS_AT_ONCE + own

    @contextmanager
    def _each_key(self, count: int | Index) -> Iterator[Index]:
        """Open loops over keys of a block, or if they are copied, over those in whole groups."""
        if isinstance(count, int) or self.is_direct:
            with self.body.loops(count) as key:
                yield key
            return
        groups = (count + (KEYS_AT_ONCE - 1)) // KEYS_AT_ONCE
        with self.body.loops(groups, KEYS_AT_ONCE) as (group, own):
            yield group * KEYS_AT_ONCE + own

    @contextmanager
    def each_query(self, *inner: int | Index) -> Iterator[tuple[Any, ...]]:
        """Open loops over the queries, the heads that share keys, and others in these."""
        if self.shared == 1:
            with self.body.loops(self.queries, *inner) as (query, *others):
                yield (query, 0, *others)
            return
        with self.body.loops(self.queries, self.shared, *inner) as index:
            yield index

    def head(self, head: int | Index) -> tuple[Index, ...]:
        """The batch and the head of q."""
        *batch, own = self.outer
        return (*batch, own * self.shared + head)

    def row(self, query: Index, head: int | Index) -> Index:
        """The row of a query of one of the heads."""
        return query * self.shared + head

    # The scores of a block.

    def read_queries(self) -> None:
        """Copy the queries, scaled."""
        k, op = self.body, self.op
        if max(op.window) >= 0:
            with k.loops(self.block) as key:
                self.numbers[key] = k.cast(key, self.kind)
        with self.each_query(self.width) as (query, head, column):
            value = op.q[(*self.head(head), self.first + query, column)]
            self.q[self.row(query, head), column] = value * op.scale

    def score(self, start: int | Index, count: int | Index) -> None:
        """Read a block of keys and values, and compute its scores."""
        self.start = start
        if not self.is_direct:
            self._copy(start, count)
        with self.each_row() as row, self._each_key(count) as key:
            self.scores[row, key] = self._product(row, key)
        if self.op.mask is not None or self.op.softcap > 0:
            self._change(start, count, self._changed)
        if max(self.op.window) >= 0:
            with self.body.only_if(self.keys.is_cut(start, count)):
                self._change(start, count, self._windowed)

    def _copy(self, start: int | Index, count: int | Index) -> None:
        """Copy the keys and values of a block."""
        k, op = self.body, self.op
        with k.loops(count, self.width) as (key, column):
            self.k[column, key] = op.k[(*self.outer, start + key, column)]
        with k.loops(count, self.values) as (key, column):
            self.v[key, column] = op.v[(*self.outer, start + key, column)]

    def _product(self, row: Index, key: Index) -> Scalar:
        """The score of a query and a key."""
        return self.body.reduce(
            self.width,
            "add",
            self.zero,
            lambda column, total: self.body.fma(self.q[row, column], self._key(key, column), total),
        )

    def _key(self, key: Index, column: Index) -> Scalar:
        """A number of a key of the block."""
        if self.is_direct:
            return self.op.k[(*self.outer, self.start + key, column)]
        return self.k[column, key]

    def _value(self, key: Index, column: Index) -> Scalar:
        """A number of the value of a key of the block."""
        if self.is_direct:
            return self.op.v[(*self.outer, self.start + key, column)]
        return self.v[key, column]

    def _change(
        self,
        start: int | Index,
        count: int | Index,
        changed: Callable[[Scalar, tuple[Any, ...], int | Index], Scalar],
    ) -> None:
        """Replace each score by what `changed` makes of it, its query and head, and its key."""
        with self.each_query(count) as (query, head, key):
            place = (self.row(query, head), key)
            self.scores[place] = changed(self.scores[place], (query, head, key), start)

    def _changed(self, score: Scalar, place: tuple[Any, ...], start: int | Index) -> Scalar:
        """A score that is capped, and to which the mask is added."""
        k, op, (query, head, key) = self.body, self.op, place
        if op.softcap > 0:
            score = k.tanh(score / op.softcap) * op.softcap
        if op.mask is None:
            return score
        index = (*self.head(head), self.first + query, start + key)
        sizes = op.mask.shape
        own = zip(sizes, index[len(index) - len(sizes) :], strict=True)
        mask = op.mask[tuple(0 if size == 1 else i for size, i in own)]
        return k.where(mask, score, self.lowest) if mask.ssa.type == i1 else score + mask

    def _windowed(self, score: Scalar, place: tuple[Any, ...], start: int | Index) -> Scalar:
        """A score, or -inf where the query is not given the key."""
        k, (query, _, key), (left, right) = self.body, place, self.op.window
        # Numbers in the type of the scores are compared exactly.
        own, number = self.keys.place + query - start, self.numbers[key]
        if right >= 0:
            inside = number <= k.cast(own + right, self.kind)
            score = k.where(inside, score, self.lowest)
        if left >= 0:
            inside = k.cast(own - left, self.kind) <= number
            score = k.where(inside, score, self.lowest)
        return score

    # Exponentials.

    def largest(self, row: Index, count: int | Index) -> Scalar:
        """The largest score of a row."""
        return self.body.reduce(
            count,
            "maxnum",
            self.lowest,
            lambda key, best: self.body.apply(scalars.maxnum, self.scores[row, key], best),
        )

    def shift(self, top: Scalar) -> Scalar:
        """What is subtracted from scores: the largest one, or 0 if all are -inf."""
        return self.body.where(self.body.equal(top, self.lowest), self.zero, top)

    def exponentials(self, row: Index, count: int | Index) -> Scalar:
        """Make exponentials of the scores of a row, and return their sum."""
        base = self.base[row]
        with self.body.loops(count) as key:
            self.scores[row, key] = self.exponential(self.scores[row, key] - base)
        return self.body.reduce(
            count, "add", self.zero, lambda key, total: total + self.scores[row, key]
        )

    # Denormal numbers take the processor a hundred times as long as others, and there are many: the
    # exponential of each -inf is rounded to 0 from one.
    def exponential(self, shifted: Scalar) -> Scalar:
        """exp of a number that is not above 0, or 0 where that is denormal."""
        k, least = self.body, self.body.scalar(LEAST, self.kind)
        # A NaN is not less, so that it stays.
        raised = k.apply(scalars.maxnum, least, shifted)
        exponential = k.apply(scalars.exp_of_difference, raised)
        return k.where(shifted < least, self.zero, exponential)

    def weighed(self, row: Index, column: Index, count: int | Index, init: Scalar) -> Scalar:
        """`init`, and the sum of the values of a block, weighed by the exponentials."""
        return self.body.reduce(
            count,
            "add",
            init,
            lambda key, total: self.body.fma(
                self.scores[row, key], self._value(key, column), total
            ),
        )

    # The result.

    def inverse(self, total: Scalar) -> Scalar:
        """1 / the sum of the exponentials of a row, or 1 where the result is 0 without it."""
        k, keys = self.body, self.op.k.shape[-2]
        if self.op.safe:
            none = k.equal(total, self.zero)
        elif isinstance(keys, int) and keys:
            return 1.0 / total
        else:
            none = k.equal(k.value(keys), k.value(0))
        return 1.0 / k.where(none, 1.0, total)

    def put_result(self, place: tuple[Any, ...], value: Scalar) -> None:
        """Write an element of the result: that of a query, a head and a column."""
        query, head, column = place
        self.op.result[(*self.head(head), self.first + query, column)] = value


class _OnlyBlock(_Tile):
    """A tile of queries that are given keys of one block."""

    def write(self) -> None:
        """Write the results."""
        count = self.block
        self.read_queries()
        self.score(0, count)
        with self.each_row() as row:
            self.base[row] = self.shift(self.largest(row, count))
        with self.each_row() as row:
            self.factor[row] = self.exponentials(row, count)
        with self.each_row() as row:
            self.factor[row] = self.inverse(self.factor[row])
        with self.each_query(self.values) as (query, head, column):
            row = self.row(query, head)
            value = self.weighed(row, column, count, self.zero)
            self.put_result((query, head, column), value * self.factor[row])


class _KeyBlocks(_Tile):
    """A tile of queries that are given keys of several blocks."""

    def write(self) -> None:
        """Write the results."""
        self.top, self.sum = self.local(self.rows), self.local(self.rows)
        self.total = self.local(self.rows, self.values)
        self.read_queries()
        self._begin()
        self.keys.visit(self._take)
        with self.each_row() as row:
            self.factor[row] = self.inverse(self.sum[row])
        with self.each_query(self.values) as (query, head, column):
            row = self.row(query, head)
            self.put_result((query, head, column), self.total[row, column] * self.factor[row])

    def _begin(self) -> None:
        """Start with no keys."""
        with self.each_row() as row:
            self.top[row] = self.lowest
            self.sum[row] = self.zero
        with self.each_row() as row, self.body.loops(self.values) as column:
            self.total[row, column] = self.zero

    def _take(self, start: int | Index, count: int | Index) -> None:
        """Take a block of keys into account."""
        k = self.body
        self.score(start, count)
        with self.each_row() as row:
            self.base[row] = self.largest(row, count)
        # What one number of a row follows from is computed for all rows: they are lanes.
        with self.each_row() as row:
            before = self.top[row]
            top = k.apply(scalars.maxnum, self.base[row], before)
            base = self.shift(top)
            self.top[row], self.base[row] = top, base
            # The factor of what the row keeps.
            self.factor[row] = self.exponential(before - base)
        with self.each_row() as row:
            total, before = self.exponentials(row, count), self.sum[row]
            self.sum[row] = k.fma(before, self.factor[row], total)
        with self.each_row() as row, k.loops(self.values) as column:
            before = self.total[row, column] * self.factor[row]
            self.total[row, column] = self.weighed(row, column, count, before)
