"""`benchmarks/memory_limit.py` limits the memory of child processes, or says that it cannot."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "memory_limit.py"


@pytest.fixture
def limits() -> Any:
    spec = importlib.util.spec_from_file_location("memory_limit", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def groups(limits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the system's groups, whose files take everything."""
    monkeypatch.setattr(limits, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(limits, "OWN", tmp_path / "own")
    # Groups of the system are removed with their files.
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    (tmp_path / "cgroup").mkdir()
    return tmp_path / "cgroup"


def settings(limits: Any) -> tuple[Path, dict[str, str]]:
    """The group of a child with limited memory, and what is written there."""
    with limits.limited("3MiB") as join:
        join()
        (group,) = limits.GROUPS.glob("**/stepwell-*")
        found = {path.name: path.read_text() for path in group.iterdir()}
    assert not group.exists()
    assert found.pop("cgroup.procs").isdecimal()
    return group.parent, found


def test_version_1(limits: Any, groups: Path) -> None:
    (groups / "memory").mkdir()
    assert settings(limits) == (groups / "memory", {"memory.limit_in_bytes": "3145728"})
    (groups / "memory" / "memory.memsw.limit_in_bytes").touch()
    both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
    assert settings(limits)[1] == dict.fromkeys(both, "3145728")


def test_version_2(limits: Any, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the group of this process, or where that may not limit memory, in one around it."""
    limits.OWN.write_text("0::/user/app\n")
    (groups / "user" / "app").mkdir(parents=True)
    for group in (groups, groups / "user", groups / "user" / "app"):
        (group / "cgroup.controllers").write_text("cpu memory\n")
    (groups / "user" / "cgroup.subtree_control").write_text("memory\n")
    wanted = {"memory.max": "3145728", "memory.swap.max": "0"}
    assert settings(limits) == (groups / "user" / "app", wanted)
    assert (groups / "user" / "app" / "cgroup.subtree_control").read_text() == "+memory"
    (groups / "user" / "app" / "cgroup.subtree_control").write_text("")
    write = limits._write

    def busy(path: Path, value: object) -> None:
        if path.name == "cgroup.subtree_control":
            raise OSError("busy")
        write(path, value)

    monkeypatch.setattr(limits, "_write", busy)
    assert settings(limits) == (groups / "user", wanted)
    (groups / "user" / "cgroup.subtree_control").write_text("cpu\n")
    with pytest.raises(OSError, match="memory cannot be limited: busy; busy; busy"):
        settings(limits)


@pytest.mark.usefixtures("groups")
def test_no_groups(limits: Any) -> None:
    with pytest.raises(OSError, match="memory cannot be limited: no control groups"):
        settings(limits)
    with limits.limited(None) as join:
        assert join is None


def test_a_child_ends_that_takes_more(limits: Any) -> None:
    command = [sys.executable, "-c", "print(len(bytearray(64 << 20)))"]
    try:
        with limits.limited("32MiB") as join:
            done = subprocess.run(command, preexec_fn=join, capture_output=True, check=False)
        with limits.limited("1GiB") as join:
            large = subprocess.run(command, preexec_fn=join, capture_output=True, check=False)
    except OSError as reason:
        pytest.skip(str(reason))
    assert done.returncode < 0
    assert large.stdout == b"67108864\n"
