"""Models of ONNX of the usual kinds, from import to calls, beside onnxruntime and OpenVINO.

Models are exported by torch, trained by scikit-learn, or written as converters of TensorFlow write
them, with random weights; they and their inputs are those of a single call. Import and compilation
are seconds of the processor; convolutions decide the ratio of a row with a star.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from harness import Case, Make, Table, run
from peers import OF_ONNX

GOAL = 1.2
"""The least ratio of a model whose time convolutions do not decide."""


def made(module: str, name: str, *sizes: Any, goal: float | None = None) -> Case:
    """A model and inputs for it, made by a function of another module."""
    proto, arrays, *_ = getattr(importlib.import_module(module), name)(*sizes)
    return Case(arrays, proto, engines=OF_ONNX, tolerance=1e-4, goals=(goal, goal))


exported, with_images = partial(made, "exported_models"), partial(made, "image_models")
MODELS: dict[str, Make] = {
    "LSTM language model": partial(exported, "language_model", "LSTM", goal=GOAL),
    "GRU language model": partial(exported, "language_model", "GRU", goal=GOAL),
    "CRNN, two directions *": partial(exported, "text_reader"),
    "BERT base, any size, 1 x 128": partial(exported, "encoder", goal=GOAL),
    "Llama step, any size, 255 before": partial(exported, "decoder", goal=GOAL),
    "U-Net with Resize *": partial(exported, "segmenter"),
    "detector with NonMaxSuppression *": partial(exported, "detector"),
    "random forest, 100 trees, 100 rows": partial(made, "sklearn_models", "forest", 100, goal=GOAL),
    "ResNet-18, channels last *": partial(with_images, "residual_network"),
    "convolutions of a sentence, channels last *": partial(with_images, "sentence_network"),
}
TABLES = [Table("model", MODELS, partial(run, rounds=9))]
