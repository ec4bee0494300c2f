"""Passes that add to the tables of a program, at the last moment and after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline
from stepwell.tools import stepwell_opt


@pytest.fixture(scope="module")
def module() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (4, 8), "f32")
    b.output(b.relu(b.dense(x, np.eye(8, dtype=np.float32))), name="y")
    return b.module()


def passes(after: str) -> str:
    """The default pipeline with `rt-profile` after a pass."""
    texts = ",".join(text for text in pipeline().values() if text)
    assert texts.count(f",{after},") == 1
    return texts.replace(f",{after},", f",{after},rt-profile,")


@pytest.mark.parametrize("after", ["convert-loop-to-scf", "convert-scf-to-cf"])
def test_tables_grow_until_slots_are_addresses(module: sw.Module, after: str) -> None:
    x = np.linspace(-4, 4, 32, dtype=np.float32).reshape(4, 8)
    plain = sw.compile(module)
    exe = sw.compile(module, pipeline=passes(after))
    assert exe(x).tobytes() == plain(x).tobytes()
    before, clocked = (program.ir("llvm").count("slot = ") for program in (plain, exe))
    assert clocked == before + 1


FRESH = """
import numpy as np
import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline

b = sw.Builder("main")
b.output(b.relu(b.input("x", (4,), "f32")), name="y")
texts = ",".join(text for text in pipeline().values() if text)
texts = texts.replace(",convert-loop-to-scf,", ",convert-loop-to-scf,rt-profile,")
print(sw.compile(b.module(), pipeline=texts)(np.float32([-1, 2, -3, 4])))
"""


def test_clocks_in_what_a_process_compiles_first() -> None:
    """The clock of the system is found although nothing has been compiled yet."""
    command = [sys.executable, "-W", "error", "-c", FRESH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0. 2. 0. 4.]\n", "")


def test_clocks_that_come_too_late(module: sw.Module) -> None:
    fact = "rt-profile: slots are already addresses, expected a pass before convert"
    with pytest.raises(sw.CompileError, match=fact):
        sw.compile(module, pipeline=passes("convert-rt-to-llvm"))


def test_clocks_in_time_are_checked(
    module: sw.Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check runs a program with the constants that it has, not with those that it had."""
    module.save(tmp_path / "m.mlir")
    texts = passes("convert-graph-to-rt").split(",rt-outline-tiles")[0]
    stepwell_opt.main([str(tmp_path / "m.mlir"), "--check", "-p", texts])
    assert "rt-profile: same bits" in capsys.readouterr().err
