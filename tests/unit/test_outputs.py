"""Files that commands write are what their names say; texts on a screen are brief."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.reference.samples import random_inputs
from stepwell.core.folding import folded
from stepwell.frontends import gnn
from stepwell.tools import main as command

from ..harness import package


@pytest.fixture(scope="module")
def module() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("batch", 20), "f32")
    b.output(b.relu(b.dense(x, np.ones((33, 20), np.float32))), name="y")
    return b.module()


@pytest.fixture(scope="module")
def model(module: sw.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mlir"
    module.save(path)
    return path


def run(*arguments: object) -> None:
    with suppress(SystemExit):
        command.main([str(argument) for argument in arguments])


PROGRAM = "the name does not fit a program, expected one with .stepwell, got "
STAGE = "the name does not fit stage loops, expected one with .mlir, got "


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "m.mlir"], PROGRAM + "m.mlir"),
        (["-o", "m.onnx"], PROGRAM + "m.onnx"),
        (["-o", "m"], PROGRAM + "m"),
        (["-o", "-"], PROGRAM + "-"),
        (["-o", "m.so"], PROGRAM + "m.so"),
        (["-o", "none/m.stepwell"], "cannot write none/m.stepwell: the folder none does not exist"),
        (["--emit", "loops", "-o", "m.stepwell"], STAGE + "m.stepwell"),
        (["--emit", "loops", "-o", "m.safetensors"], STAGE + "m.safetensors"),
        (["--emit", "loops", "-o", "m.ll"], STAGE + "m.ll"),
        (["--emit", "llvm-ir", "-o", "m.mlir"], "fit stage llvm-ir, expected one with .ll, got m"),
        (["--emit", "asm", "-o", "m.o"], "fit stage asm, expected one with .s or .S or .asm, got"),
        (["--for", "x86-64"], "--for: there is no program to write"),
        (
            ["--for", "x86-64", "--target", "x86-64-v3", "-o", "m.stepwell"],
            "--for: --target x86-64-v3 names a target as well, expected only one of these options",
        ),
        (["--brief"], "--brief: there is no text to print, expected --emit, and no --output"),
        (["--brief", "--emit", "loops", "-o", "m.mlir"], "--brief: there is no text to print"),
    ],
)
def test_what_a_name_does_not_fit(
    arguments: list[str],
    message: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run("compile", model, *arguments)
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stage", "name", "beginning"),
    [
        (None, "m.stepwell", b"PK"),
        ("scheduled", "m.mlir", b"builtin.module"),
        ("llvm-ir", "m.ll", b"; "),
        ("asm", "m.s", b"\t."),
    ],
)
def test_what_is_written(
    stage: str | None, name: str, beginning: bytes, model: Path, tmp_path: Path
) -> None:
    run("compile", model, *(["--emit", stage] if stage else []), "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_names_of_other_files(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 20), np.float32))
    run("run", model, "-i", tmp_path / "x.npy", "-o", tmp_path / "y.txt")
    assert "--output: the name of an array ends with .npy, got " in capsys.readouterr().err
    for name, what in (("bisect", "a reproducer"), ("reduce", "a module")):
        run(name, model, "-o", tmp_path / "m.stepwell")
        said = capsys.readouterr().err
        assert f"--output: the name does not fit {what}, expected one with .mlir, got" in said
    run("compile", model, "--emit", "loops", "-o", tmp_path)
    assert "the name does not fit stage loops" in capsys.readouterr().err
    (tmp_path / "folder.mlir").mkdir()
    run("compile", model, "--emit", "loops", "-o", tmp_path / "folder.mlir")
    assert "folder.mlir: Is a directory" in capsys.readouterr().err


def test_nests_of_remainders_are_folded(
    module: sw.Module, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = "x86-64-v4"  # whose wide vectors have several nests of remainders
    arguments = "compile", model, "--threads", 1, "--target", target, "--emit", "scheduled"
    run(*arguments)
    whole = capsys.readouterr().out
    run(*arguments, "--brief")
    brief = capsys.readouterr().out
    assert whole.count('loop.for "i0t') > 4
    assert brief.count('loop.for "i0t" ... {') == 1
    assert 'loop.for "i0t1"' not in brief
    assert len(brief.splitlines()) < len(whole.splitlines()) / 2
    assert max(map(len, brief.splitlines())) <= 120
    lines = [line.strip() for line in brief.splitlines()]
    assert sum(line.endswith("{") for line in lines) == lines.count("}")
    exe = sw.compile(module, threads=1)
    assert exe.ir("graph", brief=True).count("graph.dense") == 1
    run("compile", model, "--threads", 1, "--emit", "scheduled", "--brief")
    assert capsys.readouterr().out == exe.ir("scheduled", brief=True)


def test_what_is_folded() -> None:
    text = """
    loop.for "i" %i to 4 {
      %1 = loop.for "k1t" %k1t to 3 reduction carry(%2 = %0 : f32 add) {
        loop.for "lt2" %lt2 to 2 {
        }
        loop.yield %2 : f32
      }
      loop.for "t" %t to 4 {
        %x = a
      }
    }
"""
    assert folded(text).splitlines() == [
        "",
        '    loop.for "i" %i to 4 {',
        '      %1 = loop.for "k1t" ... { 3 lines }',
        '      loop.for "t" %t to 4 {',
        "        %x = a",
        "      }",
        "    }",
    ]
    assert folded(f"{'x' * 200} {{\n}}\n") == f"{'x' * 115}... {{\n}}\n"


def test_made_up_graphs_give_numbers() -> None:
    """Weights of edges are positive, so that roots of degrees are numbers."""
    model = gnn.Sequential(gnn.GCNConv(np.ones((3, 2), np.float32)))
    module = model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 3), "f32"))
    sizes = {d for spec in module.inputs for d in spec.shape if isinstance(d, str)}
    inputs = random_inputs(module.inputs, dict.fromkeys(sizes, 60))
    assert inputs[0].nnz > 20
    assert np.isfinite(module.run_reference(*inputs)).all()


@pytest.mark.slow
def test_torch_as_a_peer(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = package("torch")
    path = tmp_path / "m.pt2"
    layers = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(layers, (torch.zeros(2, 5),)), path)
    run("bench", path, "--vs", "torch", "--vs", "numpy", "--threads", 1)
    rows = [line for line in capsys.readouterr().out.splitlines() if "torch" in line]
    assert float(rows[0].split("│")[-2]) < 1e-5
    run("bench", model, "--vs", "torch")
    assert "--vs: torch runs exported programs (.pt2) only, got m.mlir" in capsys.readouterr().err
