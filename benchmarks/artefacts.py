"""The time from a saved program to its first result, in fresh processes, on one thread.

Beside it are onnxruntime, from the model and from the file to which it writes its optimised model,
and TVM's library, each where it is installed. A process imports NumPy, makes the arguments, and
then takes the time of importing the run time, loading the file and one call: elapsed time, and
processor time, each the minimum of all processes, which take turns. Weights are random. The files
are in the cache of the system, as after the first load.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from deployed import MODELS, Deployed
from harness import Row, Table
from turns import in_a_process

import stepwell as sw

SECONDS = 10
"""No more processes are started for a file whose first results took so much time together."""
_FIRST = """
import sys, time
import numpy as np
inputs = [np.load(path) for path in sys.argv[2:]]
start, used = time.perf_counter(), time.process_time()
{code}
print(time.perf_counter() - start, time.process_time() - used, loaded - imported)
"""
_OURS = """
import stepwell as sw
imported = time.perf_counter()
exe = sw.load(sys.argv[1])
loaded = time.perf_counter()
exe(*{inputs})
"""
_SESSION = """
import onnxruntime as ort
imported = time.perf_counter()
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
session.run(None, dict(zip([spec.name for spec in session.get_inputs()], inputs)))
"""
_LIBRARY = """
import tvm
from tvm import relax
imported = time.perf_counter()
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
loaded = time.perf_counter()
machine["main"](*map(tvm.runtime.tensor, inputs))
"""


@dataclass(frozen=True)
class Saved:
    """A file, the seconds that it took to write it, and the code of its first result."""

    path: Path
    seconds: float
    code: str


def ours(deployed: Deployed, folder: Path) -> Saved:
    path, exe = folder / "program.stepwell", deployed.compiled()
    start = time.perf_counter()
    exe.save(path)
    return Saved(path, time.perf_counter() - start, _OURS.format(inputs=deployed.arguments))


def session(deployed: Deployed, folder: Path) -> Saved:
    """A model of ONNX, which each session optimises."""
    path, model = folder / "model.onnx", deployed.proto()
    start = time.perf_counter()
    path.write_bytes(model.SerializeToString())
    return Saved(path, time.perf_counter() - start, _SESSION.format(level="ORT_ENABLE_ALL"))


def optimised(deployed: Deployed, folder: Path) -> Saved:
    """A model that a session has optimised and written."""
    import onnxruntime as ort

    path, model = folder / "optimised.onnx", deployed.proto().SerializeToString()
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    start = time.perf_counter()
    ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return Saved(path, time.perf_counter() - start, _SESSION.format(level="ORT_DISABLE_ALL"))


def library(deployed: Deployed, folder: Path) -> Saved:
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    # Its type is that of a graph in the signature of the importer, which takes a model.
    path, model = folder / "library.so", cast("Any", deployed.proto())
    start = time.perf_counter()
    module = from_onnx(model, keep_params_in_input=False)
    built = tvm.compile(relax.get_pipeline("zero")(module), target=tvm.target.Target("llvm"))
    built.export_library(str(path))
    return Saved(path, time.perf_counter() - start, _LIBRARY)


PEERS: Mapping[str, tuple[str, Callable[[Deployed, Path], Saved]]] = {
    "onnxruntime, model": ("onnxruntime", session),
    "onnxruntime, optimised": ("onnxruntime", optimised),
    "TVM, library": ("tvm", library),
}
"""What else makes a file of a model, and the package for it."""


def saved(deployed: Deployed, folder: Path) -> dict[str, Saved]:
    files = {"stepwell": ours(deployed, folder)}
    for key, (package, make) in PEERS.items():
        if deployed.model is not None and importlib.util.find_spec(package) is not None:
            files[key] = make(deployed, folder)
    return files


def times(
    files: Sequence[Saved], inputs: Sequence[np.ndarray], folder: Path, rounds: int
) -> list[list[float]]:
    """The least elapsed time, processor time and time of loading, of processes for each file."""
    places: list[str] = []
    for number, array in enumerate(inputs):
        places.append(str(folder / f"input{number}.npy"))
        np.save(places[-1], array)
    found: list[list[list[float]]] = [[] for _ in files]
    for _ in range(rounds + 1):
        for runs, file in zip(found, files, strict=True):
            if sum(first for first, *_ in runs) > SECONDS:
                continue
            code = _FIRST.format(code=file.code)
            runs.append(in_a_process(code, str(file.path), *places))
    return [[min(column) for column in zip(*runs, strict=True)] for runs in found]


def verified(path: Path) -> str:
    """The time of a check of a program of ours."""
    exe = sw.load(path)
    start = time.perf_counter()
    exe.verify()
    return f"{1e3 * (time.perf_counter() - start):.1f} ms"


def rows(name: str, model: Deployed, *, rounds: int = 9) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = saved(model, folder)
        found = times(list(files.values()), model.inputs(1), folder, rounds)
        for (key, file), (first, used, load) in zip(files.items(), found, strict=True):
            yield {
                "run time": key,
                "file": f"{os.path.getsize(file.path) / 1e6:.1f} MB",
                "save": f"{file.seconds:.2f} s",
                "load": f"{load * 1e3:.1f} ms",
                "first result": f"{first * 1e3:.1f} ms",
                "of the processor": f"{used * 1e3:.1f} ms",
                "verify": verified(file.path) if key == "stepwell" else "",
            }


TABLES = [Table("model", MODELS, rows)]
