"""Files appear complete or not at all, and devices stay what they are."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.files.writing import write_atomically, written
from stepwell.tools.stepwell_opt import main


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"new")
    with suppress(KeyError), written(target) as file:
        file.write(b"new")
        raise KeyError
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"], "nothing is left over"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_atomically(tmp_path / "ours", b"")
    (tmp_path / "usual").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"text")
    reader.join(timeout=10)
    assert found == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.fixture
def null(tmp_path: Path) -> Path:
    """A link to the device that forgets everything."""
    link = tmp_path / "null.mlir"
    link.symlink_to(os.devnull)
    return link


def model() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (2, 3)), np.ones((4, 3), np.float32)), name="y")
    return b.module()


def test_commands_and_modules_leave_devices_alone(null: Path, tmp_path: Path) -> None:
    model().save(null)
    model().save(tmp_path / "m.mlir")
    main([str(tmp_path / "m.mlir"), "-o", str(null)])
    sw.compile(model(), threads=1).save(null)
    assert stat.S_ISCHR(null.stat().st_mode)
    names = ["m.mlir", "m.safetensors", "null.mlir"]
    assert sorted(os.listdir(tmp_path)) == names, "no weights beside a device"


@pytest.mark.parametrize("path", ["", ".", "a\0b", 3, None])
def test_what_is_no_path_of_a_file(path: object) -> None:
    module = model()
    exe = sw.compile(module, threads=1)
    for save in (module.save, exe.save):
        with pytest.raises(sw.StepwellError, match=r"^save: cannot write .*: (Is a|not a) "):
            save(path)  # type: ignore[arg-type]
    with pytest.raises(sw.ImportModelError, match=r"^load: cannot read .*: (Is|No|not) "):
        sw.load(path)  # type: ignore[arg-type]
