"""Write the wheel of `stepwell-runtime`: the part of Stepwell that loads and runs saved programs.

python .ci/runtime_wheel.py [folder]

It has the modules that imports lead to from `ENTRIES`, and that need no package but NumPy, at
once or by what they import at once. The package is called `stepwell` as well: what loads a
program, or unpickles one, is the same with either distribution.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = (ROOT / "__init__.py", ROOT / "api" / "loading.py")
ALWAYS = {*sys.stdlib_module_names, "numpy"}
"""The packages that a module may import at once."""
EXTRAS = {"sparse": "scipy", "bf16": "ml_dtypes"}
"""Packages that some programs need: those with sparse matrices of SciPy, and with bfloat16."""
DESCRIPTION = """\
The part of Stepwell that runs compiled programs, without the compiler. It needs NumPy alone.

    import stepwell as sw

    exe = sw.load("model.stepwell")
    y = exe(x)

The package is `stepwell`, as that with the compiler is: an environment has one of them.
"""
EPOCH = (1980, 1, 1, 0, 0, 0)


@cache
def imports(path: Path) -> tuple[frozenset[str], frozenset[Path], frozenset[Path]]:
    """The packages that a module imports at once, its own modules, and those imported later."""
    outside, own, later = set[str](), set(_packages_of(path)), set[Path]()
    for node, at_once in _statements(ast.parse(path.read_text()), at_once=True):
        if isinstance(node, ast.Import):
            outside |= {alias.name.partition(".")[0] for alias in node.names if at_once}
        elif not node.level:
            outside |= {str(node.module).partition(".")[0]} if at_once else set()
        else:
            (own if at_once else later).update(_imported(path, node))
    return frozenset(outside), frozenset(own), frozenset(later)


def _statements(
    node: ast.AST, *, at_once: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The statements that import, but those for the type checker, and whether they run at once."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_once
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _statements(child, at_once=at_once and not is_function)


def _imported(path: Path, node: ast.ImportFrom) -> Iterator[Path]:
    """The modules that a relative import names."""
    base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
    for place in (base, *(base / alias.name for alias in node.names)):
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                yield file
                yield from _packages_of(file)


def _packages_of(path: Path) -> Iterator[Path]:
    for folder in path.parents[: len(path.relative_to(ROOT).parts)]:
        if (file := folder / "__init__.py") != path:
            yield file


def modules(entries: Iterable[Path] = ENTRIES) -> list[Path]:
    """The modules of the wheel."""
    found, left = set[Path](), list(entries)
    while left:
        if (path := left.pop()) not in found and _is_light(path):
            found.add(path)
            _, own, later = imports(path)
            left += own | later
    return sorted(found)


def _is_light(path: Path) -> bool:
    """Whether a module and all that it imports at once need no package but NumPy."""
    found, left = set[Path](), [path]
    while left:
        if (module := left.pop()) not in found:
            found.add(module)
            outside, own, _ = imports(module)
            if outside - ALWAYS:
                return False
            left += own
    return True


def metadata() -> tuple[str, str]:
    """The version, and the text of the file `METADATA`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (numpy,) = (line for line in project["dependencies"] if line.startswith("numpy"))
    needed = {line for line in project["dependencies"] if line.startswith(tuple(EXTRAS.values()))}
    lines = [
        "Metadata-Version: 2.4",
        "Name: stepwell-runtime",
        f"Version: {project['version']}",
        "Summary: Runs programs that Stepwell has compiled, without the compiler",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {one}" for one in project["classifiers"]),
        f"Requires-Dist: {numpy}",
    ]
    for extra, package in EXTRAS.items():
        (line,) = (line for line in needed if line.startswith(package))
        lines += [f"Provides-Extra: {extra}", f'Requires-Dist: {line}; extra == "{extra}"']
    lines.append("Description-Content-Type: text/markdown")
    return project["version"], "\n".join(lines) + f"\n\n{DESCRIPTION}"


def write(folder: Path) -> Path:
    """Write the wheel into a folder; returns its path."""
    version, text = metadata()
    stem = f"stepwell_runtime-{version}"
    facts = f"{stem}.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: stepwell\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = [*modules(), ROOT / "py.typed"]
    members = {f"stepwell/{path.relative_to(ROOT)}": path.read_bytes() for path in files}
    members[f"{facts}/METADATA"] = text.encode()
    members[f"{facts}/WHEEL"] = tags.encode()
    members[f"{facts}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = [f"{name},{_digest(data)},{len(data)}\n" for name, data in members.items()]
    members[f"{facts}/RECORD"] = f"{''.join(record)}{facts}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{stem}-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            info = ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, ZIP_DEFLATED)
    return wheel


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    return f"sha256={digest.rstrip('=')}"


def main() -> None:
    """Write the wheel into the folder on the command line, or `dist`."""
    made = write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
    print(f"{made.name}: {len(modules())} modules, {made.stat().st_size} bytes")


if __name__ == "__main__":
    main()
