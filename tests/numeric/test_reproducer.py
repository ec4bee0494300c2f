"""Reproducer files: what a failing pass writes, and the outcome of running it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.backends.llvm import operations
from stepwell.core.errors import InternalError
from stepwell.core.ir.context import CompilerContext, PassHook
from stepwell.core.pipelines import pass_manager
from stepwell.core.registry import passes
from stepwell.diagnosis.reproducer import FOLDER
from stepwell.dialects.loop.ops import ForOp
from stepwell.tools import stepwell_opt

from ..harness import floats

pytestmark = pytest.mark.usefixtures("every_stage_verified")

Plant = Callable[[str, Callable[[ModuleOp], None]], None]


def model() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 6))
    b.output(b.relu(b.dense(x, floats(4, 6))))
    return b.module()


def crash(op: ModuleOp) -> None:
    raise KeyError('a "name"')


def invalid(op: ModuleOp) -> None:
    loop = next(inner for inner in op.walk() if isinstance(inner, ForOp))
    loop.properties["bound"] = AffineMapAttr(AffineMap(0, 0, ()))


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """A function that adds a mistake to a pass."""

    def add(name: str, mistake: Callable[[ModuleOp], None]) -> None:
        kind = passes()[name]()
        apply = kind.apply

        def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
            apply(self, ctx, op)
            mistake(op)

        monkeypatch.setattr(kind, "apply", wrong)

    return add


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where reproducers go."""
    path = tmp_path / "reproducers"
    path.mkdir()
    monkeypatch.setenv(FOLDER, str(path))
    return path


def compile_error(module: sw.Module, target: str = "host") -> InternalError:
    with pytest.raises(InternalError) as caught:
        sw.compile(module, target=target, threads=1)
    assert "\n" not in str(caught.value)
    return caught.value


def run(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says before it exits with 1."""
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(args)
    assert stop.value.code == 1
    return capsys.readouterr().err.strip()


def test_a_crash_leaves_a_file_that_crashes(
    plant: Plant, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("loop-schedule", crash)
    error = compile_error(model())
    assert error.pass_name == "loop-schedule"
    assert isinstance(error, sw.CompileError)
    path = error.reproducer
    assert path is not None
    assert path.parent.parent == folder
    message = "loop-schedule: internal error: KeyError: 'a \"name\"'"
    assert str(error) == f"{message}; reproducer: {path}"
    text = path.read_text()
    assert text.startswith(f"// {message}\n// stepwell-opt --run-reproducer case.mlir\n")
    assert "loop.kernel @fused_dense_relu" in text
    assert 'pipeline: "builtin.module(loop-schedule,convert-graph-to-rt,' in text
    assert 'stage: "kernels"' in text
    assert f'version_numpy: "{np.__version__}"' in text
    weights = sw.WeightStore.load(path.with_suffix(".safetensors"))
    assert len(weights) == 1
    before = sorted(folder.iterdir())
    assert run(["--run-reproducer", str(path)], capsys) == f"stepwell-opt: error: {message}"
    assert sorted(folder.iterdir()) == before  # it does not breed


def test_what_is_mended_runs_through(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as broken:
        kind = passes()["loop-schedule"]()
        broken.setattr(kind, "apply", lambda *_: crash(_[2]))
        path = compile_error(model()).reproducer
    stepwell_opt.main(["--run-reproducer", str(path), "-o", str(tmp_path / "out.mlir")])
    assert "llvm.func @main" in (tmp_path / "out.mlir").read_text()
    assert capsys.readouterr().err == ""


def test_the_pass_that_made_something_invalid_is_named(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    # Verified is at the end of a stage, where `convert-graph-to-loop` has long been at work.
    plant("convert-graph-to-loop", invalid)
    error = compile_error(model())
    assert error.pass_name == "convert-graph-to-loop"
    assert str(error).startswith("convert-graph-to-loop: result does not verify: loop.for: ")
    said = run(["--run-reproducer", str(error.reproducer)], capsys)
    assert said == f"stepwell-opt: error: {str(error).partition('; reproducer')[0]}"


def test_the_pass_that_made_code_invalid_is_named_without_verification(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(op: ModuleOp) -> None:
        last = next(inner for inner in op.walk(reverse=True) if isinstance(inner, llvm.StoreOp))
        last.operands = [last.value, last.value]

    plant("convert-to-llvm", wrong)
    monkeypatch.setattr(pass_manager, "OPEN_STAGES", ())
    error = compile_error(model())
    assert error.pass_name == "convert-to-llvm"
    assert str(error).startswith("convert-to-llvm: result does not verify: operand 'ptr' ")


def test_an_invalid_module_in_the_middle_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = passes()["graph-simplify"]()
    apply = kind.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(self, ctx, op)
        last = next(inner for inner in op.walk() if inner.name == "graph.relu")
        last.operands = [last.operands[0], last.operands[0]]

    monkeypatch.setattr(kind, "apply", wrong)
    error = compile_error(model())
    assert error.pass_name == "graph-simplify"


@pytest.mark.parametrize("target", ["host", "cuda:sm_90,emulated"])
def test_code_generation(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("no such instruction")

    monkeypatch.setitem(operations._EMIT, "llvm.getelementptr", broken)
    error = compile_error(model(), target=target)
    message = "code generation: internal error: AssertionError: no such instruction"
    assert str(error) == f"{message}; reproducer: {error.reproducer}"
    assert error.reproducer is not None
    assert "machine_code: true" in error.reproducer.read_text()
    said = run(["--run-reproducer", str(error.reproducer)], capsys)
    assert said.startswith(f"stepwell-opt: error: {message}")


def test_stages_and_the_driver_leave_one_too(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model().save(tmp_path / "m.mlir")
    exe = sw.compile(model(), threads=1)
    plant("graph-fuse-ops", crash)
    with pytest.raises(InternalError, match=r"graph-fuse-ops: .*; reproducer: .*mlir"):
        exe.ir("fused")
    said = run([str(tmp_path / "m.mlir"), "-p", "graph-simplify,graph-fuse-ops"], capsys)
    path = Path(said.rpartition("; reproducer: ")[2])
    assert "builtin.module(graph-fuse-ops)" in path.read_text()


def test_what_users_do_is_no_defect(folder: Path) -> None:
    class Hook(PassHook):
        def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sw.compile(model(), threads=1, hooks=[Hook()])
    with pytest.raises(sw.CompileError, match="stops short"):
        sw.compile(model(), pipeline="graph-simplify")
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(FOLDER, str(tmp_path / "file"))
    plant("loop-schedule", crash)
    error = compile_error(model())
    end = "; no reproducer could be written: Not a directory"
    assert str(error).startswith("loop-schedule: internal error: KeyError: ")
    assert str(error).endswith(end)
    assert error.reproducer is None


def test_an_interrupted_run_leaves_no_file(
    plant: Plant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("loop-schedule", crash)
    replace = os.replace

    def interrupted(source: str, target: Path) -> None:
        if Path(target).suffix == ".mlir":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sw.compile(model(), threads=1)
    (made,) = folder.iterdir()
    assert [path.name for path in made.iterdir()] == ["case.safetensors"]


@pytest.fixture
def case(plant: Plant) -> Path:
    """A reproducer."""
    plant("loop-schedule", crash)
    path = compile_error(model()).reproducer
    assert path is not None
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('format: "1"', 'format: "7"', "unknown format of a reproducer, expected 1, got 7; it"),
        ("mlir_reproducer", "other", "is not a reproducer; the metadata at the end of the text"),
        ('vector_bits: "', 'vector_bits: "x', "damaged reproducer: invalid literal for int()"),
        ("target_cpu", "target_cqu", "damaged reproducer: 'target_cpu'"),
        ("(loop-schedule", "(loop-shedule", 'unknown pass "loop-shedule"; nearest names: loop-'),
        ('"1"', "1", ": string literal expected"),
    ],
)
def test_a_file_that_cannot_be_run(
    case: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case.write_text(case.read_text().replace(old, new, 1))
    said = run(["--run-reproducer", str(case)], capsys)
    # An error of the parser shows its place in the text.
    assert len(said.splitlines()) == (3 if "string literal" in message else 1)
    assert message in said


def test_other_versions_are_told(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = case.read_text()
    here = np.__version__
    case.write_text(text.replace(f'version_numpy: "{here}"', 'version_numpy: "1.0"'))
    note, error = run(["--run-reproducer", str(case)], capsys).splitlines()
    assert note == f"stepwell-opt: note: it was written with numpy 1.0, but {here} is installed"
    assert error.startswith("stepwell-opt: error: loop-schedule: internal error")


def test_a_target_of_another_version(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It lacks a field that targets have now, and has one that they do not."""
    old, new = "target_fma_latency", "target_of_old"
    assert old in case.read_text()
    case.write_text(case.read_text().replace(old, new))
    error = run(["--run-reproducer", str(case)], capsys)
    assert error.startswith("stepwell-opt: error: loop-schedule: internal error")


def test_passes_beside_a_reproducer(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-p", "--pass-pipeline"):
        said = run(["--run-reproducer", str(case), option, "canonicalize"], capsys)
        assert said.endswith("--run-reproducer: the file says which passes run, expected no -p")


def test_a_reproducer_is_a_module_like_any_other(case: Path) -> None:
    assert sw.from_mlir(case).main.sym_name.data == "main"
