"""Operators of `ai.onnx.ml` but trees: scalers, linear models, encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.elementwise import cast, is_nan
from ...importing.reductions import reduced
from ...importing.shapes import matrix_product, reshaped, unsqueezed
from ...importing.values import Value
from ..learning import classified, number_type, transformed
from ..nodes import Node
from ..registry import converts

_ML = "ai.onnx.ml"
_F32 = np.dtype(np.float32)


def _row(node: Node, name: str, default: float, dtype: np.dtype, count: Dim) -> Value:
    """An attribute of one number, or of one for each column."""
    numbers = np.array(node.attr_floats(name) or [default]).astype(dtype)
    if numbers.size != 1 and Dim.of(numbers.size) != count:
        raise node.broken(f'attribute "{name}" has the wrong length', f"1 or {count}", numbers.size)
    return node.known(numbers)


def _features(node: Node) -> Value:
    """The operand as floats, a row of features for each example."""
    x = node.input(0)
    if x.rank < 1:
        raise node.broken("operand is a scalar", "rank >= 1", "rank 0")
    return cast(node, x, number_type(x.dtype))


@converts("Scaler", since=1, domain=_ML)
def scaler(node: Node) -> Value:
    # (x - offset) * scale
    x = _features(node)
    offset = _row(node, "offset", 0, x.dtype, x.shape[-1])
    scale = _row(node, "scale", 1, x.dtype, x.shape[-1])
    return cast(node, node.mul(node.sub(x, offset), scale), _F32)


@converts("Normalizer", since=1, domain=_ML)
def normalizer(node: Node) -> Value:
    x, norm = _features(node), node.attr_string("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        raise node.broken("norm is unknown", "MAX, L1 or L2", norm)
    if norm == "MAX":
        size = reduced(node, x, [x.rank - 1], True, "max")
    else:
        terms = node.abs(x) if norm == "L1" else node.mul(x, x)
        total = reduced(node, terms, [x.rank - 1], True, "sum")
        size = total if norm == "L1" else node.sqrt(total)
    # What is 0 everywhere stays so.
    divisor = node.where(node.equal(size, 0.0), 1.0, size)
    return cast(node, node.div(x, divisor), _F32)


@converts("Binarizer", since=1, domain=_ML)
def binarizer(node: Node) -> Value:
    x, limit = node.input(0), node.attr_float("threshold")
    numbers = _features(node)
    is_more = node.greater(numbers, limit)
    return cast(node, is_more, x.dtype)


@converts("Imputer", since=1, domain=_ML)
def imputer(node: Node) -> Value:
    x = node.input(0)
    if x.dtype.kind == "f":
        given, kept = (
            node.attr_floats("imputed_value_floats"),
            node.attr_float("replaced_value_float"),
        )
        node.ignore("imputed_value_int64s", "replaced_value_int64")
    else:
        given = node.attr_ints("imputed_value_int64s")
        kept = node.attr_int("replaced_value_int64")
        node.ignore("imputed_value_floats", "replaced_value_float")
    if not given or (len(given) != 1 and Dim.of(len(given)) != x.shape[-1]):
        raise node.broken("imputed values do not fit the operand", f"1 or {x.shape[-1]}", given)
    is_missing = is_nan(node, x) if np.isnan(kept) else node.equal(x, kept)
    return node.where(is_missing, node.known(np.array(given, x.dtype)), x)


@converts("FeatureVectorizer", since=1, domain=_ML)
def feature_vectorizer(node: Node) -> Value:
    sizes = node.attr_ints("inputdimensions")
    parts: list[Value] = []
    for number, value in enumerate(node.variadic()):
        part = unsqueezed(node, value, [1]) if value.rank == 1 else value
        if part.rank != 2 or (sizes and part.shape[1] != Dim.of(sizes[number])):
            got = [str(dim) for dim in value.shape]
            raise node.broken(f"operand {number} does not fit inputdimensions", sizes, got)
        parts.append(cast(node, part, _F32))
    return node.concat(parts, axis=1)


@converts("ArrayFeatureExtractor", since=1, domain=_ML)
def array_feature_extractor(node: Node) -> Value:
    x, places = node.input(0), node.input(1)
    flat = reshaped(node, places, [None]) if places.rank != 1 else places
    if not x.rank:
        raise node.broken("operand is a scalar", "rank >= 1", "rank 0")
    found = node.gather(x, flat, axis=x.rank - 1)
    return unsqueezed(node, found, [0]) if x.rank == 1 else found


@converts("ZipMap", since=1, domain=_ML)
def zip_map(node: Node) -> Value:
    """The scores as an array: a column for each key."""
    node.ignore("classlabels_int64s", "classlabels_strings")
    return node.input(0)


@converts("LabelEncoder", since=2, domain=_ML)
def label_encoder(node: Node) -> Value:
    x, found, named = node.input(0), _labels(node, "keys"), _labels(node, "values")
    keys, values = _contents(found), _contents(named)
    default = _default(node, named)
    if len(keys) != len(values) or not len(keys):
        raise node.broken("keys and values do not fit", "as many values as keys", len(values))
    _check_operand(node, found, "keys")
    # Of equal keys the last one counts; a NaN comes last.
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order].astype(x.dtype), values[order]
    place = node.searchsorted(node.known(keys), x, right=True)
    place = node.max(node.sub(place, 1), 0)
    key, value = (node.gather(node.known(v), place, axis=0) for v in (keys, values))
    is_key = node.equal(key, x)
    if np.isnan(keys[-1]):
        is_key = node.logical_or(is_key, is_nan(node, x))
    return replace(node.where(is_key, value, node.known(default)), is_text=named.is_text)


@converts("OneHotEncoder", since=1, domain=_ML)
def one_hot_encoder(node: Node) -> Value:
    """A row for each element: 1 at the category that it is."""
    x, categories = node.input(0), _labels(node, "cats")
    if x.dtype.kind == "f":
        x = cast(node, x, categories.dtype)
    else:
        _check_operand(node, categories, "cats")
    is_category = node.equal(unsqueezed(node, x, [x.rank]), cast(node, categories, x.dtype))
    found = cast(node, is_category, _F32)
    if node.attr_int("zeros", 1):
        return found
    known = reduced(node, found, list(range(x.rank + 1)), False, "sum")
    every = node.number(product(x.shape))
    fits = node.equal(cast(node, known, every.dtype), every)
    return node.check(found, fits, [], "an element is none of the categories")


def _labels(node: Node, name: str) -> Value:
    """The numbers or strings of an attribute, as a vector."""
    if texts := node.attr_strings(f"{name}_strings"):
        return node.known_texts(texts)
    found = node.attr_tensor(f"{name}_tensor")
    if found is None and (ints := node.attr_ints(f"{name}_int64s")):
        found = np.array(ints, np.int64)
    if found is None and (floats := node.attr_floats(f"{name}_floats")):
        found = np.array(floats, np.float32)
    if found is None or found.dtype.kind not in "iuf":
        raise node.broken(f"there are no {name}", "numbers or strings", "none")
    return node.known(found.ravel())


def _contents(value: Value) -> np.ndarray:
    assert value.contents is not None
    return value.contents


def _check_operand(node: Node, labels: Value, name: str) -> None:
    """Refuse an operand of another type than the labels that it is compared with."""
    x = node.input(0)
    expected, got = ("string" if value.is_text else value.dtype.name for value in (x, labels))
    if labels.dtype.kind != x.dtype.kind or labels.is_text != x.is_text:
        raise node.broken(f"{name} have another type than the operand", expected, got)


def _default(node: Node, values: Value) -> np.ndarray:
    found, text = node.attr_tensor("default_tensor"), node.attr_string("default_string", "_Unused")
    integer, number = node.attr_int("default_int64", -1), node.attr_float("default_float", -0.0)
    if values.is_text:
        return _contents(node.known_texts([text])).reshape(())
    if found is not None:
        return found.reshape(()).astype(values.dtype)
    return np.array(number if values.dtype.kind == "f" else integer, values.dtype)


@converts("LinearRegressor", since=1, domain=_ML)
def linear_regressor(node: Node) -> Value:
    scores = _linear(node, node.attr_int("targets", 1))
    return transformed(node, scores, node.attr_string("post_transform", "NONE"))


@converts("LinearClassifier", since=1, domain=_ML)
def linear_classifier(node: Node) -> Sequence[Value | None]:
    node.ignore("multi_class")
    labels = node.attr_ints("classlabels_ints") or node.attr_strings("classlabels_strings") or []
    rows = 1 if len(node.attr_floats("intercepts") or []) == 1 else len(labels)
    scores = _linear(node, rows)
    if rows == 1 and len(labels) == 2:
        negative = node.neg(scores)
        scores = node.concat([negative, scores], axis=1)
    elif rows != len(labels):
        raise node.unsupported(f"one score for {len(labels)} labels")
    return classified(node, scores, labels, kind=node.attr_string("post_transform", "NONE"))


def _linear(node: Node, rows: int) -> Value:
    """The products with rows of coefficients, and their intercepts."""
    x = _features(node)
    coefficients = np.array(node.attr_floats("coefficients") or [])
    intercepts = np.array(node.attr_floats("intercepts") or np.zeros(rows))
    if x.rank == 1:
        x = unsqueezed(node, x, [0])
    columns = coefficients.size // max(rows, 1)
    if x.rank != 2 or x.shape[1] != Dim.of(columns) or rows * columns != coefficients.size:
        got = f"{coefficients.size} for {[str(dim) for dim in x.shape]}"
        raise node.broken("coefficients do not fit the operand", f"{rows} x features", got)
    if len(intercepts) != rows:
        raise node.broken("intercepts have the wrong length", rows, len(intercepts))
    matrix = coefficients.reshape(rows, columns).T.astype(x.dtype)
    product = matrix_product(node, x, node.known(np.ascontiguousarray(matrix)))
    total = node.add(product, node.known(intercepts.astype(x.dtype)))
    return cast(node, total, _F32)
