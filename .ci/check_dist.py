"""Compare a wheel and an sdist with the tree: exactly the files that belong in them.

python .ci/check_dist.py dist/*
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def packaged() -> set[str]:
    """The files that a wheel holds, relative to `stepwell/`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {name: ROOT.joinpath(*name.split(".")[1:]) for name in settings["packages"]}
    paths = {path for folder in folders.values() for path in folder.glob("*.py")}
    for name, patterns in settings["package-data"].items():
        paths |= {path for pattern in patterns for path in folders[name].glob(pattern)}
    return {path.relative_to(ROOT).as_posix() for path in paths}


def wheel_files(path: Path) -> set[str]:
    """The files of a wheel without its metadata; everything must lie in `stepwell/`."""
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    strangers = {name for name in names if not name.startswith("stepwell/")}
    assert not strangers, f"{path.name} holds files outside of stepwell/: {sorted(strangers)}"
    return {name.removeprefix("stepwell/") for name in names}


def sdist_files(path: Path) -> set[str]:
    """The files of an sdist without what setuptools generates."""
    with tarfile.open(path) as sdist:
        names = {m.name.partition("/")[2] for m in sdist.getmembers() if m.isfile()}
    return {n for n in names if ".egg-info/" not in n and n not in {"PKG-INFO", "setup.cfg"}}


def tracked() -> set[str]:
    """The files of the repository that an sdist holds: all but those of git itself."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if name != ".gitignore"}


def compare(path: Path, found: set[str], expected: set[str]) -> None:
    """Fail where a file is missing or too many."""
    missing, more = sorted(expected - found), sorted(found - expected)
    if missing or more:
        sys.exit(f"{path.name}: missing {missing}, too many {more}")
    print(f"{path.name}: {len(found)} files, as in the tree")


def main() -> None:
    """Check the files named on the command line."""
    for argument in sys.argv[1:]:
        path = Path(argument)
        if path.suffix == ".whl":
            compare(path, wheel_files(path), packaged())
        else:
            compare(path, sdist_files(path), tracked())


if __name__ == "__main__":
    main()
