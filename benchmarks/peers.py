"""The peers of the compiled programs, each as a function without arguments.

Each maker takes a model, its inputs and a number of threads, and returns a function that computes
the outputs from the inputs. Peers that are not installed are skipped; `missing` names them.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper, shape_inference
from scipy.sparse import csr_array

OURS = "stepwell"
"""The name of the compiled program beside its peers."""

Call = Callable[[], Any]

PEERS = {
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "torch": "torch",
    "torch-geometric": "torch_geometric",
    "threadpoolctl": "threadpoolctl",
}
"""Distributions that may be installed, and the name of each one's module."""

_OPSET = 18
"""The version of the operators of ONNX."""


def installed(name: str) -> bool:
    """Whether a distribution of `PEERS` can be imported."""
    return importlib.util.find_spec(PEERS[name]) is not None


def missing() -> list[str]:
    """The distributions of peers that are not installed."""
    return [name for name in PEERS if not installed(name)]


def one_node(
    kind: str,
    inputs: Sequence[np.ndarray],
    constants: Sequence[np.ndarray],
    attributes: Mapping[str, Any],
    results: int | None = None,
    opset: int = _OPSET,
    domain: str = "",
) -> ModelProto:
    """A model of one node: inputs of the shapes and types of these, then the constants.

    It has as many results as the operator demands, unless `results` says how many, as it has to
    for one of another domain than that of ONNX. They have the element type of the first input where
    ONNX does not infer another one.
    """
    names = [f"x{n}" for n in range(len(inputs))]
    weights = [numpy_helper.from_array(array, f"c{n}") for n, array in enumerate(constants)]
    count = defs.get_schema(kind, opset).min_output if results is None else results
    given = [f"y{n}" for n in range(count)]
    operands = [*names, *(c.name for c in weights)]
    node = helper.make_node(kind, operands, given, domain=domain, **attributes)
    specs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    outputs = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in given]
    graph = helper.make_graph([node], "main", specs, outputs, weights)
    imports = [helper.make_opsetid(*one) for one in ({domain: 1} | {"": opset}).items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    model = shape_inference.infer_shapes(model)
    for output in model.graph.output:
        if not output.type.tensor_type.elem_type:
            output.type.CopyFrom(specs[0].type)
            output.type.tensor_type.ClearField("shape")
    return model


def onnx_runtime(model: bytes, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in onnxruntime with all its optimisations, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {spec.name: x for spec, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)[0]


def in_onnxruntime(
    model: ModelProto, inputs: Sequence[np.ndarray], threads: int
) -> dict[str, Call]:
    """The model in onnxruntime, if that is installed."""
    if not installed("onnxruntime"):
        return {}
    return {"onnxruntime": onnx_runtime(model.SerializeToString(), inputs, threads)}


def open_vino(model: bytes, inputs: Sequence[np.ndarray], threads: int) -> Call:
    """The model in OpenVINO, tuned for latency; inputs and outputs are shared, not copied."""
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model),
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
    request = compiled.create_infer_request()
    feed = list(inputs)
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)[0]


def torch_call(function: Callable[..., Any], arrays: Sequence[Any], threads: int) -> Call:
    """A function on tensors in PyTorch's inference mode; dense arrays and CSR become tensors."""
    import torch

    torch.set_num_threads(threads)
    tensors = [_tensor(array) for array in arrays]

    def call() -> Any:
        with torch.inference_mode():
            return function(*tensors)

    return call


def in_torch(function: Callable[..., Any], arrays: Sequence[Any], threads: int) -> dict[str, Call]:
    """A function on tensors in PyTorch, if that is installed."""
    return {"torch": torch_call(function, arrays, threads)} if installed("torch") else {}


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch_csr(array)


def torch_csr(matrix: csr_array) -> Any:
    """A CSR matrix as a tensor of PyTorch that shares its arrays."""
    import torch

    indptr, indices = torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)
    data = torch.from_numpy(matrix.data)
    with warnings.catch_warnings():
        # PyTorch says once that its CSR tensors are in beta.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(indptr, indices, data, matrix.shape, check_invariants=True)


def library_threads(threads: int) -> AbstractContextManager[Any]:
    """A context that limits the BLAS of NumPy to `threads`, if threadpoolctl is installed."""
    if not installed("threadpoolctl"):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads)
