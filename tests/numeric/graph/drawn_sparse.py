"""Random programs for rules of sparse matrices and messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from .drawn import WHOLE, Drawing, draws


def _edges(d: Drawing, rows: int, columns: int) -> Any:
    """A matrix of ones: rows without entries, with one, and with several."""
    count = d.choices.among(1, 3, 6)
    ends = [[d.choices.randrange(n) for _ in range(count)] for n in (rows, columns)]
    targets, sources = (np.array(end) for end in ends)
    return d.b.csr_from_edges(targets, sources, (rows, columns))[0]


def _some(d: Drawing, a: Any) -> Any:
    """Whether each row of a matrix has entries."""
    b, zero = d.b, np.zeros((), np.float32)
    degree = b.reshape(b.degree(a), [-1, 1])
    return b.less(zero, degree) if d.choices.chance(0.5) else b.greater(degree, zero)


def _count(d: Drawing, a: Any) -> Any:
    """The number of entries of each row, or 1."""
    b = d.b
    if d.choices.chance(0.5):
        return b.clip(b.reshape(b.degree(a), [-1, 1]), 1.0)
    return b.reshape(b.max(b.degree(a), 1.0), [-1, 1])


@draws("RowsWithEntries")
def rows_with_entries(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = _edges(d, rows, columns)
    x, y = (d.input("f32", rows, width) for _ in range(2))
    b.output(b.at_entries(a, b.where(_some(d, a), x, y), axis=0))


@draws("ChosenTwice")
def chosen_twice(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = _edges(d, rows, columns)
    x, y, z = (d.input("f32", rows, width) for _ in range(3))
    b.output(b.where(_some(d, a), b.where(_some(d, a), x, y), z))


@draws("ZeroWithoutEntries")
def zero_without_entries(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a, kind = _edges(d, rows, columns), d.choices.among("sum", "max", "min", "mean", "prod")
    x = d.input("f32", columns, width)
    made = b.aggregate(a, x, kind=kind)
    if d.choices.chance(0.5):
        made = b.reduce_entries(a, b.at_entries(a, x, axis=1), kind)
    b.output(b.where(_some(d, a), made, d.choices.among(0.0, 0.0, -0.0, 1.0)))


@draws("WeightedColumns")
def weighted_columns(d: Drawing) -> None:
    b, (rows, columns) = d.b, d.sizes(2)
    a, width = _edges(d, rows, columns), d.choices.among(2, 3)
    sent = b.at_entries(a, d.input("f32", columns, width), axis=1)
    factors = b.at_entries(a, d.input("f32", rows, d.choices.among(1, width)), axis=0)
    weighted = sent * factors if d.choices.chance(0.5) else factors * sent
    b.output(b.reduce_entries(a, weighted, d.choices.among("sum", "max", "mean")))


@draws("MeanOfEntries")
def mean_of_entries(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = _edges(d, rows, columns)
    sent = b.at_entries(a, d.input("f32", columns, width), axis=1)
    b.output(b.reduce_entries(a, b.neg(sent), "sum") / _count(d, a))


@draws("MeanOfMessages")
def mean_of_messages(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a, x = _edges(d, rows, columns), d.input("f32", columns, width)
    weights = []
    if d.choices.chance(0.5):
        weights = [b.reshape(b.at_entries(a, d.input("f32", rows, 1), axis=0), [-1])]
    b.output(b.aggregate(a, x, *weights, kind="sum") / _count(d, a))


@draws("SoftmaxOfScoresWithEpsilon")
def softmax_of_scores(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = _edges(d, rows, columns)
    scores = b.at_entries(a, d.input("f32", columns, width), axis=1)
    largest = b.at_entries(a, b.reduce_entries(a, scores, "max"), axis=0)
    shares = b.exp(scores - largest)
    total = b.reduce_entries(a, shares, "sum") + d.choices.among(1e-16, 0.0, 1e-8, 0.5)
    b.output(shares / b.at_entries(a, total, axis=0))


@draws("SumByReshapedSoftmax")
def sum_by_softmax(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a, x = _edges(d, rows, columns), d.input("f32", columns, width)
    shares = b.edge_softmax(a, b.at_entries(a, d.input("f32", rows, 1), axis=0))
    b.output(b.aggregate(a, x, b.reshape(shares, [-1]), kind="sum"))


@draws("ScaleOfRows", "ScaleOfColumns")
def scaled_matrix(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, (n + 1 for n in d.sizes(3))
    a, x = b.constant(d.stored(rows, columns)), d.input("f32", columns, width)
    if d.choices.chance(0.5):
        b.output(b.spmm(a, x) * d.constant("f32", rows, 1))
    else:
        b.output(b.spmm(a, x * d.constant("f32", columns, 1)))


def _entries(d: Drawing, a: Any) -> Any:
    """New values of the entries of a matrix."""
    b = d.b
    made = [b.neg, b.relu, lambda x: x * x, lambda x: x + 1.0]
    return d.choices.choice(made)(b.entries(a))


@draws("EntriesOfEntries")
def entries_of_entries(d: Drawing) -> None:
    a = d.matrix(*d.sizes(2))
    d.b.output(d.b.entries(d.b.with_entries(a, _entries(d, a))))


@draws("ProductOfEntries")
def product_of_entries(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = d.matrix(rows, columns)
    b.output(b.spmm(b.with_entries(a, _entries(d, a)), d.input("f32", columns, width)))


@draws("UserOfEntries")
def user_of_entries(d: Drawing) -> None:
    a = d.matrix(*d.sizes(2))
    changed = d.b.with_entries(a, _entries(d, a))
    d.b.output(d.choices.choice([d.b.degree, d.b.to_dense])(changed))


@draws("PatternOfEntries", "OtherEntries")
def user_of_pattern(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    a = d.matrix(rows, columns)
    changed = b.with_entries(a, _entries(d, a))
    x = d.input("f32", columns, width)
    made = [
        lambda: b.degree(changed, values=_entries(d, a)),
        lambda: b.to_dense(changed, _entries(d, a)),
        lambda: b.spmm(b.with_entries(changed, _entries(d, changed)), x),
        lambda: b.at_entries(changed, x, axis=1),
        lambda: b.reduce_entries(changed, b.at_entries(a, x, axis=1), "max"),
        lambda: b.aggregate(changed, x, kind="mean"),
    ]
    b.output(d.choices.choice(made)())


@draws("UserOfRows")
def user_of_rows(d: Drawing) -> None:
    b, (rows, columns, width) = d.b, d.sizes(3)
    start = d.choices.randrange(rows)
    part = b.slice_rows(d.matrix(rows, columns), start, d.choices.randint(start, rows))
    x = d.input("f32", columns, width)
    made = [
        lambda: b.spmm(part, x),
        lambda: b.aggregate(part, x, kind=d.choices.among("sum", "max", "mean")),
        lambda: b.degree(part),
    ]
    b.output(d.choices.choice(made)())


@draws("NormalizedEntries", "SpmmOfNormalized")
def normalized(d: Drawing) -> None:
    b, (nodes, width) = d.b, d.sizes(2)
    kind, loops = d.choices.among("row", "symmetric"), d.choices.chance(0.4)
    a = b.normalize(d.matrix(nodes, nodes), kind, loops)
    b.output(b.spmm(a, d.input("f32", nodes, width)))


@draws("ProductOfParts")
def product_of_parts(d: Drawing) -> None:
    b, (nodes, inner, width) = d.b, d.sizes(3)
    parts, columns = d.choices.among(1, 2, 3), d.choices.among(1, 2, 4)
    a = d.matrix(parts * nodes, columns)
    sums = b.aggregate(a, d.input("f32", columns, inner), kind=d.choices.among("sum", "mean"))
    rows = b.transpose(b.reshape(sums, [parts, nodes, inner]), [1, 0, 2])
    rows = b.reshape(rows, [nodes, parts * inner])
    if d.choices.chance(0.5):
        b.output(b.matmul(rows, d.constant("f32", parts * inner, width)))
    else:
        bias = [d.constant("f32", width)] if d.choices.chance(0.5) else []
        b.output(b.dense(rows, d.constant("f32", width, parts * inner), *bias))


@draws("WithSelfLoops")
def self_loops(d: Drawing) -> None:
    """Each node sums up what others send and what it has itself, as libraries write it."""
    b, nodes, count = d.b, d.choices.among(1, 3, 5), d.choices.among(0, 1, 4, 9)
    x = d.b.input("x", ("n", 3))
    d.inputs.append(d.array("f32", nodes, 3))
    ends = d.b.input("ends", (2, "e"), "i64")
    numbers = [[d.choices.randrange(nodes) for _ in range(count)] for _ in range(2)]
    d.inputs.append(np.array(numbers, np.int64).reshape(2, count))

    def row(matrix: Any, number: int) -> Any:
        return b.reshape(b.slice(matrix, [number, 0], [number + 1, WHOLE]), [-1])

    kept, _ = b.nonzero(b.logical_not(b.equal(row(ends, 0), row(ends, 1))))
    none = b.slice(b.reshape(x, [-1, 3, 1]), [0, 0, 0], [WHOLE, WHOLE, 0])
    ones = b.cast(b.reduce(none, "sum", [1, 2], keepdims=False), "i64") * 0 + 1
    each = b.cumulative(ones, "sum", 0, exclusive=True)
    loops = b.reshape(b.broadcast_to(b.reshape(each, [1, -1]), [2, -1]), [2, -1])
    both = b.concat([b.gather(ends, kept, axis=1), loops], axis=1)
    source = d.choices.among(0, 1)
    messages = b.gather(x, row(both, source), axis=0)
    zero = b.reduce(none, "sum", [2], False)
    b.output(b.scatter_nd(zero, messages, [row(both, 1 - source)], kind="add"))


def _slices(d: Drawing, nodes: int, width: int) -> tuple[Any, Any]:
    """The slices of the two ends of many edges, by an edge list or by a matrix."""
    b, count = d.b, d.choices.among(8, 16)
    x = d.input("f32", nodes, width)
    ends = [np.array([d.choices.randrange(nodes) for _ in range(count)]) for _ in range(2)]
    if d.choices.chance(0.5):
        a = b.csr_from_edges(*ends, (nodes, nodes))[0]
        return b.at_entries(a, x, axis=0), b.at_entries(a, x, axis=1)
    own, other = (b.gather(x, b.constant(end), axis=0) for end in ends)
    return own, other


@draws("ElementwiseBeforeGather")
def elementwise_before_gather(d: Drawing) -> None:
    b, (nodes, width) = d.b, d.sizes(2)
    own, other = _slices(d, nodes, width)
    operand = d.choices.among(own, other)
    made = [b.neg(operand), b.relu(operand), b.mul(operand, d.input("f32", 1, width))]
    b.output(d.choices.choice(made))


@draws("ProductBeforeGather")
def product_before_gather(d: Drawing) -> None:
    b, (nodes, width, columns) = d.b, d.sizes(3)
    own, other = _slices(d, nodes, width)
    x = b.concat([own, d.choices.among(other, other - own, -other)], axis=1)
    if d.choices.chance(0.5):
        b.output(b.matmul(x, d.either("f32", 2 * width, columns)))
    else:
        bias = [d.either("f32", columns)] if d.choices.chance(0.5) else []
        b.output(b.dense(x, d.either("f32", columns, 2 * width), *bias))
