"""Imports go one way: tools -> diagnosis | tuning -> frontends | passes | conversions | backends |
runtime -> dialects -> core; and what is heavy is loaded late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIDDLE = {"frontends", "passes", "conversions", "backends", "runtime"}
ROOT_MODULES = {"compiler", "staircase"}
"""The modules of the root that put the rooms together."""
ABOVE = {"diagnosis", "tuning"}
"""Rooms that look at whole compilations."""
MAY_IMPORT = {
    "core": {"core"},
    "dialects": {"dialects", "core"},
    **{room: {room, "dialects", "core"} for room in MIDDLE},
    **{room: {room, "dialects", "core", "", *ROOT_MODULES} | MIDDLE for room in ABOVE},
    "tools": {"tools", "dialects", "core", "", *ROOT_MODULES} | MIDDLE | ABOVE,
}
# What puts a compiled program together drives a backend.
MAY_IMPORT["runtime"].add("backends")
PEERS = {"onnxruntime", "openvino", "torch", "torch_geometric", "tvm", "iree"}
MODULES = sorted(path for room in MAY_IMPORT for path in (ROOT / room).glob("**/*.py"))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and target of each import: `.core.errors` inside the package, `numpy` outside it."""
    package = path.parent.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            # `from .. import dialects` names the room in the alias.
            for alias in node.names:
                yield node.lineno, "." + ".".join(target or _room_or_root(alias.name))


def _room_or_root(name: str) -> list[str]:
    return [name] if (ROOT / name).is_dir() else []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_directions(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for line, target in imported(path):
        where = f"{path.relative_to(ROOT)}:{line}"
        if target.startswith("."):
            other = target[1:].partition(".")[0]
            assert other in MAY_IMPORT[room], f"{where}: {room} must not import {other or 'root'}"
            continue
        top = target.partition(".")[0]
        assert top != "stepwell", f"{where}: modules of the package import each other relatively"
        assert top not in PEERS, f"{where}: {top} is a peer for benchmarks, never imported"


def loaded_by(statement: str, cwd: Path) -> set[str]:
    """The top-level modules that a fresh Python has after `statement`."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, check=True
    )
    return set(done.stdout.split())


def test_import_is_light(tmp_path: Path) -> None:
    heavy = {"onnx", "llvmlite", "networkx", "typer", "rich", "safetensors", "google"}
    found = loaded_by("import stepwell", tmp_path)
    assert "stepwell" in found
    loaded = sorted(found & (heavy | PEERS))
    assert not loaded, f"import stepwell loads {loaded}"


def test_gnn_does_not_load_onnx_or_llvm(tmp_path: Path) -> None:
    found = loaded_by("from stepwell.frontends import gnn", tmp_path)
    assert not found & {"onnx", "llvmlite", "typer"}


def test_rooms_do_not_leak_to_the_top_level(tmp_path: Path) -> None:
    """Installed, the package is `stepwell` and nothing else: no `core`, no `passes`."""
    script = (
        "import importlib.util as u, pathlib\n"
        f"root = pathlib.Path({str(ROOT)!r})\n"
        f"for room in {sorted(MAY_IMPORT)}:\n"
        "    spec = u.find_spec(room)\n"
        "    places = [] if spec is None else list(spec.submodule_search_locations or [])\n"
        "    assert not any(root in pathlib.Path(p).parents for p in places), (room, places)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
