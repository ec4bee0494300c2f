"""`from_sklearn`: a fitted model of scikit-learn, by the ONNX model that skl2onnx writes of it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..core.errors import ImportModelError, InputError, explain, first_line
from ..core.ir.module import Module
from .onnx.files import ExternalData
from .onnx.importer import import_model

_OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of operators that skl2onnx may use, all of which are read."""


def from_sklearn(model: Any, example: Any = None) -> Module:
    """Read a fitted estimator, transformer or pipeline of scikit-learn.

    A classifier has two results: the labels, which are strings where those of the training were,
    and the probabilities or scores, a column for each class.

    Args:
        model: what scikit-learn has fitted.
        example: rows that the model takes, an array or a frame of pandas, whose columns are the
            inputs of the program then. Only its types matter. By default there is one input of all
            features, of f32, or of strings if the model begins with an encoder of strings.

    Raises:
        InputError: if the model is none of scikit-learn or not fitted, or its columns have several
            types and there is no example.
        ImportModelError: if skl2onnx is not installed or cannot convert the model, or if the result
            has unsupported operators.
    """
    if not hasattr(model, "get_params") or isinstance(model, type):
        got = type(model).__name__ if not isinstance(model, type) else f"class {model.__name__}"
        expected = "a fitted model of scikit-learn"
        raise InputError(explain("from_sklearn", "wrong model", expected=expected, got=got))
    _check_fitted(model)
    try:
        skl2onnx = importlib.import_module("skl2onnx")
        types = importlib.import_module("skl2onnx.common.data_types")
    except ImportError as error:
        fact, hint = "skl2onnx is not installed", "pip install 'stepwell[sklearn]'"
        raise ImportModelError(explain("from_sklearn", fact, hint=hint)) from error
    given: dict[str, Any] = {"X": None if example is None else example[:1]}
    if example is None:
        kind = types.StringTensorType if _begins_with_strings(model) else types.FloatTensorType
        given["initial_types"] = [("X", kind([None, getattr(model, "n_features_in_", None)]))]
    if steps := getattr(model, "steps", None):
        # By default the last step of a pipeline gets options, which some classifiers do not have.
        given["options"] = {id(steps[-1][1]): {}}
    try:
        proto = skl2onnx.to_onnx(model, **given, target_opset=_OPSETS)
    except Exception as error:  # of skl2onnx or of scikit-learn, of many classes
        fact = f"skl2onnx cannot convert the model: {first_line(error)}"
        raise ImportModelError(explain("from_sklearn", fact)) from error
    return import_model(proto, "from_sklearn", ExternalData(None))


def _check_fitted(model: Any) -> None:
    """Refuse a model of scikit-learn without what fitting adds.

    Raises:
        InputError: if it is not fitted.
    """
    validation = sys.modules.get("sklearn.utils.validation")
    if validation is None or not hasattr(model, "fit"):
        return
    try:
        validation.check_is_fitted(model)
    except validation.NotFittedError as error:
        got, hint = type(model).__name__, "call fit first"
        raise InputError(explain("from_sklearn", "not fitted", got=got, hint=hint)) from error


def _begins_with_strings(model: Any) -> bool:
    """Whether the features of a model are strings, by the categories of its first step.

    Raises:
        InputError: if it has steps for different columns, which may have different types.
    """
    if hasattr(model, "transformers_"):
        fact = "the columns of the model may have different types"
        hint = "give rows that it takes as the example"
        raise InputError(explain("from_sklearn", fact, hint=hint))
    steps = getattr(model, "steps", None)
    if steps:
        return _begins_with_strings(steps[0][1])
    categories = getattr(model, "categories_", None) or ()
    return bool(categories) and all(column.dtype.kind in "OU" for column in categories)
