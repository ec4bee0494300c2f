"""Files of ONNX that were imported before are not imported until somebody looks at their IR."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

import stepwell as sw
from stepwell.api import imported
from stepwell.caching import sources
from stepwell.caching.folder import Folder
from stepwell.core.ir.module import unread_of
from stepwell.frontends.onnx import registry
from stepwell.frontends.onnx.nodes import Node
from stepwell.frontends.onnx.registry import converts

from ..harness import floats

W = floats(3, 4)


def model(operator: str = "Relu", domain: str = "") -> onnx.ModelProto:
    """A product with weights, and a function of it, for any number of rows."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node(operator, ["h"], ["y"], name="last", domain=domain),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph(nodes, "main", [x], [y], [numpy_helper.from_array(W, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty cache, for a compiler whose files do not change."""
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    stamp = sources.Stamp("state", 0)
    monkeypatch.setattr(imported, "sources_digest", lambda *_: ("sources", stamp))
    monkeypatch.setattr(imported, "stamp", lambda: stamp)
    return Folder(tmp_path / "cache")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a model, with external data beside it."""
    path = tmp_path / "model.onnx"
    beside: dict[str, Any] = {"location": "w.bin", "size_threshold": 0}
    onnx.save(model(), path, save_as_external_data=True, **beside)
    return path


def is_known(path: Path, shapes: Any = None) -> bool:
    """Whether a file is not imported when it is read."""
    return unread_of(sw.from_onnx(path, shapes)) is not None


def test_a_known_file_is_the_same_module(folder: Folder, path: Path) -> None:
    anew, known, other = (sw.from_onnx(path) for _ in range(3))
    assert (unread_of(anew) is None, unread_of(known) is None) == (True, False)
    assert (known.name, known.inputs, known.outputs) == (anew.name, anew.inputs, anew.outputs)
    copy = known.clone()
    assert unread_of(copy) is unread_of(known) is not None
    # What is made later is of the contents at the time of reading.
    for file in path.parent.iterdir():
        if file.is_file():
            file.unlink()
    for module in (known, copy):
        assert module.text(locations=True) == anew.text(locations=True)
        np.testing.assert_array_equal(module.weights["w"], W)
        assert module.decisions == anew.decisions
        assert unread_of(module) is None
        assert module._unread is None  # and with it the contents of the file
    assert known.op is known.op is not copy.op
    other.weights = known.weights
    assert unread_of(other) is None


def test_what_differs_is_imported(folder: Folder, path: Path) -> None:
    assert [is_known(path) for _ in range(2)] == [False, True]
    shapes: Sequence[Any] = ({"x": (5, 3)}, {"x": ("m", 3)}, {"x": (None, 3)})
    assert [[is_known(path, given) for _ in range(2)] for given in shapes] == [[False, True]] * 3
    data = bytearray((path.parent / "w.bin").read_bytes())
    data[0] ^= 1
    (path.parent / "w.bin").write_bytes(data)
    assert [is_known(path) for _ in range(2)] == [False, True]
    path.write_bytes(model("Tanh").SerializeToString())
    assert [is_known(path) for _ in range(2)] == [False, True]


def test_a_known_file_is_refused_as_before(folder: Folder, path: Path) -> None:
    sw.from_onnx(path)
    with pytest.raises(sw.ImportModelError, match='input "z"'):
        sw.from_onnx(path, {"z": (1, 3)})
    target = path.parent.parent / "outside.bin"
    (path.parent / "w.bin").rename(target)
    with pytest.raises(sw.ImportModelError, match="not a readable file"):
        sw.from_onnx(path)
    (path.parent / "w.bin").symlink_to(target)
    with pytest.raises(sw.ImportModelError, match="outside the model's folder"):
        sw.from_onnx(path)
    path.unlink()
    with pytest.raises(sw.ImportModelError, match=r"cannot read .*No such file"):
        sw.from_onnx(path)


def test_damage_and_a_cache_that_is_off(
    folder: Folder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sw.from_onnx(path)
    (entry,) = folder.path.glob("onnx-*")
    content = entry.read_bytes()
    for place in range(0, len(content), 50):
        damaged = bytearray(content)
        damaged[place] ^= 1
        entry.write_bytes(damaged)
        assert [is_known(path) for _ in range(2)] == [False, True]
    monkeypatch.setenv("STEPWELL_CACHE", "off")
    assert not is_known(path)
    monkeypatch.setenv("STEPWELL_CACHE", str(folder.path))
    monkeypatch.setenv("STEPWELL_CACHE_MB", "many")  # which `compile` refuses
    assert not is_known(path)


def test_a_compiler_that_changed_meanwhile_remembers_nothing(
    folder: Folder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported, "stamp", lambda: sources.Stamp("another state", 0))
    assert [is_known(path) for _ in range(2)] == [False, False]


def conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a conversion, as a script does."""
    monkeypatch.setattr(registry, "_CONVERSIONS", {**registry._CONVERSIONS})

    @converts("Own", since=1, domain="com.acme")
    def own(node: Node) -> Any:
        return node.neg(node.input(0))


def declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare an operator, as a script does."""
    own = defs.OpSchema("Own", "com.acme", 1, inputs=[], outputs=[])
    known = [*defs.get_all_schemas_with_history(), own]
    monkeypatch.setattr(defs, "get_all_schemas_with_history", lambda: known)


@pytest.mark.parametrize("register", [conversion, declaration])
def test_what_a_script_registers_is_not_known(
    register: Callable[[pytest.MonkeyPatch], None],
    folder: Folder,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [is_known(path) for _ in range(2)] == [False, True]
    register(monkeypatch)
    assert not is_known(path)
    path.write_bytes(model().SerializeToString())
    assert [is_known(path) for _ in range(2)] == [False, False]


SCRIPT = """
import sys
import numpy as np
import stepwell as sw
from stepwell.caching import sources
sources._CLOCKS_DIFFER_BY = -(10**18)
exe = sw.compile(sw.from_onnx(sys.argv[1], shapes={"x": (2, 3)}))
y = exe(np.ones((2, 3), np.float32))
print(*y.ravel(), exe.inputs, exe.explain().count(chr(10)))
print(*sorted({"onnx", "xdsl", "llvmlite"} & set(sys.modules)))
print(exe.ir("graph").count("graph.matmul"), exe.stages[0])
"""


def test_another_process_compiles_it_without_onnx_and_xdsl(path: Path) -> None:
    environment = {**os.environ, "STEPWELL_CACHE": str(path.parent / "cache")}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(path)]
    anew, known = (
        subprocess.run(
            command, capture_output=True, text=True, env=environment, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert anew[1] == "llvmlite onnx xdsl"
    assert known == [anew[0], "", anew[2]]


COMMANDS = """
import sys
from stepwell.caching import sources
from stepwell.tools.main import main
sources._CLOCKS_DIFFER_BY = -(10**18)
model, x = sys.argv[1:]
for command in (["run", model, "--input", f"x={x}"], ["compile", model, "--shape", "x=2x3"]):
    try:
        main(command)
    except SystemExit as stopped:
        print(stopped.code, *sorted({"onnx", "xdsl.ir", "llvmlite"} & set(sys.modules)))
"""


def test_commands_need_neither_for_a_known_file(path: Path) -> None:
    np.save(path.parent / "x.npy", np.ones((2, 3), np.float32))
    environment = {**os.environ, "STEPWELL_CACHE": str(path.parent / "cache")}
    command = [sys.executable, "-W", "error", "-c", COMMANDS, str(path), str(path.parent / "x.npy")]
    found: list[list[str]] = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        found.append(re.findall("^0.*", done.stdout, re.MULTILINE))
    assert found == [["0 llvmlite onnx xdsl.ir"] * 2, ["0"] * 2]
