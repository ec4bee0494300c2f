"""What operators of `ai.onnx.ml` have in common: types of numbers, transforms of scores, labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..importing.elementwise import cast
from ..importing.reductions import reduced
from ..importing.values import Value
from .nodes import Node

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What a `post_transform` may be."""
_LEAST_SCORE = 1e-7
_WINITZKI = 0.147


def number_type(dtype: np.dtype) -> np.dtype:
    """The type in which elements of a type are computed: that of f64 is f64, of others f32."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def transformed(node: Node, scores: Value, kind: str) -> Value:
    """Scores after a `post_transform`."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node.sigmoid(scores)
    if kind == "SOFTMAX":
        return node.softmax(scores, axis=1)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(node, scores)
    if kind == "PROBIT":
        return _probit(node, scores)
    raise node.broken("post_transform is unknown", ", ".join(TRANSFORMS), kind)


def _softmax_zero(node: Node, scores: Value) -> Value:
    """The softmax of scores that are not 0, and 0 for others; 0.5 where all are."""
    largest = reduced(node, scores, [1], True, "max")
    is_some = node.less(_LEAST_SCORE, node.abs(scores))
    terms = node.where(
        is_some, node.exp(node.sub(scores, largest)), node.mul(scores, node.exp(node.neg(largest)))
    )
    total = reduced(node, terms, [1], True, "sum")
    return node.where(node.equal(total, 0.0), 0.5, node.div(terms, total))


# S. Winitzki, A handy approximation for the error function and its inverse, 2008, which other
# runtimes have as well: its error is below 0.005
def _probit(node: Node, scores: Value) -> Value:
    """The quantiles of the normal distribution: sqrt(2) erfinv(2 p - 1)."""
    x = node.sub(node.mul(scores, 2.0), 1.0)
    logarithm = node.log(node.mul(node.sub(1.0, x), node.add(1.0, x)))
    half = node.add(node.mul(logarithm, 0.5), 2 / (math.pi * _WINITZKI))
    root = node.sqrt(node.sub(node.mul(half, half), node.div(logarithm, _WINITZKI)))
    found = node.mul(node.sqrt(node.sub(root, half)), math.sqrt(2))
    return node.where(node.less(x, 0.0), node.neg(found), found)


def labels_of(node: Node, labels: Sequence[int] | Sequence[str]) -> Value:
    """Labels, which are all integers or all strings, as a vector.

    Raises:
        ImportModelError: if there are none.
    """
    if not labels:
        raise node.broken("there are no labels", "classlabels", "none")
    texts = [label for label in labels if isinstance(label, str)]
    return node.known_texts(texts) if texts else node.known(np.array(labels, np.int64))


def classified(
    node: Node,
    scores: Value,
    labels: Sequence[int] | Sequence[str],
    is_second: Value | None = None,
    kind: str = "NONE",
) -> list[Value | None]:
    """The label of each row, and the scores after a transform.

    The label is that of the largest score; of two, the second one where `is_second` holds.
    """
    label = None
    if node.wants(0):
        names = labels_of(node, labels)
        if is_second is None:
            options = {"kind": "max", "axis": 1, "keepdims": False}
            place = node.arg_reduce(scores, **options)
            label = node.gather(names, place, axis=0)
        else:
            column = node.gather(names, cast(node, is_second, np.dtype(np.int64)), axis=0)
            label = node.reshape(column, shape=[-1])
        label.is_text = names.is_text
    return [label, transformed(node, scores, kind) if node.wants(1) else None]
