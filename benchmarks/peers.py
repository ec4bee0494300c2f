"""The peers of the compiled programs, each as a function without arguments.

Each maker takes a model, its inputs and a number of threads, and returns a function that computes
the outputs from the inputs. Peers that are not installed are skipped; `missing` names them.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from onnx import ModelProto, save
from scipy.sparse import csr_array

OURS = "stepwell"
"""The name of the compiled program beside its peers."""

Call = Callable[[], Any]

PEERS = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "MNN": "MNN",
    "ncnn": "ncnn",
    "pnnx": "pnnx",
    "torch": "torch",
    "torch-geometric": "torch_geometric",
    "threadpoolctl": "threadpoolctl",
}
"""Distributions that may be installed, and the name of each one's module."""


def installed(name: str) -> bool:
    """Whether a distribution of `PEERS` can be imported."""
    return importlib.util.find_spec(PEERS[name]) is not None


def missing() -> list[str]:
    return [name for name in PEERS if not installed(name)]


def onnx_runtime(model: ModelProto, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in onnxruntime with all its optimisations, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Errors are raised.
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {spec.name: x for spec, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)[0]


def open_vino(model: ModelProto, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in OpenVINO, tuned for latency; inputs and outputs are shared, not copied."""
    import openvino

    core = openvino.Core()
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", options)
    request, feed = compiled.create_infer_request(), list(inputs)
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)[0]


@contextmanager
def converted(model: ModelProto, made: str, code: str, *arguments: str) -> Iterator[Path]:
    """A folder with "model.onnx" and the files that a converter makes of it, `made` among them.

    `code` calls the converter, in a process of its own.
    """
    with TemporaryDirectory() as folder:
        save(model, Path(folder, "model.onnx"))
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
        if not Path(folder, made).exists():
            raise RuntimeError(done.stderr or done.stdout)
        yield Path(folder)


def mnn(model: ModelProto, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in MNN, in single precision.

    The converter is called without its command `mnnconvert`, which also installs a package and
    sends statistics.
    """
    expr, nn = (importlib.import_module(f"MNN.{name}") for name in ("expr", "nn"))
    code = "import MNN, _tools, sys; _tools.mnnconvert(sys.argv)"
    files = ["--modelFile", "model.onnx", "--MNNModel", "model.mnn"]
    options = {"backend": "CPU", "precision": "high", "numThread": threads}
    manager = nn.create_runtime_manager((options,))
    names = [[value.name for value in some] for some in (model.graph.input, model.graph.output)]
    arguments = ["-f", "ONNX", *files, "--bizCode", "none"]
    with converted(model, "model.mnn", code, *arguments) as folder:
        path = str(folder / "model.mnn")
        network = nn.load_module_from_file(path, *names, runtime_manager=manager)

    def call() -> np.ndarray:
        given = [expr.const(x, list(x.shape), expr.NCHW) for x in inputs]
        return expr.convert(network.forward(given)[0], expr.NCHW).read()

    return call


def ncnn(model: ModelProto, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in ncnn, in single precision, for inputs and results with a batch of one."""
    engine = importlib.import_module("ncnn")
    network = engine.Net()
    network.opt.num_threads = threads
    for use in ("packed", "storage", "arithmetic"):
        setattr(network.opt, f"use_fp16_{use}", False)
    shapes = ",".join(f"{list(x.shape)}f32".replace(" ", "") for x in inputs)
    arguments = ["import pnnx; pnnx.pnnx()", "model.onnx", f"inputshape={shapes}", "fp16=0"]
    with converted(model, "model.ncnn.param", *arguments) as folder:
        files = str(folder / "model.ncnn.param"), str(folder / "model.ncnn.bin")
        if network.load_param(files[0]) or network.load_model(files[1]):
            raise RuntimeError("a layer that ncnn does not have")

    def call() -> np.ndarray:
        with network.create_extractor() as extractor:
            for i, x in enumerate(inputs):
                extractor.input(f"in{i}", engine.Mat(x, batch_index=0))
            return extractor.extract("out0")[1].numpy(batch_index=0)

    return call


Maker = Callable[[ModelProto, Sequence[np.ndarray], int], Call]
OF_ONNX: Mapping[str, Maker] = {"onnxruntime": onnx_runtime, "openvino": open_vino}
"""The peers that read models of ONNX."""
OF_IMAGES: Mapping[str, Maker] = {**OF_ONNX, "MNN": mnn, "ncnn": ncnn}
"""The same, and those for networks on images."""


def in_onnx(
    model: ModelProto, inputs: Sequence[np.ndarray], threads: int, names: Iterable[str]
) -> dict[str, Call | str]:
    """The model in those of these peers that are installed, or why one refuses it."""
    found = dict[str, Call | str]()
    for name in filter(installed, names):
        try:
            found[name] = OF_IMAGES[name](model, inputs, threads)
        except RuntimeError as error:
            found[name] = f"refuses the model: {str(error).strip().splitlines()[-1]}"
    return found


def torch_call(function: Callable[..., Any], arrays: Sequence[Any], threads: int) -> Call:
    """A function on tensors in PyTorch's inference mode; arrays and CSR become tensors."""
    import torch

    torch.set_num_threads(threads)
    tensors = [tensor(array) for array in arrays]

    def call() -> Any:
        with torch.inference_mode():
            return function(*tensors)

    return call


def in_torch(
    function: Callable[..., Any] | None, arrays: Sequence[Any], threads: int
) -> dict[str, Call]:
    """A function of the module `torch` and tensors, if that is installed."""
    if function is None or not installed("torch"):
        return {}
    import torch

    return {"torch": torch_call(partial(function, torch), arrays, threads)}


def tensor(array: Any) -> Any:
    """An array, or a CSR matrix, as a tensor of PyTorch that shares its memory."""
    import torch

    if isinstance(array, csr_array):
        rows, columns, values = map(tensor, (array.indptr, array.indices, array.data))
        return torch.sparse_csr_tensor(rows, columns, values, array.shape, check_invariants=True)
    if array.dtype == bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def library_threads(threads: int) -> AbstractContextManager[Any]:
    """A context that limits the BLAS of NumPy to `threads`, if threadpoolctl is installed."""
    if not installed("threadpoolctl"):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads)
