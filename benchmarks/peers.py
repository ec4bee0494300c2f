"""The peers of the compiled programs, each as a function without arguments.

Each maker takes a model, its inputs and a number of threads, and returns a function that computes
the outputs from the inputs. Peers that are not installed are skipped; `missing` names them.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
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


def installed(name: str) -> bool:
    """Whether a distribution of `PEERS` can be imported."""
    return importlib.util.find_spec(PEERS[name]) is not None


def missing() -> list[str]:
    """The distributions of peers that are not installed."""
    return [name for name in PEERS if not installed(name)]


@dataclass(frozen=True)
class Node:
    """A node of ONNX; constants follow the inputs.

    It has as many results as the operator demands, unless `results` says how many, as it has to
    for one of another domain than that of ONNX.
    """

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constants: tuple[np.ndarray, ...] = ()
    opset: int = 18
    domain: str = ""
    results: int | None = None

    def model(self, inputs: Sequence[np.ndarray]) -> ModelProto:
        """A model of this node, with inputs of the shapes and types of these.

        Results have the element type of the first input where ONNX does not infer another one.
        """
        names = [f"x{n}" for n in range(len(inputs))]
        weights = [numpy_helper.from_array(a, f"c{n}") for n, a in enumerate(self.constants)]
        count = self.results or defs.get_schema(self.kind, self.opset).min_output
        given = [f"y{n}" for n in range(count)]
        operands = [*names, *(c.name for c in weights)]
        node = helper.make_node(self.kind, operands, given, domain=self.domain, **self.attributes)
        specs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs, strict=True)
        ]
        outputs = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in given]
        graph = helper.make_graph([node], "main", specs, outputs, weights)
        imports = [helper.make_opsetid(*one) for one in {self.domain: 1, "": self.opset}.items()]
        model = helper.make_model(graph, opset_imports=imports, ir_version=9)
        model = shape_inference.infer_shapes(model)
        for output in model.graph.output:
            if not output.type.tensor_type.elem_type:
                output.type.CopyFrom(specs[0].type)
                output.type.tensor_type.ClearField("shape")
        return model


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


OF_ONNX: Mapping[str, Callable[[ModelProto, Sequence[np.ndarray], int], Call]] = {
    "onnxruntime": onnx_runtime,
    "openvino": open_vino,
}
"""The peers that read models of ONNX."""


def in_onnx(
    model: ModelProto,
    inputs: Sequence[np.ndarray],
    threads: int,
    names: Sequence[str] = ("onnxruntime",),
) -> dict[str, Call]:
    """The model in those of these peers that are installed."""
    return {name: OF_ONNX[name](model, inputs, threads) for name in names if installed(name)}


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
        places = tensor(array.indptr), tensor(array.indices)
        with warnings.catch_warnings():
            # PyTorch says once that its CSR tensors are in beta.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(
                *places, tensor(array.data), array.shape, check_invariants=True
            )
    if array.dtype == bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def library_threads(threads: int) -> AbstractContextManager[Any]:
    """A context that limits the BLAS of NumPy to `threads`, if threadpoolctl is installed."""
    if not installed("threadpoolctl"):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads)
