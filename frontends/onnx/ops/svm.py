"""Support vector machines of `ai.onnx.ml`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.elementwise import cast
from ...importing.reductions import reduced
from ...importing.regions import iterated
from ...importing.selection import apart
from ...importing.shapes import matrix_product, unsqueezed
from ...importing.values import Value
from ..learning import classified, number_type, transformed
from ..nodes import Node
from ..registry import converts

_ML = "ai.onnx.ml"
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


@converts("SVMRegressor", since=1, domain=_ML)
def svm_regressor(node: Node) -> Value:
    count = node.attr_int("n_supports")
    weights = np.array(node.attr_floats("coefficients") or [], np.float32)
    node.ignore("n_targets")
    if count:
        products, rows = _products(node, _vectors(node, count), _kernel(node)), weights
    else:
        _kernel(node)
        products, rows = _features(node), weights
    found = node.add(_weighted(node, products, rows[:, None]), _shifts(node, 1)[0])
    if node.attr_int("one_class"):
        found = node.where(node.less(0.0, found), 1.0, -1.0)
    found = transformed(node, found, node.attr_string("post_transform", "NONE"))
    return cast(node, found, _F32)


@converts("SVMClassifier", since=1, domain=_ML)
def svm_classifier(node: Node) -> Sequence[Value | None]:
    labels = node.attr_ints("classlabels_ints") or node.attr_strings("classlabels_strings") or []
    counts = node.attr_ints("vectors_per_class") or []
    kind = node.attr_string("post_transform", "NONE")
    if sum(counts):
        return _of_pairs(node, labels, counts, kind)
    _kernel(node)
    node.ignore("prob_a", "prob_b")
    weights = np.array(node.attr_floats("coefficients") or [], np.float32)
    rows = weights.reshape(len(labels), -1) if labels and weights.size % len(labels) == 0 else None
    if rows is None:
        raise node.broken("coefficients do not fit the labels", len(labels), weights.size)
    scores = node.add(_weighted(node, _features(node), rows.T), _shifts(node, 1)[0])
    return classified(node, cast(node, scores, _F32), labels, kind=kind)


def _of_pairs(
    node: Node, labels: Sequence[int] | Sequence[str], counts: Sequence[int], kind: str
) -> Sequence[Value | None]:
    """Each pair of classes votes for one of them, and the first one with most votes wins."""
    if len(counts) != len(labels) or len(labels) < 2:
        raise node.broken("vectors_per_class does not fit the labels", len(labels), len(counts))
    products = _products(node, _vectors(node, sum(counts)), _kernel(node))
    pairs = list(itertools.combinations(range(len(labels)), 2))
    scores = _pair_scores(node, products, counts, pairs)
    chances = _chances(node, scores, pairs)
    # The number of votes for each class.
    classes = len(labels)
    parts = apart(node, scores, 1, [1] * len(pairs))
    firsts = [node.less(0.0, part) for part in parts]
    wins = node.concat([*firsts, *(node.logical_not(v) for v in firsts)], axis=1)
    table = np.zeros((2 * len(pairs), classes), np.float32)
    for place, (first, second) in enumerate(pairs):
        table[place, first] = table[len(pairs) + place, second] = 1
    winners = matrix_product(node, cast(node, wins, _F32), node.known(table))
    label = classified(node, winners, labels)[0] if node.wants(0) else None
    if chances is None and len(pairs) == 1:
        chances = node.concat([node.neg(scores), scores], axis=1)
    result = transformed(node, scores if chances is None else chances, kind)
    return [label, cast(node, result, _F32)]


def _pair_scores(
    node: Node, products: Value, counts: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Value:
    """A column for each pair of classes: positive for the first one of it."""
    total, ends = sum(counts), np.cumsum(counts)
    given = np.array(node.attr_floats("coefficients") or [], np.float32)
    if given.size != (len(counts) - 1) * total:
        expected = (len(counts) - 1) * total
        raise node.broken("coefficients do not fit the vectors", expected, given.size)
    rows = given.reshape(-1, total)
    weights = np.zeros((total, len(pairs)), np.float32)
    for column, (first, second) in enumerate(pairs):
        for own, row in ((first, second - 1), (second, first)):
            part = slice(ends[own] - counts[own], ends[own])
            weights[part, column] = rows[row, part]
    shifts = _shifts(node, len(pairs)).astype(products.dtype)
    return node.add(_weighted(node, products, weights), node.known(shifts))


# J. C. Platt, Probabilistic outputs for support vector machines, 1999
def _chances(node: Node, scores: Value, pairs: Sequence[tuple[int, int]]) -> Value | None:
    """The chances of the classes, if the model has them."""
    slopes, shifts = (node.attr_floats(name) or [] for name in ("prob_a", "prob_b"))
    if not slopes:
        return None
    if len(slopes) != len(pairs) or len(shifts) != len(pairs):
        got = f"{len(slopes)} and {len(shifts)}"
        raise node.broken("prob_a and prob_b do not fit", len(pairs), got)
    slope, shift = (node.known(np.array(row).astype(scores.dtype)) for row in (slopes, shifts))
    first = node.sigmoid(node.neg(node.add(node.mul(scores, slope), shift)))
    first = node.min(node.max(first, 1e-7), 1 - 1e-7)
    both = node.concat([first, node.sub(1.0, first)], axis=1)
    return both if len(pairs) == 1 else _coupled(node, cast(node, both, _F64), pairs)


# T.-F. Wu, C.-J. Lin and R. C. Weng, Probability estimates for multi-class classification by
# pairwise coupling, 2004: their second method, in at most 100 rounds as in LIBSVM
def _coupled(node: Node, chances: Value, pairs: Sequence[tuple[int, int]]) -> Value:
    """The chances of classes from those of the first and of the second one of each pair.

    p minimises p Q p, where Q[t][t] is the sum of r[j][t]^2, and Q[t][j] is -r[j][t] r[t][j].
    """
    classes = pairs[-1][1] + 1
    places = np.full((classes, classes), 2 * len(pairs))
    for number, (first, second) in enumerate(pairs):
        places[first, second], places[second, first] = number, len(pairs) + number
    zero = node.mul(apart(node, chances, 1, [1, 2 * len(pairs) - 1])[0], 0.0)
    of_pairs = node.concat([chances, zero], axis=1)
    ours, theirs = (
        node.gather(of_pairs, node.known(table), axis=1) for table in (places, places.T)
    )
    squares = reduced(node, node.mul(theirs, theirs), [2], True, "sum")
    matrix = node.sub(node.mul(squares, node.known(np.eye(classes))), node.mul(ours, theirs))
    rows = [node.gather(matrix, node.known(np.array(t)), axis=1) for t in range(classes)]
    evenly = node.add(zero, node.known(np.full(classes, 1 / classes)))

    def products(p: Value) -> tuple[Value, Value, Value]:
        """Q p, p Q p, and whether a row is done."""
        each = reduced(node, node.mul(matrix, unsqueezed(node, p, [1])), [2], False, "sum")
        total = reduced(node, node.mul(each, p), [1], True, "sum")
        error = reduced(node, node.abs(node.sub(each, total)), [1], True, "max")
        return each, total, node.less(error, 0.005 / classes)

    def step(values: Sequence[Value]) -> list[Value]:
        p = values[1]
        each, total, is_done = products(p)
        for t, row in enumerate(rows):
            own, product = (apart(node, v, 1, [t, 1, classes - t - 1])[1] for v in (row, each))
            change = node.where(is_done, 0.0, node.div(node.sub(total, product), own))
            scale = node.add(change, 1.0)
            more = node.mul(change, node.add(node.mul(change, own), node.mul(product, 2.0)))
            total = node.div(node.add(total, more), node.mul(scale, scale))
            each = node.div(node.add(each, node.mul(change, row)), scale)
            unit = node.known(np.eye(classes)[t])
            p = node.div(node.add(p, node.mul(change, unit)), scale)
        left = cast(node, node.logical_not(products(p)[2]), _F64)
        return [node.less(0.0, reduced(node, left, [0, 1], False, "sum")), p]

    rounds = max(100, classes)
    return iterated(node, step, [evenly], None, None, Dim.of(rounds))[0]


def _features(node: Node) -> Value:
    """The operand as floats, a row for each example."""
    x = node.input(0)
    if x.rank not in (1, 2) or not x.shape[-1].is_static:
        got = [str(dim) for dim in x.shape]
        raise node.unsupported(f"examples of shape {got}", "rows of a static number of features")
    rows = unsqueezed(node, x, [0]) if x.rank == 1 else x
    return cast(node, rows, number_type(x.dtype))


def _weighted(node: Node, rows: Value, weights: np.ndarray) -> Value:
    if rows.shape[1] != Dim.of(len(weights)):
        raise node.broken("coefficients do not fit the operand", rows.shape[1], len(weights))
    return matrix_product(node, rows, node.known(weights.astype(rows.dtype)))


def _shifts(node: Node, count: int) -> np.ndarray:
    given = np.array(node.attr_floats("rho") or np.zeros(count), np.float32)
    if len(given) < count:
        raise node.broken("rho has the wrong length", count, len(given))
    return given[:count]


def _vectors(node: Node, count: int) -> np.ndarray:
    """The support vectors, a row for each."""
    given = np.array(node.attr_floats("support_vectors") or [], np.float32)
    if not given.size or given.size % count:
        raise node.broken("support_vectors do not fit", f"a multiple of {count}", given.size)
    return given.reshape(count, -1)


def _kernel(node: Node) -> tuple[str, Sequence[float]]:
    """The kernel, and its gamma, constant and degree."""
    kind, given = node.attr_string("kernel_type", "LINEAR"), node.attr_floats("kernel_params")
    if kind not in _KERNELS:
        raise node.broken("kernel_type is unknown", ", ".join(_KERNELS), kind)
    parameters = given or [0.0, 0.0, 0.0]
    if len(parameters) != 3:
        raise node.broken("kernel_params are wrong", "gamma, coef0 and degree", parameters)
    return kind, parameters


def _products(node: Node, vectors: np.ndarray, kernel: tuple[str, Sequence[float]]) -> Value:
    """The kernel of each example and each support vector."""
    x, (kind, (gamma, shift, degree)) = _features(node), kernel
    if x.shape[1] != Dim.of(vectors.shape[1]):
        raise node.broken("support_vectors do not fit the operand", x.shape[1], vectors.shape[1])
    rows = vectors.astype(x.dtype)
    if kind == "RBF":
        apart = node.sub(unsqueezed(node, x, [1]), node.known(rows))
        return node.exp(node.mul(reduced(node, node.mul(apart, apart), [2], False, "sum"), -gamma))
    found = matrix_product(node, x, node.known(np.ascontiguousarray(rows.T)))
    if kind == "LINEAR":
        return found
    found = node.add(node.mul(found, gamma), shift)
    return node.tanh(found) if kind == "SIGMOID" else node.pow(found, degree)
