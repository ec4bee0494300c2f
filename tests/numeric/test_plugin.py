"""The plug-in of `examples/plugin`, installed beside Stepwell in a clean environment, is used.

One test uses it from the checkout. For those marked slow, wheels of both are built from copies of
the checkout; their dependencies are those of the environment of the tests.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core import plugins, registry
from stepwell.core.target import named
from stepwell.frontends.onnx.registry import load_conversions as onnx_conversions
from stepwell.frontends.torch.registry import load_conversions as torch_conversions

from ..harness import package

LIT = "from lit.main import main; main()"
LIMIT = 275
"""How many lines a plug-in may take, its documentation included."""

KINDS = {".py", ".toml", ".md"}
NOT_COPIED = shutil.ignore_patterns(
    ".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks", "docs"
)

MODEL = """
func.func @main(%x: tensor<?x37xf32> {graph.dims = ["n", ""]}) -> tensor<?x19xf32> {
  %w = graph.constant dense_resource<w> : tensor<19x37xf32>
  %b = graph.constant dense_resource<b> : tensor<19xf32>
  %0 = graph.dense %x, %w, %b : (tensor<?x37xf32>, tensor<19x37xf32>, tensor<19xf32>)
    -> tensor<?x19xf32>
  %1 = swish.silu %0 : (tensor<?x19xf32>) -> tensor<?x19xf32>
  %2 = graph.add %1, %b : (tensor<?x19xf32>, tensor<19xf32>) -> tensor<?x19xf32>
  func.return %2 : tensor<?x19xf32>
}
"""

SIGMOID = """
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = graph.sigmoid %x : (tensor<5xf32>) -> tensor<5xf32>
  %1 = graph.mul %x, %0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
"""

USE = """
import sys
from pathlib import Path

import numpy as np

import stepwell as sw
import stepwell_swish
from stepwell import patterns as p

for package in (sw, stepwell_swish):
    assert Path(package.__file__).is_relative_to(sys.prefix), package.__file__

rng = np.random.default_rng(0)
w, b = rng.standard_normal((19, 37), np.float32), rng.standard_normal(19, np.float32)
weights = sw.WeightStore()
weights.add("w", w)
weights.add("b", b)
module = sw.from_mlir("model.mlir", weights=weights)
for level in (0, 3):
    exe = sw.compile(module, threads=1, opt_level=level)
    for n in (1, 6, 0):
        x = 3 * rng.standard_normal((n, 37), np.float32)
        h = (x @ w.T + b).astype(np.float64)
        expected = h / (1 + np.exp(-h)) + b
        for result in (exe(x), module.run_reference(x)):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)

fused = exe.ir("fused")
assert fused.count("graph.primitive") == 1, fused
body = fused[fused.index("graph.primitive"):]
for name in ("graph.dense", "swish.silu", "graph.add"):
    assert name in body, fused
kernel = exe.ir("scheduled")
kernel = kernel[kernel.index("loop.kernel"):]
exponentials = [line for line in kernel.splitlines() if "math.exp" in line]
assert exponentials, kernel
assert all("vector<" in line for line in exponentials), kernel

@p.pattern
def layer(x):
    return p.op("swish.silu", p.dense(x, ...))

assert len(layer.matches(module)) == 1
grouped = sw.compile(p.group(module, {"layer": layer}), threads=1)
assert "loop.kernel @layer(" in grouped.ir("kernels")
x = 3 * rng.standard_normal((6, 37), np.float32)
np.testing.assert_allclose(grouped(x), module.run_reference(x), rtol=1e-4, atol=1e-5)
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment in which Stepwell and the plug-in are installed."""

    folder: Path

    def run(self, *command: str) -> str:
        """Run a command of the environment in a folder of its own; returns what it prints."""
        # What is installed is used, not a checkout that a path leads to.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # The environment has the packages of this one, but not its commands, such as `filecheck`.
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        done = subprocess.run(
            [str(self.folder / "venv" / "bin" / command[0]), *command[1:]],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("plugin")
    sources = folder / "sources"
    shutil.copytree(root, sources / "stepwell", ignore=NOT_COPIED)
    shutil.copytree(root / "examples" / "plugin", sources / "swish", ignore=NOT_COPIED)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python)]
    install = [*pip, "install", "--no-deps", str(sources / "stepwell"), str(sources / "swish")]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
    if "Could not find a version that satisfies the requirement setuptools" in done.stderr:
        pytest.skip("needs setuptools to build wheels: pip has to be able to download it")
    assert done.returncode == 0, done.stderr
    # What comes last is found last: Stepwell and the plug-in are those that were installed.
    packages = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "model.mlir").write_text(MODEL)
    (folder / "sigmoid.mlir").write_text(SIGMOID)
    (folder / "use.py").write_text(USE)
    return Environment(folder)


def test_a_plugin_is_short(root: Path) -> None:
    files = [path for path in (root / "examples" / "plugin").rglob("*.*") if path.suffix in KINDS]
    lines = sum(len(path.read_text().splitlines()) for path in files)
    assert 0 < lines <= LIMIT


def test_its_operator_is_fused_from_a_checkout(
    root: Path, apart: Callable[[Callable[[], object]], str]
) -> None:
    """The same as below for one static size, with nothing to build or install."""

    def use() -> None:
        find_in_checkout(root)
        weights = sw.WeightStore()
        weights.add("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
        weights.add("b", np.float32([0.5, -1]))
        text = MODEL.replace(' {graph.dims = ["n", ""]}', "").replace("?", "1")
        module = sw.from_mlir(text.replace("37", "3").replace("19", "2"), weights=weights)
        exe = sw.compile(module, threads=1)
        x = np.float32([[1, -2, 3]])
        np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5)
        fused = exe.ir("fused")
        assert fused.count("graph.primitive") == 1, fused
        assert "swish.silu" in fused[fused.index("graph.primitive") :], fused
        sigmoid = sw.from_mlir(SIGMOID)
        registry.passes()["swish-raise-silu"]()().apply(registry.make_context(), sigmoid.op)
        assert "swish.silu" in sigmoid.text()
        joins_everything()

    assert apart(use) == "works"


def find_in_checkout(root: Path) -> None:
    """What installing the plug-in does, for this process."""
    sys.path.append(str(root / "examples" / "plugin"))
    point = importlib.metadata.EntryPoint("swish", "stepwell_swish:UNIVERSE", "xdsl.universe")
    import networkx  # it looks for other entry points

    assert networkx.__version__
    points = (*importlib.metadata.entry_points(group="xdsl.universe"), point)
    setattr(importlib.metadata, "entry_points", lambda group: points)  # noqa: B010
    # What an earlier test in this process has looked up was without it.
    for cached in (plugins.plugins, onnx_conversions, torch_conversions):
        cached.cache_clear()


def test_its_operator_of_torch_is_compiled(
    root: Path, apart: Callable[[Callable[[], object]], str]
) -> None:
    package("torch")

    def use() -> None:
        find_in_checkout(root)
        import torch

        @torch.library.custom_op("swish::silu", mutates_args=(), schema="(Tensor x) -> Tensor")
        def silu(x: Any) -> Any:
            return x * torch.sigmoid(x)

        silu.register_fake(torch.empty_like)

        class Model(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.ops.swish.silu(2 * x) + 1

        x = torch.linspace(-9, 9, 35).reshape(5, 7)
        dynamic = ({0: torch.export.Dim.DYNAMIC},)
        module = sw.from_torch(Model().eval(), (x,), dynamic_shapes=dynamic)
        assert module.text().count("swish.silu") == 1
        exe = sw.compile(module, threads=1)
        for given in (x, x[:1], x[:0]):
            expected = Model()(given).numpy()
            for found in (exe(given.numpy()), module.run_reference(given.numpy())):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    assert apart(use) == "works"


def joins_everything() -> None:
    """A placed pass, conversions, a layer, a rule and a target of the plug-in are used."""
    module = sw.from_mlir(SIGMOID)
    exe = sw.compile(module, threads=1, check=True)
    assert "swish.silu" in exe.ir("optimized")
    x = np.float32([-3, -1, 0, 1, 90])
    np.testing.assert_allclose(exe(x), module.run_reference(x), rtol=1e-5)
    why = [decision.why for decision in exe.decisions if decision.pass_name == "loop-schedule"]
    assert why == ["two vectors of exponentials at a time"]
    without = sw.compile(module, pipeline=sw.pipeline().replace("swish-raise-silu", ""))
    assert "swish.silu" not in without.ir("optimized")
    b = sw.Builder("main")
    b.output(b.op.swish.silu(b.input("x", (5,), "f32")), name="y")
    assert b.module().run_reference(x)[3] == pytest.approx(1 / (1 + np.exp(-1)))
    from stepwell.frontends import gnn

    graph, features = gnn.Graph.from_edge_index([[0, 1], [1, 0]], 2), sw.TensorSpec((2, 5), "f32")
    swish: type[gnn.Layer] = getattr(gnn, "Swish")  # noqa: B009
    network = gnn.Sequential(swish()).to_module(graph, features=features)
    assert "swish.silu" in network.text()
    with pytest.raises(AttributeError, match='gnn: no layer "Swishh"; nearest: Swish'):
        getattr(gnn, "Swishh")  # noqa: B009
    assert named("swish-large-cache").l2_bytes == 2 << 20
    imports_models()


def imports_models() -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("Silu", ["x"], ["y"], domain="swish.example")
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [5]) for n in "xy"]
    graph = helper.make_graph([node], "model", kinds[:1], kinds[1:])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("swish.example", 1)]
    assert "swish.silu" in sw.from_onnx(helper.make_model(graph, opset_imports=sets)).text()


@pytest.mark.slow
def test_its_tests_of_text_pass(environment: Environment, root: Path) -> None:
    tests = environment.folder / "tests"
    shutil.copytree(root / "examples" / "plugin" / "tests", tests)
    shown = environment.run("python", "-c", LIT, "-v", str(tests))
    assert "PASS: stepwell-swish :: raise-silu.mlir" in shown


@pytest.mark.slow
def test_its_operator_is_fused_vectorised_and_right(environment: Environment) -> None:
    environment.run("python", "-W", "error", "use.py")


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["stepwell-opt", "xdsl-opt"])
def test_its_dialect_and_pass_are_seen_by(tool: str, environment: Environment) -> None:
    command = [tool] if tool == "stepwell-opt" else ["python", "-m", "xdsl.tools.xdsl_opt"]
    text = environment.run(*command, "sigmoid.mlir", "-p", "swish-raise-silu,dce")
    assert "swish.silu %x : (tensor<5xf32>) -> tensor<5xf32>" in text
    assert "graph.mul" not in text
    assert "swish.silu" in environment.run(*command, "model.mlir")


@pytest.mark.slow
def test_a_plugin_that_breaks_is_named(environment: Environment) -> None:
    packages = next((environment.folder / "venv" / "lib").glob("python*/site-packages"))
    source = packages / "stepwell_swish" / "__init__.py"
    whole = source.read_text()
    source.write_text("import acme_missing\n")
    try:
        done = subprocess.run(
            [environment.folder / "venv" / "bin" / "stepwell-opt", "sigmoid.mlir"],
            cwd=environment.folder,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        source.write_text(whole)
    assert done.returncode == 1
    assert done.stderr == (
        'stepwell-opt: error: package "stepwell-swish": cannot be loaded: '
        "ModuleNotFoundError: No module named 'acme_missing'; repair or uninstall it\n"
    )
