"""Programs that are saved, and run without the compiler."""

from __future__ import annotations

import copy
import ctypes
import functools
import hashlib
import io
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.backends.llvm import elf, images
from stepwell.backends.llvm.boundary import layout, plan
from stepwell.backends.llvm.jit import object_code
from stepwell.core import processor
from stepwell.core.target import host, named, needs_of
from stepwell.diagnosis.inspection import inspected
from stepwell.dialects.rt import abi
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.runtime import objects
from stepwell.runtime.artefacts import container, reading
from stepwell.runtime.artefacts.manifest import ABI
from stepwell.runtime.executable import Executable
from stepwell.tools.main import main

from ..harness import cases, close, floats, same
from .test_interface import Calls, computed_sizes, outcome, sizes_that_agree

X = floats(5, 16)


@functools.cache
def network() -> sw.Executable:
    """Two layers on two threads, and a constant matrix, whose indices are constants."""
    b = sw.Builder()
    x = b.input("x", ("n", 16))
    hidden = b.relu(b.dense(x, floats(64, 16), bias=floats(64)))
    y = b.softmax(b.dense(hidden, floats(8, 64)), axis=1)
    a = csr_array(np.eye(8, dtype=np.float32)[[3, 1, 1, 7]])
    b.output(y, name="y")
    b.output(b.spmm(b.constant(a, name="a"), b.transpose(y, (1, 0))), name="z")
    return sw.compile(b.module(), threads=2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artefacts") / "network.stepwell"
    network().save(path)
    return path


@pytest.mark.parametrize("made", [sizes_that_agree, computed_sizes])
def test_a_saved_program_gives_the_same_results_and_errors(
    made: Callable[[], Calls], tmp_path: Path
) -> None:
    module, calls = made()
    exe = sw.compile(module, threads=1, opt_level=0)
    exe.save(tmp_path / "program.stepwell")
    again = sw.load(tmp_path / "program.stepwell")
    outcomes = [outcome(exe, inputs) for inputs in calls]
    assert [outcome(again, inputs) for inputs in calls] == outcomes
    assert again.inputs == exe.inputs
    assert again.outputs == exe.outputs
    assert again.verify().ulp == 0


def test_what_is_known_of_a_program_is_saved_with_it(saved: Path, all_tests: bool) -> None:
    exe, again = network(), sw.load(saved)
    assert repr(again) == repr(exe)
    assert again.decisions == exe.decisions
    assert again.stages == exe.stages[1:]
    for stage in ("optimized", *(["scheduled", "llvm"] if all_tests else [])):
        assert again.ir(stage) == exe.ir(stage)
    # Debug information has lines of the text that there is: of the model, or of what is saved.
    codes = (re.sub(r"\b(line|scopeLine): \d+", "", one.ir("llvm-ir")) for one in (again, exe))
    assert next(codes) == next(codes)
    close(again.run_at("loops" if all_tests else "fused", X[:1]), again(X[:1]), 1e-5, 0)
    with pytest.raises(sw.CompileError, match='file, expected "optimized", got "graph"'):
        again.ir("graph")
    report = again.verify()
    assert (report.examples, report.ulp) == (2, 0)
    assert f"{report}".endswith("and 2 examples give results within 0 ulp")
    assert f"{replace(report, examples=1)}".endswith("and 1 example gives results within 0 ulp")
    with pytest.raises(sw.CompileError, match="was not loaded from a file"):
        exe.verify()


def test_copies_share_the_program_and_pickles_have_it(saved: Path) -> None:
    exe = network()
    for source in (exe, sw.load(saved)):
        twin = copy.copy(source)
        assert twin._loaded.program is source._loaded.program
        assert copy.deepcopy(source)._loaded.program is source._loaded.program
        again = pickle.loads(pickle.dumps(source))
        same(again(X), exe(X))
        same(pickle.loads(pickle.dumps(again))(X), exe(X))
    twin.update({name: twin.weights("optimized")[name] for name in twin.weights("optimized")})
    same(twin(X), exe(X))
    twin.save(saved.with_name("twin.stepwell"))
    same(sw.load(saved.with_name("twin.stepwell"))(X), exe(X))


def test_a_program_that_nothing_can_restore_is_not_pickled() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (4,))))
    exe, _ = Compilation.of(Request(b.module(), threads=1)).executable(inspected)
    with pytest.raises(sw.CompileError, match=r"pickle: only programs of stepwell\.compile and"):
        pickle.dumps(exe)


@pytest.mark.slow  # so is one for another architecture
def test_a_program_can_be_compiled_anew(saved: Path) -> None:
    again = sw.load(saved, recompile=True)
    same(again(X), network()(X))
    with pytest.raises(sw.CompileError, match="was not loaded from a file"):
        again.verify()


def in_a_process(code: str, *args: object) -> str:
    arguments = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.strip()


def test_loading_and_calling_import_no_compiler(saved: Path) -> None:
    np.save(saved.with_name("x.npy"), X)
    code = """
import sys
import numpy as np
import stepwell as sw
exe = sw.load(sys.argv[1])
y, z = exe(np.load(sys.argv[2]))
np.save(sys.argv[3], y)
assert type(exe).__mro__[1] is sw.Executable, "compiled code handles calls"
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted({"xdsl", "llvmlite", "scipy", "safetensors", "onnx"} & loaded))
"""
    place = saved.with_name("y.npy")
    assert in_a_process(code, saved, saved.with_name("x.npy"), place) == "[]"
    same([np.load(place)], network()(X)[:1])


@pytest.mark.parametrize("first", cases(["load", "compile"], ["load"]))
def test_a_process_has_one_pool(saved: Path, first: str) -> None:
    """Whether a program that is loaded or one that is compiled needs it first."""
    code = """
import os, sys
import numpy as np
import stepwell as sw
def load():
    exe = sw.load(sys.argv[1])
    return lambda: exe(np.ones((4000, 16), np.float32))
def compile():
    b = sw.Builder()
    b.output(b.relu(b.dense(b.input("x", ("n", 16)), np.ones((64, 16), np.float32))))
    exe = sw.compile(b.module(), threads=2)
    return lambda: exe(np.ones((4000, 16), np.float32))
both = [load, compile] if sys.argv[2] == "load" else [compile, load]
print(len(os.listdir("/proc/self/task")))
for call in [make() for make in both] * 2:
    call()
print(len(os.listdir("/proc/self/task")))
"""
    alone, all_threads = map(int, in_a_process(code, saved, first).split())
    assert all_threads == alone + 1


# What is in the file.


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_file_is_a_zip_of_plain_files(saved: Path) -> None:
    found = members(saved)
    assert len(set(found.values())) == len(found), "what is equal is stored once"
    sw.from_mlir(found["ir/program.mlir"].decode(), network().weights("optimized"), trusted=True)
    text = json.loads(found["manifest.json"])
    assert text["programs"][0]["target"]["name"] == "host"
    with np.load(saved) as arrays:
        names = [name for name in arrays.files if name.startswith("examples/input")]
        assert arrays[names[0]].dtype == np.float32
    assert not any(name.endswith(".pkl") for name in found)
    program = sw.load(saved)._loaded.program
    for array in program.constants:
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable
    before = saved.read_bytes()
    network().save(saved)
    assert saved.read_bytes() == before, "the same program is the same file"


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of an artefact with another manifest."""
    found = members(path)
    manifest = json.loads(found.pop("manifest.json"))
    change(manifest)
    copied = path.with_name("changed.stepwell")
    with container.written(copied) as writer:
        for name, data in found.items():
            assert writer.add(name, data) == name
        writer.close(manifest)
    return copied


def test_members_of_one_name_get_others() -> None:
    writer = container.ArtefactWriter(io.BytesIO())
    names = [writer.add(name, data) for name, data in (("a", b"1"), ("a_2", b"2"), ("a", b"3"))]
    assert names == ["a", "a_2", "a_3"]
    assert writer.add("b", b"1") == "a", "equal contents are stored once"


def target_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return manifest["programs"][0]["target"]


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], object], type[Exception], str]] = {
    "a newer format": (
        lambda m: m.update(format=4),
        sw.ImportModelError,
        "its version is newer than this Stepwell can read, expected 1 to 3, got 4",
    ),
    "other machine code": (
        lambda m: m.update(abi=ABI + 1),
        sw.TargetError,
        "its machine code was made by another version of Stepwell",
    ),
    "another architecture": (
        lambda m: target_of(m).update(architecture="vax"),
        sw.TargetError,
        f"its code is for another architecture, expected {processor.architecture()}, got vax",
    ),
    "another processor": (
        lambda m: target_of(m)["needs"].append("avx1024"),
        sw.TargetError,
        "this processor lacks avx1024, which its code for host needs",
    ),
    "no manifest of ours": (
        lambda m: m["programs"][0].pop("interface"),
        sw.ImportModelError,
        r"its manifest is malformed \(KeyError\('interface'\)\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused(saved: Path, name: str) -> None:
    change, kind, fact = REFUSED[name]
    path = changed(saved, change)
    with pytest.raises(kind, match=f"changed.stepwell: {fact}"):
        sw.load(path)
    if name == "another architecture":
        again = sw.load(path, recompile=True)
        same(again(X), network()(X))
        with pytest.raises(sw.CompileError, match="was not loaded from a file"):
            again.verify()


def flipped(path: Path, name: str) -> Path:
    """A copy of a file with one other bit in the middle of a member."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        content = archive.read(name)
    data[data.index(content) + len(content) // 2] ^= 1
    copied = path.with_name("flipped.stepwell")
    copied.write_bytes(data)
    return copied


def test_damage_is_found(saved: Path) -> None:
    names = list(members(saved))
    weights = [n for n in names if n.startswith("constants/dense")]
    # A process that has a thread pool does not look at another one.
    early = ["code/host", "code/boundary", "manifest.json", "constants/a.indices.npy"]
    for name in early:
        with pytest.raises(sw.ImportModelError, match=f"{name} is damaged"):
            sw.load(flipped(saved, name))
    exe = sw.load(flipped(saved, weights[0]))
    exe(X)
    with pytest.raises(sw.ImportModelError, match=f"{weights[0]} is damaged: its SHA-256"):
        exe.verify()


def test_results_that_moved_are_found(saved: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        example = manifest["examples"][0]
        example["results"][0] = example["results"][0] | {"shape": [8, 5]}

    with pytest.raises(sw.MiscompilationError, match="example 0 has other results than when it"):
        sw.load(changed(saved, change)).verify()


def write_arrays(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=X)


@pytest.mark.parametrize(
    ("write", "fact"),
    [
        (lambda path: None, "cannot read .*: No such file or directory"),
        (lambda path: path.mkdir(), "cannot read .*: Is a directory"),
        (lambda path: path.write_bytes(b""), "cannot read .*: it is empty"),
        (lambda path: path.write_text("a model"), "is no saved program, or was cut off"),
        (write_arrays, "is an archive, but no saved program"),
    ],
)
def test_other_files_are_refused(
    write: Callable[[Path], object], fact: str, tmp_path: Path
) -> None:
    write(tmp_path / "file")
    with pytest.raises(sw.ImportModelError, match=fact):
        sw.load(tmp_path / "file")


def test_a_file_appears_complete_or_not_at_all(
    saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "program.stepwell"
    path.write_bytes(b"before")

    def interrupted(self: object, manifest: object) -> None:
        raise KeyboardInterrupt

    def no_space(self: object, manifest: object) -> None:
        raise OSError(28, "No space left on device")

    def refused(*paths: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(container.ArtefactWriter, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            network().save(path)
        patch.setattr(container.ArtefactWriter, "close", no_space)
        with pytest.raises(sw.ImportModelError, match=r"cannot write .*: No space left on device"):
            network().save(path)
    for place in ("os.replace", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(place, refused)
            with pytest.raises(sw.ImportModelError, match=r"cannot write .*: Permission denied"):
                network().save(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["program.stepwell"]
    with pytest.raises(sw.ImportModelError, match=r"save: cannot write .*: No such file"):
        network().save(tmp_path / "nowhere" / "program.stepwell")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A process whose files may not exceed a size, as if there were no space left."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_that_the_system_cuts_off_does_not_appear(tmp_path: Path) -> None:
    path, exe = tmp_path / "program.stepwell", network()
    path.write_bytes(b"before")
    with (
        largest_file(20_000),
        pytest.raises(sw.ImportModelError, match=r"cannot write .*too large"),
    ):
        exe.save(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["program.stepwell"]


def test_a_file_that_is_replaced_stays_as_it_was_for_who_has_loaded_it(tmp_path: Path) -> None:
    path = tmp_path / "program.stepwell"
    network().save(path)
    exe = sw.load(path)
    path.unlink()
    path.write_bytes(b"something else")
    same(exe(X), network()(X))


# Machines.


def test_the_best_target_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, b = tmp_path / "program.stepwell", sw.Builder()
    b.output(b.softmax(b.dense(b.input("x", ("n", 16)), floats(8, 16)), axis=1), name="y")
    made = sw.compile(b.module(), threads=1)
    made.save(path, targets=["x86-64", "x86-64-v2"])
    size = path.stat().st_size
    exe = sw.load(path)
    # Sums in another order, which the exponentials magnify.
    close(exe(X), made(X), 1e-4, 0)
    code = [one["code"] for one in exe._artefact.manifest["programs"]]  # type: ignore[union-attr]
    names = [one["image"] for one in code]
    assert names == ["code/x86-64", "code/x86-64-v2"]

    def taken() -> str:
        artefact = reading.Artefact(container.mapped(path))
        return artefact.chosen["target"]["name"]

    assert taken() == "x86-64-v2"
    monkeypatch.setattr(processor, "features", lambda: frozenset({"sse2"}))
    assert taken() == "x86-64"
    assert sw.load(path).verify().ulp < 100
    made.save(path, targets=["x86-64"])
    assert path.stat().st_size < size
    for name, fact in [
        ("vax", "unknown name"),
        ("cortex-a76", "can be saved, expected host, .*`stepwell export`"),
    ]:
        with pytest.raises(sw.TargetError, match=fact):
            made.save(path, targets=[name])
    with pytest.raises(sw.TargetError, match="no targets, expected one or more names"):
        made.save(path, targets=[])
    assert sw.load(path).stages


def test_features_of_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processor.missing(list(needs_of(named("host")) or [])) == []
    assert "sse4.2" in (needs_of(named("x86-64-v3")) or [])
    assert "gfni" in (needs_of(named("znver4")) or [])
    assert needs_of(named("cortex-a76")) is None
    # A program of another machine, whose code this one may not be able to run.
    other = replace(host(), features="+avx512fp16,+sse2,+64bit")
    assert needs_of(other) == ["avx512fp16", "sse2"]
    if host().cpu in processor.NEEDS:
        assert processor.missing(list(processor.NEEDS[host().cpu])) == []
    assert processor.missing(["sse2", "avx1024"]) == ["avx1024"]


def test_objects_of_another_layout_are_called_by_python(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under another Python than that under which the program was saved."""
    monkeypatch.setattr("stepwell.runtime.vectorcall._BOUNDARIES", {})
    path = changed(saved, lambda m: m["support"]["boundary"]["layout"].update(data=1000))
    exe = sw.load(path)
    assert type(exe) is Executable
    same(exe(X), network()(X))
    monkeypatch.setattr(objects, "are_known", lambda: False)
    exe = sw.load(saved)
    assert type(exe) is Executable
    same(exe(X), network()(X))
    monkeypatch.undo()
    exe.update({name: exe.weights("optimized")[name] for name in exe.weights("optimized")})
    same(exe(X), network()(X))


def test_code_that_needs_a_linker_is_linked_by_llvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.stepwell"
    monkeypatch.setattr("stepwell.runtime.artefacts.writing._CODE", ("no system",))
    network().save(path)
    assert "code/host.o" in members(path)
    same(sw.load(path)(X), network()(X))


def test_what_machine_code_and_the_run_time_agree_on_has_a_version() -> None:
    """Where this differs, increase `ABI` in `runtime/artefacts/manifest.py`, and put the new digest
    here: code in files of the older version would be run in another way than it was made for."""
    folder = Path(plan.__file__).parent
    files = [*sorted(folder.glob("*.ll")), folder.parent / "frames.ll"]
    lines = [
        line.partition(";")[0].strip() for file in files for line in file.read_text().splitlines()
    ]
    facts = [
        *[
            (word.name, int(word))
            for words in (abi.Word, abi.TileOrder, plan.CallPlan)
            for word in words
        ],
        *[(name, getattr(abi, name)) for name in ("ARENA_TOO_SMALL", "PARALLEL_TILES", "WORDS")],
        *[(name, getattr(plan, name)) for name in vars(plan) if name.isupper()],
        *layout.ENTRIES,
        *filter(None, lines),
    ]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    assert (ABI, digest) == (2, "1a432ad60a126d65")


STORED = {1: "stored.stepwell", 2: "stored_2.stepwell", 3: "stored_3.stepwell"}
"""A file of each format: the program of `network` with other weights, for x86-64; that of format 1
is for one thread."""


@pytest.mark.parametrize("version", STORED)
def test_a_file_of_each_format_is_read(version: int) -> None:
    path = Path(__file__).with_name(STORED[version])
    manifest = json.loads(members(path)["manifest.json"])
    assert manifest["format"] == version
    runs = manifest["abi"] == ABI and images.can_be_mapped()
    exe = sw.load(path, recompile=not runs)
    (inputs, results), _ = reading.Artefact(container.mapped(path)).examples()
    close(exe(*inputs), results, 1e-5, 0)
    if runs:
        assert exe.verify().examples == 2


def test_where_there_is_no_compiler_a_program_runs(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "stepwell.driver.compilation", None)
    exe = sw.load(saved)
    same(exe(X), network()(X))
    with pytest.raises(sw.CompileError, match="load: stepwell-runtime has no compiler"):
        exe.ir("loops")


# Commands.


def test_commands_write_run_and_verify_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.stepwell"
    (tmp_path / "m.mlir").write_text(TEXT.replace("FUNCTION", "found"))
    np.save(tmp_path / "x.npy", floats(4))
    model, x, y = tmp_path / "m.mlir", tmp_path / "x.npy", tmp_path / "y.npy"

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit):
            main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    run("compile", model, "-o", path, "--for", "x86-64")
    run("run", path, "-i", f"x={x}", "-o", f"result0={y}")
    same([np.load(y)], [-np.load(x)])
    assert "examples give results within 0 ulp" in run("verify", path)
    for arguments in (["--emit", "llvm", "-o", path], []):
        text = run("compile", model, "--for", "x86-64", *arguments)
        assert "--for: there is no program to write" in text


# Images.


def test_images_are_made_of_position_independent_code() -> None:
    ir = """
    declare i32 @labs(i32)
    @count = global i64 5
    @place = global ptr @count
    define i64 @next() {
      %p = load ptr, ptr @place
      %n = load i64, ptr %p
      %m = add i64 %n, 1
      store i64 %m, ptr %p
      ret i64 %m
    }
    define i32 @positive(i32 %x) {
      %y = call i32 @labs(i32 %x)
      ret i32 %y
    }
    """
    image = elf.image_of(object_code(ir, named("x86-64")))
    assert set(image.symbols) == {"count", "place", "next", "positive"}
    assert set(image.imports) == {"labs"}
    assert images.Image.from_dict(image.data, json.loads(json.dumps(image.to_dict()))) == image
    one, two = (images.MappedImage(image, images.system_function) for _ in range(2))
    count = ctypes.CFUNCTYPE(ctypes.c_int64)
    assert [count(one.address("next"))() for _ in range(2)] == [6, 7]
    assert count(two.address("next"))() == 6
    child = os.fork()
    if child == 0:
        os._exit(count(two.address("next"))())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert count(two.address("next"))() == 7, "a child has data of its own"
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(two.address("positive"))(-3) == 3
    with pytest.raises(sw.StepwellError, match="machine code: lacks nothing"):
        one.address("nothing")
    with pytest.raises(sw.StepwellError, match="this process has no function no_such_function"):
        images.system_function("no_such_function")


@pytest.mark.parametrize(
    ("code", "fact"),
    [
        (lambda: b"text", "not an object file"),
        (
            lambda: object_code("define void @f() { ret void }", named("x86-64"))[:100],
            "not an object file",
        ),
        (lambda: object_code("define void @f() { ret void }", named("cortex-a76")), "for x86-64"),
        (
            lambda: object_code("@v = thread_local global i64 0", named("x86-64")),
            "needs a linker, got section .tbss",
        ),
    ],
)
def test_other_objects_are_refused(code: Callable[[], bytes], fact: str) -> None:
    with pytest.raises(sw.CompileError, match=f"machine code: .*{fact}"):
        elf.image_of(code())


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 3},
        {"executable": 1},
        {"symbols": {"f": 1 << 40}},
        {"imports": {"f": [-8]}},
        {"relative": [1 << 20]},
    ],
)
def test_images_that_exceed_their_bounds_are_refused(wrong: dict[str, Any]) -> None:
    image = elf.image_of(object_code("define void @f() { ret void }", named("x86-64")))
    with pytest.raises(ValueError, match="an image exceeds its bounds"):
        images.Image.from_dict(image.data, image.to_dict() | wrong)


# Registered functions.

TEXT = """
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> {
  %y = graph.call_packed "artefacts.FUNCTION"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@sw.register_function("artefacts.found")
def found(x: np.ndarray, y: np.ndarray) -> None:
    np.negative(x, out=y)


def test_functions_that_another_process_finds_are_saved_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.stepwell"
    exe = sw.compile(sw.from_mlir(TEXT.replace("FUNCTION", "found")))
    exe.save(path)
    x = floats(4)
    monkeypatch.setattr("stepwell.core.boundary.functions._FUNCTIONS", {})
    same([sw.load(path)(x)], [-x])
    monkeypatch.setattr("stepwell.core.boundary.functions._FUNCTIONS", {})
    monkeypatch.delattr(sys.modules[__name__], "found")
    with pytest.raises(sw.CompileError, match="is not registered, and not found where it was"):
        sw.load(path)


def test_functions_that_no_other_process_finds_are_refused(tmp_path: Path) -> None:
    @sw.register_function("artefacts.hidden")
    def hidden(x: np.ndarray, y: np.ndarray) -> None:
        np.negative(x, out=y)

    exe = sw.compile(sw.from_mlir(TEXT.replace("FUNCTION", "hidden")))
    with pytest.raises(sw.CompileError, match=r"hidden.*another process cannot find it"):
        exe.save(tmp_path / "program.stepwell")
    assert not os.listdir(tmp_path)
