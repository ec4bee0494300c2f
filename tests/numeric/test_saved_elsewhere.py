"""Saved programs under another Python, and on another processor, than those they were made with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.backends.llvm.images import can_be_mapped

from ..harness import close, floats

ROOT = Path(__file__).resolve().parents[2]
NEEDED = "import sys, numpy; print(*sys.version_info[:2], numpy.__version__.partition('.')[0])"
CALLS = """
import sys
import numpy as np
import stepwell as sw
exe = sw.load(sys.argv[1])
with np.load(sys.argv[2]) as arrays:
    dense, indptr, indices, values = (arrays[name] for name in ("x", "p", "i", "v"))
y = exe((indptr, indices, values), dense)
np.save(sys.argv[3], y)
try:
    exe((indptr, indices + 9, values), dense)
except sw.InputError as error:
    print(error)
print(exe._artefact.chosen["target"]["name"], type(exe) is not sw.Executable)
print(exe.verify().examples, *sorted({"scipy", "xdsl", "llvmlite"} & set(sys.modules)))
"""
"""Loads a program, saves its results, and prints an error, what was loaded, what was checked."""


def graph() -> csr_array:
    return csr_array(np.eye(6, dtype=np.float32)[[3, 1, 1, 5, 0, 2]])


X = floats(6, 19)


def network() -> sw.Executable:
    """A graph convolution with a graph at run time, on two threads."""
    b = sw.Builder()
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    hidden = b.dense(b.input("x", ("n", 19)), floats(33, 19), bias=floats(33))
    b.output(b.dense(b.relu(b.spmm(a, hidden)), floats(7, 33)), name="y")
    return sw.compile(b.module(), threads=2)


def outcome(
    command: Sequence[str], folder: Path, path: Path, text: str = CALLS, package: Path = ROOT
) -> tuple[np.ndarray, list[str]]:
    """The results of the program in a process that this command starts, and what it prints."""
    arrays, result = folder / "inputs.npz", folder / "y.npy"
    matrix = graph()
    np.savez(arrays, x=X, p=matrix.indptr, i=matrix.indices, v=matrix.data)
    named = folder / "named"
    named.mkdir(exist_ok=True)
    (named / "stepwell").symlink_to(package)
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment |= {"PYTHONPATH": str(named), "PYTHONDONTWRITEBYTECODE": "1"}
    # NumPy's own threads, which an emulator does not need.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    arguments = [*command, "-c", text, str(path), str(arrays), str(result)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(result), done.stdout.splitlines()


def other_pythons() -> Mapping[tuple[int, int], str]:
    """Interpreters of other versions on this machine that have NumPy 2, by version.

    They are looked for in `PATH`, and in STEPWELL_PYTHONS: paths, separated as in `PATH`.
    """
    stated = os.environ.get("STEPWELL_PYTHONS", "").split(os.pathsep)
    names = [f"python3.{minor}" for minor in range(11, 16)]
    found: dict[tuple[int, int], str] = {}
    for path in filter(None, [*stated, *map(shutil.which, names)]):
        done = subprocess.run([path, "-c", NEEDED], capture_output=True, text=True, check=False)
        facts = tuple(map(int, done.stdout.split()))
        if done.returncode == 0 and facts[2] >= 2 and facts[:2] != sys.version_info[:2]:
            found.setdefault((facts[0], facts[1]), path)
    return found


ERROR = 'input "a": column index out of range at entry 0, got 12'


def test_a_program_is_loaded_by_another_python(tmp_path: Path) -> None:
    """The same results, bit for bit, with NumPy alone, and calls by compiled code."""
    pythons = other_pythons()
    if not pythons:
        pytest.skip("needs another Python with NumPy 2: name it in STEPWELL_PYTHONS")
    exe, path = network(), tmp_path / "program.stepwell"
    exe.save(path)
    for version, python in pythons.items():
        folder = tmp_path / str(version)
        folder.mkdir()
        y, printed = outcome([python], folder, path)
        assert y.tobytes() == exe(graph(), X).tobytes()
        assert printed == [ERROR, f"host {version <= (3, 13) and can_be_mapped()}", "2"]


ALONE = """
import sys
sys.modules |= dict.fromkeys(%r)
sys.meta_path = [f for f in sys.meta_path if "editable" not in f.__module__]
"""
"""Before `CALLS`: there are no such packages, and `stepwell` is what `PYTHONPATH` has."""
WITHOUT = """
import pickle
assert pickle.loads(pickle.dumps(exe))((indptr, indices, values), dense).tobytes() == y.tobytes()
assert exe.explain() and exe.call_named((indptr, indices, values), dense)["y"].shape == y.shape
recompiled = lambda: sw.load(sys.argv[1], recompile=True)
halves = lambda: sw.load(sys.argv[1] + ".bf16")
saved = lambda: exe.save(sys.argv[1] + ".again", targets=["host"])
inside = (lambda: exe.ir("loops"), recompiled, saved)
for use in (lambda: sw.compile, lambda: sw.patterns, *inside, halves):
    try:
        use()
    except sw.CompileError as error:
        print(error)
"""
"""After `CALLS`: what needs no compiler, and what does."""


def test_the_runtime_alone_loads_a_program(tmp_path: Path) -> None:
    """The wheel of `stepwell-runtime`, with no package but NumPy."""
    script = [sys.executable, str(ROOT / ".ci" / "runtime_wheel.py"), str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 200_000
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
        record = archive.read(next(n for n in archive.namelist() if n.endswith("RECORD"))).decode()
        assert len(record.splitlines()) == len(archive.namelist())
    exe, path = network(), tmp_path / "program.stepwell"
    exe.save(path)
    b = sw.Builder()
    b.output(b.relu(b.input("x", (4,), "bf16")), name="y")
    sw.compile(b.module()).save(f"{path}.bf16")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w]", line)[0] for line in project["dependencies"]} - {"numpy"}
    text = ALONE % sorted(names) + CALLS.replace("set(sys.modules)", "set()") + WITHOUT
    package = tmp_path / "installed" / "stepwell"
    y, printed = outcome([sys.executable], tmp_path, path, text, package)
    assert y.tobytes() == exe(graph(), X).tobytes()
    assert printed[:3] == [ERROR, f"host {can_be_mapped()}", "2"]
    *named, ir, recompiled, saved, halves = printed[3:]
    fact = "stepwell-runtime has no compiler; install stepwell in its place"
    assert named == [f"{name}: {fact}" for name in ("compile", "patterns")]
    assert [ir, recompiled, saved] == [f"load: {fact}", f"load: {fact}", f"save: {fact}"]
    assert halves == "type: bf16 needs the package ml_dtypes, which is not installed"


EMULATOR = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


@pytest.mark.slow
@pytest.mark.skipif(EMULATOR is None, reason="needs qemu-x86_64: apt install qemu-user")
@pytest.mark.skipif(not can_be_mapped(), reason="Python is not one for Linux on x86-64")
def test_a_program_for_several_targets_runs_on_an_older_processor(tmp_path: Path) -> None:
    """Haswell has no AVX-512, which the better code needs."""
    exe, path = network(), tmp_path / "program.stepwell"
    exe.save(path, targets=["x86-64-v3", "x86-64-v4"])
    command = [str(EMULATOR), "-cpu", "Haswell", sys.executable]
    y, printed = outcome(command, tmp_path, path)
    # Sums of up to 33 products, in another order.
    close(y, exe(graph(), X), 1e-4, atol=1e-5)
    assert printed == [ERROR, "x86-64-v3 True", "2"]
