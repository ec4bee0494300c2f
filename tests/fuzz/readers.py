"""Kinds of files: what writes one, what reads it, and what users do with what was read.

`SAMPLES` are files of each kind, most of them small. `Kind.use` compiles and calls programs whose
tensors are small; from the stage `kernels` on text is code, with loops and addresses of its own,
and is only compiled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from scipy.sparse import csr_array, save_npz
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

import stepwell as sw
from stepwell.core.boundary.specs import ValueSpec
from stepwell.core.dtype_names import dtype_named
from stepwell.core.files.reading import ReadingError
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.core.pipelines.staircase import pipeline, pipeline_text
from stepwell.core.pipelines.text import entries
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.frontends.mlir import from_mlir
from stepwell.passes.loop.scheduler.records import Record, read_records, write_records
from stepwell.passes.loop.scheduler.replay import read_traces
from stepwell.runtime.archives import read_archive
from stepwell.tools.command import read_option
from stepwell.tools.models import read_array

from .damage import Damage, damaged, damaged_header, damaged_member
from .mlir_mutants import other_operations, other_tokens
from .onnx_mutants import other_messages

ERRORS = (sw.StepwellError, ScheduleError, ReadingError)
CALLED = ("graph", "optimized", "fused")
"""Stages whose programs are called: their operators cannot leave a buffer."""
MOST_ELEMENTS = 100_000
"""Programs with larger tensors are not called."""
FILE = "file"


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    read: Callable[[Path], Any]
    write: Callable[[Path], Any]
    suffix: str = ""
    change: Damage = damaged
    use: Callable[[Any], Any] | None = None


def compile_only(module: sw.Module) -> sw.Executable:
    return sw.compile(module, threads=1, opt_level=1)


def compile_and_call(module: sw.Module) -> Any:
    """Compile a program, and call it if its tensors are small and it has no loop."""
    exe = compile_only(module)
    if all(map(_is_small, module.op.walk())):
        return exe(*map(_argument, exe.inputs))
    return None


def _is_small(op: Any) -> bool:
    kinds = [kind for kind in op.result_types if isinstance(kind, TensorType)]
    sizes = [math.prod(3 if n == DYNAMIC_INDEX else n for n in k.get_shape()) for k in kinds]
    return not isinstance(op, graph.LoopOp) and max(sizes, default=0) <= MOST_ELEMENTS


def _argument(spec: ValueSpec) -> Any:
    shape = [size if isinstance(size, int) else 3 for size in spec.shape]
    if math.prod(shape) > MOST_ELEMENTS:
        return np.zeros(())
    if spec.nnz is not None:
        return csr_array(np.eye(*shape, dtype=spec.dtype.replace("f", "float")))
    return np.ones(shape, dtype_named(spec.dtype))


def network() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 6))
    a = b.constant(csr_array(np.eye(4, 6, dtype=np.float32)), name="a")
    b.output(b.relu(b.dense(x, np.ones((3, 6), np.float32))), name="y")
    b.output(b.spmm(a, b.input("z", (6, 2))), name="w")
    return b.module()


def operators() -> sw.Module:
    """Gathers, slices, a convolution, a pool and a sparse input."""
    b, rng = sw.Builder("main"), np.random.default_rng(0)
    x, i = b.input("x", ("n", 3), "f32"), b.input("i", (4,), "i64")
    a = b.input("a", sw.SparseSpec(("m", "m"), "f32", "e"))
    h = b.relu(b.dense(b.gather(x, i, axis=0), rng.standard_normal((5, 3), np.float32)))
    h = b.transpose(b.slice(b.concat([h, h * 2.0], axis=1), [0, 8], [4, -1], [1, -2]), [1, 0])
    b.output(b.log_softmax(h), name="y")
    b.output(b.cast(b.reduce(x, "max", axes=[0]), "f64"), name="z")
    b.output(b.spmm(a, b.input("v", ("m", 2), "f32")), name="p")
    images = b.reshape(b.gather(x, i, axis=0), [1, 1, 4, 3])
    kernels = rng.standard_normal((2, 1, 2, 2), np.float32)
    b.output(b.pool(b.conv(images, kernels), "max", [2, 2], [1, 1]), name="c")
    return b.module()


PROGRAMS = {"network": network, "operators": operators}


@functools.cache
def compiled(program: str = "network") -> sw.Executable:
    return sw.compile(PROGRAMS[program](), opt_level=1, threads=2)


def text_at(stage: str, program: str = "network") -> Callable[[Path], Any]:
    def write(path: Path) -> None:
        exe = compiled(program)
        path.write_text(exe.ir(stage))
        for text in (path, path.with_stem("damaged")):
            exe.weights(stage).save(text.with_suffix(".safetensors"))

    return write


def _onnx(
    nodes: list[NodeProto], inputs: dict[str, list[int | str]], arrays: dict[str, np.ndarray]
) -> ModelProto:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    last = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    made = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    whole = helper.make_graph(nodes, "g", infos, last, made)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)])


def convolution() -> ModelProto:
    node, weights = helper.make_node, np.random.default_rng(0)
    arrays = {"w": weights.standard_normal((4, 3, 3, 3), np.float32), "s": np.array([0, -1])}
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c"], ["r"], name="act"),
        node("Reshape", ["r", "s"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=-1),
    ]
    return _onnx(nodes, {"x": ["n", 3, 8, 8]}, arrays)


def shapes() -> ModelProto:
    """A shape that is computed, as torch exports it, and operators that select."""
    node, ints = helper.make_node, np.array
    arrays = {"w": np.ones((4, 3), np.float32), "b": np.ones(4, np.float32), "zero": ints([0])}
    arrays |= {"i": ints(0), "rest": ints([2, 2]), "k": ints([2]), "two": ints([0, 1])}
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "i"], ["n"]),
        node("Unsqueeze", ["n", "zero"], ["m"]),
        node("Concat", ["m", "rest"], ["t"], axis=0),
        node("Gemm", ["x", "w", "b"], ["h"], transB=1, alpha=0.5),
        node("TopK", ["h", "k"], ["v", "at"], axis=1),
        node("Softmax", ["h"], ["p"], axis=1),
        node("Reshape", ["p", "t"], ["r"]),
        node("Gather", ["r", "two"], ["g"], axis=1),
        node("NonZero", ["v"], ["z"]),
        node("Transpose", ["g"], ["y"], perm=[0, 2, 1]),
    ]
    return _onnx(nodes, {"x": ["batch", 3]}, arrays)


def recurrence() -> ModelProto:
    node, rng = helper.make_node, np.random.default_rng(0)
    arrays = {
        "w": rng.standard_normal((1, 16, 3), np.float32),
        "r": rng.standard_normal((1, 16, 4), np.float32),
        "scale": np.array(0.1, np.float32),
        "zero": np.array(0, np.int8),
    }
    nodes = [
        node("LSTM", ["x", "w", "r"], ["h", "last"], hidden_size=4),
        node("Squeeze", ["last"], ["l"]),
        node("QuantizeLinear", ["l", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("ReduceMean", ["d"], ["m"], axes=[0], keepdims=0),
        node("Where", ["c", "m", "l"], ["y"]),
        node("Greater", ["l", "scale"], ["c"]),
    ]
    return _onnx(nodes, {"x": [5, 2, 3]}, arrays)


MODELS = {"convolution": convolution, "shapes": shapes, "recurrence": recurrence}


def write_model(name: str) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(MODELS[name]().SerializeToString())


def write_two_records(path: Path) -> None:
    trace = "split(i, 4); tiles(i0)"
    write_records(path, [Record("k" * 8, "cpu", n, trace, 0.5, True, "f") for n in (1, 2)])


def write_arrays(path: Path) -> None:
    np.savez(path, x=np.arange(12, dtype=np.float32).reshape(3, 4), y=np.arange(3))


def write_parts(path: Path) -> None:
    a = csr_array(np.eye(4, 32, dtype=np.float32))
    parts = {"indptr": a.indptr, "indices": a.indices, "values": a.data, "shape": a.shape}
    np.savez(path, x=np.ones(3), **{f"a.{name}": part for name, part in parts.items()})


def write_trace(path: Path) -> None:
    path.write_text("@f: split(i, 4);\n# rows\nvectorize(j, i1)\n@g: tiles(i0)\n")


def write_passes(path: Path) -> None:
    path.write_text(pipeline_text(pipeline(threads=2)))


def run_network(exe: sw.Executable) -> Any:
    """The results of an artefact; damage of weights, which are not looked at, changes these."""
    return exe(np.ones((3, 6), np.float32), np.ones((6, 2), np.float32))


SPECS = [ValueSpec("x", (3, 4), "f32"), ValueSpec("y", (3,), "i64")]


def _text(stage: str, program: str, change: Damage) -> Kind:
    use = compile_and_call if stage in CALLED else compile_only
    return Kind(from_mlir, text_at(stage, program), ".mlir", change, use)


FILES = {
    "npz": Kind(WeightStore.load, write_parts, ".npz"),
    "safetensors": Kind(WeightStore.load, network().weights.save, ".safetensors"),
    "records": Kind(read_records, write_two_records, ".jsonl"),
    "trace": Kind(lambda path: read_traces(None, str(path)), write_trace),
    "pipeline": Kind(lambda path: entries(read_option("--pipeline", path)), write_passes),
    "matrix": Kind(read_array, lambda path: save_npz(path, csr_array(np.eye(4))), ".npz"),
    "artefact": Kind(sw.load, lambda path: compiled().save(path), ".stepwell", use=run_network),
    "npy": Kind(read_array, lambda path: np.save(path, np.ones((3, 4), np.float32)), ".npy"),
    "inputs": Kind(lambda path: read_archive(path, SPECS), write_arrays, ".npz"),
}
"""Small files, whose bytes are damaged."""

MEMBERS = {
    "npz members": Kind(WeightStore.load, write_parts, ".npz", damaged_member),
    "matrix members": Kind(read_array, FILES["matrix"].write, ".npz", damaged_member),
    "inputs members": Kind(FILES["inputs"].read, write_arrays, ".npz", damaged_member),
    "safetensors header": Kind(
        WeightStore.load, network().weights.save, ".safetensors", damaged_header
    ),
}
"""Archives that are whole, with damaged members."""

CHANGES = {"bytes": damaged, "tokens": other_tokens, "operations": other_operations}

TEXTS = {
    f"{stage} {what}": _text(stage, "operators", change)
    for stage in IR_STAGES
    for what, change in CHANGES.items()
}

ONNX = {
    f"{name} {what}": Kind(sw.from_onnx, write_model(name), ".onnx", change, compile_and_call)
    for name in MODELS
    for what, change in (("bytes", damaged), ("messages", other_messages))
}

KINDS = {**FILES, **MEMBERS, **TEXTS, **ONNX}
