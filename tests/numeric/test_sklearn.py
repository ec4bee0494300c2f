"""Models of scikit-learn beside themselves: labels, chances, encoders of strings."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import package

package("skl2onnx")

X = np.random.default_rng(3).standard_normal((60, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0) + (X[:, 2] > 0.5).astype(np.int64)
NAMES = np.array(["low", "middle", "high"])[Y]
COLUMNS = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", "y"]] * 5, object)


def of(module: str, name: str, **options: Any) -> Any:
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)


CLASSIFIERS = {
    "linear": of("linear_model", "LogisticRegression", max_iter=500),
    "margins": of("svm", "LinearSVC"),
    "machine": of("svm", "SVC", probability=True, random_state=0),
    "forest": of("ensemble", "RandomForestClassifier", n_estimators=5, random_state=0),
    "boosted": of("ensemble", "GradientBoostingClassifier", n_estimators=3, random_state=0),
    "network": of("neural_network", "MLPClassifier", hidden_layer_sizes=(5,), random_state=0),
    "bayes": of("naive_bayes", "GaussianNB"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labels", [Y, NAMES], ids=["integers", "strings"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str, labels: np.ndarray, all_tests: bool) -> None:
    scaler = of("preprocessing", "StandardScaler")
    pipeline = importlib.import_module("sklearn.pipeline").make_pipeline(scaler, CLASSIFIERS[name])
    module = sw.from_sklearn(pipeline.fit(X, labels))
    run = sw.compile(module) if all_tests else module.run_reference
    label, chances = run(X)
    assert label.tolist() == pipeline.predict(X).tolist()
    if hasattr(pipeline, "predict_proba"):
        np.testing.assert_allclose(chances, pipeline.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_one_hot_codes(unknown: str) -> None:
    encoder = of("preprocessing", "OneHotEncoder", handle_unknown=unknown, sparse_output=False)
    exe = sw.compile(sw.from_sklearn(encoder.fit(COLUMNS)))
    np.testing.assert_array_equal(exe(COLUMNS), encoder.transform(COLUMNS))
    others = np.array([["b", "z"]])
    if unknown == "error":
        with pytest.raises(sw.InputError, match="an element is none of the categories"):
            exe(others)
    else:
        np.testing.assert_array_equal(exe(others), encoder.transform(others))


def test_a_pipeline_from_strings_to_strings() -> None:
    labels = np.where(COLUMNS[:, 0] == "a", "yes", "no")
    steps = of("preprocessing", "OrdinalEncoder"), of("tree", "DecisionTreeClassifier")
    pipeline = importlib.import_module("sklearn.pipeline").make_pipeline(*steps)
    exe = sw.compile(sw.from_sklearn(pipeline.fit(COLUMNS, labels)))
    assert exe(COLUMNS)[0].tolist() == labels.tolist()


def test_the_example_has_the_types() -> None:
    scaler = of("preprocessing", "StandardScaler").fit(X)
    (spec,) = sw.from_sklearn(scaler, X.astype(np.float64)).inputs
    assert spec.dtype == "f64"
    compose = importlib.import_module("sklearn.compose")
    columns = compose.make_column_transformer((scaler, [0, 1])).fit(X)
    with pytest.raises(sw.InputError, match="columns of the model may have different types; give"):
        sw.from_sklearn(columns)
    got = sw.from_sklearn(columns, X).run_reference(X)
    np.testing.assert_allclose(got, columns.transform(X), rtol=1e-5)


def test_what_is_no_fitted_model(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(CLASSIFIERS["bayes"])
    for wrong, got in ((3, "int"), (kind, "class GaussianNB")):
        text = f"wrong model, expected a fitted model of scikit-learn, got {got}$"
        with pytest.raises(sw.InputError, match=text):
            sw.from_sklearn(wrong)
    with pytest.raises(sw.InputError, match=r"^from_sklearn: not fitted, got GaussianNB; call fit"):
        sw.from_sklearn(kind())
    unknown = type("Own", (kind,), {})().fit(X, Y)
    with pytest.raises(sw.ImportModelError, match=r"^from_sklearn: skl2onnx cannot convert"):
        sw.from_sklearn(unknown)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    text = r"^from_sklearn: skl2onnx is not installed; pip install 'stepwell\[sklearn\]'$"
    with pytest.raises(sw.ImportModelError, match=text):
        sw.from_sklearn(CLASSIFIERS["bayes"])


def test_python_of_the_documentation_runs() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "scikit-learn.md"
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
