"""Models of scikit-learn, as skl2onnx writes them, beside onnxruntime.

    python benchmarks/sklearn_models.py        # one thread
    python benchmarks/sklearn_models.py -t 2   # two

Models are trained on random numbers, so that trees of a forest are large. Results are compared
before they are timed: labels are equal, scores within 1e-5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from peers import OURS, onnx_runtime
from rich.console import Console
from rich.table import Table
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

import stepwell as sw
from stepwell.tools.timing import measure

FEATURES, EXAMPLES = 20, 2000
BATCHES = (1, 100, 2000)
TOLERANCE = 1e-5


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


def timed(make: Callable[[], Any], threads: int) -> list[list[float]]:
    """The microseconds of the program and of onnxruntime for each batch, minima."""
    x, classes, target = data()
    model = make()
    model.fit(x, classes if hasattr(model, "predict_proba") else target)
    # Without it the scores are a list of dictionaries.
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    proto = to_onnx(model, x[:1], options=options)
    exe = sw.compile(sw.from_onnx(proto), threads=threads)
    rows: list[list[float]] = []
    for count in BATCHES:
        batch = x[:count]
        peer = onnx_runtime(proto.SerializeToString(), [batch], threads)
        found = exe(batch)
        own = found[0] if isinstance(found, tuple) else found
        np.testing.assert_allclose(own, peer(), rtol=TOLERANCE, atol=TOLERANCE)
        times = measure({OURS: lambda batch=batch: exe(batch), "peer": peer})
        rows.append([times[name].minimum * 1e6 for name in (OURS, "peer")])
    return rows


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only models with this text in their names")] = "",
) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    columns = [f"{kind}, {count}" for count in BATCHES for kind in (OURS, "onnxruntime", "ratio")]
    table = Table("model", *columns)
    for name, make in MODELS.items():
        if only not in name:
            continue
        row: list[str] = []
        for own, peer in timed(make, threads):
            row += [f"{own:.1f} us", f"{peer:.1f} us", f"{peer / own:.2f}"]
        table.add_row(name, *row)
    Console(width=180).print(table)


if __name__ == "__main__":
    typer.run(main)
