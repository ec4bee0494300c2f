"""Folders of runs, and files in them: who has been killed leaves none behind for long."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stepwell.core.files.reading import map_npy
from stepwell.distributed.storage import folders
from stepwell.distributed.storage.blocks import PartBlock

HOLDING = """
import sys
from stepwell.distributed.storage.folders import new_folder
print(new_folder(sys.argv[1]), flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    """Not while it lives; nor what is held by this process, or is no folder of a run."""
    other = tmp_path / "stepwell-other"
    other.mkdir()
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **streams) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (theirs / "x.npy").touch()
        first = Path(folders.new_folder(str(tmp_path)))
        assert theirs.is_dir()
        process.send_signal(signal.SIGKILL)
    second = Path(folders.new_folder(str(tmp_path)))
    assert not theirs.exists()
    assert set(tmp_path.iterdir()) == {other, first, second}
    for path in (first, second):
        folders.remove_folder(str(path))
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_that_another_host_has_named(tmp_path: Path) -> None:
    path = tmp_path / "stepwell-1"
    for _ in range(2):
        folders.join_folder(str(path))
    folders.remove_stale(str(tmp_path))
    assert path.is_dir()
    folders.remove_folder(str(path))
    folders.join_folder(str(path))
    assert path.is_dir()
    folders.remove_folder(str(path))


def test_files_of_arrays_are_opened_without_parsing_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some versions of CPython 3.11 cannot parse in two threads at a time."""

    def refused(*_: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    arrays = [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(5)[:0],
        np.array(7.0),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        np.array(["ab", "c"]),
    ]
    for number, array in enumerate(arrays):
        np.save(tmp_path / f"{number}.npy", array)
    monkeypatch.setattr(ast, "literal_eval", refused)
    for number, array in enumerate(arrays):
        found = map_npy(tmp_path / f"{number}.npy")
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.flags.f_contiguous == array.flags.f_contiguous
        assert np.array_equal(found, array)
    block = PartBlock.create(str(tmp_path), "y", (3, 4), np.dtype(np.float32))
    block.open(write=True)[...] = arrays[0]
    assert np.array_equal(map_npy(block.path), arrays[0])
