"""What the tests need: the dependencies of the package, and what runs the tests.

python .ci/requirements.py           # name>=version, for the newest of each
python .ci/requirements.py --oldest  # name==version, the lowest that pyproject.toml allows, of
                                     # these and of extras that are light
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_RUN = {"pyright", "scipy-stubs"}
"""Tools for the source, which no test runs."""
LIGHT = ("tune", "dask", "metis", "parquet")
"""Extras whose oldest versions are tested. Wheels of the oldest `mpi4py` bring no MPI, `torch`
is large, and tests of `ziglang` are slow."""


def requirements(extras: Sequence[str]) -> Iterator[str]:
    """The lines of pyproject.toml: dependencies, and those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = dict.fromkeys(project["dependencies"])
    for extra in extras:
        lines |= dict.fromkeys(project["optional-dependencies"][extra])
    for line in lines:
        if re.split(r"[^\w-]", line)[0] not in NOT_RUN:
            yield line


def oldest(line: str) -> str:
    """A requirement of the lowest version that a line allows.

    Raises:
        SystemExit: if it allows any version.
    """
    found = re.fullmatch(r"([\w-]+(?:\[[\w,-]+\])?)(?:>=|~=)([\d.]+)(?:,(?:<|!=)[\d.]+)*", line)
    if found is None:
        raise SystemExit(f"pyproject.toml: no lowest version, expected name>=version, got {line}")
    return "==".join(found.groups())


if __name__ == "__main__":
    lowest = "--oldest" in sys.argv[1:]
    lines = requirements(["test", *LIGHT] if lowest else ["test"])
    print("\n".join(map(oldest, lines) if lowest else lines))
