"""Models of ONNX of the usual kinds, from import to calls, beside onnxruntime and OpenVINO.

Models are exported by torch, trained by scikit-learn, or written as converters of TensorFlow write
them, with random weights; they and their inputs are those of a single call. Results are compared
with those of the peers, within 1e-4 of the largest element. Rounds are interleaved. A ratio is the
best peer's time over ours, medians, and minima in parentheses; convolutions decide that of a row
with a star. Import and compilation are seconds of the processor.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from harness import LeftOutError, Row, Table, timed
from onnx import ModelProto
from peers import OF_ONNX, OURS, in_onnx

import stepwell as sw
from stepwell.tools.timing import duration, measure

TOLERANCE = 1e-4
GOAL = 1.2
"""The least ratio of a model whose time convolutions do not decide."""
BATCH = 100
"""The rows that go through trees."""

Loaded = tuple[ModelProto, list[np.ndarray]]


@dataclass(frozen=True)
class Model:
    """A model.

    Attributes:
        make: returns it, and inputs for it.
        needs: the modules that make it.
        convolutions: whether convolutions decide its time.
    """

    make: Callable[[], Loaded]
    needs: tuple[str, ...]
    convolutions: bool = False


def exported(name: str, *sizes: Any, convolutions: bool = False) -> Model:
    """A model of `exported_models.py`."""

    def make() -> Loaded:
        import exported_models

        made = getattr(exported_models, name)(*sizes)
        return made.proto, made.arrays

    return Model(make, ("torch", "onnxscript"), convolutions)


def channels_last(name: str) -> Model:
    """A model of `channels_last_models.py`."""

    def make() -> Loaded:
        import channels_last_models

        return getattr(channels_last_models, name)()

    return Model(make, (), convolutions=True)


def trees(kind: str) -> Model:
    """100 trees that scikit-learn trains."""

    def make() -> Loaded:
        import sklearn_models

        x, classes, _ = sklearn_models.data()
        model = sklearn_models.MODELS[kind]().fit(x, classes)
        proto = sklearn_models.to_onnx(model, x[:1], options={"zipmap": False})
        return proto, [x[:BATCH]]

    return Model(make, ("sklearn", "skl2onnx"))


MODELS = {
    "LSTM language model": exported("language_model", "LSTM"),
    "GRU language model": exported("language_model", "GRU"),
    "CRNN, two directions": exported("text_reader", convolutions=True),
    "BERT base, any size, 1 x 128": exported("encoder"),
    "Llama step, any size, 255 before": exported("decoder"),
    "U-Net with Resize": exported("segmenter", convolutions=True),
    "detector with NonMaxSuppression": exported("detector", convolutions=True),
    f"random forest, 100 trees, {BATCH} rows": trees("random forest, 100 trees, 3 classes"),
    "ResNet-18, channels last": channels_last("residual_network"),
    "convolutions of a sentence, channels last": channels_last("sentence_network"),
}


def run(name: str, model: Model, *, threads: int = 1, rounds: int = 9) -> Row:
    """Import, compile and time one model.

    Raises:
        LeftOutError: if what makes the model is not installed.
        SystemExit: if no peer is installed, or none has the same result.
    """
    absent = [module for module in model.needs if importlib.util.find_spec(module) is None]
    if absent:
        raise LeftOutError(f"{' and '.join(absent)} not installed")
    proto, arrays = model.make()
    start = time.process_time()
    module = sw.from_onnx(proto)
    read = time.process_time()
    exe = sw.compile(module, threads=threads)
    facts = {"import": duration(read - start), "compile": duration(time.process_time() - read)}
    calls, refused = {OURS: lambda: exe(*arrays)}, dict[str, str]()
    for peer in OF_ONNX:
        try:
            calls |= in_onnx(proto, arrays, threads, [peer])
        except RuntimeError as error:
            refused[peer] = f"refuses the model: {str(error).strip().splitlines()[-1]}"
    result = timed(name, calls, threads, TOLERANCE, partial(measure, rounds=rounds))
    result = replace(result, missing=refused | dict(result.missing))
    row = result.row(facts, None if model.convolutions else GOAL)
    return {"model": name + " *" * model.convolutions, **row}


TABLES = [Table("model", MODELS, run)]
