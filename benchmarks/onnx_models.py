"""Models of ONNX of the usual kinds, from import to calls, beside onnxruntime and OpenVINO.

    python benchmarks/onnx_models.py              # one thread
    python benchmarks/onnx_models.py -t 2         # two
    python benchmarks/onnx_models.py --only LSTM  # some models

Models are exported by torch, trained by scikit-learn, or written as converters of TensorFlow write
them, with random weights; they and their inputs are those of a single call. Results are compared
with those of the peers, within 1e-4 of the largest element. Rounds are interleaved. A ratio is the
best peer's time over ours, medians, and minima in parentheses; convolutions decide that of a row
with a star. Import and compilation are seconds of the processor.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from harness import LeftOutError, Result, command, timed
from onnx import ModelProto
from peers import OURS, installed, onnx_runtime, open_vino

import stepwell as sw
from stepwell.tools.timing import duration, measure

TOLERANCE = 1e-4
# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"
ROUNDS = 9
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


def run(name: str, model: Model, threads: int) -> Result:
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
    calls, missing = {OURS: lambda: exe(*arrays)}, dict[str, str]()
    for peer, make in (("onnxruntime", onnx_runtime), ("openvino", open_vino)):
        if not installed(peer):
            continue
        try:
            calls[peer] = make(proto.SerializeToString(), arrays, threads)
        except RuntimeError as error:
            missing[peer] = f"refuses the model: {str(error).strip().splitlines()[-1]}"
    result = timed(name, calls, threads, TOLERANCE, partial(measure, rounds=ROUNDS))
    missing |= result.missing
    goal = None if model.convolutions else GOAL
    case = name + " *" * model.convolutions
    return replace(result, case=case, facts=facts, missing=missing, goal=goal)


if __name__ == "__main__":
    command("model", MODELS, run)
