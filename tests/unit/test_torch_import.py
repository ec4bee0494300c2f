"""What `sw.from_torch` takes and refuses, and what it keeps of a model."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import ImportModelError, InputError
from stepwell.frontends.torch import library, registry
from stepwell.tools.main import main

from ..harness import package

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch: Any = package("torch")

ROOT = Path(__file__).resolve().parents[2]
nn, Dim = torch.nn, torch.export.Dim


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.register_buffer("shift", torch.arange(3.0))

    def forward(self, x: Any) -> Any:
        return self.lin(x) + self.shift


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.blocks[1].lin.weight = self.blocks[0].lin.weight

    def forward(self, inputs: Any, scale: float, *, more: Any = None) -> Any:
        first, second = (block(inputs["x"]) for block in self.blocks)
        return {"sum": first + scale * second, "all": (first, second + more)}


def nested() -> sw.Module:
    args = ({"x": torch.zeros(2, 4)}, 2.0)
    n = Dim("rows")
    shapes = {"inputs": {"x": {0: n}}, "scale": None, "more": {0: n}}
    return sw.from_torch(Nested().eval(), args, {"more": torch.zeros(2, 3)}, shapes)


def test_names_of_inputs_and_results_follow_the_structure() -> None:
    module = nested()
    assert [str(spec) for spec in module.inputs] == ["inputs_x: rowsx4xf32", "more: rowsx3xf32"]
    assert [spec.name for spec in module.outputs] == ["sum", "all", "result2"]


def test_weights_keep_names_and_memory() -> None:
    model = Nested().eval()
    module = sw.from_torch(model, ({"x": torch.zeros(2, 4)}, 2.0), {"more": torch.zeros(2, 3)})
    assert list(module.weights) == [
        *("blocks.0.lin.weight", "blocks.0.lin.bias", "blocks.1.lin.bias"),
        *("blocks.0.shift", "blocks.1.shift"),
    ]
    held = module.weights["blocks.0.lin.weight"]
    assert isinstance(held, np.ndarray)
    assert held.ctypes.data == model.blocks[0].lin.weight.data_ptr()


def test_equal_arrays_that_are_computed_are_one_constant() -> None:
    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[torch.arange(2, 5)] - 2 * x[torch.arange(2, 5)] + x[torch.arange(1, 4)]

    weights = sw.from_torch(Twice().eval(), (torch.zeros(5, 2),)).weights
    held = [np.asarray(weights[name]).tolist() for name in weights]
    assert held == [[2, 3, 4], [1, 2, 3]]


def test_nodes_are_modules_at_the_line_of_the_user() -> None:
    text = nested().text(locations=True)
    assert 'loc("blocks.0.lin"' in text
    assert "test_torch_import.py" in text


def test_an_exported_program_and_a_file(tmp_path: Path) -> None:
    program = torch.export.export(Block().eval(), (torch.zeros(2, 4),))
    torch.export.save(program, tmp_path / "block.pt2")
    x = np.ones((2, 4), np.float32)
    wanted = program.module()(torch.ones(2, 4)).detach().numpy()
    for source in (program, tmp_path / "block.pt2", str(tmp_path / "block.pt2")):
        got = sw.from_torch(source).run_reference(x)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


class Unsupported(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Angles()

    def forward(self, x: Any) -> Any:
        return torch.linalg.qr(self.inner(x) + torch.igamma(x, x))[0]


class Angles(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.igamma(x, x * 2)


def test_everything_that_is_missing_is_reported_at_once() -> None:
    with pytest.raises(ImportModelError) as caught:
        sw.from_torch(Unsupported().eval(), (torch.zeros(3, 3),))
    first, *lines = str(caught.value).splitlines()
    assert first == "from_torch: 2 parts of the model are not supported"
    assert lines[0].startswith('  aten.igamma.default 2 times, first in "inner" (test_torch_imp')
    assert "torch.igamma(x, x * 2)): no conversion; closest supported: aten.digamma" in lines[0]
    assert "aten.linalg_qr.default, in " in lines[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (nn.Linear(2, 2), (torch.zeros(1, 2),)),
            r"the model is in training mode; call model\.eval",
        ),
        (
            (nn.Sequential(nn.Dropout()).eval().append(nn.Linear(2, 2)), (torch.zeros(1, 2),)),
            r'from_torch: module "1" is in training mode; call model\.eval\(\) first',
        ),
        (
            (nn.Linear(2, 2).eval(),),
            r"args are example inputs of the module, expected a tuple, got N",
        ),
        ((nn.Linear(2, 2).eval(), (), 3), r"kwargs are example inputs by name, expected a dict"),
        ((3,), r"wrong model, expected a torch\.nn\.Module, .*, got int"),
        (("missing.pt2",), r"from_torch: no such file: missing\.pt2"),
        ((__file__,), r"from_torch: torch cannot read .*test_torch_import\.py: "),
        ((__file__, ()), r"^from_torch: args belong to a module, not to the path of a file$"),
        (
            (torch.export.export(nn.Linear(2, 2).eval(), (torch.zeros(1, 2),)), ()),
            r"^from_torch: args belong to a module, not to an exported program$",
        ),
        (
            (torch.relu, (torch.zeros(2),)),
            r"file, got the function relu; make it the forward of a torch\.nn\.Module$",
        ),
        (
            (nn.Linear(2, 2).eval().forward, (torch.zeros(1, 2),)),
            r"file, got the method forward of a module; give the module itself$",
        ),
        (
            (nn.Linear(2, 2).state_dict(), (torch.zeros(1, 2),)),
            r"file, got OrderedDict, perhaps the weights of a module; give the module, after load",
        ),
        ((nn.Linear, (torch.zeros(1, 2),)), r"got the class Linear; give an instance of it$"),
        ((nn.Linear(2, 2).eval(), (torch.zeros(1, 3),)), r"torch cannot export the module: "),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ImportModelError, InputError), match=message):
        sw.from_torch(*arguments)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x + self.count


class Complex(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


def test_an_exported_program_of_sparse_tensors() -> None:
    program = torch.export.export(Complex().eval(), (torch.eye(2).to_sparse(),))
    with pytest.raises(ImportModelError, match='input "x": sparse tensors as inputs'):
        sw.from_torch(program)


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (Counting(), (torch.zeros(2),), r'the model changes "count" in each call: state is not'),
        (Complex(), (torch.zeros(2, dtype=torch.complex64),), r'input "x": complex64 is not an IR'),
        (Complex(), (torch.eye(2).to_sparse(),), "of a sparse argument, expected a product with"),
    ],
)
def test_models_that_are_not_supported(model: Any, args: Any, message: str) -> None:
    with pytest.raises(ImportModelError, match=message):
        sw.from_torch(model.eval(), args)


def test_python_of_the_documentation_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {"sw": sw}
    with with_conversions():
        for block in blocks:
            exec(compile(block, "docs/torch.md", "exec"), names)


@contextlib.contextmanager
def with_conversions() -> Iterator[None]:
    """Conversions that are registered within the context are forgotten after it."""
    registry.load_conversions()
    known = dict(registry._CONVERSIONS)
    try:
        yield
    finally:
        registry._CONVERSIONS.clear()
        registry._CONVERSIONS.update(known)


def test_the_command_line_takes_exported_programs(tmp_path: Path, capsys: Any) -> None:
    torch.export.save(torch.export.export(Block().eval(), (torch.zeros(2, 4),)), tmp_path / "m.pt2")
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    files = [f"--input=x={tmp_path}/x.npy", f"--output={tmp_path}/y.npy"]
    with pytest.raises(SystemExit, match="0"):
        main(["run", f"{tmp_path}/m.pt2", *files])
    assert np.load(tmp_path / "y.npy").shape == (2, 3)
    with pytest.raises(SystemExit, match="1"):
        main(["run", f"{tmp_path}/m.pt2", "--shape", "x=2x4"])
    assert "--shape: applies to ONNX models only, got m.pt2" in capsys.readouterr().err


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    library.library.cache_clear()
    message = r"from_torch: torch is not installed; pip install 'stepwell\[torch\]'"
    with pytest.raises(ImportModelError, match=message):
        sw.from_torch("model.pt2")
    library.library.cache_clear()


def test_an_old_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.export, "default_decompositions")
    library.library.cache_clear()
    message = r"from_torch: torch is too old, expected 2\.6 or newer, got "
    with pytest.raises(ImportModelError, match=message):
        sw.from_torch("model.pt2")
    library.library.cache_clear()


def test_the_import_of_the_package_loads_no_torch() -> None:
    code = (
        "import sys, stepwell as sw; sw.from_torch; sw.Builder; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
