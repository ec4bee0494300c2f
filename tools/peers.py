"""Other runtimes to compare with, where the user has installed them.

The package needs none of them: a peer is loaded by name for `stepwell bench --vs`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.boundary.specs import ValueSpec
from ..core.errors import StepwellError, explain
from ..core.ir.module import Module

Call = Callable[[], object]


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise StepwellError(
            explain("--vs", f"{name} is not installed", hint=f"pip install {name}")
        ) from error


def _onnx_only(name: str, path: Path) -> None:
    if path.suffix != ".onnx":
        raise StepwellError(explain("--vs", f"{name} runs ONNX models only", got=path.name))


def _numpy(
    module: Module, path: Path, inputs: Sequence[Any], threads: int | None
) -> tuple[Call, Any]:
    """The reference semantics: NumPy and SciPy, operator by operator."""
    del path, threads
    return lambda: module.run_reference(*inputs), module.run_reference(*inputs)


def _onnxruntime(
    module: Module, path: Path, inputs: Sequence[Any], threads: int | None
) -> tuple[Call, Any]:
    _onnx_only("onnxruntime", path)
    runtime = _load("onnxruntime")
    options = runtime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = _named(module.inputs, inputs)
    return lambda: session.run(None, feeds), _one(session.run(None, feeds))


def _openvino(
    module: Module, path: Path, inputs: Sequence[Any], threads: int | None
) -> tuple[Call, Any]:
    _onnx_only("openvino", path)
    core = _load("openvino").Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if threads is not None:
        settings["INFERENCE_NUM_THREADS"] = str(threads)
    model = core.compile_model(core.read_model(str(path)), "CPU", settings)
    request = model.create_infer_request()
    feeds = _named(module.inputs, inputs)
    return lambda: request.infer(feeds), _one(list(request.infer(feeds).values()))


def _torch(
    module: Module, path: Path, inputs: Sequence[Any], threads: int | None
) -> tuple[Call, Any]:
    if path.suffix != ".pt2":
        fact = "torch runs exported programs (.pt2) only"
        raise StepwellError(explain("--vs", fact, got=path.name))
    torch = _load("torch")
    if threads is not None:
        torch.set_num_threads(threads)
    model = torch.export.load(path).module()
    del module
    given = [torch.from_numpy(array) for array in inputs]

    def call() -> Any:
        with torch.inference_mode():
            return model(*given)

    found = call()
    several = [found] if isinstance(found, torch.Tensor) else list(found)
    return call, _one([result.numpy() for result in several])


def _named(specs: Sequence[ValueSpec], inputs: Sequence[Any]) -> dict[str, Any]:
    return {spec.name: array for spec, array in zip(specs, inputs, strict=True)}


def _one(results: Sequence[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


PEERS = {"numpy": _numpy, "onnxruntime": _onnxruntime, "openvino": _openvino, "torch": _torch}


def peer(
    name: str, module: Module, path: Path, inputs: Sequence[Any], threads: int | None
) -> tuple[Call, Any]:
    """A call of the peer on `inputs`, and its results.

    Raises:
        StepwellError: if there is no such peer, it is not installed, or it cannot run the model.
    """
    if name not in PEERS:
        raise StepwellError(explain("--vs", "unknown peer", expected=", ".join(PEERS), got=name))
    return PEERS[name](module, path, inputs, threads)
