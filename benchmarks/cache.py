"""The time of `sw.compile` with the compile cache, in fresh processes, on one thread.

A process reads a model, and then takes the time of `sw.compile`, with what that imports: with an
empty cache, and with one that has the program. The last two columns are of another model, whose
last layer has half of the rows: with an empty cache, and with one that has the first model. Times
are those of the processor, for known programs also the elapsed one; each is the minimum of several
processes. Weights are random.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deployed import MODELS, Deployed
from harness import Row, Table
from onnx import ModelProto, numpy_helper
from turns import in_a_process

FEW = 3
"""How many processes compile a program anew."""
_COMPILE = """
import sys, time
import stepwell as sw
path = sys.argv[1]
module = sw.from_onnx(path) if path.endswith(".onnx") else sw.from_mlir(path)
start, used = time.perf_counter(), time.process_time()
sw.compile(module, threads=1)
print(time.perf_counter() - start, time.process_time() - used)
"""


def halved(model: ModelProto) -> ModelProto:
    last = next(node for node in reversed(model.graph.node) if node.op_type == "Gemm")
    for tensor in model.graph.initializer:
        if tensor.name in last.input[1:]:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(array[: len(array) // 2], tensor.name))
    return model


def files_of(deployed: Deployed, folder: Path) -> Iterator[Path]:
    """The file of a model, and that of the model with another layer, where it is one of ONNX."""
    if deployed.module is not None:
        yield folder / "model.mlir"
        deployed.module().save(folder / "model.mlir")
        return
    for path, model in (("model", deployed.proto()), ("halved", halved(deployed.proto()))):
        (folder / f"{path}.onnx").write_bytes(model.SerializeToString())
        yield folder / f"{path}.onnx"


def compiled(path: Path, cache: Path) -> tuple[float, float]:
    options = {"STEPWELL_CACHE": str(cache), "STEPWELL_TUNING": ""}
    elapsed, used = in_a_process(_COMPILE, str(path), environment=options)
    return elapsed, used


def anew(path: Path, cache: Path, begun: Path | None = None) -> float:
    """The processor time with an empty cache, or with a copy of another one."""
    times: list[float] = []
    for _ in range(FEW):
        shutil.rmtree(cache, ignore_errors=True)
        if begun is not None:
            shutil.copytree(begun, cache)
        times.append(compiled(path, cache)[1])
    return min(times)


def row(name: str, model: Deployed, *, rounds: int = 15) -> Row:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path, *others = files_of(model, folder)
        cache = folder / "cache"
        first = anew(path, cache)
        times = [compiled(path, cache) for _ in range(rounds)]
        known, used = map(min, zip(*times, strict=True))
        size = sum(entry.stat().st_size for entry in cache.glob("*.program"))
        cells = {
            "entry": f"{size / 1e6:.1f} MB",
            "not known": f"{first:.2f} s",
            "known": f"{used * 1e3:.0f} ms",
            "elapsed": f"{known * 1e3:.0f} ms",
        }
        for other in others:
            cells["changed"] = f"{anew(other, folder / 'other'):.2f} s"
            cells["kernels known"] = f"{anew(other, folder / 'other', cache):.2f} s"
        return cells


OF_ONNX = {name: model for name, model in MODELS.items() if model.model is not None}
TABLES = [Table("model", OF_ONNX, row)]
