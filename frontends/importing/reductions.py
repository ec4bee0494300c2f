"""Reductions composed of several operators, each with the identity that it uses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .elementwise import cast
from .nodes import ModelNode
from .shapes import reshaped
from .values import Value


def reduced(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool, kind: str) -> Value:
    if not axes:
        return x
    if kind in ("max", "min"):
        return _extremum(node, x, axes, keepdims, kind)
    return node.reduce(x, kind=kind, axes=axes, keepdims=keepdims)


def _extremum(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool, kind: str) -> Value:
    # Of an empty axis it is the neutral element, as ONNX specifies it since opset 20.
    neutral = any(not x.shape[axis].is_static or x.shape[axis] == 0 for axis in axes)
    options = {"kind": kind, "axes": axes, "keepdims": keepdims, "neutral": neutral}
    if x.dtype != np.bool_:
        return node.reduce(x, **options)
    found = node.reduce(cast(node, x, np.dtype(np.int8)), **options)
    if neutral:
        found = node.clip(found, minimum=0, maximum=1)
    return cast(node, found, x.dtype)


def _total(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return reduced(node, x, axes, keepdims, "sum")


def sum_square(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return _total(node, node.mul(x, x), axes, keepdims)


def l1(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return _total(node, node.abs(x), axes, keepdims)


def l2(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    if x.dtype.kind == "f":
        return node.sqrt(sum_square(node, x, axes, keepdims))
    wide = cast(node, x, np.dtype(np.float64))
    return cast(node, node.sqrt(sum_square(node, wide, axes, keepdims)), x.dtype)


def log_sum(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    return node.log(_total(node, x, axes, keepdims))


def log_sum_exp(node: ModelNode, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    # log(sum(exp(x))) == log(sum(exp(x - m))) + m, with m = max(x) clipped to finite numbers,
    # because inf - inf is NaN.
    if x.dtype.kind != "f":
        raise node.unsupported(f"not supported for {x.dtype.name}")
    if any(x.shape[axis] == 0 for axis in axes):
        return log_sum(node, node.exp(x), axes, keepdims)
    largest = float(np.finfo(x.dtype).max)
    maximum = reduced(node, x, axes, True, "max")
    finite = node.clip(maximum, minimum=-largest, maximum=largest)
    shifted = node.exp(node.sub(x, finite))
    logarithm = node.log(_total(node, shifted, axes, True))
    result = node.add(logarithm, finite)
    if keepdims:
        return result
    return reshaped(node, result, [d for i, d in enumerate(x.shape) if i not in axes])


def norm(node: ModelNode, x: Value, order: float, axes: Sequence[int], keepdims: bool) -> Value:
    # (|a|^p + |b|^p + ...)^(1/p)
    if order == 2:
        return node.sqrt(sum_square(node, x, axes, keepdims))
    magnitude = node.abs(x)
    if math.isinf(order):
        return reduced(node, magnitude, axes, keepdims, "max" if order > 0 else "min")
    if order == 0:
        some = node.equal(x, 0)
        return _total(node, cast(node, node.logical_not(some), x.dtype), axes, keepdims)
    if order == 1:
        return _total(node, magnitude, axes, keepdims)
    if order < 0:
        raise node.unsupported(f"a norm of order {order}", "an order of 0 or more")
    powers = node.pow(magnitude, order)
    total = _total(node, powers, axes, keepdims)
    return node.pow(total, 1 / order)
