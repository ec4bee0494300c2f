"""Models of ONNX of the usual kinds, from import to calls, beside onnxruntime and OpenVINO.

    python benchmarks/onnx_models.py              # one thread
    python benchmarks/onnx_models.py -t 2         # two
    python benchmarks/onnx_models.py --only LSTM  # some models

Models are exported by torch, trained by scikit-learn, or written as converters of TensorFlow write
them, with random weights; they and their inputs are those of a single call. Results are compared
with those of the peers, within 1e-4 of the largest element. Rounds are interleaved. A ratio is the
best peer's time over ours, medians, and minima in parentheses. Import and compilation are seconds
of the processor.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer
from moves import show
from onnx import ModelProto
from peers import OURS, Call, Compared, installed, onnx_runtime, open_vino
from rich.table import Table

import stepwell as sw
from stepwell.runtime.limits import Limits
from stepwell.tools.timing import Timing, duration, measure

TOLERANCE = 1e-4
# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"
ROUNDS = 9
GOAL = 1.2
PEERS = ("onnxruntime", "openvino")
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


@dataclass(frozen=True)
class Result(Compared):
    """The times of a model, in seconds; why some are missing."""

    case: str
    convolutions: bool
    loading: tuple[float, float] = (0.0, 0.0)
    times: dict[str, Timing] = field(default_factory=dict[str, Timing])
    missing: dict[str, str] = field(default_factory=dict[str, str])


def run(name: str, model: Model, threads: int) -> Result:
    """Import, compile and time one model.

    Raises:
        SystemExit: if the result of a peer differs.
    """
    absent = [module for module in model.needs if importlib.util.find_spec(module) is None]
    if absent:
        why = f"{' and '.join(absent)} not installed"
        return Result(name, model.convolutions, missing={OURS: why})
    proto, arrays = model.make()
    start = time.process_time()
    module = sw.from_onnx(proto)
    read = time.process_time()
    exe = sw.compile(module, threads=threads)
    loading = read - start, time.process_time() - read
    calls, missing = {OURS: lambda: exe(*arrays)}, dict[str, str]()
    for peer, make in (("onnxruntime", onnx_runtime), ("openvino", open_vino)):
        if not installed(peer):
            missing[peer] = "not installed"
            continue
        try:
            calls[peer] = make(proto.SerializeToString(), arrays, threads)
        except RuntimeError as error:
            missing[peer] = f"refuses the model: {str(error).strip().splitlines()[-1]}"
    compare(name, calls)
    times = measure(calls, rounds=ROUNDS)
    return Result(name, model.convolutions, loading, times, missing)


def compare(name: str, calls: dict[str, Call]) -> None:
    """Compare the first result of each peer with ours."""
    found = {who: call() for who, call in calls.items()}
    own = found.pop(OURS)
    own = np.asarray(own[0] if isinstance(own, tuple) else own)
    limit = TOLERANCE * float(np.abs(own).max(initial=0))
    for peer, other in found.items():
        if own.shape != other.shape or not np.allclose(other, own, rtol=0, atol=limit):
            raise SystemExit(f"{name}: {peer} has a different result")


def table(kind: str, results: Sequence[Result], limits: Limits) -> Table:
    """The results as a table to read."""
    view = Table(kind, "import", "compile", OURS, *PEERS, "ratio to best")
    notes = [f"threads: {limits.threads}; * convolutions decide"]
    for r in results:
        notes += [f"{r.case}: {who} {why}" for who, why in r.missing.items()]
        if OURS not in r.times:
            view.add_row(r.case, "left out")
            continue
        peers = [_cell(r.times[peer]) if peer in r.times else "" for peer in PEERS]
        view.add_row(
            r.case + " *" * r.convolutions,
            *map(duration, r.loading),
            _cell(r.times[OURS]),
            *peers,
            _ratio(r) if len(r.times) > 1 else "no peer",
        )
    view.caption = "\n".join(notes)
    return view


def _cell(timing: Timing) -> str:
    return f"{duration(timing.median)} ({duration(timing.minimum)})"


def _ratio(result: Result) -> str:
    reached = result.convolutions or result.ratio >= GOAL
    return f"{result.ratio:.2f}" if reached else f"[red]{result.ratio:.2f}[/]"


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only the models with this text in their names")] = "",
) -> None:
    """Print the table."""
    show("model", MODELS, run, threads, only, table)


if __name__ == "__main__":
    typer.run(main)
