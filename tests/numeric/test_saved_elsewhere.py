"""Saved programs under another Python, and on another processor, than those they were made with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def outcome(command: Sequence[str], folder: Path, path: Path) -> tuple[np.ndarray, list[str]]:
    """The results of the program in a process that this command starts, and what it prints."""
    arrays, result = folder / "inputs.npz", folder / "y.npy"
    matrix = graph()
    np.savez(arrays, x=X, p=matrix.indptr, i=matrix.indices, v=matrix.data)
    named = folder / "named"
    named.mkdir(exist_ok=True)
    (named / "stepwell").symlink_to(ROOT)
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment |= {"PYTHONPATH": str(named), "PYTHONDONTWRITEBYTECODE": "1"}
    # NumPy's own threads, which an emulator does not need.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    arguments = [*command, "-c", CALLS, str(path), str(arrays), str(result)]
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
