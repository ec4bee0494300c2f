"""The models of `benchmarks/`, but small, beside torch or the reference of ONNX."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

import stepwell as sw

from ...harness import package

package("torch")
package("onnxscript")

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
TOLERANCE = 1e-4

EXPORTED: dict[str, tuple[Any, ...]] = {
    "language_model LSTM": ("LSTM", 50, 16, 2, 2, 7),
    "language_model GRU": ("GRU", 50, 16, 2, 2, 7),
    "text_reader": (4, 24, 7),
    "encoder": (40, 32, 4, 2, 2, 9),
    "decoder": (40, 32, 4, 2, 2, 5),
    "segmenter": (4, 3, 2, 16),
    "detector": (4, 3, 64, 5),
}
MOBILE = ["mobile_net_v3", "efficient_net"]
CHANNELS_LAST: dict[str, tuple[Any, ...]] = {
    "residual_network": (8, (1, 1), 37, 5),
    "sentence_network": (30, 16, 2, 11, 3),
}


def as_expected(proto: Any, arrays: list[np.ndarray], expected: list[np.ndarray] | None) -> None:
    """Compare results on one thread and on two with those expected, or with those of ONNX."""
    if expected is None:
        names = [value.name for value in proto.graph.input]
        found = ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))
        expected = [np.asarray(value) for value in found]
    for threads in (1, 2):
        results = sw.compile(sw.from_onnx(proto), threads=threads)(*arrays)
        own = results if isinstance(results, tuple) else (results,)
        for one, wanted in zip(own, expected, strict=True):
            assert one.shape == wanted.shape
            scale = max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(one, wanted, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPORTED)
def test_exported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    make = getattr(importlib.import_module("exported_models"), name.partition(" ")[0])
    made = make(*EXPORTED[name])
    as_expected(made.proto, made.arrays, made.expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MOBILE)
def test_mobile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    made = getattr(importlib.import_module("mobile_networks"), name)(64, 4)
    as_expected(made.proto, made.arrays, made.expected)


@pytest.mark.parametrize("name", ["inception_v2", "shufflenet"])
def test_weights_of_test_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    proto = importlib.import_module("image_models").light(name)
    checker.check_model(proto, full_check=True)
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    scores = sw.compile(sw.from_onnx(proto))(image)
    assert 0.1 < np.std(scores) < np.inf


@pytest.mark.parametrize("name", CHANNELS_LAST)
def test_channels_last(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    make = getattr(importlib.import_module("image_models"), name)
    as_expected(*make(*CHANNELS_LAST[name]), None)
