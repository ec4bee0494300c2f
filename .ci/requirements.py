"""What the tests need: the dependencies of the package, and what runs the tests.

python .ci/requirements.py           # name>=version, for the newest of each
python .ci/requirements.py --oldest  # name==version, the lowest that pyproject.toml allows
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_RUN = {"ruff", "pyright", "scipy-stubs"}
"""Tools for the source, which no test imports."""


def requirements() -> Iterator[str]:
    """The lines of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"]["test"]):
        if re.split(r"[^\w-]", line)[0] not in NOT_RUN:
            yield line


def oldest(line: str) -> str:
    """A requirement of the lowest version that a line allows.

    Raises:
        SystemExit: if it allows any version.
    """
    found = re.fullmatch(r"([\w-]+(?:\[[\w,-]+\])?)(?:>=|~=)([\d.]+)", line)
    if found is None:
        raise SystemExit(f"pyproject.toml: no lowest version, expected name>=version, got {line}")
    return "==".join(found.groups())


if __name__ == "__main__":
    chosen = map(oldest, requirements()) if "--oldest" in sys.argv[1:] else requirements()
    print("\n".join(chosen))
