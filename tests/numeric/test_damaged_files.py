"""Files with damage: whatever a reader is given ends in a result or in one error of the project.

Each reader gets real files of its kind in which bytes are changed, left out, doubled or exchanged,
numbers become huge and brackets nest. It reads them in a process of its own that may take little
more memory than it has, and as long as a test may.
"""

from __future__ import annotations

import functools
import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import stepwell as sw
from stepwell.core.archives import read_archive
from stepwell.core.pipeline_text import entries
from stepwell.core.pipelines import pipeline, pipeline_text
from stepwell.core.reading import ReadingError
from stepwell.core.records import Record, read_records, write_records
from stepwell.core.specs import ValueSpec
from stepwell.core.weights import WeightStore
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.frontends.mlir import from_mlir
from stepwell.passes.loop.rules.replay import read_traces
from stepwell.tools.command import read_passes
from stepwell.tools.models import read_array

MEMORY = 2 << 30
"""Bytes of address space beyond what the process has."""

Apart = Callable[[Callable[[], object]], str]
ERRORS = (sw.StepwellError, ScheduleError, ReadingError)


def network() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 6))
    a = b.constant(csr_array(np.eye(4, 6, dtype=np.float32)), name="a")
    b.output(b.relu(b.dense(x, np.ones((3, 6), np.float32))), name="y")
    b.output(b.spmm(a, b.input("z", (6, 2))), name="w")
    return b.module()


@dataclass(frozen=True)
class Kind:
    """A reader, and what writes a file of its kind."""

    read: Callable[[Path], Any]
    write: Callable[[Path], Any]
    suffix: str = ""


@functools.cache
def compiled() -> sw.Executable:
    return sw.compile(network(), opt_level=1, threads=2)


def text_at(stage: str) -> Callable[[Path], Any]:
    def write(path: Path) -> None:
        exe = compiled()
        path.write_text(exe.ir(stage))
        for text in (path, path.with_stem("damaged")):
            exe.weights(stage).save(text.with_suffix(".safetensors"))

    return write


def write_onnx(path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper, save_model

    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], name="act"),
        helper.make_node("Reshape", ["r", "s"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=-1),
    ]
    arrays = {"w": weights, "s": np.array([0, -1])}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


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


def load_and_run(path: Path) -> Any:
    """The results of an artefact; damage of weights, which are not looked at, changes these."""
    exe = sw.load(path)
    return exe(np.ones((3, 6), np.float32), np.ones((6, 2), np.float32))


SPECS = [ValueSpec("x", (3, 4), "f32"), ValueSpec("y", (3,), "i64")]

KINDS = {
    "graph": Kind(from_mlir, text_at("graph"), ".mlir"),
    "kernels": Kind(from_mlir, text_at("kernels"), ".mlir"),
    "scheduled": Kind(from_mlir, text_at("scheduled"), ".mlir"),
    "llvm": Kind(from_mlir, text_at("llvm"), ".mlir"),
    "onnx": Kind(sw.from_onnx, write_onnx, ".onnx"),
    "npz": Kind(WeightStore.load, write_parts, ".npz"),
    "safetensors": Kind(WeightStore.load, network().weights.save, ".safetensors"),
    "records": Kind(read_records, write_two_records, ".jsonl"),
    "trace": Kind(lambda path: read_traces(None, str(path)), write_trace),
    "pipeline": Kind(lambda path: entries(read_passes(path)), write_passes),
    "matrix": Kind(read_array, lambda path: save_npz(path, csr_array(np.eye(4))), ".npz"),
    "artefact": Kind(load_and_run, lambda path: compiled().save(path), ".stepwell"),
    "npy": Kind(read_array, lambda path: np.save(path, np.ones((3, 4), np.float32)), ".npy"),
    "inputs": Kind(lambda path: read_archive(path, SPECS), write_arrays, ".npz"),
}


SEEDS = {"artefact": 300}
"""Of what has machine code in it, there is more to see."""


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some damage, more often of one kind than of several."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = DAMAGES[rng.integers(len(DAMAGES))](data, rng)
    return data


def _changed(data: bytes, rng: np.random.Generator) -> bytes:
    found = np.frombuffer(data, np.uint8).copy()
    places = rng.integers(0, max(1, len(found)), rng.integers(1, 5))
    if len(found):
        found[places] = rng.integers(0, 256, len(places))
    return found.tobytes()


def _flipped(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    if found:
        found[rng.integers(len(found))] ^= 1 << rng.integers(8)
    return bytes(found)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(0, len(data) + 1)]


def _piece(data: bytes, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(0, len(data) + 1))
    return start, start + int(rng.integers(0, 64))


def _left_out(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _piece(data, rng)
    return data[:start] + data[stop:]


def _doubled(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _piece(data, rng)
    return data[:stop] + data[start:stop] * int(rng.integers(1, 4)) + data[stop:]


def _moved(data: bytes, rng: np.random.Generator) -> bytes:
    (start, stop), there = _piece(data, rng), int(rng.integers(0, len(data) + 1))
    return data[:there] + data[start:stop] + data[there:]


NUMBERS = [b"-1", b"0", b"2147483648", b"99999999999999999999", b"1e999", b"nan", b"4294967295"]


def _huge(data: bytes, rng: np.random.Generator) -> bytes:
    """One of the numbers of a text becomes another one, or four bytes do."""
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return _changed(data, rng)
    chosen = numbers[rng.integers(len(numbers))]
    number = NUMBERS[rng.integers(len(NUMBERS))]
    return data[: chosen.start()] + number + data[chosen.end() :]


def _word(data: bytes, rng: np.random.Generator) -> bytes:
    """One word stands in the place of another."""
    words = list(re.finditer(rb"[%@#!]?[A-Za-z_][\w.]*", data))
    if not words:
        return _changed(data, rng)
    old, new = words[rng.integers(len(words))], words[rng.integers(len(words))]
    return data[: old.start()] + new[0] + data[old.end() :]


def _nested(data: bytes, rng: np.random.Generator) -> bytes:
    there = int(rng.integers(0, len(data) + 1))
    bracket = [b"(", b"[", b"{", b"<"][rng.integers(4)]
    return data[:there] + bracket * int(10 ** rng.uniform(0, 5)) + data[there:]


DAMAGES = [_changed, _flipped, _cut, _left_out, _doubled, _moved, _huge, _word, _word, _nested]


def limit_memory() -> None:
    """Let the process take `MEMORY` bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


def read_damaged(kind: Kind, path: Path, seeds: range) -> None:
    """Read a file with the damage of each seed; what is not an error of the project comes out."""
    limit_memory()
    data = path.read_bytes()
    damaged_path = path.with_stem("damaged")
    for seed in seeds:
        damaged_path.write_bytes(damaged(data, np.random.default_rng(seed)))
        text = outcome(kind, damaged_path, seed)
        assert "internal error" not in text, (seed, text)
        assert len(text) < 4000, (seed, text[:4000])


def outcome(kind: Kind, path: Path, seed: int) -> str:
    try:
        kind.read(path)
    except ERRORS as error:
        return str(error)
    except BaseException as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error
    return "works"


def check(kind: Kind, folder: Path, seeds: range, apart: Apart) -> None:
    path = folder / f"file{kind.suffix}"
    kind.write(path)
    kind.read(path)
    assert apart(lambda: read_damaged(kind, path, seeds)) == "works"


@pytest.mark.parametrize("name", [name for name in KINDS if name != "llvm"])
def test_a_damaged_file_ends_in_one_error(name: str, tmp_path: Path, apart: Apart) -> None:
    check(KINDS[name], tmp_path, range(SEEDS.get(name, 40)), apart)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("hundred", range(10))
def test_many_damaged_files(name: str, hundred: int, tmp_path: Path, apart: Apart) -> None:
    count = 500 if name in SEEDS else 100
    check(KINDS[name], tmp_path, range(count * hundred, count * (hundred + 1)), apart)
