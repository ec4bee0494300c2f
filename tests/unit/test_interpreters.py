"""The builds of Python that Stepwell runs on, and what the project says of versions."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def refusal(statement: str) -> str:
    """The error of an import after a statement that makes `sys` describe another Python."""
    tried = "try:\n    import stepwell\nexcept ImportError as error:\n    print(error)"
    script = f"import sys\n{statement}\n{tried}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout


def test_a_free_threaded_build_is_refused_in_one_sentence() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert refusal('sys.abiflags = "t"') == (
        "stepwell: this Python has no global interpreter lock, expected a build with one, "
        f"got a free-threaded build of {version}\n"
    )


def test_windows_is_refused_in_one_sentence() -> None:
    assert refusal('sys.platform = "win32"') == (
        "stepwell: compiled programs need POSIX threads and forks, expected Linux or macOS, "
        "got Windows, where Stepwell runs in the Windows Subsystem for Linux\n"
    )


def test_each_dependency_has_a_lowest_version() -> None:
    script = ROOT / ".ci" / "requirements.py"
    done = subprocess.run(
        [sys.executable, str(script), "--oldest"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all("==" in line for line in done.stdout.splitlines())
    # Light extras take part. pyarrow 15 does not work with any NumPy that the package allows.
    assert {"numpy==2.2.5", "pyarrow==16", "pymetis==2025.2"} <= set(done.stdout.splitlines())


def test_versions_of_python_are_those_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    minor = [int(line.removeprefix(prefix)) for line in project["classifiers"] if prefix in line]
    assert project["requires-python"] == f">=3.{min(minor)}"
    assert minor == list(range(min(minor), max(minor) + 1))
    tried = (ROOT / "Makefile").read_text().partition("PYTHONS := ")[2].splitlines()[0].split()
    assert {f"python3.{number}" for number in minor} <= set(tried)
