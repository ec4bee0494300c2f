"""What `sw.from_torch` takes and refuses, and what it keeps of a model."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

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


def in_script(module: Any) -> Any:
    """A TorchScript module, of which torch warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module)


IN_TRAINING = nn.Linear(2, 2)


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
            r"args are example inputs, expected a tuple, got NoneType; their shapes and element",
        ),
        ((nn.Linear(2, 2).eval(), (), 3), r"kwargs are example inputs by name, expected a dict"),
        (
            (nn.Linear(2, 2).eval(), (1, 2)),
            r"examples do not fit the arguments of the model: too many .*, expected input, got 2$",
        ),
        (
            (nn.LSTMCell(2, 2).eval(), (), {"hx": torch.zeros(1, 2)}),
            r"arguments of the model: missing a required argument: 'input', expected input, hx",
        ),
        ((3,), r"wrong model, expected a torch\.nn\.Module, .*, got int$"),
        (("missing.pt2",), r"from_torch: no such file: missing\.pt2"),
        ((__file__,), r"from_torch: torch cannot read .*test_torch_import\.py: "),
        ((__file__, ()), r"^from_torch: args belong to a module or a function, not to the pa"),
        (
            (torch.export.export(nn.Linear(2, 2).eval(), (torch.zeros(1, 2),)), ()),
            r"^from_torch: args belong to a module or a function, not to an exported program$",
        ),
        (
            (nn.Linear(2, 2).forward, (torch.zeros(1, 2),)),
            r"the model is in training mode; call model\.eval",
        ),
        (
            (lambda x: IN_TRAINING(x) + 1, (torch.zeros(1, 2),)),
            r'module "IN_TRAINING" is in training mode; call model\.eval',
        ),
        (
            (in_script(nn.ReLU()), (torch.zeros(1, 2),)),
            r"file, got a TorchScript program; give the torch\.nn\.Module that it was made of$",
        ),
        (
            (torch.relu, (np.zeros(2, "U3"),)),
            r"^from_torch: an example is an array of <U3, expected elements that torch has$",
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


def test_files_of_torch_that_are_no_programs(tmp_path: Path) -> None:
    block = Block().eval()
    torch.save(block.state_dict(), tmp_path / "weights.pt")
    torch.save(block, tmp_path / "module.pth")
    in_script(nn.ReLU()).save(tmp_path / "script.pt")
    (tmp_path / "other.onnx").write_bytes(b"")
    for name, text in {
        "weights.pt": r"holds weights, or a pickled module, expected .*; make the module in Python",
        "module.pth": r"holds weights, or a pickled module, expected .*; make the module in Python",
        "script.pt": r"holds a TorchScript program, expected .*; give the torch\.nn\.Module that",
        "other.onnx": r"is no model of torch; sw\.from_onnx reads it$",
    }.items():
        with pytest.raises(ImportModelError, match=f"^from_torch: .*{name} {text}"):
            sw.from_torch(tmp_path / name, (torch.zeros(2, 4),))


class Coder(nn.Module):
    """A module with more than one method that people compile."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.scale = nn.Linear(4, 3), nn.Parameter(torch.tensor(2.0))

    def encode(self, x: Any) -> Any:
        return self.lin(x) * self.scale

    def forward(self, x: Any) -> Any:
        return self.encode(x).relu()


torch.manual_seed(0)
CODER = Coder().eval()


class Service:
    def __init__(self) -> None:
        self.net = CODER

    def answer(self, x: Any) -> Any:
        return self.net(x) + 1


@pytest.mark.parametrize(
    ("function", "inputs", "weights"),
    [
        (torch.sin, ["args_0"], []),
        (nn.functional.relu, ["input"], []),
        pytest.param(lambda a: a * 2, ["a"], [], marks=pytest.mark.slow),
        pytest.param(partial(torch.add, alpha=2), ["args_0"], [], marks=pytest.mark.slow),
        (lambda a: CODER(a) * 2, ["a"], ["CODER.scale", "CODER.lin.weight", "CODER.lin.bias"]),
        (partial(CODER), ["args_0"], ["func.scale", "func.lin.weight", "func.lin.bias"]),
        (CODER.encode, ["x"], ["scale", "lin.weight", "lin.bias"]),
        (Service().answer, ["x"], ["net.scale", "net.lin.weight", "net.lin.bias"]),
    ],
)
def test_functions(function: Any, inputs: list[str], weights: list[str]) -> None:
    x = torch.linspace(-1, 1, 8).view(2, 4)
    args = (x, x) if getattr(function, "func", None) is torch.add else (x,)
    module = sw.from_torch(function, args)
    assert [spec.name for spec in module.inputs][:1] == inputs
    assert list(module.weights) == weights
    wanted = function(*args).detach().numpy()
    np.testing.assert_allclose(module.run_reference(*args), wanted, rtol=1e-6)


def test_examples_of_numpy_and_scipy(all_tests: bool) -> None:
    x = np.ones((2, 4), np.float32)
    for args in ((x,), [x], x, torch.from_numpy(x)) if all_tests else ([x], x):
        (spec,) = sw.from_torch(CODER, args).inputs
        assert spec.shape == (2, 4)
    module = sw.from_torch(lambda a, b, n: a @ b * n, (csr_array(x), x.T, np.float32(3)))
    assert [spec.format for spec in module.inputs] == ["csr", None]
    np.testing.assert_allclose(module.run_reference(csr_array(x), x.T.copy()), 3 * x @ x.T)


def test_all_sizes_are_dynamic_as_far_as_the_model_allows() -> None:
    args = (torch.zeros(2, 4), {"a": torch.zeros(1, 3), "n": 2})
    module = sw.from_torch(lambda x, others: (CODER(x), others["a"]), args, dynamic=True)
    assert [spec.shape for spec in module.inputs] == [("x_0", 4), (1, "others_a_1")]
    with pytest.raises(InputError, match=r"^from_torch: dynamic and dynamic_shapes exclude each"):
        sw.from_torch(CODER, args[:1], dynamic=True, dynamic_shapes=({0: Dim("n")},))


def test_another_size_than_in_the_example(tmp_path: Path) -> None:
    hint = "; the sizes are those of the example: see dynamic and dynamic_shapes of from_torch"
    module = sw.from_torch(CODER, (torch.zeros(2, 4),))
    exe = sw.compile(module)
    exe.save(tmp_path / "coder.stepwell")
    for call in (module.run_reference, exe, sw.load(tmp_path / "coder.stepwell")):
        with pytest.raises(
            InputError, match=rf"wrong shape, expected \[2, 4\], got \[3, 4\]{hint}$"
        ):
            call(np.zeros((3, 4), np.float32))
    stated = sw.from_torch(CODER, (torch.zeros(2, 4),), dynamic=True)
    with pytest.raises(InputError, match=r"wrong shape, expected \[x_0, 4\], got \[2, 5\]$"):
        stated.run_reference(np.zeros((2, 5), np.float32))


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


@pytest.mark.slow
def test_the_import_of_the_package_loads_no_torch() -> None:
    code = (
        "import sys, stepwell as sw; sw.from_torch; sw.Builder; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
