"""TfIdfVectorizer: how often sequences of numbers are in rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.elementwise import cast
from ...importing.reductions import reduced
from ...importing.selection import sliced, whole
from ...importing.shapes import broadcast, squeezed, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

_F32 = np.dtype(np.float32)


@converts("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: Node) -> Value:
    x, mode = node.input(0), node.attr_string("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise node.broken("mode is unknown", "TF, IDF or TFIDF", mode)
    if x.dtype.kind not in "iu":
        raise node.broken("operand has the wrong type", "integers", x.dtype.name)
    if x.rank not in (1, 2) or not x.shape[-1].is_static:
        raise node.unsupported(f"rows of shape {[str(dim) for dim in x.shape]}", "a static length")
    sequences, columns = _sequences(node)
    weights = np.array(node.attr_floats("weights") or np.ones(len(columns)), np.float32)
    if len(weights) != len(columns):
        raise node.broken("weights do not fit", len(columns), len(weights))
    rows = node.wide(unsqueezed(node, x, [0]) if x.rank == 1 else x)
    lengths = range(node.attr_int("min_gram_length", 1), node.attr_int("max_gram_length", 1) + 1)
    skips = range(node.attr_int("max_skip_count") + 1)
    counts = [_counts(node, rows, own, lengths, skips) for own in sequences if len(own)]
    zero = broadcast(node, node.known(np.zeros((), np.float32)), [rows.shape[0], *_ONE])
    every = node.concat([*counts, zero], axis=1)
    if mode == "IDF":
        every = node.min(every, 1.0)
    if mode != "TF":
        every = node.mul(every, node.known(np.append(weights, np.float32(0))))
    found = node.gather(every, node.known(_order(node, columns)), axis=1)
    return squeezed(node, found, [0]) if x.rank == 1 else found


_ONE = (Dim.of(1),)


def _sequences(node: Node) -> tuple[list[np.ndarray], list[int]]:
    """The sequences of each length, which are counted, and the column of each one.

    Those of a length that is not counted are in no row.
    """
    starts, columns = node.attr_ints("ngram_counts") or [], node.attr_ints("ngram_indexes") or []
    if node.has("pool_strings"):
        raise node.unsupported("sequences of strings", "pool_int64s")
    pool = np.array(node.attr_ints("pool_int64s") or [], np.int64)
    ends = [*starts[1:], len(pool)]
    parts = [pool[start:end] for start, end in zip(starts, ends, strict=True)]
    lengths = range(1, len(starts) + 1)
    wrong = [len(part) % n for n, part in zip(lengths, parts, strict=True)]
    count = sum(len(part) // n for n, part in zip(lengths, parts, strict=True))
    if any(wrong) or sorted([0, *starts]) != [0, *starts] or count != len(columns):
        raise node.broken(
            "ngram_counts, ngram_indexes and the pool do not fit", count, len(columns)
        )
    return [part.reshape(-1, n) for n, part in zip(lengths, parts, strict=True)], columns


def _order(node: Node, columns: Sequence[int]) -> np.ndarray:
    """The sequence of each column of the result; the one after the last for none."""
    if len(set(columns)) < len(columns) or min(columns, default=0) < 0:
        raise node.unsupported("several sequences of one column")
    order = np.full(max(columns, default=-1) + 1, len(columns))
    order[columns] = np.arange(len(columns))
    return order


def _counts(node: Node, rows: Value, sequences: np.ndarray, lengths: range, skips: range) -> Value:
    """How often each sequence is in each row, where some elements may be skipped between two."""
    length = sequences.shape[1]
    own = skips if length > 1 else skips[:1]
    starts = [rows.shape[1].value - (length - 1) * (skip + 1) for skip in own]
    totals = [
        _count(node, rows, sequences, skip + 1, count)
        for skip, count in zip(own, starts, strict=True)
        if count > 0 and length in lengths
    ]
    if totals:
        return functools.reduce(node.add, totals)
    shape = [rows.shape[0], Dim.of(len(sequences))]
    return broadcast(node, node.known(np.zeros((), np.float32)), shape)


def _count(node: Node, rows: Value, sequences: np.ndarray, step: int, count: int) -> Value:
    matches = list[Value]()
    for place, column in enumerate(sequences.T):
        start = place * step
        part = sliced(node, rows, [*whole(rows)[:-1], (start, start + count, 1)])
        matches.append(
            node.equal(unsqueezed(node, part, [2]), node.known(column.astype(rows.dtype)))
        )
    found = cast(node, functools.reduce(node.logical_and, matches), _F32)
    return reduced(node, found, [1], False, "sum")
