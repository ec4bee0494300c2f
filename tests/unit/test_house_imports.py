"""Imports go one way and in no circle, and what is heavy is loaded late.

The way is tools -> tuning | distributed -> api -> diagnosis -> report -> driver ->
frontends | passes | conversions | backends | runtime -> dialects -> core.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[2]
MIDDLE = {"frontends", "passes", "conversions", "backends", "runtime"}
ABOVE = {"diagnosis", "distributed", "tuning"}
"""Rooms that look at whole compilations."""
BASE = {"core", "dialects"}
MAY_IMPORT = {
    "core": {"core"},
    "dialects": BASE,
    **{room: {room, *BASE} for room in MIDDLE},
    "patterns": BASE | MIDDLE,
    "driver": BASE | MIDDLE | {"driver"},
    "caching": BASE | {"caching", "backends", "driver", "passes", "runtime"},
    "report": BASE | MIDDLE | {"report", "driver"},
    "diagnosis": BASE | MIDDLE | {"diagnosis", "report", "driver"},
    "api": BASE | MIDDLE | {"api", "caching", "diagnosis", "driver", "__init__"},
    "dynamo": BASE | MIDDLE | {"api"},
    "nn": BASE | {"frontends"},
    "tuning": BASE | MIDDLE | {"tuning", "driver", "api"},
    "distributed": BASE | MIDDLE | {"distributed", "driver", "api"},
    "tools": BASE | MIDDLE | ABOVE | {"tools", "report", "caching", "driver", "api", "__init__"},
    "__init__": BASE | MIDDLE | ABOVE | {"patterns", "api"},
}
"""What each room, and each module of the root, may import; `__init__` is the public face."""
# What puts a compiled program together drives a backend.
MAY_IMPORT["runtime"] = MAY_IMPORT["runtime"] | {"backends"}
PEERS = {"onnxruntime", "openvino", "torch", "torch_geometric", "tvm", "iree"}
ROOMS = sorted(room for room in MAY_IMPORT if (ROOT / room).is_dir())
MODULES = sorted(ROOT.glob("*.py")) + [
    path for room in ROOMS for path in sorted((ROOT / room).glob("**/*.py"))
]


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The statements of a module that import."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and target of each import: `.core.errors` inside the package, `numpy` outside it."""
    package = path.parent.relative_to(ROOT).parts
    for node in statements(path):
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
    return [name] if name in MAY_IMPORT else ["__init__"]


def misdirected(path: Path) -> Iterator[str]:
    """What is wrong with the imports of a module."""
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for line, target in imported(path):
        where = f"{path.relative_to(ROOT)}:{line}"
        other = target.removeprefix(".").partition(".")[0]
        if target.startswith("."):
            if other not in MAY_IMPORT[room]:
                yield f"{where}: {room} must not import {other}"
        elif other == "stepwell":
            yield f"{where}: modules of the package import each other relatively"
        elif other in PEERS:
            yield f"{where}: {other} is a peer for benchmarks, never imported"


def test_directions() -> None:
    wrong = [fact for path in MODULES for fact in misdirected(path)]
    assert not wrong, "\n".join(wrong)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(paths: Sequence[Path]) -> list[list[str]]:
    """The groups of modules that import each other in a circle, wherever the imports stand.

    An import in a function, or for the type checker only, is one as well: it shows two files
    that are not understood one after the other. The public face, which loads what is above it by
    name when it is first used, is left out.
    """
    files = {module_name(path): path for path in paths if path != ROOT / "__init__.py"}
    graph = nx.DiGraph()
    for name, path in files.items():
        for target in imported_modules(path, files):
            graph.add_edge(name, target)
    found = [sorted(group) for group in nx.strongly_connected_components(graph)]
    return sorted(group for group in found if len(group) > 1)


def imported_modules(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a module imports; `from . import a` imports the module `a`."""
    package = path.parent.relative_to(ROOT).parts
    for node in statements(path):
        if not isinstance(node, ast.ImportFrom):
            continue
        # Benchmarks are scripts: what one of them imports may lie beside it.
        depth = len(package) - max(0, node.level - 1)
        if not node.level and package != ("benchmarks",):
            continue
        base = [*package[:depth], *filter(None, [node.module])]
        for alias in node.names:
            for target in (".".join([*base, alias.name]), ".".join(base)):
                if target in files and files[target] != path:
                    yield target
                    break


def test_no_circles() -> None:
    assert circles([*MODULES, *sorted((ROOT / "benchmarks").glob("*.py"))]) == []


def test_circles_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One through a function, one for the type checker into a room, and one of scripts."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    texts = {
        "a.py": "from .b import x",
        "b.py": "def f():\n    from . import a",
        "c.py": "if TYPE_CHECKING:\n    from .room.d import x",
        "room/d.py": "from ..c import y\nfrom .e import z",
        "room/e.py": "",
        "benchmarks/f.py": "from g import x\nfrom a import y",
        "benchmarks/g.py": "from f import x",
    }
    for room in ("room", "benchmarks"):
        (tmp_path / room).mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    expected = [["a", "b"], ["benchmarks.f", "benchmarks.g"], ["c", "room.d"]]
    assert circles([tmp_path / name for name in texts]) == expected


def loaded_by(cwd: Path, *statements: str) -> list[set[str]]:
    """The top-level modules that a fresh Python has after each of some statements."""
    shown = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    script = "\n".join(line for statement in statements for line in (statement, shown))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, check=True
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules that are loaded by the package, by what it takes from torch, and by networks."""
    statements = {
        "package": "import stepwell as sw",
        "torch": "sw.from_torch; sw.Builder",
        "gnn": "from stepwell.frontends import gnn",
    }
    found = loaded_by(tmp_path_factory.mktemp("imports"), *statements.values())
    return dict(zip(statements, found, strict=True))


def test_import_is_light(loaded: dict[str, set[str]]) -> None:
    heavy = {"onnx", "llvmlite", "networkx", "typer", "rich", "safetensors", "google"}
    found = loaded["package"]
    assert "stepwell" in found
    wrong = sorted(found & (heavy | PEERS))
    assert not wrong, f"import stepwell loads {wrong}"


def test_the_name_of_an_import_loads_no_torch(loaded: dict[str, set[str]]) -> None:
    assert "torch" not in loaded["torch"]


def test_the_command_is_light(tmp_path: Path) -> None:
    """It answers `--help` before it loads NumPy, the dialects or LLVM."""
    script = "import stepwell.tools.main, sys; print('xdsl.ir' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "False\n"
    (found,) = loaded_by(tmp_path, "import stepwell.tools.main")
    assert not found & {"numpy", "scipy", "llvmlite", "onnx", "networkx", *PEERS}


@pytest.mark.parametrize("option", ["--help", "--version", "--hlep", "--target=nope"])
def test_the_driver_is_light(option: str, tmp_path: Path) -> None:
    """It answers `--help` and refuses options before it loads NumPy, a pass or a dialect."""
    script = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from stepwell.tools import stepwell_opt\n"
        f"stepwell_opt.main([{option!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "xdsl.xdsl_opt_main" in loaded
    heavy = ("numpy", "scipy", "llvmlite", "onnx", "networkx", "xdsl.transforms.", *PEERS)
    heavy += tuple(
        f"stepwell.{room}" for room in ("passes", "conversions", "dialects", "driver", "api")
    )
    assert not [name for name in loaded if name.startswith(heavy)]


def test_gnn_does_not_load_onnx_or_llvm(loaded: dict[str, set[str]]) -> None:
    assert not loaded["gnn"] & {"onnx", "llvmlite", "typer"}


def test_rooms_do_not_leak_to_the_top_level(tmp_path: Path) -> None:
    """Installed, the package is `stepwell` and nothing else: no `core`, no `passes`."""
    script = (
        "import importlib.util as u, pathlib\n"
        f"root = pathlib.Path({str(ROOT)!r})\n"
        f"for room in {ROOMS}:\n"
        "    spec = u.find_spec(room)\n"
        "    places = [] if spec is None else list(spec.submodule_search_locations or [])\n"
        "    assert root / room not in map(pathlib.Path, places), (room, places)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
