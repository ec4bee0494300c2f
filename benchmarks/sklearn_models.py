"""Models of scikit-learn, as skl2onnx writes them, beside onnxruntime.

Models are trained on random numbers, so that trees of a forest are large. Labels are equal, scores
within 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from harness import Case, Make, Table, run
from onnx import ModelProto
from skl2onnx import to_onnx
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FEATURES, EXAMPLES = 20, 2000
BATCHES = (1, 100, 2000)


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of examples, one of three classes of each, and a target."""
    x = np.random.default_rng(0).standard_normal((EXAMPLES, FEATURES)).astype(np.float32)
    classes = (x[:, 0] + x[:, 1] > 0).astype(np.int64) + (x[:, 2] * x[:, 3] > 0.5)
    return x, classes, x[:, 0] * x[:, 1] + np.sin(x[:, 2])


MODELS: dict[str, Callable[[], Any]] = {
    "logistic regression of 5 components": lambda: make_pipeline(
        StandardScaler(), PCA(5), LogisticRegression()
    ),
    "perceptron of 64 units": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((64,), max_iter=20)
    ),
    "5 nearest of 2,000": KNeighborsClassifier,
    "gradient boosting, 100 trees": lambda: GradientBoostingRegressor(max_depth=4),
    "gradient boosting, 3 x 100 trees": GradientBoostingClassifier,
    "random forest, 100 trees": RandomForestRegressor,
    "random forest, 100 trees, 3 classes": RandomForestClassifier,
}


@cache
def proto_of(name: str) -> tuple[ModelProto, np.ndarray]:
    x, classes, target = data()
    model = MODELS[name]()
    model.fit(x, classes if hasattr(model, "predict_proba") else target)
    # Without it the scores are a list of dictionaries.
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    proto = to_onnx(model, x[:1], options=options)
    assert isinstance(proto, ModelProto)
    return proto, x


def forest(rows: int) -> tuple[ModelProto, list[np.ndarray]]:
    proto, x = proto_of("random forest, 100 trees, 3 classes")
    return proto, [x[:rows]]


def case(kind: str, rows: int) -> Case:
    proto, x = proto_of(kind)
    return Case([x[:rows]], proto)


CASES: dict[str, Make] = {
    f"{kind}, rows: {rows}": partial(case, kind, rows) for kind in MODELS for rows in BATCHES
}
TABLES = [Table("model", CASES, partial(run, by="minimum"))]
