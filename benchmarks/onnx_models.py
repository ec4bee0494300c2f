"""Models of ONNX of the usual kinds, from import to calls, beside onnxruntime and OpenVINO.

Models are exported by torch, trained by scikit-learn, or written as converters of TensorFlow write
them, with random weights; they and their inputs are those of a single call. Results are compared
with those of the peers, within 1e-4 of the largest element. Rounds are interleaved. A ratio is the
best peer's time over ours, medians, and minima in parentheses; convolutions decide that of a row
with a star. Import and compilation are seconds of the processor.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from harness import LeftOutError, Row, Table, timed
from onnx import ModelProto
from peers import OF_ONNX, OURS, Call, Maker, in_onnx

import stepwell as sw
from stepwell.tools.timing import duration, measure

TOLERANCE = 1e-4
GOAL = 1.2
"""The least ratio of a model whose time convolutions do not decide."""


Loaded = tuple[ModelProto, list[np.ndarray]]


def made(module: str, name: str, *sizes: Any) -> Loaded:
    """A model and inputs for it, made by a function of another module."""
    proto, arrays, *_ = getattr(importlib.import_module(module), name)(*sizes)
    return proto, arrays


exported, with_images = partial(made, "exported_models"), partial(made, "image_models")
MODELS: dict[str, Callable[[], Loaded]] = {
    "LSTM language model": partial(exported, "language_model", "LSTM"),
    "GRU language model": partial(exported, "language_model", "GRU"),
    "CRNN, two directions *": partial(exported, "text_reader"),
    "BERT base, any size, 1 x 128": partial(exported, "encoder"),
    "Llama step, any size, 255 before": partial(exported, "decoder"),
    "U-Net with Resize *": partial(exported, "segmenter"),
    "detector with NonMaxSuppression *": partial(exported, "detector"),
    "random forest, 100 trees, 100 rows": partial(made, "sklearn_models", "forest", 100),
    "ResNet-18, channels last *": partial(with_images, "residual_network"),
    "convolutions of a sentence, channels last *": partial(with_images, "sentence_network"),
}
"""Convolutions decide the time of those with a star."""


def compiled(
    proto: ModelProto, arrays: list[np.ndarray], threads: int, peers: Mapping[str, Maker]
) -> tuple[dict[str, Call], Row, dict[str, str]]:
    """A model, compiled and in peers; what its compilation takes; and why peers refuse it."""
    start = time.process_time()
    module = sw.from_onnx(proto)
    read = time.process_time()
    exe = sw.compile(module, threads=threads)
    facts = {"import": duration(read - start), "compile": duration(time.process_time() - read)}
    calls, refused = {OURS: lambda: exe(*arrays)}, dict[str, str]()
    for peer in peers:
        try:
            calls |= in_onnx(proto, arrays, threads, [peer])
        except RuntimeError as error:
            refused[peer] = f"refuses the model: {str(error).strip().splitlines()[-1]}"
    return calls, facts, refused


def run(name: str, make: Callable[[], Loaded], *, threads: int = 1, rounds: int = 9) -> Row:
    """Import, compile and time one model.

    Raises:
        LeftOutError: if what makes the model is not installed.
        SystemExit: if no peer is installed, or none has the same result.
    """
    try:
        proto, arrays = make()
    except ModuleNotFoundError as error:
        raise LeftOutError(str(error)) from error
    calls, facts, refused = compiled(proto, arrays, threads, OF_ONNX)
    result = timed(name, calls, threads, TOLERANCE, partial(measure, rounds=rounds))
    result = replace(result, missing=refused | dict(result.missing))
    return result.row(facts, None if name.endswith("*") else GOAL)


TABLES = [Table("model", MODELS, run)]
