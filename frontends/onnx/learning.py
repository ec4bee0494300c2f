"""What operators of `ai.onnx.ml` have in common: types of numbers, transforms of scores, labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.graph import ops as graph
from ..importing.values import Value
from .nodes import Node

_NEEDED = ("SOFTMAX_ZERO", "PROBIT")


def number_type(dtype: np.dtype) -> np.dtype:
    """The type in which elements of a type are computed: that of f64 is f64, of others f32."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def transformed(node: Node, scores: Value, kind: str) -> Value:
    """Scores after a `post_transform`."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node.emit(graph.SigmoidOp, scores)
    if kind == "SOFTMAX":
        return node.emit(graph.SoftmaxOp, scores, axis=1)
    if kind in _NEEDED:
        raise node.unsupported(f"post_transform {kind}", "LOGISTIC, SOFTMAX")
    raise node.broken("post_transform is unknown", "NONE, LOGISTIC or SOFTMAX", kind)


def classified(
    node: Node,
    scores: Value,
    labels: Sequence[int] | Sequence[str],
    is_second: Value | None = None,
    kind: str = "NONE",
) -> list[Value | None]:
    """The label of each row, and the scores after a transform.

    The label is that of the largest score; of two, the second one where `is_second` holds.
    Labels that are strings are not supported where they are used.
    """
    label = None
    if node.wants(0):
        if not labels or isinstance(labels[0], str):
            raise node.unsupported("labels that are strings", "labels that are integers")
        names = node.known(np.array(labels, np.int64))
        if is_second is None:
            options = {"kind": "max", "axis": 1, "keepdims": False}
            place = node.emit(graph.ArgReduceOp, scores, **options)
            label = node.emit(graph.GatherOp, names, place, axis=0)
        else:
            first, second = (node.known(np.array(name, np.int64)) for name in labels)
            column = node.emit(graph.WhereOp, is_second, second, first)
            label = node.emit(graph.ReshapeOp, column, shape=[-1])
    return [label, transformed(node, scores, kind) if node.wants(1) else None]
