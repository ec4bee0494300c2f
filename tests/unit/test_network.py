"""Nothing opens a connection: neither an import, nor a compilation, a call or a command.

Every Python process that the test starts, also those that its commands start, has a hook that
records and refuses sockets of the Internet and look-ups of names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = """
import sys

LOOK_UPS = "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"
INTERNET = 2, 10  # AF_INET, AF_INET6

def hook(event, arguments):
    if event in LOOK_UPS or (event == "socket.__new__" and arguments[1] in INTERNET):
        with open({log!r}, "a") as file:
            print(event, arguments, file=file)
        raise RuntimeError(f"no network: {{event}}")

sys.addaudithook(hook)
"""

PROGRAM = """
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import stepwell as sw

for name in sw.__all__:
    getattr(sw, name)

weight = numpy_helper.from_array(np.ones((8, 5), np.float32), "w")
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "m", [x], [y], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "m.onnx")
exe = sw.compile(sw.from_onnx("m.onnx"), threads=2, check=True)
exe.save("m.stepwell")
np.save("x.npy", np.ones((3, 8), np.float32))
assert (sw.load("m.stepwell")(np.load("x.npy")) == 8).all()
"""

COMMANDS = (
    ("stepwell.tools.main", "run", "m.stepwell", "--input", "x=x.npy", "--output", "y=y.npy"),
    ("stepwell.tools.main", "explain", "m.onnx"),
    ("stepwell.tools.main", "demo"),
    ("stepwell.tools.stepwell_opt", "--version"),
)


@pytest.fixture
def forbidden(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment whose Pythons refuse sockets, and the file with what they tried."""
    log, hook = tmp_path / "log.txt", tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK.format(log=str(log)))
    paths = [str(hook), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, log


def run(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    """What Python writes about an error."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def test_no_network(
    forbidden: tuple[dict[str, str], Path], tmp_path: Path, all_tests: bool
) -> None:
    environment, log = forbidden
    assert run(environment, tmp_path, "-c", PROGRAM) == ""
    for module, *arguments in COMMANDS if all_tests else COMMANDS[:1]:
        assert run(environment, tmp_path, "-m", module, *arguments) == "", arguments
    assert not log.exists(), log.read_text()


def test_the_hook_refuses_a_socket(forbidden: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    environment, log = forbidden
    for attempt in ("socket()", "getaddrinfo('example.org', 80)"):
        said = run(environment, tmp_path, "-c", f"import socket; socket.{attempt}")
        assert "no network: socket." in said, attempt
    assert len(log.read_text().splitlines()) == 2
