"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """A function from a file name to its path among the real weights and data.

    They are looked for in the folder `STEPWELL_DATA`, by default `shared/data` beside the
    repository; the test is skipped where the file is not there.
    """
    folder = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"{name} is not in {folder}; set STEPWELL_DATA to the folder that has it")
        return path

    return find
